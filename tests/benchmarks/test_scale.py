"""The benches of scoring and of a keyed service, at small size: what they claim is checked by themselves."""

from typing import Any

import pytest

from benchmarks.record import Measured
from benchmarks.scale import keyed, score

pytest.importorskip("ray")
TINY: dict[str, Any] = {"rows": 600, "epochs": 1, "hidden_size": 4, "ensemble": 1}


def by_name(tables: Any) -> dict[str, Measured]:
    return {one.name: one for one in tables}


def test_scoring(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    size = score.Size(rounds=1, series=6, rows=50, files=3, small=1200, large=2400, long_small=0, tiny=3)
    found = by_name(score.Scoring(size, TINY).tables())
    assert [row["contender"] for row in found["scale score"].rows] == [
        "Ray, 1 worker",
        "Ray, 2 workers",
        "processes, 1 worker",
        "processes, 2 workers",
    ]
    assert "what all contenders wrote is the same to the last bit" in found["scale score"].checks
    assert [row["a file of"] for row in found["scale score memory"].rows] == [
        "1,200 rows, many series",
        "2,400 rows, many series",
    ]
    assert len(found["scale score parts"].rows) == 5
    assert list(tmp_path.iterdir()) == []


def test_a_keyed_service(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    size = keyed.Size(rounds=1, series=10, batches=2, kills=2)
    found = by_name(keyed.Keyed(size, TINY).tables())
    assert found["scale keyed"].checks == ["answers of both are the same to the last bit"]
    assert found["scale keyed kills"].rows[0]["rows lost or doubled"] == 0
    assert list(tmp_path.iterdir()) == []
