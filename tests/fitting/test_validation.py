"""What validation rows decide after training, gone through some rows at a time."""

import weakref
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor
from varnn.data.chunks import chunks
from varnn.data.context import preceded
from varnn.data.preparation import split_in_time
from varnn.fitting import _validation, horizon, one_step
from varnn.fitting._validation import Review
from varnn.model import prediction
from varnn.model.intervals import ErrorScale

PANEL = random_panel([500, 340], missing=0.1, seed=3)
SETTINGS: dict[str, Any] = {"epochs": 2, "hidden_size": 6, "ensemble": 2, "window": 5, "refit": False}


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(**SETTINGS).fit(PANEL)


@pytest.mark.parametrize("most", [0, 100, 840])
def test_a_review_is_the_prediction_in_its_parts(
    model: VARNNRegressor, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "_HIDDEN_ROWS_AT_ONCE", 64)
    review = Review.of(model.fitted_, PANEL, most)
    np.testing.assert_allclose(review.predictions(model.fitted_.shrinkage), model.predict(PANEL), rtol=1e-12)
    np.testing.assert_allclose(
        review.linear_predictions, model.fitted_.pipeline(PANEL).linear_predictions, rtol=1e-12
    )
    assert review.late.lengths.tolist() == {0: [], 100: [50, 50], 840: [500, 340]}[most]
    prepared = model.fitted_.pipeline.rows(PANEL)
    (everything,) = chunks(prepared)
    layers = prediction.Scorer(model.fitted_, keep_hidden=True)(everything).hidden[0]
    np.testing.assert_allclose(review.hidden, layers[review.late.rows], rtol=1e-5, atol=1e-6)
    hidden, errors, starts = review.seen(0.5)
    assert len(hidden) == len(errors) == starts[-1]
    np.testing.assert_array_equal(errors, (PANEL.target - review.predictions(0.5))[review.late.rows])


def test_what_is_noted_of_validation_rows_is_what_predicting_them_gives(model: VARNNRegressor) -> None:
    training, validation = split_in_time(PANEL, 1 - model.validation_fraction, model.validation_fraction)
    joined, own = preceded(validation, training, model.fitted_.reach)  # rows before them are looked back on
    found = np.empty(len(joined))
    for chunk in prediction.predict_chunks(model.fitted_, joined, own=own):
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
