"""Preparation from a user's rows to the network's: clock, peers, linear part; in batch and in a stream."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varnn
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn.errors import ConfigError, DataError
from varnn.model.calendar import calendar_inputs, offered_cycles
from varnn.model.peers import mean_of_others
from varnn.model.pipeline import FeaturePipeline, _from_arrays

TINY: dict[str, Any] = {"hidden_size": 8, "epochs": 2, "ensemble": 2, "window": 4, "device": "cpu"}
START = np.datetime64("2026-01-05T00:00")  # a Monday


def panel_of(series: int, rows: int, seed: int, missing: float = 0.0) -> Panel:
    """Make series that share a common part, hourly, some labels missing."""
    generator = np.random.default_rng(seed)
    common = np.cumsum(generator.normal(size=rows))
    x = generator.normal(size=(series, rows, 2))
    y = 50 + common + generator.normal(size=(series, rows)) + x[..., 0]
    y[generator.random((series, rows)) < missing] = np.nan
    return Panel.from_arrays(
        x.reshape(-1, 2),
        y.ravel(),
        series=np.repeat(np.arange(series), rows),
        time=np.tile(START + np.arange(rows) * np.timedelta64(60, "m"), series),
    )


@settings(max_examples=30, deadline=None)
@given(
    series=st.integers(1, 4),
    rows=st.integers(1, 9),
    missing=st.sampled_from([0.0, 0.4]),
    seed=st.integers(0, 99),
)
def test_mean_of_others_is_what_a_loop_gives(series: int, rows: int, missing: float, seed: int) -> None:
    panel = panel_of(series, rows, seed, missing)
    known = ~np.isnan(panel.target)
    ours = mean_of_others(panel, panel.target, known)
    assert panel.time is not None
    owner = np.repeat(np.arange(series), rows)
    for row in range(len(panel)):
        others = panel.target[(panel.time == panel.time[row]) & (owner != owner[row]) & known]
        expected = others.mean() if len(others) else np.nan
        np.testing.assert_allclose(ours[row], expected, rtol=1e-12)


def test_peers_are_matched_by_time_and_not_by_place() -> None:
    time = [START + np.timedelta64(hours, "h") for hours in (0, 1, 2, 2, 3)]
    panel = Panel.from_arrays(None, [1.0, 2.0, 3.0, 30.0, 40.0], series=list("aaabb"), time=np.array(time))
    ours = mean_of_others(panel, panel.target, panel.target > 0)
    np.testing.assert_array_equal(ours, [np.nan, np.nan, 30.0, 3.0, np.nan])


def test_no_row_sees_labels_of_its_own_time_or_later() -> None:
    panel = panel_of(3, 60, seed=1)
    pipeline = FeaturePipeline.fit(
        panel, panel, scale="standard", fill="forward", calendar=("day",), linear=True, peers=True
    )
    changed = panel.target.copy()
    later = np.tile(np.arange(60) >= 40, 3)
    changed[later] += 100
    before, after = pipeline(panel), pipeline(replace(panel, target=changed))
    early = np.tile(np.arange(60) <= 40, 3)  # row 40 itself sees labels up to 39
    np.testing.assert_array_equal(before.panel.inputs[early], after.panel.inputs[early])
    np.testing.assert_array_equal(before.linear_predictions[early], after.linear_predictions[early])
    assert not np.allclose(before.linear_predictions[~early], after.linear_predictions[~early])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_fleet_with_peers_and_clock_equals_the_batch(missing: float, tmp_path: Path) -> None:
    panel = panel_of(3, 160, seed=2, missing=missing)
    VARNNRegressor(peers=True, calendar=["day"], details=Details(forgetting=0.99), **TINY).fit(panel).save(
        tmp_path / "m.varnn"
    )
    model = varnn.load(tmp_path / "m.varnn")
    assert panel.time is not None
    x, y = panel.inputs.reshape(3, 160, 2).swapaxes(0, 1), panel.target.reshape(3, 160).T
    fleet, predictions = model.stream(n_series=3), []
    for row in range(160):
        predictions.append(fleet.predict(x[row], time=panel.time[row]))
        if row in (20, 90):  # with a step open, and with none
            fleet = Stream.restore(model, fleet.snapshot())
        fleet.observe(y[row])
        if row == 50:
            fleet = Stream.restore(model, fleet.snapshot())
    np.testing.assert_allclose(np.array(predictions).T.ravel(), model.predict(panel), rtol=2e-4, atol=2e-4)


def test_peers_help_where_series_share_what_moves_them() -> None:
    panel = panel_of(6, 700, seed=3)
    train = panel.ranges(panel.starts[:-1], panel.starts[:-1] + 500)
    later = panel.ranges(panel.starts[:-1] + 500, panel.starts[1:])
    settled = np.arange(len(later)) - later.first_rows >= 24
    errors = []
    for peers in (False, True):
        model = VARNNRegressor(peers=peers, **{**TINY, "epochs": 10}).fit(train)
        errors.append(np.mean(model.innovations(later)[settled] ** 2))
    assert errors[1] < 0.9 * errors[0]


def test_a_daily_cycle_is_found_on_validation_and_noise_is_not() -> None:
    time = START + np.arange(2400) * np.timedelta64(1, "h")
    generator = np.random.default_rng(0)
    hour = np.arange(2400) % 24
    cyclic = np.where((hour >= 7) & (hour < 9), 5.0, 0.0) + generator.normal(size=2400) / 2
    small: dict[str, Any] = {**TINY, "hidden_size": 16, "epochs": 15, "ensemble": 1}
    found = VARNNRegressor(**small).fit(Panel.from_arrays(None, cyclic, time=time))
    linear = found.fitted_.pipeline.linear
    assert linear is not None and 24 in linear.periods  # by seasonal lags, by the calendar, or by both
    assert set(found.fitted_.training.candidates) == {"inputs", "inputs and day", "inputs and day and week"}
    assert (
        VARNNRegressor(calendar=None, **small)
        .fit(Panel.from_arrays(None, cyclic, time=time))
        .fitted_.pipeline.calendar
        == ()
    )


def test_inputs_of_no_use_are_left_out() -> None:
    generator = np.random.default_rng(1)
    walk = np.cumsum(generator.normal(size=900))
    panel = Panel.from_arrays(generator.normal(size=(900, 200)), walk)
    model = VARNNRegressor(**{**TINY, "hidden_size": 32, "epochs": 20}).fit(panel)
    assert set(model.fitted_.training.candidates) == {"inputs", "labels alone"}
    assert not model.fitted_.pipeline.use_inputs
    live = model.stream()
    predictions = []
    for x, y in zip(panel.inputs, panel.target, strict=True):
        predictions.append(live.predict(x))
        live.observe(y)
    np.testing.assert_allclose(predictions, model.predict(panel), rtol=1e-4, atol=1e-4)
    later = walk[-180:]
    assert np.mean(model.innovations(panel)[-180:] ** 2) < 1.05 * np.mean(np.diff(later) ** 2)


def test_a_model_with_a_clock_asks_for_the_time() -> None:
    panel = panel_of(1, 300, seed=5)
    model = VARNNRegressor(calendar=["day", "week"], **TINY).fit(panel)
    with pytest.raises(DataError, match="each row needs its time"):
        model.predict(panel.inputs, panel.target)
    live = model.stream()
    with pytest.raises(DataError, match="each row needs its time"):
        live.predict(panel.inputs[0])
    with pytest.raises(DataError, match="time must be a timestamp"):
        live.predict(panel.inputs[0], time="yesterday noon")
    assert np.isfinite(live.predict(panel.inputs[0], time="2026-01-05T00:00"))


def test_times_that_are_mere_numbers_offer_no_cycle() -> None:
    assert offered_cycles(np.arange(10_000)) == ()
    assert offered_cycles(None) == ()
    with pytest.raises(DataError, match="each row needs its time"):
        calendar_inputs(np.arange(5), ["day"])


def test_peers_need_a_linear_part_and_more_than_one_series() -> None:
    panel = panel_of(2, 60, seed=6)
    with pytest.raises(ConfigError, match="peers=True needs linear=True"):
        VARNNRegressor(peers=True, linear=False, **TINY).fit(panel)
    with pytest.raises(DataError, match="streams all of them together"):
        VARNNRegressor(peers=True, **TINY).fit(panel).stream()
    with pytest.raises(ConfigError, match="calendar must be"):
        VARNNRegressor(calendar=["year"], **TINY).fit(panel)


def test_annotations_of_what_is_saved_may_be_texts() -> None:
    @dataclass
    class Part:
        weights: "object"
        low: "float"

    kind: Any = Part
    part = _from_arrays(kind, "part", {"part.weights": np.zeros(2), "part.low": np.ones(1)})
    assert isinstance(part.low, float) and len(part.weights) == 2
