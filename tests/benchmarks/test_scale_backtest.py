"""The bench of a backtest by one worker and by two: what it tells, and that all find the same."""

import os
from contextlib import nullcontext

import pytest

from benchmarks.scale import backtest
from varnn.jobs import cores


def test_one_worker_and_two_find_the_same(local_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtest, "_SMALL_JOBS", 20)
    monkeypatch.setattr(backtest, "two_workers", lambda: nullcontext(0.0))  # they are there
    small = {"hidden_size": 4, "epochs": 1, "ensemble": 1}
    measured = backtest.Backtesting(backtest.Size(rounds=1, rows=400, origins=2, horizon=2), settings=small)
    parts, workers = measured.tables()
    assert [row["contender"] for row in workers.rows] == [
        "Ray, 1 worker",
        "Ray, 2 workers",
        "processes, 1 worker",
        "processes, 2 workers",
    ]
    assert "what all contenders found is the same to the last bit" in workers.checks
    assert [row["1 worker / this, best"] for row in workers.rows][::2] == [1.0, 1.0]
    assert all(isinstance(row["figure"], float) for row in parts.rows)


def test_one_core_is_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (None, "7"):
        monkeypatch.delenv(cores.SWITCH, raising=False)
        if before is not None:
            monkeypatch.setenv(cores.SWITCH, before)
        with backtest.one_core():
            assert cores.usable() == 1
        assert os.environ.get(cores.SWITCH) == before
