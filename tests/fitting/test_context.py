"""What rows are predicted from: the series where that does no harm, else windows."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor, load
from varnn.fitting import _context
from varnn.fitting._context import TIMES, with_context, with_limit
from varnn.model.fitted import SETTLED, Fitted
from varnn.model.prediction import predict
from varnn.network.cell import Architecture, Weights
from varnn.network.scoring import Scores, score

TINY: dict[str, Any] = {"hidden_size": 6, "epochs": 2, "ensemble": 2, "window": 4, "device": "cpu"}


def regressor(context: Any = "auto", **given: Any) -> VARNNRegressor:
    details = Details(memory_size=3, context=context)
    return VARNNRegressor(**{**TINY, "variant": "RM", **given}, details=details)


@pytest.fixture(scope="module")
def panel() -> Panel:
    return random_panel([300, 120], missing=0.1, seed=0)


@pytest.fixture(scope="module")
def models(panel: Panel) -> dict[str, Fitted]:
    return {one: regressor(one).fit(panel).fitted_ for one in ("auto", "series", "window")}


def carried_scores(fitted: Fitted, panel: Panel) -> tuple[Panel, Scores]:
    """Prepared rows, and what the cell makes of them from windows as long as the series."""
    prepared = fitted.prepared(panel).panel
    rows = (prepared.inputs, prepared.target, prepared.first_rows)
    longest = int(panel.lengths.max())
    found = score(fitted.architecture, fitted.weights, *rows, longest, keep_memory=True, keep_hidden=True)
    return prepared, found


def largest_state(fitted: Fitted, panel: Panel) -> float:
    """Size of the largest number in memory and hidden layers, as rows are predicted from the series."""
    _, found = carried_scores(fitted, panel)
    return max(1.0, float(np.abs(found.memory).max()), float(np.abs(found.hidden).max()))


def test_what_is_asked_for_is_taken(models: dict[str, Fitted]) -> None:
    assert models["series"].carried and not models["window"].carried
    assert models["auto"].carried  # of an RM, which forgets in one row
    assert models["window"].state_limit == np.inf


def test_the_limit_is_ten_times_the_largest_state(models: dict[str, Fitted], panel: Panel) -> None:
    for name in ("auto", "series"):
        assert models[name].state_limit == pytest.approx(10 * largest_state(models[name], panel), rel=1e-4)


def test_no_training_row_begins_anew(models: dict[str, Fitted], panel: Panel) -> None:
    free = replace(models["series"], state_limit=np.inf)
    np.testing.assert_array_equal(predict(models["series"], panel), predict(free, panel))


def test_refitting_measures_the_limit_anew(panel: Panel) -> None:
    """All rows are seen by what is refitted: a state that only the last rows give rise to counts."""
    wild = replace(panel, target=panel.target.copy())
    first = wild.between(0, 200)
    model = regressor("series", refit=False).fit(first).fitted_
    again = regressor("series", refit=True).fit(first).fitted_
    for one in (model, again):
        assert one.carried and one.state_limit > TIMES
    assert again.state_limit == pytest.approx(TIMES * largest_state(again, first), rel=1e-4)
    assert again.state_limit != model.state_limit


def growing(fitted: Fitted, factor: float) -> Fitted:
    """The same model with memories and activations that are multiplied with every row."""
    architecture = Architecture.of(
        "ARM+AM", n_inputs=fitted.architecture.n_inputs, hidden_size=2, memory_size=1
    )
    drawn = {
        name: np.zeros((fitted.n_members, *shape), np.float32) for name, shape in architecture.shapes.items()
    }
    drawn["fusion_bias"] += 1
    drawn["error_bias"] += 1
    drawn["carry"] += factor
    drawn["fusion"][:, -2:] = factor * np.eye(2, dtype=np.float32)
    return replace(fitted, architecture=architecture, weights=Weights(**drawn), experts=None, calibrator=None)


@pytest.mark.parametrize("wanted", ["auto", "series"])
@pytest.mark.parametrize("factor", [1.1, 3.0, 1e6])
def test_a_state_that_grows_without_end_keeps_windows(
    models: dict[str, Fitted], panel: Panel, wanted: Any, factor: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="varnn")
    model = growing(models["window"], factor)
    found = with_context(model, panel, None, wanted)
    assert not found.carried and found.state_limit == np.inf
    assert "grows without end" in caplog.text
    again = with_limit(replace(model, context="series", state_limit=7.0), panel)
    assert not again.carried


def test_a_state_that_settles_is_carried(models: dict[str, Fitted], panel: Panel) -> None:
    found = with_context(growing(models["window"], 0.9), panel, None, "auto")
    assert found.carried and found.state_limit == pytest.approx(TIMES * 10, rel=1e-3)  # 1 / (1 - 0.9)


def test_states_below_one_have_a_limit_of_ten(models: dict[str, Fitted], panel: Panel) -> None:
    model = growing(models["window"], 0.0)
    weights = Weights(**{name: 0.1 * matrix for name, matrix in model.weights.as_dict().items()})
    assert with_limit(replace(model, weights=weights, context="series"), panel).state_limit == TIMES


@pytest.mark.parametrize(
    ("ratio", "carried"), [(0.5, True), (1.0, True), (1.0099, True), (1.0101, False), (9.0, False)]
)
def test_a_validation_error_that_is_worse_by_more_than_a_hundredth_keeps_windows(
    models: dict[str, Fitted],
    panel: Panel,
    ratio: float,
    carried: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="varnn")
    monkeypatch.setattr(_context, "_error", lambda model, rows, own: 2.0 * (ratio if model.carried else 1.0))
    training, validation = panel.between(0, 80), panel.between(80, 120)
    found = with_context(models["window"], training, validation, "auto")
    assert found.carried == carried
    assert ("worse than windows" in caplog.text) == (not carried)
    assert with_context(models["window"], training, validation, "series").carried  # is not asked


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_an_error_that_is_no_number_keeps_windows(
    models: dict[str, Fitted], panel: Panel, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_context, "_error", lambda model, rows, own: error if model.carried else 1.0)
    assert not with_context(models["window"], panel.between(0, 80), panel.between(80, 120), "auto").carried


def test_windows_without_any_error_are_kept(
    models: dict[str, Fitted], panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_context, "_error", lambda model, rows, own: 1.0 if model.carried else 0.0)
    assert not with_context(models["window"], panel.between(0, 80), panel.between(80, 120), "auto").carried


@pytest.mark.parametrize("validated", [40, 3])
def test_a_network_that_remembers_what_windows_never_showed_it_keeps_windows(
    panel: Panel, validated: int
) -> None:
    """A member that counts rows: right within a window, and far off eight rows after a series began."""
    base = regressor("window", ensemble=1, variant="ARM", linear=False, adapt=None).fit(panel).fitted_
    architecture = Architecture.of("ARM", n_inputs=base.architecture.n_inputs, hidden_size=1, memory_size=1)
    drawn = {name: np.zeros((1, *shape), np.float32) for name, shape in architecture.shapes.items()}
    drawn["carry"] += 1
    drawn["error_bias"] += 1  # memory: rows since the window began
    drawn["fusion"][0, -1] = 1
    drawn["fusion_bias"] -= 7
    drawn["readout"] += 1
    model = replace(base, architecture=architecture, weights=Weights(**drawn), experts=None, calibrator=None)
    training, validation = panel.between(0, 80), panel.between(80, 80 + validated)
    assert with_context(model, training, validation, "series").carried
    assert not with_context(model, training, validation, "auto").carried


def test_the_error_is_that_of_the_network_on_the_rows_own_labels(
    models: dict[str, Fitted], panel: Panel
) -> None:
    fitted = models["series"]
    own = np.arange(len(panel)) % 3 > 0
    prepared, found = carried_scores(fitted, panel)
    expected = np.nanmean(np.square(prepared.target - found.predictions.mean(axis=0))[own])
    assert _context._error(fitted, panel, own) == pytest.approx(expected, rel=1e-5)


def test_the_models_of_the_paper_have_windows(panel: Panel) -> None:
    model = VARNNRegressor.paper("RM", epochs=1, hidden_size=4, device="cpu").fit(panel)
    assert not model.fitted_.carried


def test_rows_kept_are_enough_for_a_state_to_settle(models: dict[str, Fitted]) -> None:
    for name, windows in (("series", SETTLED), ("window", 1)):
        kept = max(len(one.target) for one in models[name].last_rows.values())
        assert kept >= windows * TINY["window"] + models[name].pipeline.reach
        assert models[name].reach <= kept


def test_a_file_keeps_what_rows_are_predicted_from(
    models: dict[str, Fitted], panel: Panel, tmp_path: Path
) -> None:
    for context in ("series", "window"):
        model = regressor(context).fit(panel)
        model.save(tmp_path / f"{context}.varnn")
        again = load(tmp_path / f"{context}.varnn")
        assert (again.fitted_.context, again.fitted_.state_limit) == (context, model.fitted_.state_limit)
        np.testing.assert_array_equal(again.predict(panel), model.predict(panel))
        assert again.fitted_.fingerprint == model.fitted_.fingerprint
        assert again.details == model.details
