"""The bench of streams in rough use: small, and able to see what is wrong."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from benchmarks.robustness import durability
from benchmarks.robustness.kills import Killed, _compare, lines_for, lines_needed, summed_up
from benchmarks.robustness.line_parts import parts
from varnn.streaming import json_text
from varnn.streaming.store import Store


@pytest.fixture(scope="module")
def model() -> Any:
    return durability.fitted("RM", 2)


@pytest.mark.parametrize("lists", [False, True])
def test_what_is_wrong_is_counted(model: Any, tmp_path: Path, lists: bool) -> None:
    lines = lines_for(2, 40, lists=lists)
    with Store(model, tmp_path / "s") as store:
        messages = [json.loads(line) for line in lines]
        answers = [store.answer_all(one) if lists else store.answer(one) for one in messages]
    got = {place: json.dumps(answer) for place, answer in enumerate(answers)}
    right, lost, differing, doubled = Killed(), Killed(), Killed(), Killed()
    _compare(model, tmp_path / "s", lines, got, right)
    assert right == Killed()
    other = json.dumps(answers[3]).replace('"prediction": ', '"prediction": 1')
    _compare(model, tmp_path / "s", lines, got | {3: other}, differing)
    assert differing == Killed(differing=1)
    for change, found in ((-1, lost), (+2, doubled)):
        with sqlite3.connect(tmp_path / "s") as database:
            database.execute("UPDATE series SET seq = seq + ? WHERE id = 1", (change,))
        database.close()
        _compare(model, tmp_path / "s", lines, got, found)
    assert lost == Killed(lost=1)
    assert doubled == Killed(doubled=1)


def test_cases_are_summed_up() -> None:
    cases = {"a": Killed(kills=3, lost=1, seconds_to_go_on=[0.5, 0.7, 0.6]), "b": Killed(kills=2)}
    summed = summed_up(cases)
    assert summed["total"]["kills"] == 5
    assert summed["total"]["lost"] == 1
    assert [one["median seconds from start to first answer"] for one in summed["cases"]] == [0.6, None]
    assert lines_needed(10, 50) > 10 * 200


def test_speed_and_cost_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = durability.speed(rounds=1, n_inputs=2, lines=120, models=["RM"])
    assert {row["way"] for row in rows} == set(durability._ways(None))
    assert all(float(row["lines a second"] or 0) > 0 for row in rows)
    assert next(row for row in rows if row["way"] == "no state")["time / no state"] == 1
    assert list(tmp_path.iterdir()) == []
    cost = durability.cost(threads=1, name="RM", n_inputs=2)
    assert 0.1 < float(cost["kB of a state"] or 0) < 5


def test_nonsense_is_counted() -> None:
    found = durability.nonsense(200, n_inputs=2)
    assert found["answers"] == found["answers that are JSON"] == found["lines"] == 202
    assert found["exit code"] == found["good lines between them with another answer than without"] == 0


def test_the_committed_figures_are_those_of_the_page() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "how-to" / "durable-streams.md").read_text()
    kills = json.loads((root / "benchmarks" / "results" / "kills.json").read_text())
    total = kills["kills"]["total"]
    assert kills["complete"]
    assert f"{total['kills']} kills" in page
    assert [total[name] for name in ("lost", "doubled", "torn", "differing")] == [0, 0, 0, 0]
    assert kills["malformed"]["answers that are JSON"] == kills["malformed"]["lines"] >= 50_000
    store = json.loads((root / "benchmarks" / "results" / "store.json").read_text())
    for row in store["speed"]:
        assert f"{row['lines a second']:,.0f}" in page


def test_the_parts_of_a_line_are_timed_by_each_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = json_text.fast
    rows = parts(rounds=1, lines=30)
    assert json_text.fast is before
    libraries = {row["JSON by"] for row in rows}
    assert libraries == {"standard library"} | ({"orjson"} if before is not None else set())
    found = {(row["JSON by"], row["part"]) for row in rows}
    for part in ("read", "check", "write", "the model's step", "whole line, --state, less the model"):
        assert {(one, part) for one in libraries} <= found
    assert len(rows) == len(found) == 10 * len(libraries)
