"""The linear part against plain least squares, and its stream against its batch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn.data.panel import Panel
from varnn.model import _linear_fit
from varnn.model._linear_fit import fit_linear, linear_predictions
from varnn.model.pipeline import FeaturePipeline
from varnn.model.runtime import linear_model
from varnn.step.series import SeriesStep


def stream_panel(rows: int, inputs: int, seed: int, missing: float = 0.0, series: int = 1) -> Panel:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, inputs))
    y = 100 + np.cumsum(generator.normal(size=rows)) + x.sum(axis=1)
    y[generator.random(rows) < missing] = np.nan
    return Panel.from_arrays(x, y, series=np.sort(np.arange(rows) % series))


def test_without_ridge_it_is_least_squares() -> None:
    panel = stream_panel(3000, 2, seed=1)
    part = fit_linear(panel, panel)  # judged on its own training rows, the least ridge wins
    lags = np.column_stack([np.roll(panel.target, lag) for lag in range(1, 26)])
    x = np.column_stack([np.roll(panel.inputs, lag, axis=0) for lag in range(5)])
    rows = slice(30, None)
    design = np.column_stack([lags, x, np.ones(len(panel))])[rows]
    best = design @ np.linalg.lstsq(design, panel.target[rows], rcond=None)[0]
    ours = linear_predictions(part, panel)[rows]
    assert np.mean((ours - panel.target[rows]) ** 2) == pytest.approx(
        np.mean((best - panel.target[rows]) ** 2), rel=2e-4
    )
    np.testing.assert_allclose(ours, best, atol=0.1)


def test_a_level_far_from_zero_costs_no_digits() -> None:
    panel = stream_panel(2000, 1, seed=2)
    far = Panel.from_arrays(panel.inputs + 1e7, panel.target + 1e8)
    near_anchors, far_anchors = (linear_predictions(fit_linear(one, one), one) for one in (panel, far))
    np.testing.assert_allclose(far_anchors - 1e8, near_anchors, atol=1e-4)


def test_a_random_walk_is_left_at_persistence() -> None:
    walk = np.cumsum(np.random.default_rng(3).normal(size=6000))
    part = fit_linear(Panel.from_arrays(None, walk[:4000]), Panel.from_arrays(None, walk[4000:5000]))
    later = Panel.from_arrays(None, walk[5000:] + 1e4)  # far outside the range of training
    error = np.mean((linear_predictions(part, later) - later.target)[1:] ** 2)
    assert error < 1.05 * np.mean(np.diff(later.target) ** 2)


def test_no_anchor_sees_its_own_label_or_later_ones() -> None:
    panel = stream_panel(200, 2, seed=4, series=2)
    part = fit_linear(panel, panel)
    changed = panel.target.copy()
    changed[50:] += 10
    other = Panel.from_arrays(panel.inputs, changed, series=np.sort(np.arange(200) % 2))
    np.testing.assert_array_equal(linear_predictions(part, panel)[:51], linear_predictions(part, other)[:51])
    assert not np.allclose(linear_predictions(part, panel)[51:100], linear_predictions(part, other)[51:100])


@settings(deadline=None, max_examples=25)
@given(
    inputs=st.integers(0, 3),
    missing=st.sampled_from([0.0, 0.3]),
    series=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_series_in_step_give_what_the_batch_gives(
    inputs: int, missing: float, series: int, seed: int
) -> None:
    panel = stream_panel(60 * series, inputs, seed, missing, series)
    part = fit_linear(panel, panel)
    model = linear_model(part)
    live = SeriesStep(model, series)
    found = np.empty((60, series))
    for row in range(60):
        live.x[:] = panel.inputs.reshape(series, 60, inputs)[:, row] + 1
        live.predict()  # asking changes nothing
        live.x[:] -= 1
        live.predict()
        found[row] = live.prediction
        live.labels[:] = panel.target.reshape(series, 60)[:, row]
        live.observe()
        restored = SeriesStep(model, series)
        restored.restore(live.snapshot())
        live = restored
    np.testing.assert_allclose(found.T.ravel(), linear_predictions(part, panel), rtol=1e-9)


def test_a_pipeline_leaves_the_rest_to_the_network_and_names_what_it_adds() -> None:
    panel = stream_panel(100, 1, seed=5, missing=0.2)
    pipeline = FeaturePipeline.fit(panel, None, scale="standard", fill="forward", linear=True)
    rest, predictions = pipeline(panel)
    scaling = pipeline.scaling
    np.testing.assert_allclose(scaling.restore(rest.target) + predictions, panel.target, rtol=1e-6)
    assert rest.input_names == ("x0", "last label", "linear step")
    inputs = rest.inputs * scaling.input_scale + scaling.input_offset
    np.testing.assert_allclose(inputs[:, 1] + inputs[:, 2], predictions, rtol=1e-5)
    assert pipeline.linear is not None
    np.testing.assert_array_equal(predictions, linear_predictions(pipeline.linear, panel))


def test_constant_columns_and_a_constant_target_are_harmless() -> None:
    panel = Panel.from_arrays(np.ones((50, 2)), np.full(50, 3.0))
    np.testing.assert_allclose(linear_predictions(fit_linear(panel, panel), panel), 3.0)


def test_few_validation_rows_prefer_the_simpler_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that wander have nothing to say here, but look useful on 60 rows in many draws."""
    generator = np.random.default_rng(0)
    seen: list[int] = []
    trusting: list[int] = []
    for _ in range(20):
        inputs = np.cumsum(generator.normal(size=(360, 5)), axis=0)
        panel = Panel.from_arrays(inputs, np.cumsum(generator.normal(size=360)))
        parts = panel.ranges(np.array([0]), np.array([300])), panel.ranges(np.array([300]), np.array([360]))
        seen.append(len(fit_linear(*parts).of_inputs))
        with monkeypatch.context() as patch:
            patch.setattr(_linear_fit, "ENOUGH", 1)
            trusting.append(len(fit_linear(*parts).of_inputs))
    assert sum(one > 0 for one in trusting) > 2 * sum(one > 0 for one in seen)


def test_a_gap_does_not_turn_the_clock_against_the_model() -> None:
    # At even steps the clock of the row before is the clock now, turned: what it counts is told by the rows
    # after a gap alone, of which there are a few here, and one more where it is predicted.
    generator = np.random.default_rng(3)
    hours = np.delete(np.arange(4000), [900, 1503, 2206, 2909])
    time = np.datetime64("2026-01-01", "s") + hours * np.timedelta64(1, "h")
    labels = 50 + 8 * np.sin(hours * 2 * np.pi / 24) + np.cumsum(generator.normal(size=len(hours)))
    panel = Panel.from_arrays(generator.normal(size=(len(hours), 2)), labels, time=time)
    for calendar in ((), ("day",)):
        pipeline = FeaturePipeline.fit(
            panel, None, scale="standard", fill="forward", linear=True, calendar=calendar
        )
        assert pipeline.linear is not None
        form = replace(pipeline.linear, of_inputs=np.zeros((5, 2 + 4 * len(calendar))), ridge=1e-8)
        part = replace(pipeline, linear=form).refitted(panel, "standard").linear
        assert part is not None
        assert np.abs(part.of_inputs[1:, :2]).min() > 0  # the others are looked back on
        assert np.abs(part.of_inputs[1:, 2:]).max(initial=0.0) == 0
        later = np.datetime64("2026-09-01", "s") + np.array([0, 1, 2, 3, 9]) * np.timedelta64(1, "h")
        steady = Panel.from_arrays(np.zeros((5, 2)), np.full(5, 50.0), time=later)
        predicted = replace(pipeline, linear=part)(steady).linear_predictions
        assert np.abs(predicted[1:] - 50).max() < 12  # the first one has no label before it
