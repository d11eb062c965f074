"""The bench of forecasts: what is scored, and the page made of what was kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import horizons, horizons_page
from benchmarks.fresh import run_module
from tests.cases import random_panel
from varnn.errors import DataError
from varnn.evaluation.protocols import cut

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "benchmarks" / "results" / "horizons.json"


def test_one_fit_is_scored_at_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 20)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 1)
    monkeypatch.setattr("benchmarks.accuracy.ablation.cut_dataset", lambda name: cut(random_panel([400])))
    found = horizons.Found(**horizons.measure(threads=1, data="appliances", seed=2025))
    assert found.rows == 80
    assert set(found.mse) == {"VARNN", "direct linear", "persistence", "recursive AR", "recursive ARX"}
    assert all(len(errors) == 5 and np.isfinite(errors).all() for errors in found.mse.values())
    assert all(0.5 < one <= 1 for one in found.coverage)


def test_the_page_shows_the_committed_scores(tmp_path: Path) -> None:
    horizons_page.write(SAVED, tmp_path / "page.md")
    made = (tmp_path / "page.md").read_text()
    assert (ROOT / "docs" / "forecasts-measured.md").read_text() == made


def test_committed_forecasts_beat_the_simple_ones() -> None:
    """At each step on both data sets: better than recursive ARX and seasonal persistence."""
    lines = json.loads(SAVED.read_text())["lines"]
    errors = {(line["data"], line["forecast"]): np.array(line["mse"]) for line in lines}
    for data in horizons.DATA:
        for other in ("recursive ARX", "recursive AR", "seasonal persistence"):
            assert (errors[data, "VARNN"] < errors[data, other]).all(), (data, other)


def test_a_wrong_file_or_name_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(DataError, match="no file of"):
        horizons_page.write(wrong, tmp_path / "page.md")
    refused = run_module("benchmarks", "horizons", "--data", "moon")
    assert refused.returncode == 2 and "appliances" in refused.stderr
