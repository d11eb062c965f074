"""What validation rows decide after training, gone through some rows at a time."""

import math
import pickle
import weakref
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor, datasets
from varnn.data.context import own_rows, preceded
from varnn.data.preparation import split_in_time
from varnn.fitting import _validation, horizon, one_step
from varnn.fitting._validation import Review
from varnn.model import prediction
from varnn.model.fitted import last_rows_of
from varnn.model.intervals import CalibrationRows, ErrorScale
from varnn.network.cell import Weights
from varnn.network.scoring import score

PANEL = random_panel([500, 340], missing=0.1, seed=3)
SETTINGS: dict[str, Any] = {"epochs": 2, "hidden_size": 6, "ensemble": 2, "window": 5, "refit": False}


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(**SETTINGS).fit(PANEL)


@pytest.fixture(scope="module")
def layers(model: VARNNRegressor) -> Any:
    """Hidden layers of the first member, from windows as long as the series."""
    fitted, prepared = model.fitted_, model.fitted_.pipeline.rows(PANEL)
    assert fitted.carried
    first = Weights(**{name: matrix[:1] for name, matrix in fitted.weights.as_dict().items()})
    rows = (prepared.inputs, prepared.target, prepared.first_rows)
    return score(fitted.architecture, first, *rows, int(PANEL.lengths.max()), keep_hidden=True).hidden[0]


@pytest.mark.parametrize("most", [0, 100, 840])
def test_a_review_is_the_prediction_in_its_parts(
    model: VARNNRegressor, most: int, layers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_validation, "predict_chunks", partial(prediction.predict_chunks, max_rows=64))
    review = Review.of(model.fitted_, PANEL, most)
    np.testing.assert_array_equal(review.predictions(model.fitted_.shrinkage), model.predict(PANEL))
    np.testing.assert_array_equal(review.linear_predictions, model.fitted_.pipeline(PANEL).linear_predictions)
    assert review.late.lengths.tolist() == {0: [], 100: [50, 50], 840: [500, 340]}[most]
    np.testing.assert_allclose(review.hidden, layers[review.late.rows], rtol=1e-4, atol=1e-5)
    hidden, errors, starts = review.seen(0.5)
    assert len(hidden) == len(errors) == starts[-1]
    np.testing.assert_array_equal(errors, (PANEL.target - review.predictions(0.5))[review.late.rows])


def test_what_is_noted_of_validation_rows_is_what_predicting_them_gives(model: VARNNRegressor) -> None:
    training, validation = split_in_time(PANEL, 1 - model.validation_fraction, model.validation_fraction)
    joined, own = preceded(validation, training, model.fitted_.reach)  # rows before them are looked back on
    found = np.empty(len(joined))
    for chunk in prediction.predict_chunks(model.fitted_, joined, teach=own):
        found[chunk.rows] = chunk.prediction
    noted = model.fitted_.training.validation
    first = np.zeros(len(validation), bool)
    for begin in validation.starts[:-1]:  # persistence knows nothing until a label has come
        first[begin : begin + 1 + np.argmax(~np.isnan(validation.target[begin:]))] = True
    known = ~np.isnan(validation.target) & ~first
    for name, predictions in (
        ("model", found),
        ("linear part", model.fitted_.pipeline(joined).linear_predictions),
    ):
        error = np.mean(np.square(joined.target - predictions)[own][known])
        assert noted[name] == pytest.approx(error, rel=1e-9)


def test_only_the_latest_validation_rows_say_how_large_errors_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are a hundred times as large in the first half of them."""
    random = np.random.default_rng(0)
    size = np.where((np.arange(2000) >= 1600) & (np.arange(2000) < 1800), 100.0, 1.0)
    panel = Panel.from_arrays(None, random.normal(size=2000) * size)
    units = {}
    for most in (_validation.CHOSEN_ON, 150):
        monkeypatch.setattr(_validation, "CHOSEN_ON", most)
        error_scale = VARNNRegressor(**SETTINGS, validation_fraction=0.2).fit(panel).fitted_.calibrator
        assert isinstance(error_scale, ErrorScale)
        units[most] = error_scale.unit
    assert units[150] < 2 < units[100_000]


@pytest.mark.parametrize("task", [one_step.OneStep, horizon.Horizon])
def test_prepared_rows_are_let_go_before_the_last_choices(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of millions of rows they are large."""
    prepared: list[Any] = []
    left: list[Any] = []
    candidates, calibrate = task.candidates, task.calibrate

    def noted(self: Any) -> Any:
        found = candidates(self)
        prepared.extend(weakref.ref(getattr(one, "plain", one).training) for one in found)
        return found

    def checked(self: Any, model: Any) -> Any:
        left.append([one() for one in prepared])
        return calibrate(self, model)

    monkeypatch.setattr(task, "candidates", noted)
    monkeypatch.setattr(task, "calibrate", checked)
    VARNNRegressor(**SETTINGS, horizon=3).fit(PANEL)
    assert left
    assert prepared
    assert all(one is None for one in left[0])


def test_training_rows_are_looked_at_once_for_the_error_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refit carries the scale over from what its fit saw, to what the new network shows on all rows."""
    looked_at: list[Any] = []
    carried: list[Any] = []
    look, carry_over = _validation.seen_by_calibrator, ErrorScale.refitted

    def noted(fitted: Any, panel: Panel) -> CalibrationRows:
        found = look(fitted, panel)
        looked_at.append((len(panel), found))
        return found

    def checked(self: ErrorScale, before: CalibrationRows, after: CalibrationRows) -> ErrorScale:
        carried.extend([before, after])
        return carry_over(self, before, after)

    for module in (_validation, one_step):
        monkeypatch.setattr(module, "seen_by_calibrator", noted)
    monkeypatch.setattr(ErrorScale, "refitted", checked)
    VARNNRegressor(**(SETTINGS | {"refit": True})).fit(PANEL)
    (fewer, before), (rows, after) = looked_at
    assert fewer < rows == len(PANEL)
    assert carried[0] is before
    assert carried[1] is after


def test_what_the_error_scale_sees_of_training_rows_are_the_networks_own_errors(
    model: VARNNRegressor,
) -> None:
    fitted = model.fitted_
    assert fitted.experts is not None
    hidden, errors, starts = _validation.seen_by_calibrator(fitted, PANEL)
    alone = prediction.predict(replace(fitted, experts=None), PANEL, resume=False)
    np.testing.assert_allclose(errors, PANEL.target - alone, rtol=1e-9)
    assert hidden.shape == (len(PANEL), 6)
    assert starts.tolist() == PANEL.starts.tolist()


def test_candidates_are_compared_by_the_error_on_rows() -> None:
    """Epochs are chosen on windows as of training; here each row is predicted from its own window."""
    panel = datasets.load("synthetic", kind="regimes", rows=900, seed=2)
    times = np.datetime64("2026-01-01") + np.arange(900) * np.timedelta64(1, "h")
    panel = replace(panel, time=times)
    fitted = VARNNRegressor(**SETTINGS, random_state=3).fit(panel).fitted_
    found = fitted.training.candidates
    assert len(found) > 1
    training, validation = split_in_time(panel, 0.8, 0.2)
    joined, own = preceded(validation, training, fitted.pipeline.reach)
    prepared = own_rows(fitted.pipeline.rows(joined), own)
    first = Weights(**{name: matrix[:1] for name, matrix in fitted.weights.as_dict().items()})
    rows = (prepared.inputs, prepared.target, prepared.first_rows)
    scores = score(fitted.architecture, first, *rows, fitted.window).predictions[0]
    error = np.mean(np.square(prepared.target - scores, dtype=np.float64)[fitted.window - 1 :])
    assert min(found.values()) == pytest.approx(error * fitted.pipeline.scaling.target_scale**2, rel=1e-5)


def test_the_model_before_the_refit_is_kept_in_memory_alone() -> None:
    """It has the validation error that the record has; files and pickles are without it."""
    panel = random_panel([300, 200], missing=0.05)
    model = VARNNRegressor(hidden_size=4, epochs=2, ensemble=1).fit(panel)
    before = model.fitted_.before_refit
    assert before is not None and before.training.refitted_on is None and before.before_refit is None
    training, held_out = split_in_time(panel, 0.8, 0.2)
    begun = replace(before, last_rows=last_rows_of(training, before.pipeline, before.reach))
    errors = held_out.target - prediction.predict(begun, held_out, resume=True)
    scored = ~np.isnan(errors)
    scored[held_out.starts[:-1]] = False  # persistence is recorded beside it, and knows no label there
    found = float(np.mean(errors[scored] ** 2))
    assert math.isclose(found, model.fitted_.training.validation["model"], rel_tol=1e-6)
    assert pickle.loads(pickle.dumps(model)).fitted_.before_refit is None
    assert (
        VARNNRegressor(hidden_size=4, epochs=1, ensemble=1, refit=False).fit(panel).fitted_.before_refit
        is None
    )
