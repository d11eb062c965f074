"""Several rows ahead: no peeking, one answer everywhere, and against second implementations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from statsmodels.tsa.ar_model import AutoReg

import varnn
from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor
from varnn.baselines.forecasts import IteratedARX, persistence_ahead, seasonal_ahead
from varnn.errors import ConfigError, DataError
from varnn.evaluation.backtesting import backtest
from varnn.fitting import horizon as horizon_fitting
from varnn.model.forecast import DirectPart, Forecaster, direct
from varnn.model.forecast.direct import CHANGES, HorizonFeatures
from varnn.model.forecast.rows import columns_of, extended, inputs_known_before, targets_ahead

HORIZON = 5


def small(**changes: Any) -> VARNNRegressor:
    base: dict[str, Any] = {
        "hidden_size": 8,
        "details": Details(memory_size=6),
        "ensemble": 2,
        "epochs": 2,
        "horizon": HORIZON,
    }
    return VARNNRegressor(**{**base, **changes})


def hourly(panel: Panel) -> Panel:
    """Give a panel times, an hour from row to row, each series from the same one on."""
    place = np.arange(len(panel)) - panel.first_rows
    return replace(panel, time=np.datetime64("2026-01-01T00", "h") + place)


PANEL = hourly(random_panel([300, 260], missing=0.1, seed=1))
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "known": {"known_inputs": ["x1"]},
    "peers": {"peers": True},
    "clock": {"calendar": ["day"]},
    "RM": {"variant": "RM"},
    "no linear part": {"linear": False},
}


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def model(request: pytest.FixtureRequest) -> VARNNRegressor:
    return small(**KINDS[request.param]).fit(PANEL)


def forecaster_of(model: VARNNRegressor) -> Forecaster:
    assert model.forecaster_ is not None
    return model.forecaster_


def until(panel: Panel, rows: int) -> Panel:
    """Keep the first rows of each series."""
    return panel.ranges(panel.starts[:-1], panel.starts[:-1] + rows)


def coming(model: VARNNRegressor, rows: int) -> Any:
    """Give what is known of the rows after those: (S, H, known)."""
    if not model.known_inputs:
        return None
    return np.stack([PANEL.inputs[first + rows : first + rows + HORIZON, 1:2] for first in PANEL.starts[:-1]])


def test_a_forecast_from_the_end_is_the_one_from_before_the_next_row(model: VARNNRegressor) -> None:
    everywhere = forecaster_of(model).historical_forecasts(PANEL)
    for rows in (2, 3, 40, 200):
        ahead = model.forecast(until(PANEL, rows), inputs=coming(model, rows))
        np.testing.assert_allclose(ahead.prediction, everywhere[PANEL.starts[:-1] + rows], atol=1e-6)
        assert ahead.ids == PANEL.ids and ahead.horizon == HORIZON


def test_nothing_of_the_future_is_seen(model: VARNNRegressor) -> None:
    """Rows from one on are changed: forecasts from before them stay as they were."""
    before = forecaster_of(model).historical_forecasts(PANEL)
    generator = np.random.default_rng(0)
    moments = np.asarray(PANEL.time)
    for row in (100, 250):
        inputs, target = PANEL.inputs.copy(), PANEL.target.copy()
        after = moments >= moments[row]
        unknown = [0, 2] if model.known_inputs else [0, 1, 2]
        inputs[np.ix_(after, unknown)] += generator.normal(size=(int(after.sum()), len(unknown)))
        target[after] += 5
        now = forecaster_of(model).historical_forecasts(replace(PANEL, inputs=inputs, target=target))
        np.testing.assert_array_equal(now[moments <= moments[row]], before[moments <= moments[row]])
        assert not np.array_equal(now[row + 1 : row + 4], before[row + 1 : row + 4])


def test_file_and_stream_forecast_the_same(model: VARNNRegressor, tmp_path: Path) -> None:
    rows = 120
    seen = until(PANEL, rows)
    expected = model.forecast(seen, inputs=coming(model, rows), interval=[0.5, 0.9])
    model.save(tmp_path / "m.varnn")
    loaded = varnn.load(tmp_path / "m.varnn").forecast(seen, inputs=coming(model, rows), interval=[0.5, 0.9])
    live = model.stream(n_series=2)
    for row in range(rows):
        at = PANEL.starts[:-1] + row
        live.predict(PANEL.inputs[at], time=np.asarray(PANEL.time)[at[0]])
        live.observe(PANEL.target[at])
        if row == 60:
            live = varnn.Stream.restore(model, live.snapshot())
    streamed = live.forecast(inputs=coming(model, rows), interval=[0.5, 0.9])
    for found in (loaded, streamed):
        np.testing.assert_allclose(found.prediction, expected.prediction, atol=1e-5)
        np.testing.assert_allclose(np.asarray(found.lower), np.asarray(expected.lower), atol=1e-5)
        np.testing.assert_array_equal(found.time, expected.time)
    assert expected.time is not None
    assert expected.time[0, 0] == np.datetime64("2026-01-06T00", "h")


def test_a_stream_forgets_no_last_label(model: VARNNRegressor) -> None:
    """Labels are missing for longer than a stream keeps rows: the last one known still counts."""
    rows = forecaster_of(model).rows_kept + 30
    target = np.full(rows, np.nan)
    target[:5] = [1.0, 2.0, 3.0, 4.0, 40.0]
    inputs = np.zeros((rows, 3))
    times = np.datetime64("2026-01-01T00", "h") + np.arange(rows)
    live = model.stream(n_series=2)
    for x, y, moment in zip(inputs, target, times, strict=True):
        live.predict(np.tile(x, (2, 1)), time=moment)
        live.observe([y, y])
    known = np.zeros((2, HORIZON, 1)) if model.known_inputs else None
    last = np.asarray(live.forecast(inputs=known).prediction)
    target[4] = -40.0
    live = model.stream(n_series=2)
    for x, y, moment in zip(inputs, target, times, strict=True):
        live.predict(np.tile(x, (2, 1)), time=moment)
        live.observe([y, y])
    moved = np.abs(live.forecast(inputs=known).prediction - last)
    assert (moved[:, 0 if model.linear else 1 :] > 1).all()


@given(levels=st.lists(st.floats(0.02, 0.98), min_size=2, max_size=4, unique=True), rows=st.integers(2, 250))
@settings(max_examples=15, deadline=None)
def test_intervals_are_nested_finite_and_hold_the_forecast(levels: list[float], rows: int) -> None:
    levels = sorted(levels)
    ahead = SMALL.forecast(until(PANEL, rows), interval=levels)
    assert ahead.lower is not None and ahead.upper is not None
    assert np.isfinite(ahead.lower).all() and np.isfinite(ahead.upper).all()
    assert (np.diff(ahead.lower, axis=2) <= 0).all() and (np.diff(ahead.upper, axis=2) >= 0).all()
    prediction = ahead.prediction[:, :, None]
    assert (ahead.lower <= prediction).all() and (prediction <= ahead.upper).all()


SMALL = small(ensemble=1, epochs=1).fit(PANEL)


def test_what_is_known_of_the_future_is_used() -> None:
    generator = np.random.default_rng(3)
    plan = generator.normal(size=(1500, 1))
    target = 2 * plan[:, 0] + 0.1 * generator.normal(size=1500)
    panel = Panel.from_arrays(plan, target, input_names=["plan"])
    errors = {}
    for name, known in (("told", ["plan"]), ("untold", [])):
        model = small(epochs=5, known_inputs=known).fit(until(panel, 1200))
        forecasts = forecaster_of(model).historical_forecasts(panel)[1200:-HORIZON]
        outcomes = np.column_stack([target, targets_ahead(panel, HORIZON)])[1200:-HORIZON]
        errors[name] = np.mean(np.square(outcomes - forecasts), axis=0)
    assert (errors["told"] < 0.05).all() and (errors["untold"] > 3).all()
    future = Panel.from_arrays(plan[:HORIZON], None, input_names=["plan"])
    model = small(known_inputs=["plan"]).fit(panel)
    by_panel, by_array = model.forecast(inputs=future), model.forecast(inputs=plan[:HORIZON])
    np.testing.assert_array_equal(by_panel.prediction, by_array.prediction)


def test_every_distance_is_learned() -> None:
    """A nonlinear echo: what comes is decided by the label a few rows before, which no line can say."""
    generator = np.random.default_rng(0)
    target = np.zeros(4000)
    for row in range(4000):
        target[row] = np.abs(target[row - 6]) - 0.6 + 0.3 * generator.normal()
    panel = Panel.from_arrays(None, target)
    model = VARNNRegressor(
        horizon=6, hidden_size=24, ensemble=1, epochs=15, details=Details(memory_size=16)
    ).fit(until(panel, 3000))
    forecaster = forecaster_of(model)
    outcomes = np.column_stack([target, targets_ahead(panel, 6)])[3000:-6]
    ours = np.mean(np.square(outcomes - forecaster.historical_forecasts(panel)[3000:-6]), axis=0)
    linear = np.mean(
        np.square(outcomes - forecaster.linear_alone().historical_forecasts(panel)[3000:-6]), axis=0
    )
    assert (ours < 0.9 * linear).all()
    assert (ours < 0.12).all()  # the best possible is 0.09


def test_iterating_is_the_one_step_model_fed_with_itself() -> None:
    panel = random_panel([200], seed=4)
    model = small(horizon=1, adapt=None, intervals=False).fit(panel)
    ahead = model.forecast(panel, horizon=3, method="iterate")
    target, inputs = panel.target, panel.inputs
    for step in range(3):
        inputs = np.vstack([inputs, panel.inputs[-1:]])
        target = np.append(target, np.nan)
        target[-1] = model.predict(inputs, target)[-1]
        assert target[-1] == pytest.approx(ahead.prediction[0, step], abs=1e-4)
    assert model.forecast(panel, horizon=3).prediction == pytest.approx(ahead.prediction)  # "auto"
    given_inputs = np.tile(panel.inputs[-1:], (3, 1))
    again = model.forecast(panel, horizon=3, inputs=given_inputs)
    assert again.prediction == pytest.approx(ahead.prediction)


def test_coming_inputs_of_a_panel_are_found_by_series_and_name() -> None:
    panel = random_panel([120, 100], n_inputs=2, seed=5)
    model = small(horizon=1).fit(panel)
    future = random_panel([4, 3], n_inputs=2, seed=6)
    expected = model.forecast(horizon=3, inputs=np.stack([future.inputs[:3], future.inputs[4:]])).prediction

    def iterated(inputs: Panel) -> Any:
        return model.forecast(horizon=3, inputs=inputs, method="iterate").prediction

    np.testing.assert_array_equal(iterated(future), expected)
    names = future.input_names[::-1]
    np.testing.assert_array_equal(
        iterated(replace(future, inputs=future.inputs[:, ::-1], input_names=names)), expected
    )
    with pytest.raises(DataError, match=r"must hold 3 rows of series 's0'"):
        iterated(random_panel([2, 5], n_inputs=2))
    with pytest.raises(DataError, match=r"must hold 3 rows of series 's1'"):
        iterated(random_panel([3], n_inputs=2))
    with pytest.raises(DataError, match=r"future inputs must hold \['x0', 'x1'\].*lack \['x1'\]"):
        iterated(random_panel([3, 3], n_inputs=1))


def test_without_rows_it_goes_on_after_training() -> None:
    ahead = SMALL.forecast()
    np.testing.assert_allclose(ahead.prediction, SMALL.forecast(PANEL).prediction, atol=1e-5)
    np.testing.assert_array_equal(ahead.time, SMALL.forecast(PANEL).time)


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="from 1 to 5"):
        SMALL.forecast(PANEL, horizon=6, method="direct")
    with pytest.raises(ConfigError, match="horizon must be a whole number, at least 1"):
        SMALL.forecast(PANEL, horizon=-1)
    with pytest.raises(DataError, match="known_inputs"):
        SMALL.forecast(PANEL, inputs=np.zeros((2, HORIZON, 1)))
    with pytest.raises(ConfigError, match="no intervals"):
        SMALL.forecast(PANEL, method="iterate", interval=0.9)
    with pytest.raises(ConfigError, match=r"fitted for 5 rows ahead, asked for 6.*Fit with horizon=6"):
        SMALL.forecast(PANEL, horizon=6, interval=0.9)
    with pytest.raises(ConfigError, match="method"):
        SMALL.forecast(PANEL, method="guess")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigError, match="one row ahead"):
        small(horizon=1).fit(PANEL).forecast(PANEL, method="direct")
    with pytest.raises(ConfigError, match="one row ahead"):
        small(horizon=1).fit(PANEL).stream().forecast()
    with pytest.raises(DataError, match="none yet"):
        SMALL.stream().forecast()
    with pytest.raises(DataError, match="known_inputs must name"):
        small(known_inputs=["tariff"]).fit(PANEL)
    with pytest.raises(ConfigError, match="horizon must be a whole number"):
        small(horizon=0).fit(PANEL)
    with pytest.raises(ConfigError, match="list of names"):
        small(known_inputs="x1").fit(PANEL)
    with pytest.raises(DataError, match="time from row to row"):
        SMALL.forecast(until(PANEL, 1))
    told = small(known_inputs=["x1"], epochs=1).fit(PANEL)
    with pytest.raises(DataError, match="give their next 5 values"):
        told.forecast(PANEL)
    with pytest.raises(DataError, match=r"\(2, 5, 1\)"):
        told.forecast(PANEL, inputs=np.zeros((2, 3, 1)))


def test_the_direct_part_is_ridge_regression() -> None:
    panel = random_panel([400], seed=5)
    prepared = np.asarray(panel.inputs, np.float32)
    features = HorizonFeatures(panel, prepared, np.empty(0, np.int64), given=3, mean=0.0)
    part = DirectPart.fit(features, None, horizon=3)  # with nothing to choose on: the second ridge, 1e-3
    rows = np.arange(1, 400)
    regressors = features.regressors(rows)
    for index in range(2):
        wanted = (targets_ahead(panel, 3)[rows] - panel.target[rows - 1][:, None])[:, index]
        known = ~np.isnan(wanted)
        x = regressors[known]
        scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
        ridge = Ridge(alpha=1e-3 * known.sum()).fit(x / scale, wanted[known])
        np.testing.assert_allclose(part.weights[index], ridge.coef_ / scale, atol=1e-8)
        assert part.constants[index] == pytest.approx(ridge.intercept_, abs=1e-8)
    assert features.width == 3 + CHANGES


@pytest.mark.parametrize("periods", [(), (2, 30)])
@pytest.mark.parametrize("known", [(), ("x1",)])
def test_the_direct_part_is_the_same_however_few_rows_are_looked_at_together(
    known: tuple[str, ...], periods: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = random_panel([200, 150], missing=0.1, seed=5)
    filled = replace(panel, inputs=np.nan_to_num(panel.inputs))
    seen, columns = np.asarray(filled.inputs, np.float32), columns_of(filled, known)
    features = HorizonFeatures(filled, seen, columns, given=3, mean=0.0, periods=periods)
    whole = DirectPart.fit(features, features, horizon=4)
    monkeypatch.setattr(direct, "_NUMBERS_AT_ONCE", 40 * features.width)
    parts = DirectPart.fit(features, features, horizon=4)
    for field in ("weights", "constants", "low", "high", "scales"):
        np.testing.assert_allclose(getattr(parts, field), getattr(whole, field), rtol=1e-9, atol=1e-12)
    rows = np.arange(len(panel))
    changes = features.changes_ahead(rows, 4) - (
        whole.linear_predictions(features, rows) - features.last(rows)[:, None]
    )
    np.testing.assert_allclose(whole.scales, np.nanstd(changes[features.latest()], axis=0), rtol=1e-9)


def test_looking_ahead_is_learnt_from_the_latest_rows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those before obey another law here, which must not have been seen."""
    target = np.where(np.arange(1200) < 600, 100.0, np.sin(np.arange(1200)))
    monkeypatch.setattr(horizon_fitting, "TARGETS", 300 * HORIZON)
    model = small(epochs=1).fit(Panel.from_arrays(None, target))
    assert "learnt from the latest 300 of" in caplog.text
    assert forecaster_of(model).direct.high.max() < 50


def test_far_outside_its_range_the_direct_part_goes_no_further() -> None:
    panel = random_panel([400], seed=5)
    model = small(epochs=1).fit(panel)
    high = Panel.from_arrays(panel.inputs, panel.target + 1e6)
    forecasts = forecaster_of(model).historical_forecasts(high)[50:]
    assert (np.abs(forecasts - high.target[50:, None]) < 100).all()


def test_recursive_ar_is_that_of_statsmodels() -> None:
    panel = random_panel([300], n_inputs=0, seed=6)
    ours = IteratedARX(lags=4).fit(until(panel, 250)).forecasts(panel, 6)
    theirs = AutoReg(panel.target[:250], lags=4).fit()
    np.testing.assert_allclose(ours[250], theirs.forecast(6), atol=1e-8)


def test_simple_forecasts_with_missing_labels() -> None:
    panel = Panel.from_arrays(None, [1.0, 2.0, np.nan, 4.0, 5.0])
    np.testing.assert_array_equal(persistence_ahead(panel, 2)[1:, 0], [1, 2, 2, 4])
    np.testing.assert_array_equal(seasonal_ahead(panel, 2, season=2)[3], [2, 2])


def test_rows_to_come() -> None:
    longer = extended(PANEL, 3, np.full((2, 3, 1), 7.0), ["x1"])
    assert longer.lengths.tolist() == [303, 263]
    assert np.isnan(longer.target[[300, 301, 302, 563, 564, 565]]).all()
    assert (longer.inputs[300:303, 1] == 7).all()
    np.testing.assert_array_equal(longer.inputs[300:303, 0], PANEL.inputs[[299] * 3, 0])
    assert (np.diff(np.asarray(longer.time)[:303]).astype(int) == 1).all()
    shown = inputs_known_before(PANEL, ["x1"]).inputs
    np.testing.assert_array_equal(shown[1:300, 0], PANEL.inputs[:299, 0])
    np.testing.assert_array_equal(shown[:, 1], PANEL.inputs[:, 1])
    np.testing.assert_array_equal(shown[300, 0], PANEL.inputs[300, 0])  # never another series' row


def test_backtest_scores_each_distance_on_the_test_rows_alone() -> None:
    panel = hourly(random_panel([500], seed=7))
    result = backtest(panel, horizon=3, seeds=2, origins=2, model=lambda seed: small(random_state=seed))
    assert result.rows == 167 and result.mse["VARNN"].shape == (2, 3) and result.coverage.shape == (2, 3)
    lines = result.table(steps=(1, 3))
    assert {line["forecast"] for line in lines} == {
        "VARNN",
        "direct linear",
        "persistence",
        "recursive AR",
        "recursive ARX",
        "seasonal persistence",
    }
    assert next(line for line in lines if line["forecast"] == "persistence")["3"] == (1.0, 0.0)
    last = np.square(panel.target[333:] - panel.target[332:-1]).mean()
    assert result.mse["persistence"][0, 0] == pytest.approx(last)
    with pytest.raises(ConfigError, match="at least 2"):
        backtest(panel, horizon=1)
