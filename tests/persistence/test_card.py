"""Each model file tells people what it is."""

import json
import struct
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import varnn
from varnn import Panel, VARNNRegressor
from varnn.cli.app import app
from varnn.errors import ModelFileError
from varnn.persistence import model_file
from varnn.persistence.card import card, period


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    generator = np.random.default_rng(0)
    heat = generator.normal(size=(200, 1))
    panel = Panel.from_arrays(
        heat,
        np.cumsum(generator.normal(size=200)) + 3 * heat[:, 0],
        time=np.datetime64("2026-01-01T00:00") + np.arange(200) * np.timedelta64(10, "m"),
        input_names=["heat [K]"],
        target_name="load",
    )
    return VARNNRegressor(epochs=1, hidden_size=8, ensemble=2).fit(panel)


@pytest.fixture
def path(model: VARNNRegressor, tmp_path: Path) -> Path:
    model.save(tmp_path / "m.varnn")
    return tmp_path / "m.varnn"


def test_the_card_says_what_a_user_asks_first(model: VARNNRegressor, path: Path) -> None:
    text = model_file.read_card(path)
    errors = model.fitted_.training.validation
    for part in (
        "Predicts 'load' one row ahead, from the labels before it and 1 input: 'heat [K]'.",
        "Trained on 200 rows of 1 series. Rows given: 2026-01-01 to 2026-01-02T09:10.",
        f"this model {errors['model'] ** 0.5:.4g}, persistence {errors['persistence'] ** 0.5:.4g}, "
        f"its linear part alone {errors['linear part'] ** 0.5:.4g}.",
        "windows of 24 rows; 8 hidden units, memory of 48, 2 members.\n",
        "Goes on learning as labels arrive, each series by itself: linear part and readout, and how much "
        "each of 6 experts counts (most at first: ",
        "Limits: one step ahead",
        "variant='ARM+AM'",
        f"Written by varnn {varnn.__version__}.",
    ):
        assert part in text
    assert len(text.splitlines()) < 10


def test_the_checksum_covers_the_card(path: Path) -> None:
    blob = path.read_bytes()
    assert blob.count(b"one row ahead") == 1
    path.write_bytes(blob.replace(b"one row ahead", b"two row ahead"))
    with pytest.raises(ModelFileError, match="changed after it was written"):
        varnn.load(path)


def test_inspect_shows_names_as_they_stand_and_keeps_the_card(path: Path) -> None:
    shown = CliRunner().invoke(app, ["inspect", str(path)]).output
    assert "1: heat [K]" in shown  # brackets are no markup
    facts = json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).output)
    assert facts["card"] == model_file.read_card(path)


def test_the_card_is_text_in_the_header(path: Path) -> None:
    blob = path.read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(json.loads(blob[8 : 8 + size])["__metadata__"]["varnn"])
    assert header["card"] == model_file.read_card(path)


def test_a_model_without_linear_part_and_validation_has_a_shorter_one() -> None:
    X = np.random.default_rng(1).normal(size=(30, 14))
    paper = VARNNRegressor.paper("RM", epochs=1, validation_fraction=0).fit(X, np.arange(30.0))
    text = card(paper.fitted_, {})
    assert "14 inputs: 'x0', " in text and "'x11', ..." in text
    assert "held out" not in text and "linear part" not in text


def test_what_does_not_learn_on_says_how_much_of_its_correction_is_added() -> None:
    panel = Panel.from_arrays(None, np.cumsum(np.random.default_rng(2).normal(size=200)))
    fixed = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, adapt=None).fit(panel)
    text = card(fixed.fitted_, {})
    assert f", {fixed.fitted_.shrinkage:.0%} of its correction added to the linear part.\n" in text
    assert "learning" not in text


@pytest.fixture(scope="module")
def seasonal() -> VARNNRegressor:
    generator = np.random.default_rng(3)
    day, heat = 5 * generator.normal(size=24), generator.normal(size=480)
    panel = Panel.from_arrays(
        heat[:, None],
        np.resize(day, 480) + 3 * heat + np.cumsum(generator.normal(size=480)),
        time=np.datetime64("2026-01-01T00:00") + np.arange(480) * np.timedelta64(1, "h"),
    )
    return VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)


def test_seasons_are_named_in_rows_and_in_words(seasonal: VARNNRegressor) -> None:
    fitted = seasonal.fitted_
    assert "24 rows (a day)" in fitted.seasons
    text = card(fitted, {})
    assert f". Seasons: {', '.join(fitted.seasons)}.\n" in text
    errors = fitted.training.validation
    assert f"seasonal persistence {errors['seasonal persistence'] ** 0.5:.4g}" in text
    timeless = replace(fitted, last_rows={n: replace(one, time=None) for n, one in fitted.last_rows.items()})
    assert "24 rows" in timeless.seasons  # of which nobody knows how long they are


@pytest.mark.parametrize(
    "context, words",
    [
        ("series", "state carried through the series, trained on windows of 24 rows"),
        ("window", "windows of 24 rows"),
    ],
)
def test_card_and_inspect_say_what_rows_are_predicted_from(
    context: Any, words: str, model: VARNNRegressor, tmp_path: Path
) -> None:
    path, other = tmp_path / "m.varnn", copy(model)
    other.fitted_ = replace(model.fitted_, context=context, state_limit=100.0)
    other.save(path)
    assert f"\nNetwork: {words}; 8 hidden units" in model_file.read_card(path)
    facts = json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).output)
    assert facts["predicts from"] == words
    assert "windows of 1 row" in replace(other.fitted_, window=1).context_in_words


def test_inspect_lists_seasons_and_experts(seasonal: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.varnn"
    seasonal.save(path)
    fitted = seasonal.fitted_
    facts = json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).output)
    assert facts["seasons"] == list(fitted.seasons) and "shrinkage of the correction" not in facts
    assert fitted.experts is not None
    assert [one["name"] for one in facts["experts"]] == list(fitted.experts.names)
    assert sum(one["weight at first"] for one in facts["experts"]) == pytest.approx(1, abs=1e-3)
    for one in facts["experts"]:
        assert one["validation RMSE"] ** 2 == pytest.approx(fitted.training.validation[one["name"]])
    shown = CliRunner().invoke(app, ["inspect", str(path)]).output
    first = facts["experts"][0]
    listed = shown.partition("Experts: weight at first, RMSE on rows held out")[2]
    line = next(line for line in listed.splitlines() if line.startswith("  persistence"))
    assert f"{first['weight at first']:.0%}" in line and f"{first['validation RMSE']:.4g}" in line


def test_periods() -> None:
    assert period(None) is None
    assert period(np.array([], dtype=np.int64)) is None
    assert period(np.array([3.5, 1.0])) == ["1.0", "3.5"]
