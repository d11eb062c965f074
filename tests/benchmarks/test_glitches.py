"""The glitches bench: what is scored, and the page made of what was kept."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.fresh import run_module
from benchmarks.record import Row, Saved, read, save
from benchmarks.robustness import glitches, glitches_page, rough
from varnn.errors import DataError

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
SAVED = RESULTS / "glitches.json"


def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 20)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 1)


def test_every_glitch_and_shift_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    wild, shifts = glitches.measure(members=1, rows=400, places=2)
    assert len(wild.rows) == 3 * 2 * 3 + 3 and len(shifts.rows) == 3 * (2 + 2)
    for row in wild.rows:
        in_doubt = row["where"] == "label" and float(row["size"] or 0) < 1000  # one row goes half of the way
        assert 0.5 < float(row["RMSE of the next 25 / without"] or 0) < (30 if in_doubt else 3), row
    for row in shifts.rows:
        assert 0 <= float(row["rows until followed"] or 0) <= 301
    one = next(
        row for row in shifts.rows if (row["stream"], row["what"], row["size"]) == ("arx", "shift", 10)
    )
    assert 2 <= float(one["rows until followed"] or 0) < 50  # it cannot be known before


def test_rough_streams_are_what_they_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    assert len(rough.STREAMS) >= 26
    made = {}
    for name, make in rough.STREAMS.items():
        generator = np.random.default_rng(0)
        made[name] = make(generator, generator.normal(size=(1000, 2)))
    assert all(len(labels) == 1000 for labels in made.values())
    assert np.isnan(made["labels missing in runs of 50"]).mean() > 0.1
    assert set(made["binary target"]) == {0.0, 1.0} and np.ptp(made["constant"]) == 0
    assert made["exploding variance"][-50:].std() > 1e4 * made["exploding variance"][:50].std()
    scored = rough.measure(("constant", "scale 1e12", "Cauchy noise"), rows=400)
    assert [row["all finite"] for row in scored.rows] == ["yes"] * 3


def test_adapting_gains_while_the_law_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    found = rough.back_again(rows=600, members=1, seeds=1)
    ratios = {(row["forgetting"], row["rows"]): row["MSE adapting / not"] for row in found.rows}
    assert len(ratios) == 2 * 5 and all(float(one or 0) > 0 for one in ratios.values())
    assert float(ratios["0.99", "another law"] or 9) < 0.9


def test_the_page_shows_the_committed_figures(tmp_path: Path) -> None:
    glitches_page.write(SAVED, tmp_path / "page.md")
    assert (ROOT / "docs" / "wild-values.md").read_text() == (tmp_path / "page.md").read_text()


def committed(name: str) -> list[Row]:
    return next(one.rows for one in read(SAVED).measured if one.name == name)


def test_committed_glitches_cost_little() -> None:
    """Little where they are too far off to be shifts; else two thirds of what they did; coverage stays."""
    for now, was in zip(committed("glitches"), committed("glitches (before)"), strict=True):
        cost, before = (float(one["RMSE of the next 25 / without"] or 9) for one in (now, was))
        in_doubt = now["where"] == "label" and float(now["size"] or 0) < 1000
        assert cost < 2 or (in_doubt and cost < before / 1.5), now
        assert 0.87 < float(now["coverage of the next 200"] or 0) < 0.93, now
        if now["where"] == "label" and now["size"] == 100:
            assert before > 20


def test_committed_shifts_are_followed_sooner_than_labels_that_are_all_taken() -> None:
    for now, was in zip(committed("shifts"), committed("shifts (before)"), strict=True):
        assert float(now["rows until followed"] or 0) <= float(was["rows until followed"] or 0), now


def test_committed_rough_streams_stay_finite() -> None:
    assert len(committed("rough streams")) >= 26
    assert {row["all finite"] for row in committed("rough streams")} == {"yes"}
    for row in committed("rough streams"):
        assert float(row["RMSE adapting / not"] or 9) < 1.05, row


def test_figures_of_before_stand_in_brackets(tmp_path: Path) -> None:
    saved = read(SAVED)
    now = [one for one in saved.measured if not one.name.endswith(glitches_page.BEFORE)]
    path = tmp_path / "both.json"
    alone = Saved(saved.command, saved.complete, saved.made, now)
    save(path, glitches_page.with_before(now, alone), "python -m benchmarks glitches")
    first = now[0].rows[0]
    cell = f"{first['coverage of the next 200']} ({first['coverage of the next 200']})"
    assert cell in glitches_page.page(read(path), path.name)
    save(path, now, "python -m benchmarks glitches")
    assert cell not in glitches_page.page(read(path), path.name)


def test_a_wrong_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be those of the bench `glitches`"):
        glitches_page.write(RESULTS / "robustness.json", tmp_path / "page.md")
    refused = run_module("benchmarks", "glitches", "--rows", "10")
    assert refused.returncode == 2
