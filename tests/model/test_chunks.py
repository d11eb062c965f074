"""Some rows of a long panel at a time, prepared and predicted, against the whole of it at once."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from varnn import Details, Panel, VARNNRegressor
from varnn._types import DoubleArray
from varnn.data.chunks import chunks
from varnn.data.preparation import Scaling
from varnn.model import _linear_fit, pipeline, prediction
from varnn.model._linear_fit import fit_linear, linear_predictions
from varnn.model.fitted import Fitted
from varnn.model.intervals import Interval
from varnn.model.linear import last_labels, within
from varnn.model.pipeline import FeaturePipeline, Prepared
from varnn.model.rows import run_panel
from varnn.model.runtime import pipeline_model
from varnn.network.scoring import score

ROWS = 400
SIZES = (1, 7, 30, 150, ROWS)
Make = Callable[..., Panel]


@pytest.fixture
def make() -> Make:
    """Give a maker of panels whose gaps lie wherever a chunk may begin or end."""

    def made(series: tuple[int, ...] = (ROWS,), *, gaps: bool = True) -> Panel:
        random = np.random.default_rng(len(series))
        count = sum(series)
        X = np.cumsum(random.normal(size=(count, 2)), axis=0)
        y = np.sin(X[:, 0]) + np.cumsum(random.normal(size=count)) / 5
        if gaps:
            X[:3, 0] = X[40:140, 0] = X[149:152, 1] = np.nan  # longer than some chunks, too
            X[random.random(count) < 0.1, 1] = np.nan
            y[:2] = y[28:32] = y[100:160] = y[-3:] = np.nan
            y[random.random(count) < 0.1] = np.nan
        names = np.repeat([f"s{index}" for index in range(len(series))], series)
        place = np.concatenate([np.arange(one) for one in series])
        time = np.datetime64("2026-01-01T00:00") + place * np.timedelta64(30, "m")
        return Panel.from_arrays(X, y, series=names, time=time)

    return made


def prepared_at_once(one: FeaturePipeline, panel: Panel) -> Prepared:
    """Prepare a panel by the parts of the pipeline, each on the whole of it."""
    filled = one._filled(one.plausible(panel))
    if one.linear is None:
        return Prepared(one.scaling.apply(filled), np.zeros(len(panel)))
    predictions = linear_predictions(one.linear, filled)
    last, _, _ = last_labels(filled, one.linear.mean)
    target = within(filled.target - predictions, one.linear.largest_change)
    inputs = [filled.inputs, last, predictions - last]
    if one.peers:
        inputs.append(one._residuals_of_peers(filled, target))
    names = one.input_names(panel)
    rest = replace(filled, inputs=np.column_stack(inputs), target=target, input_names=names)
    return Prepared(one.scaling.apply(rest), predictions)


RECIPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "zero": {"fill": "zero"},
    "linear": {"linear": True},
    "linear, zero": {"linear": True, "fill": "zero"},
    "no inputs": {"linear": True, "use_inputs": False},
    "clock": {"linear": True, "calendar": ("day", "week")},
    "interpolate": {"linear": True, "fill": "interpolate"},
    "peers": {"linear": True, "peers": True},
}


@pytest.mark.parametrize("series", [(ROWS,), (9, 40, 200, 3, 148)], ids=["one", "several"])
@pytest.mark.parametrize("name", RECIPES)
def test_rows_are_prepared_as_the_whole_is(name: str, series: tuple[int, ...], make: Make) -> None:
    panel = make(series)
    how: dict[str, Any] = {"scale": "standard", "fill": "forward", **RECIPES[name]}
    learned = FeaturePipeline.fit(panel, None, **how)
    found, whole = learned(panel), prepared_at_once(learned, panel)
    assert found.panel.input_names == whole.panel.input_names
    assert found.panel.inputs.dtype == found.panel.target.dtype == np.float32
    np.testing.assert_allclose(found.panel.inputs, whole.panel.inputs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.panel.target, whole.panel.target, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.linear_predictions, whole.linear_predictions, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("series", [(ROWS,), (9, 40, 200, 3, 148)], ids=["one", "several"])
@pytest.mark.parametrize("name", RECIPES)
def test_rows_are_prepared_alike_however_many_at_a_time(
    name: str, series: tuple[int, ...], make: Make
) -> None:
    panel = make(series)
    how: dict[str, Any] = {"scale": "standard", "fill": "forward", **RECIPES[name]}
    learned = FeaturePipeline.fit(panel, None, **how)
    given = (
        pipeline_model(learned, panel.n_inputs),
        learned.without_gaps(panel),
        learned.extra_inputs(panel),
    )
    wanted = ("linear", "columns", "target", "residual", "regressors", "label")
    ((rows, whole),) = run_panel(*given, wanted=wanted)
    assert rows == slice(0, len(panel))
    for size in SIZES:
        seen = np.zeros(len(panel), dtype=int)
        for some, part in run_panel(*given, wanted=wanted, max_rows=size):
            assert some.stop - some.start <= size
            for field in wanted:
                np.testing.assert_array_equal(getattr(part, field), getattr(whole, field)[some])
            seen[some] += 1
        assert (seen == 1).all()


def test_a_long_panel_is_prepared_as_a_short_one_is(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = make((150, 250))
    learned = FeaturePipeline.fit(panel, None, scale="minmax", fill="forward", linear=True)
    whole = learned(panel)
    monkeypatch.setattr(pipeline, "run_panel", partial(run_panel, max_rows=100))
    parts = learned(panel)
    assert parts.panel.input_names == whole.panel.input_names
    np.testing.assert_array_equal(parts.panel.inputs, whole.panel.inputs)
    np.testing.assert_array_equal(parts.panel.target, whole.panel.target)
    np.testing.assert_array_equal(parts.linear_predictions, whole.linear_predictions)


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_parts_are_measured_as_the_whole_is(scale: Any, make: Make) -> None:
    panel = make()
    mean, deviation, low, high = (
        one(panel.inputs, axis=0) for one in (np.nanmean, np.nanstd, np.nanmin, np.nanmax)
    )
    offset, spread = (mean, deviation) if scale == "standard" else (low, high - low)
    for size in SIZES:
        found = Scaling.over((one.panel for one in chunks(panel, most=size)), scale)
        np.testing.assert_allclose(found.input_offset, offset, rtol=1e-12)
        np.testing.assert_allclose(found.input_scale, spread, rtol=1e-12)
        np.testing.assert_allclose(found.initial_inputs, mean, rtol=1e-12)


def test_the_linear_part_learns_from_stretches_what_it_learns_from_the_whole(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = make((150, 250), gaps=False)
    panel.target[40:60] = panel.target[98:103] = np.nan
    whole = fit_linear(panel, None)
    monkeypatch.setattr(_linear_fit, "run_panel", partial(run_panel, max_rows=100))
    parts = fit_linear(panel, None)
    np.testing.assert_allclose(parts.of_changes, whole.of_changes, rtol=1e-9)
    np.testing.assert_allclose(parts.of_inputs, whole.of_inputs, rtol=1e-9)
    np.testing.assert_allclose(parts.constant, whole.constant, rtol=1e-9)


def predicted_at_once(model: Fitted, panel: Panel) -> Any:
    """Predict a panel from the whole of it, prepared at once; a model whose readout does not adapt."""
    whole = prepared_at_once(model.pipeline, panel)
    window = int(panel.lengths.max()) if model.carried else model.window
    rows = (whole.panel.inputs, whole.panel.target, whole.panel.first_rows)
    output = score(model.architecture, model.weights, *rows, window).predictions.mean(
        axis=0, dtype=np.float64
    )
    return whole.linear_predictions + model.shrinkage * model.pipeline.scaling.restore(output)


def predicted_in_parts(model: Fitted, panel: Panel, levels: DoubleArray | None, size: int) -> Interval:
    """Predict a panel some rows at a time."""
    found = []
    for rows, part in prediction.predict_rows(model, panel, levels, max_rows=size):
        assert rows.stop - rows.start == len(part.prediction) <= size
        found.append(part)
    assert len(found) > 1 or size >= len(panel)
    return Interval(*(None if one[0] is None else np.concatenate(one) for one in zip(*found, strict=True)))


@pytest.mark.parametrize("settings", [{}, {"calendar": ["day"]}, {"linear": False}, {"variant": "RM"}])
def test_rows_are_predicted_as_the_whole_is(settings: dict[str, Any], make: Make) -> None:
    panel = make((120, 280))
    model = VARNNRegressor(epochs=1, hidden_size=8, ensemble=2, adapt=None, **settings).fit(panel).fitted_
    found = prediction.predict(model, panel)
    np.testing.assert_allclose(found, predicted_at_once(model, panel), rtol=1e-5, atol=1e-5)
    for size in SIZES:
        np.testing.assert_array_equal(predicted_in_parts(model, panel, None, size).prediction, found)


@pytest.mark.parametrize("context", ["series", "window"])
def test_the_default_model_adapts_and_tracks_from_chunk_to_chunk(context: Any, make: Make) -> None:
    panel, details = make((120, 280)), Details(context=context)
    model = VARNNRegressor(epochs=1, hidden_size=8, ensemble=2, window=6, details=details).fit(panel).fitted_
    levels = np.array([0.5, 0.9])
    whole = prediction.predict_intervals(model, panel, levels)
    np.testing.assert_array_equal(prediction.predict(model, panel), whole.prediction)
    for size in SIZES[:-1]:
        for some, values in zip(predicted_in_parts(model, panel, levels, size), whole, strict=True):
            np.testing.assert_array_equal(some, values)


def test_a_label_is_seen_by_later_rows_alone_wherever_a_stretch_begins(make: Make) -> None:
    panel = make(gaps=False)
    model = VARNNRegressor(epochs=1, hidden_size=8, ensemble=1, adapt=None).fit(panel).fitted_

    def predictions() -> Any:
        return np.concatenate(
            [one.prediction for one in prediction.predict_chunks(model, panel, max_rows=50)]
        )

    before = predictions()
    panel.target[149] += 1.0  # the last row of a chunk
    changed = np.flatnonzero(predictions() != before)
    assert changed[0] == 150


def test_the_memory_of_some_rows_is_that_of_all(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = make((260, 140))
    model = VARNNRegressor(epochs=1, hidden_size=6, ensemble=2, window=9, refit=False).fit(panel).fitted_
    whole = prediction.residual_memory(model, panel)
    monkeypatch.setattr(prediction, "predict_chunks", partial(prediction.predict_chunks, max_rows=50))
    np.testing.assert_array_equal(prediction.residual_memory(model, panel), whole)
    for first, last in ((0, 1), (37, 120), (255, 270), (399, 400)):
        np.testing.assert_array_equal(
            prediction.residual_memory(model, panel, first, last), whole[first:last]
        )
