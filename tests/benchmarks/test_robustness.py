"""The robustness bench: ratios to the best possible are what they say, and its page shows them."""

import inspect
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.record import Measured, Row, read, save
from benchmarks.robustness import trouble, trouble_page
from benchmarks.robustness.trouble import RATIO, Case
from varnn import Panel, VARNNRegressor
from varnn.datasets import synthetic
from varnn.errors import DataError, VarnnError

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "benchmarks" / "results" / "robustness.json"


class Oracle:
    """Knows the best prediction of every row, and misses it by a fixed share of the best's own error."""

    def __init__(self, made: synthetic.Synthetic, excess: float) -> None:
        self.made, self.excess = made, excess

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Oracle":
        return self

    def predict(self, panel: Panel) -> npt.NDArray[np.float64]:
        best = self.made.best[panel.rows]
        return np.asarray(best + self.excess * (best - panel.target))


def test_a_ratio_of_one_is_the_best_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    made = synthetic.make("drift", rows=400, strength=2.0, seed=7)
    contenders = {"best": lambda seed: Oracle(made, 0.0), "twice off": lambda seed: Oracle(made, 1.0)}
    monkeypatch.setattr(trouble, "CONTENDERS", contenders)
    rows = trouble.measure(threads=1, kind="drift", strength=2.0, seed=7, rows=400)
    assert [(row["contender"], row[RATIO]) for row in rows] == [("best", 1.0), ("twice off", 4.0)]
    assert {(row["strength"], row["seed"], row["rows"]) for row in rows} == {(2.0, 7, 400)}
    late = slice(320, 400)
    smallest = np.sqrt(np.mean((made.panel.target - made.best)[late] ** 2))
    assert rows[0]["RMSE"] == pytest.approx(smallest, rel=1e-3)


def test_every_contender_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 20)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 1)
    rows = trouble.measure(threads=1, kind="level-shift", strength=1.0, seed=0, rows=300)
    assert [row["contender"] for row in rows] == list(trouble.CONTENDERS)
    assert all(1 < float(row[RATIO] or 0) < 100 for row in rows)


def test_plain_and_adaptive_differ_in_one_setting() -> None:
    plain, adaptive = (trouble.CONTENDERS[name](3) for name in ("VARNN", "VARNN, adaptive"))
    assert isinstance(plain, VARNNRegressor) and isinstance(adaptive, VARNNRegressor)
    assert plain.adapt is None
    assert plain.set_params(adapt="constant-gain").get_params() == adaptive.get_params()
    assert plain.random_state == 3


def test_every_kind_but_the_mixture_is_measured_at_every_strength() -> None:
    assert set(trouble.KINDS) == set(synthetic.KINDS) - {"mixed"}
    cases = trouble.cases(seeds=3, rows=500)
    assert len(cases) == len(set(cases)) == 3 * len(trouble.KINDS) * len(trouble.STRENGTHS)
    inspect.signature(trouble.measure).bind(threads=1, **asdict(cases[0]))


def rows_of(case: Case, ratios: dict[str, float]) -> list[Row]:
    return [
        {"contender": name, "strength": case.strength, "seed": case.seed, "rows": case.rows, RATIO: ratio}
        for name, ratio in ratios.items()
    ]


def fake(function: str, *, threads: int, **case: Any) -> list[Row]:
    """Stand in for a measurement: ratios that tell where they come from."""
    assert (function, threads) == ("benchmarks.robustness.trouble:measure", 1)
    one = Case(**case)
    grown = 1 + one.strength * (1 + one.seed)
    return rows_of(one, {"VARNN": grown, "ARX": 4 * grown, "persistence": 12.0})


def test_streams_are_measured_side_by_side_and_told_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.fresh.call", fake)
    found: dict[Case, list[Row]] = {}
    cases = trouble.cases(["regimes", "drift"], [1, 0], seeds=2)
    trouble.run(cases, workers=2, on_done=found.__setitem__)
    assert set(found) == set(cases)
    drift, regimes = trouble.tables(found)
    assert (drift.name, regimes.name) == ("robustness drift", "robustness regimes")
    assert [(row["strength"], row["seed"]) for row in drift.rows[::3]] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_stream_that_fails_ends_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(function: str, **_: Any) -> list[Row]:
        raise VarnnError("it broke")

    monkeypatch.setattr("benchmarks.fresh.call", failing)
    with pytest.raises(VarnnError, match="it broke"):
        trouble.run(trouble.cases(), workers=2, on_done=lambda case, rows: None)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    found = {
        one: fake("benchmarks.robustness.trouble:measure", threads=1, **asdict(one))
        for one in trouble.cases()
    }
    save(tmp_path / "found.json", trouble.tables(found), "python -m benchmarks robustness")
    return tmp_path / "found.json"


def test_the_page_shows_geometric_means_and_the_smallest_in_bold(saved: Path) -> None:
    trouble_page.write(saved, saved.with_name("page.md"))
    text = saved.with_name("page.md").read_text()
    mean = (3 * 5) ** 0.5  # 1 + 2 * 1 and 1 + 2 * 2
    assert f"| VARNN | {f'**{mean:.2f}** | ' * 8}\n".replace(" | \n", " |\n") in text
    assert f"| ARX | {f'{4 * mean:.2f} | ' * 8}".strip() in text, "12.00 is not below 3.87"
    assert "at strength 2" in text
    assert "the last fifth of 6,000 rows" in text
    assert "learning from 3,840 rows" in text
    assert "drawn from 2 seeds" in " ".join(text.split())
    assert "](page.svg)" in text
    assert "| VARNN | **1.00** | **1.73** | **2.45** | **3.87** |" in text
    assert "| strength 0 | strength 0.5 | strength 1 | strength 2 |" in text
    svg = saved.with_name("page.svg").read_text()
    for name in ("VARNN", "ARX", "persistence", "level shifts", "HPC write times"):
        assert f">{name}<" in svg
    assert "prefers-color-scheme" in svg
    assert svg.count(">strength<") == len(trouble.KINDS)


def test_an_interrupted_run_still_gives_a_page(saved: Path) -> None:
    case = Case("drift", 0.0, 0, rows=500)
    other = Case("regimes", 1.0, 0, rows=500)
    found = {case: rows_of(case, {"VARNN": 1.5}), other: rows_of(other, {"VARNN": 2.0, "ARX": 3.0})}
    save(saved, trouble.tables(found), "python -m benchmarks robustness", complete=False)
    text = trouble_page.page(read(saved), "found.json", "page.svg")
    assert "It was interrupted" in text
    assert "| VARNN | - | **2.00** | - |" in text
    assert "drawn from one seed" in " ".join(text.split())


def test_other_figures_are_refused(tmp_path: Path) -> None:
    table = Measured(name="train RM", title="x", threads=1, rows=[{"contender": "x", "us": 1.0}])
    save(tmp_path / "a.json", [table], "python -m benchmarks train")
    with pytest.raises(DataError, match="those of the bench `robustness`"):
        trouble_page.write(tmp_path / "a.json", tmp_path / "a.md")


def test_the_command_shows_who_copes_and_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.fresh.call", fake)
    out = tmp_path / "a.json"
    arguments = ["robustness", "--kinds", "drift", "--strengths", "0,3", "--json", str(out)]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    assert "MSE / best possible, at strength 3" in done.output
    assert f"{(4 * 7) ** 0.5:.2f}" in done.output
    content = json.loads(out.read_text())
    assert content["complete"] and len(content["measured"][0]["rows"]) == 2 * 2 * 3
    done = CliRunner().invoke(app, ["robustness-page", str(out), "-o", str(tmp_path / "p.md")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.svg").is_file()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--kinds", "drift,storm", "kinds must be one of"),
        ("--strengths", "1,strong", "numbers from 0"),
        ("--strengths", "1,-1", "numbers from 0"),
        ("--strengths", "nan", "numbers from 0"),
    ],
)
def test_bad_use_is_refused(option: str, value: str, message: str) -> None:
    done = CliRunner().invoke(app, ["robustness", option, value])
    assert message in str(done.exception)


def test_the_committed_page_is_what_the_committed_figures_give() -> None:
    text = (ROOT / "docs" / "robustness.md").read_text()
    assert text == trouble_page.page(read(COMMITTED), COMMITTED.name, "robustness.svg")
    assert (ROOT / "docs" / "robustness.svg").is_file()
