"""Seasons, several rows ahead: what a forecast sees of them, and that the rows kept are enough for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varnn
from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor
from varnn._types import BoolArray, DoubleArray, IntArray
from varnn.errors import ModelFileError
from varnn.model.forecast import DirectPart, Forecast, Forecaster, forecaster
from varnn.model.forecast.direct import CHANGES, SEASONAL_AHEAD, HorizonFeatures
from varnn.model.forecast.recent import Recent
from varnn.model.forecast.rows import extended, targets_ahead
from varnn.persistence import model_file

DAY, WEEK, HORIZON, TRAINED, ROWS = 24, 168, 30, 900, 1100


def hourly(rows: int) -> Panel:
    """Two series with some gaps; a pattern of the day that changes slowly, and one of the week."""
    generator = np.random.default_rng(7)
    place, days = np.arange(rows), rows // DAY + 1
    day = 2 * generator.normal(size=DAY) + 0.4 * generator.normal(size=(days, DAY)).cumsum(axis=0)
    week = np.resize(generator.normal(size=WEEK), rows)
    inputs = generator.normal(size=(2, rows, 2))
    target = day.ravel()[:rows] + week + 0.3 * inputs[:, :, 0] + 0.1 * generator.normal(size=(2, rows))
    for values in (inputs, target):
        values[generator.random(values.shape) < 0.05] = np.nan
    hours = np.datetime64("2026-01-05T00", "h") + place
    return Panel.from_arrays(
        inputs.reshape(2 * rows, 2),
        target.ravel(),
        time=np.tile(hours, 2),
        series=np.repeat(["north", "south"], rows),
        input_names=["wind", "sun"],
    )


PANEL = hourly(ROWS)


def until(rows: int) -> Panel:
    """Keep the first rows of each series."""
    return PANEL.ranges(PANEL.starts[:-1], PANEL.starts[:-1] + rows)


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "peers"])
def model(request: pytest.FixtureRequest) -> VARNNRegressor:
    """Fit a model that sees the day and the week."""
    fitted = VARNNRegressor(
        hidden_size=8,
        details=Details(memory_size=4),
        ensemble=1,
        epochs=2,
        horizon=HORIZON,
        peers=request.param,
    ).fit(until(TRAINED))
    for one in (fitted.fitted_, forecaster_of(fitted).network):
        assert one.pipeline.linear is not None and one.pipeline.linear.form.periods == (DAY, WEEK)
    return fitted


def forecaster_of(model: VARNNRegressor) -> Forecaster:
    assert model.forecaster_ is not None
    return model.forecaster_


def streamed(model: VARNNRegressor, rows: int, panel: Panel = PANEL) -> Forecast:
    """Go through the first rows of both series one by one, and forecast from there."""
    live = model.stream(n_series=2)
    for row in range(rows):
        at = panel.starts[:-1] + row
        live.predict(panel.inputs[at], time=np.asarray(panel.time)[at[0]])
        live.observe(panel.target[at])
    return live.forecast(interval=[0.5, 0.9])


@pytest.mark.parametrize("lately", [0, 256])
def test_the_rows_kept_are_all_that_a_forecast_is_made_from(
    model: VARNNRegressor, lately: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without those rows that only intervals look at, there is none to spare."""
    monkeypatch.setattr(forecaster, "_LATELY", lately)
    kept = forecaster_of(model).rows_kept
    assert WEEK < kept - lately < WEEK + 40
    everywhere = forecaster_of(model).historical_forecasts(PANEL)
    for rows in (kept - 1, kept, kept + 1, 700, 1000):
        ahead = model.forecast(until(rows)).prediction
        np.testing.assert_allclose(ahead, everywhere[PANEL.starts[:-1] + rows], atol=1e-6)


@pytest.mark.parametrize("rows", [300, 520])
def test_file_and_stream_forecast_the_same(model: VARNNRegressor, rows: int, tmp_path: Path) -> None:
    expected = model.forecast(until(rows), interval=[0.5, 0.9])
    model.save(tmp_path / "m.varnn")
    loaded = varnn.load(tmp_path / "m.varnn")
    by_file = loaded.forecast(until(rows), interval=[0.5, 0.9])
    for found in (by_file, streamed(model, rows), streamed(loaded, rows)):
        for name in ("prediction", "lower", "upper"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)
    np.testing.assert_allclose(
        loaded.forecast().prediction, model.forecast(until(TRAINED)).prediction, atol=1e-5
    )


def test_an_input_that_is_missing_in_all_rows_kept_is_as_it_was_last(model: VARNNRegressor) -> None:
    rows = forecaster_of(model).rows_kept + 100
    inputs = PANEL.inputs.copy()
    for first in PANEL.starts[:-1]:
        inputs[first + 49, 0], inputs[first + 50 : first + ROWS, 0] = 2.0, np.nan
    panel = replace(PANEL, inputs=inputs)
    expected = forecaster_of(model).historical_forecasts(panel)[panel.starts[:-1] + rows]
    ahead = model.forecast(panel.ranges(panel.starts[:-1], panel.starts[:-1] + rows))
    for found in (ahead, streamed(model, rows, panel)):
        np.testing.assert_allclose(found.prediction, expected, atol=1e-5)


def test_intervals_look_at_the_latest_outcomes_alone(model: VARNNRegressor) -> None:
    """Rows that are kept for a season's sake have none behind them: their errors would say too much."""
    ahead, levels = forecaster_of(model), np.array([0.9])
    rows = extended(until(1000), HORIZON, None, ())
    first = rows.starts[1:] - HORIZON
    _, lower, upper = ahead.historical_intervals(rows, levels, latest=ahead.rows_followed + HORIZON)
    found = model.forecast(until(1000), interval=0.9)
    assert found.lower is not None and found.upper is not None
    widths = (found.upper - found.lower) / (upper - lower)[first, :, 0]
    assert np.abs(widths - 1).mean() < 0.005  # 0.03 if all rows kept had a say
    target = rows.target.copy()
    for begin in rows.starts[:-1]:
        target[begin : begin + 1000 - ahead.rows_followed - ahead.reach] += 5.0
    moved = replace(rows, target=target)
    _, lower_then, _ = ahead.historical_intervals(moved, levels, latest=ahead.rows_followed + HORIZON)
    np.testing.assert_allclose(lower_then[first], lower[first], atol=1e-5)


def test_a_stream_keeps_labels_of_a_week_and_inputs_of_fewer_rows() -> None:
    """A week of rows of ten minutes, 30 inputs: what a series takes is a third of what it would take."""
    rows, followed = 1008 + 285, 305
    recent, whole = Recent(rows, 1, 30, followed), Recent(rows, 1, 30)
    taken = sum(one.nbytes for one in recent.state().values())
    assert taken < 100_000 < sum(one.nbytes for one in whole.state().values()) / 3
    generator = np.random.default_rng(0)
    for row in range(1700):
        values = generator.normal(size=30)
        for one in (recent, whole):
            one.add(values, float(row), None)
        if row == 1500:
            again = Recent(rows, 1, 30, followed)
            again.restore(recent.state())
            recent = again
    names = tuple(f"x{index}" for index in range(30))
    short, long = (one.panel(names, "y") for one in (recent, whole))
    np.testing.assert_array_equal(short.target, long.target)
    np.testing.assert_array_equal(short.inputs[-followed:], long.inputs[-followed:])
    assert (short.inputs[:-followed] == long.inputs[-followed]).all() and len(short) == rows


def by_hand(panel: Panel, row: int, step: int, period: int, mean: float) -> tuple[float, float]:
    """Look for the latest row before this one that is a whole number of seasons before the one ahead."""
    first = int(panel.first_rows[row])
    known = [mean]
    for label in panel.target[first:row]:
        known.append(known[-1] if np.isnan(label) else float(label))
    past = row + step
    while past >= row:
        past -= period
    if past <= first:
        return 0.0, 0.0
    then, before = known[past - first + 1], known[past - first]
    return then - known[-1], then - before


@given(
    st.integers(1, 90),
    st.integers(1, 40),
    st.sampled_from([[70, 50], [2, 3], [1]]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_seasonal_lags_are_those_found_by_hand(step: int, period: int, lengths: list[int], seed: int) -> None:
    panel = random_panel(lengths, n_inputs=1, missing=0.2, seed=seed)
    seen = np.zeros((len(panel), 1), np.float32)
    features = HorizonFeatures(panel, seen, np.empty(0, np.int64), 1, 0.7, (period, 7))
    rows = np.arange(len(panel))
    found = features.toward(features.regressors(rows), rows, step)[:, 1 + CHANGES :]
    assert found.shape[1] == 2 * SEASONAL_AHEAD
    for index, one in enumerate((period, 7)):
        expected = np.array([by_hand(panel, row, step, one, 0.7) for row in range(len(panel))])
        np.testing.assert_allclose(found[:, 2 * index : 2 * index + 2], expected, atol=1e-12)


def direct_part(
    target: DoubleArray, periods: tuple[int, ...], cut: int
) -> tuple[DirectPart, HorizonFeatures]:
    """Fit on the rows before one, choose on those from there on."""
    panel = Panel.from_arrays(None, target)
    seen, nothing = np.zeros((len(target), 0), np.float32), np.empty(0, np.int64)
    later: BoolArray = np.arange(len(target)) >= cut
    training = HorizonFeatures(panel.between(0, cut), seen[:cut], nothing, 0, 0.0, periods)
    validation = HorizonFeatures(panel, seen, nothing, 0, 0.0, periods, later)
    return DirectPart.fit(training, validation, HORIZON), validation


def errors_of(part: DirectPart, features: HorizonFeatures, rows: IntArray) -> DoubleArray:
    wanted = targets_ahead(features.panel, HORIZON, rows)
    return np.asarray(np.nanmean(np.square(wanted - part.linear_predictions(features, rows)), axis=0))


def test_a_season_longer_than_the_changes_looked_back_on_is_used() -> None:
    generator = np.random.default_rng(1)
    target = np.tile(generator.normal(size=60), 25) + 0.1 * generator.normal(size=1500)
    rows = np.arange(1250, 1450)
    with_season, without = (errors_of(*direct_part(target, periods, 1200), rows) for periods in ((60,), ()))
    assert (with_season < 0.05).all() and (without > 5 * with_season).all()


def test_a_season_that_is_gone_is_left_out() -> None:
    """It is in the training rows, and no longer in those to choose on."""
    generator = np.random.default_rng(2)
    target = generator.normal(size=2400).cumsum()
    target[:1200] += np.tile(20 * generator.normal(size=40), 30)
    part, _ = direct_part(target, (40,), 1200)
    assert (part.weights[:, CHANGES:] == 0).all()


def test_a_file_whose_forecaster_has_other_seasons_is_refused(model: VARNNRegressor, tmp_path: Path) -> None:
    path = tmp_path / "m.varnn"
    model.save(path)
    tensors, header = model_file.from_bytes(path.read_bytes(), "it")
    fewer: dict[str, Any] = {
        name: tensors[name][..., :-1] for name in tensors if name.startswith("forecaster.direct.weights")
    }
    path.write_bytes(model_file.to_bytes({**tensors, **fewer}, header))
    with pytest.raises(ModelFileError, match=r"forecaster\.direct\.weights"):
        varnn.load(path)
