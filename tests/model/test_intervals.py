"""Intervals: nested, calibrated whatever the errors do, the same in batch and stream."""

from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import GammaRegressor
from sklearn.preprocessing import StandardScaler

import varnn
from tests.cases import random_panel
from varnn import Panel, Stream, VARNNRegressor
from varnn._types import DoubleArray
from varnn.errors import ConfigError, DataError
from varnn.evaluation.metrics import interval_score
from varnn.model.intervals import TAUS, CalibrationRows, ErrorScale, follow
from varnn.model.intervals._size_regression import fit_sizes
from varnn.model.prediction import predict_rows

TINY: dict[str, Any] = {"hidden_size": 8, "epochs": 3, "ensemble": 2, "window": 4, "device": "cpu"}


def error_scale_of(errors: DoubleArray, later: DoubleArray) -> ErrorScale:
    hidden = np.ones((len(errors), 2))
    return ErrorScale.fit(
        CalibrationRows(hidden[: len(later)], later, np.array([0, len(later)])),
        CalibrationRows(hidden, errors, np.array([0, len(errors)])),
    )


@pytest.mark.parametrize("kind", ["same", "wider", "growing", "bursts", "skew", "heavy"])
def test_coverage_holds_whatever_the_errors_do(kind: str) -> None:
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
    first = np.random.default_rng(0).normal(size=3000)
    error_scale, levels = error_scale_of(first, first[:2000]), np.array([0.5, 0.8, 0.9, 0.95])
    low, high = follow(error_scale, np.ones((8000, 2)), errors, np.array([0, 8000]), levels)
    covered = (errors[:, None] >= low) & (errors[:, None] <= high)
    assert np.abs(covered.mean(axis=0) - levels).max() < 0.015
    worst = np.min([part.mean(axis=0) for part in np.array_split(covered, 10)], axis=0)
    assert (worst > levels - 0.07).all()


def test_width_follows_the_latest_errors() -> None:
    generator = np.random.default_rng(3)
    scale = np.where(np.arange(6000) // 300 % 2 == 0, 1.0, 8.0)
    errors = generator.normal(size=6000) * scale
    error_scale = error_scale_of(errors[:3000], errors[1500:3000])
    low, high = follow(error_scale, np.ones((3000, 2)), errors[3000:], np.array([0, 3000]), np.array([0.9]))
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
    error_scale = error_scale_of(generator.normal(size=300), generator.normal(size=200))
    starts = np.array([0, 150, 400])
    low, high = follow(error_scale, np.ones((400, 2)), errors, starts, np.sort(levels))
    assert np.isfinite(low).all() and np.isfinite(high).all()
    assert (low <= 0).all() and (high >= 0).all()
    assert (np.diff(low, axis=1) <= 1e-12).all() and (np.diff(high, axis=1) >= -1e-12).all()


def test_a_tracker_does_what_its_equations_say() -> None:
    """Against the equations of the module, one series and one number at a time."""
    generator = np.random.default_rng(5)
    error_scale = error_scale_of(generator.normal(size=300), generator.normal(size=200))
    hidden, errors = generator.exponential(size=(80, 2, 2)), generator.standard_t(2, size=(80, 2))
    errors[generator.random((80, 2)) < 0.2] = np.nan
    tracker = error_scale.tracker(2)
    found = []
    for layers, misses in zip(hidden, errors, strict=True):
        tracker.expect(layers)
        found.append(tracker.bounds(np.array([0.8])))
        tracker.observe(misses)
    tau_low, tau_high = (TAUS.tolist().index(tau) for tau in (0.1, 0.9))
    for series in range(2):
        quantiles, fast, slow, last, level = error_scale.quantiles.tolist(), 1.0, 1.0, 1.0, 1.0
        for row in range(80):
            seen = [*hidden[row, series], *(mean / 0.05 for mean in (fast, slow, last))]
            exponent = error_scale.weights[-1] + sum(
                weight * np.log(1 + one) for weight, one in zip(error_scale.weights, seen, strict=False)
            )
            expected = error_scale.unit * np.exp(exponent)
            scale = expected * level
            below, above = found[row]
            assert below[series, 0] == pytest.approx(scale * quantiles[tau_low], rel=1e-9)
            assert above[series, 0] == pytest.approx(scale * quantiles[tau_high], rel=1e-9)
            error = errors[row, series]
            if np.isnan(error):
                continue
            quantiles = [
                q + 0.05 * (tau - (error <= scale * q)) for q, tau in zip(quantiles, TAUS, strict=True)
            ]
            quantiles = [max(quantiles[: place + 1]) for place in range(len(quantiles))]
            size = min(abs(error), error_scale.largest) / error_scale.unit
            fast, slow, last = 0.8 * fast + 0.2 * size, 0.98 * slow + 0.02 * size, size
            level = 0.99 * level + 0.01 * min(abs(error) / expected, 10 * level)


def test_sizes_are_regressed_as_scikit_learn_regresses_gamma_variables() -> None:
    generator = np.random.default_rng(6)
    regressors = generator.normal(size=(4000, 3)) * [1.0, 5.0, 0.2] + [0.0, 2.0, -1.0]
    truth = np.exp(regressors @ [0.3, -0.1, 1.0] + 0.5)
    errors = truth * generator.gamma(4.0, 0.25, size=4000)  # none is cut: it would have to be ten times
    errors[::7] = np.nan
    known = ~np.isnan(errors)
    scaler = StandardScaler().fit(regressors[known])
    peer = GammaRegressor(alpha=0.1, tol=1e-9, max_iter=1000)
    peer.fit(scaler.transform(regressors[known]), errors[known] + 0.05)
    weights = fit_sizes(regressors, errors)
    expected = np.log(peer.predict(scaler.transform(regressors)))
    np.testing.assert_allclose(regressors @ weights[:-1] + weights[-1], expected, rtol=1e-4, atol=1e-4)


def test_width_follows_hidden_units_as_far_as_later_rows_confirm() -> None:
    generator = np.random.default_rng(8)
    hidden = generator.exponential(size=(6000, 3))
    noise = generator.normal(size=6000)
    errors, starts = noise * np.exp(hidden[:, 0]), np.array([0, 3000])
    training = CalibrationRows(hidden[:3000], errors[:3000], starts)
    confirmed = ErrorScale.fit(CalibrationRows(hidden[3000:], errors[3000:], starts), training)
    denied = ErrorScale.fit(CalibrationRows(hidden[3000:], noise[3000:], starts), training)
    assert confirmed.weights[0] > 0.8
    assert abs(denied.weights[0]) < 0.1
    assert np.abs(confirmed.weights[1:3]).max() < 0.1 * confirmed.weights[0], "the others say nothing"


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_where_errors_are_all_alike_little_is_lost(level: float) -> None:
    """Against the interval of someone who knows that they are normal, at their true width."""
    generator = np.random.default_rng(9)
    errors, hidden = generator.normal(size=9000), generator.exponential(size=(9000, 8))
    first, later, rest = slice(0, 3000), slice(3000, 4000), slice(4000, 9000)
    error_scale = ErrorScale.fit(
        CalibrationRows(hidden[later], errors[later], np.array([0, 1000])),
        CalibrationRows(hidden[first], errors[first], np.array([0, 3000])),
    )
    bounds = follow(error_scale, hidden[rest], errors[rest], np.array([0, 5000]), np.array([level]))
    reach = NormalDist().inv_cdf((1 + level) / 2)
    ours = interval_score(errors[rest], bounds[0][:, 0], bounds[1][:, 0], level)
    best = interval_score(errors[rest], -reach, reach, level)
    assert ours / best < 1.03


def test_errors_that_are_all_zero_are_no_trouble() -> None:
    error_scale = error_scale_of(np.zeros(300), np.zeros(200))
    low, high = follow(error_scale, np.ones((50, 2)), np.zeros(50), np.array([0, 50]), np.array([0.9]))
    assert np.isfinite(low).all() and np.isfinite(high).all()


def test_missing_labels_change_nothing() -> None:
    tracker = error_scale_of(
        np.random.default_rng(0).normal(size=300), np.random.default_rng(1).normal(size=200)
    ).tracker(1)
    before = tracker.state()
    tracker.expect(np.ones((1, 2)))
    tracker.observe(np.array([np.nan]))
    np.testing.assert_array_equal(tracker.state(), before)
    assert before.shape == (1, len(TAUS) + 4)


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(**TINY).fit(random_panel([300], missing=0.1, seed=1))


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
    missing=st.sampled_from([0.0, 0.3]),
    interruptions=st.sets(st.integers(0, 39), max_size=5),
)
def test_a_stream_keeps_its_promises_through_interruptions(
    model: VARNNRegressor, seed: int, size: float, missing: float, interruptions: set[int]
) -> None:
    """Whatever labels come: nested, finite, around the prediction; the same after a snapshot."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(40, model.n_features_in_))
    labels = size * generator.standard_t(2, size=40)
    labels[generator.random(40) < missing] = np.nan
    levels = [0.3, 0.8, 0.9, 0.99]
    whole, broken = model.stream(), model.stream()
    for row, (x, y) in enumerate(zip(inputs, labels, strict=True)):
        one, other = whole.predict(x, interval=levels), broken.predict(x, interval=levels)
        np.testing.assert_array_equal(
            np.array([*one.lower, *one.upper]), np.array([*other.lower, *other.upper])
        )
        reaches = [*one.lower[::-1], one.prediction, *one.upper]
        assert np.isfinite(reaches).all()
        assert (np.diff(reaches) >= 0).all()
        whole.observe(y)
        if row in interruptions:  # between prediction and label
            broken = Stream.restore(model, broken.snapshot())
        broken.observe(y)
        if row + 20 in interruptions:  # or after it
            broken = Stream.restore(model, broken.snapshot())


@pytest.mark.parametrize("adapt", [None, "constant-gain"])
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


def test_a_fleet_and_long_series_in_pieces() -> None:
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
    for rows, piece in predict_rows(model.fitted_, panel, np.array([0.9]), max_rows=50):
        np.testing.assert_array_equal(piece.lower[:, 0], whole.lower[rows])
    np.testing.assert_array_equal(whole.prediction, model.predict(panel))


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
            model.predict(panel, interval=wrong)  # type: ignore[arg-type]  # on purpose
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


@pytest.mark.parametrize("seed", range(4))
def test_errors_widen_intervals_and_accuracy_narrows_them_on_few_rows_too(seed: int) -> None:
    """Few validation rows may show by chance that small errors follow large ones."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(400, 2))
    y = X @ [1.0, -0.5] + 0.1 * generator.normal(size=400)
    model = VARNNRegressor(ensemble=1, epochs=2, hidden_size=16, random_state=seed).fit(X, y)
    widths = {}
    for error in (0.0, 1.0):
        live = model.stream()
        for row in range(60):
            found = live.predict([0.0, 0.0], interval=0.9)
            live.observe(found.prediction + error * (-1) ** row)
        widths[error] = found.upper - found.lower
    assert widths[0.0] < 0.5
    assert 1.0 < widths[1.0] < 10
