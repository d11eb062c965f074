"""The bench on other streams: what is scored, and the page made of what was kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy import other_streams, other_streams_page
from benchmarks.fresh import run_module
from tests.cases import random_panel
from varnn.errors import ConfigError, DataError

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "benchmarks" / "results" / "other-streams.json"
QUICK = {"epochs": 1, "ensemble": 1, "hidden_size": 8}


def test_every_model_sees_the_first_rows_and_is_scored_on_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = random_panel([500], missing=0.1)
    monkeypatch.setattr(other_streams.Stream, "panel", lambda self: panel)
    found = other_streams.Found(**other_streams.measure(threads=1, name="O3, Huairou", settings=QUICK))
    last = slice(400, 500)
    known = ~np.isnan(panel.target[last])
    assert found.scored == known.sum() and found.rows == 500
    # Persistence by hand: the last label that is known.
    filled = panel.target.copy()
    for row in range(1, len(filled)):
        filled[row] = filled[row - 1] if np.isnan(filled[row]) else filled[row]
    errors = (filled[399:499] - panel.target[last])[known]
    assert found.mse["persistence"] == pytest.approx(np.mean(errors**2))
    assert set(found.mse) == {*other_streams.SIMPLE, "VARNN"} and 0 < found.coverage <= 1
    assert found.ratio == found.mse["VARNN"] / min(found.mse[name] for name in other_streams.SIMPLE)


def test_a_stream_is_a_column_of_one_series(data_folder: Path) -> None:
    panel = next(one for one in other_streams.STREAMS if one.name == "NO2, Guanyuan").panel()
    assert panel.n_series == 1 and len(panel) == 35_064
    assert panel.input_names == ("O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM") and panel.target_name == "NO2"
    assert 0 < np.isnan(panel.target).mean() < 0.1  # what is missing stays missing


def test_the_page_shows_the_committed_scores(tmp_path: Path) -> None:
    other_streams_page.write(SAVED, tmp_path / "other-streams.md")
    assert (ROOT / "docs" / "other-streams.md").read_text() == (tmp_path / "other-streams.md").read_text()
    assert "currentColor" in (tmp_path / "other-streams.svg").read_text()


def test_the_page_has_the_models_of_its_file(tmp_path: Path) -> None:
    saved = json.loads(SAVED.read_text())
    for number, line in enumerate(saved["lines"]):
        line["mse"] |= {name: (2 + number) * line["mse"]["VARNN"] for name in other_streams.SIMPLE}
        line["mse"]["seasonal boosting"] *= 100  # beyond the picture on every stream
    other = tmp_path / "other.json"
    other.write_text(json.dumps(saved))
    other_streams_page.write(other, tmp_path / "page.md")
    assert all(f"| {name} |" in (tmp_path / "page.md").read_text() for name in other_streams.SIMPLE)
    assert len(other_streams.SIMPLE) <= len(other_streams_page.MARKS)  # no two alike in the picture


def test_the_default_does_not_lose_out_of_the_box() -> None:
    saved = json.loads(SAVED.read_text())
    assert [line["stream"] for line in saved["lines"]] == [one.name for one in other_streams.STREAMS]
    assert saved["geometric mean"] < 1


def test_a_wrong_file_or_name_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(DataError, match="no file of"):
        other_streams_page.write(wrong, tmp_path / "page.md")
    with pytest.raises(ConfigError, match="there is no stream 'moon'"):
        other_streams.measure(threads=1, name="moon")
    refused = run_module("benchmarks", "other-streams", "--streams", "moon")
    assert refused.returncode == 2 and "Huairou" in refused.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_number_a_reader_meets_is_the_committed_one(page: str) -> None:
    saved = json.loads(SAVED.read_text())
    words = " ".join((ROOT / page).read_text().split())
    assert f"On {len(saved['lines'])} real streams" in words
    assert f"out of the box is {100 * (1 - saved['geometric mean']):.0f} % below" in words
