"""Intervals: nested, calibrated whatever the errors do, the same in batch and stream."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varnn
from tests.cases import random_panel
from varnn import Panel, Stream, VARNNRegressor
from varnn.errors import ConfigError, DataError
from varnn.intervals import TAUS, Spread, Tracker, follow

TINY: dict[str, Any] = {"hidden_size": 8, "epochs": 3, "ensemble": 2, "window": 4, "device": "cpu"}
Doubles = npt.NDArray[np.float64]


def spread_of(errors: Doubles, later: Doubles) -> Spread:
    hidden = np.ones((len(errors), 2))
    return Spread.of(
        hidden, errors, np.array([0, len(errors)]), hidden[: len(later)], later, np.array([0, len(later)])
    )


def coverage(errors: Doubles, level: float, seed: int = 0) -> npt.NDArray[np.bool_]:
    first = np.random.default_rng(seed).normal(size=3000)
    tracker = Tracker(spread_of(first, first[:2000]), 1)
    ones = np.ones((len(errors), 2))
    low, high = follow(tracker, ones, errors, np.array([0, len(errors)]), np.array([level]))
    return np.asarray((errors >= low[:, 0]) & (errors <= high[:, 0]))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("kind", ["same", "wider", "growing", "bursts", "skew", "heavy"])
def test_coverage_holds_whatever_the_errors_do(kind: str, level: float) -> None:
    generator = np.random.default_rng(7)
    noise = generator.normal(size=8000)
    errors = {
        "same": noise,
        "wider": 5 * noise,
        "growing": noise * np.linspace(0.2, 4, 8000),
        "bursts": noise * np.where(np.arange(8000) // 50 % 4 == 0, 6.0, 1.0),
        "skew": generator.exponential(size=8000) - 1,
        "heavy": generator.standard_t(2, size=8000),
    }[kind]
    covered = coverage(errors, level)
    assert abs(covered.mean() - level) < 0.015
    assert min(part.mean() for part in np.array_split(covered, 10)) > level - 0.07


def test_width_follows_the_latest_errors() -> None:
    generator = np.random.default_rng(3)
    scale = np.where(np.arange(6000) // 300 % 2 == 0, 1.0, 8.0)
    errors = generator.normal(size=6000) * scale
    tracker = Tracker(spread_of(errors[:3000], errors[1500:3000]), 1)
    low, high = follow(tracker, np.ones((3000, 2)), errors[3000:], np.array([0, 3000]), np.array([0.9]))
    width = (high - low)[:, 0]
    assert width[scale[3000:] > 1].mean() > 3 * width[scale[3000:] == 1].mean()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    levels=st.lists(st.floats(0.01, 0.99), min_size=2, max_size=6, unique=True),
    missing=st.sampled_from([0.0, 0.5]),
)
def test_intervals_are_nested_finite_and_never_inverted(
    seed: int, levels: list[float], missing: float
) -> None:
    generator = np.random.default_rng(seed)
    errors = generator.standard_t(1.5, size=400)
    errors[generator.random(400) < missing] = np.nan
    tracker = Tracker(spread_of(generator.normal(size=300), generator.normal(size=200)), 2)
    starts = np.array([0, 150, 400])
    low, high = follow(tracker, np.ones((400, 2)), errors, starts, np.sort(levels))
    assert np.isfinite(low).all() and np.isfinite(high).all()
    assert (low <= 0).all() and (high >= 0).all()
    assert (np.diff(low, axis=1) <= 1e-12).all() and (np.diff(high, axis=1) >= -1e-12).all()


def test_missing_labels_change_nothing() -> None:
    tracker = Tracker(
        spread_of(np.random.default_rng(0).normal(size=300), np.random.default_rng(1).normal(size=200)), 1
    )
    before = tracker.state()
    tracker.expect(np.ones((1, 2)))
    tracker.observe(np.array([np.nan]))
    np.testing.assert_array_equal(tracker.state(), before)
    assert before.shape == (1, len(TAUS) + 4)


@pytest.mark.parametrize("adapt", [None, "rls"])
def test_a_stream_gives_the_intervals_of_the_batch_through_snapshots(adapt: Any, tmp_path: Path) -> None:
    panel = random_panel([300], missing=0.1, seed=1)
    VARNNRegressor(adapt=adapt, **TINY).fit(panel).save(tmp_path / "m.varnn")
    model = varnn.load(tmp_path / "m.varnn")
    batch = model.predict(panel, interval=[0.5, 0.9])
    live, found = model.stream(), []
    for row, (x, y) in enumerate(zip(panel.inputs, panel.target, strict=True)):
        found.append(live.predict(x, interval=[0.5, 0.9]))
        if row % 70 == 30:
            live = Stream.restore(model, live.snapshot())
        live.observe(y)
    np.testing.assert_allclose([one.prediction for one in found], batch.prediction, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose([one.lower for one in found], batch.lower, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose([one.upper for one in found], batch.upper, rtol=1e-3, atol=1e-3)


def test_a_fleet_and_long_series_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = random_panel([120, 120], missing=0.1, seed=2)
    model = VARNNRegressor(**TINY).fit(panel)
    whole = model.predict(panel, interval=0.9)
    fleet, found = model.stream(n_series=2), []
    for row in range(120):
        found.append(fleet.predict(panel.inputs[[row, 120 + row]], interval=0.9))
        fleet.observe(panel.target[[row, 120 + row]])
    np.testing.assert_allclose(
        np.array([one.upper for one in found]).T.ravel(), whole.upper, rtol=1e-3, atol=1e-3
    )
    monkeypatch.setattr("varnn.fitted._ROWS_AT_ONCE", 50)
    pieces = model.predict(panel, interval=0.9)
    np.testing.assert_allclose(pieces.lower, whole.lower, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(whole.prediction, model.predict(panel), rtol=1e-6)


def test_shapes_and_refusals() -> None:
    panel = random_panel([80, 60], seed=3)
    model = VARNNRegressor(**TINY).fit(panel)
    one, two = model.predict(panel, interval=0.9), model.predict(panel, interval=[0.5, 0.9])
    assert one.lower.shape == (140,)
    assert two.lower.shape == (140, 2)
    np.testing.assert_array_equal(one.upper, two.upper[:, 1])
    live = model.stream()
    assert isinstance(live.predict(panel.inputs[0], interval=0.9).lower, float)
    for wrong in (90, 0, [0.5, 1.0], "wide"):
        with pytest.raises(ConfigError, match="interval must hold levels"):
            model.predict(panel, interval=wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="rows need labels"):
        model.predict(panel.inputs, interval=0.9)
    plain = VARNNRegressor(intervals=False, **TINY).fit(panel)
    with pytest.raises(ConfigError, match="intervals=False"):
        plain.predict(panel, interval=0.9)
    with pytest.raises(ConfigError, match="intervals=False"):
        plain.stream().predict(panel.inputs[0], interval=0.9)


def test_rows_come_back_in_the_callers_order() -> None:
    generator = np.random.default_rng(4)
    series = generator.integers(0, 3, size=200)
    x, y = generator.normal(size=(200, 2)), generator.normal(size=200)
    model = VARNNRegressor(**TINY).fit(x, y, series=series)
    mine = model.predict(x, y, series=series, interval=0.9)
    panel = Panel.from_arrays(x, y, series=series)
    theirs = model.predict(panel, interval=0.9)
    np.testing.assert_array_equal(mine.lower[panel.rows], theirs.lower)
