"""The ablation: what is scored, what is kept, and the page made of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import ablation, ablation_page
from benchmarks.accuracy.ablation import AblationScore
from benchmarks.accuracy.ablation_steps import ABLATION_STEPS, Step, joined
from benchmarks.fresh import run_module
from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.evaluation.protocols import Parts, cut

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "benchmarks" / "results" / "ablation.json"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    generator = np.random.default_rng(0)
    made = cut(Panel.from_arrays(None, np.cumsum(generator.normal(size=400)), series=[0] * 200 + [1] * 200))
    monkeypatch.setattr(ablation, "cut_dataset", lambda name: made)
    return made


def test_a_step_is_scored_on_labelled_test_rows(parts: Parts) -> None:
    one = ablation.score("appliances", "ARX", 2025)
    rows = ablation.scored_rows(parts)
    assert len(one.predictions) == rows.sum() == 80
    truth = parts.lead_in.target[rows]
    assert one.mse == pytest.approx(np.mean((truth - one.predictions) ** 2) / parts.unit**2)
    assert one.memory > 10


def test_lines_compare_every_seed_with_arx(parts: Parts) -> None:
    truth = parts.lead_in.target[ablation.scored_rows(parts)]
    noise = np.random.default_rng(1).normal(size=(3, len(truth)))

    def scored(step: str, seed: int, error: float, row: int) -> AblationScore:
        predictions = truth + error * noise[row]
        mse = float(np.mean((error * noise[row]) ** 2)) / parts.unit**2
        return AblationScore(step, seed, mse, 1.0, 100.0 + seed, predictions)

    every = [scored("persistence", 2025, 2.0, 0), scored("ARX", 2025, 1.0, 0)]
    every += [scored("adapting", 2025, 0.5, 1), scored("adapting", 2026, 0.6, 2)]
    lines = {line["step"]: line for line in ablation.result({"appliances": every})["lines"]}
    assert lines["adapting"]["seeds"] == 2
    assert lines["adapting"]["against ARX"] < -0.5
    assert 0 < lines["adapting"]["p against ARX"] < 0.05
    assert lines["ARX"]["skill"] == pytest.approx(0.75, abs=1e-6)
    assert lines["adapting"]["memory"] == 2126.0


def test_a_second_run_takes_what_the_first_left(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ablation.score("appliances", "persistence", 2025)
    ablation._remember(tmp_path, ("appliances", "persistence", 2025), one)
    monkeypatch.setattr(ablation, "score", lambda *_: pytest.fail("it was kept"))
    found = ablation.run(["appliances"], ["persistence"], cache=tmp_path)
    np.testing.assert_array_equal(found["appliances"][0].predictions, one.predictions)
    assert ablation.count(["appliances"], ["persistence", "RM"], seeds=3) == 11  # RM: ten seeds
    assert ablation.count(["bidmc"], ["persistence", "RM"], seeds=3) == 4
    assert isinstance(ABLATION_STEPS[0], Step)


def test_the_last_steps_are_fitted_to_training_and_validation_rows(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 20)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 1)
    rows = joined(parts.train, parts.validation)
    assert rows.lengths.tolist() == [160, 160] and rows.ids == parts.train.ids
    np.testing.assert_array_equal(rows.target[:128], parts.train.target[:128])
    np.testing.assert_array_equal(rows.target[128:160], parts.validation.target[:32])
    last = {one.name: one for one in ABLATION_STEPS}["all rows"].make(2025)
    last.fit(parts.train, validation=parts.validation)
    assert last.fitted_.training.refitted_on == 320  # type: ignore[attr-defined]  # a fitted one
    ours, both = (ablation.score("appliances", name, 2025) for name in ("ARX", "ARX, all rows"))
    assert not np.array_equal(ours.predictions, both.predictions)


def test_a_wrong_file_or_name_is_refused_in_words(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(DataError, match="is no file of `python -m benchmarks ablation"):
        ablation_page.write(wrong, tmp_path / "page.md")
    result = run_module("benchmarks", "ablation", "--data", "titanic")
    assert result.returncode == 2 and "appliances" in result.stderr


def test_the_page_shows_the_committed_scores() -> None:
    saved = json.loads(COMMITTED.read_text())
    made = ablation_page.page(saved, saved["lines"], COMMITTED.name)
    assert (ROOT / "docs" / "wins.md").read_text() == made
