"""Bands of forecasts: what they cover, and how they follow outcomes as these become known."""

import numpy as np

from varnn._types import DoubleArray
from varnn.model.intervals import TAUS, CalibrationRows, HorizonBands, follow
from varnn.model.intervals.few_errors import ENOUGH


def normal_bands(horizon: int) -> HorizonBands:
    """Make bands of errors that are standard normal at every step."""
    quantiles = np.quantile(np.random.default_rng(1).normal(size=200_000), TAUS)
    return HorizonBands(usual=1.0, powers=np.zeros(horizon), quantiles=np.tile(quantiles, (horizon, 1)))


def test_bands_cover_what_they_say_on_rows_like_those_they_learned_from() -> None:
    generator = np.random.default_rng(0)
    movement = generator.lognormal(size=20_000)
    errors = movement[:, None] * generator.normal(size=(20_000, 3)) * [1, 2, 3]
    bands = HorizonBands.fit(CalibrationRows(movement[::2, None], errors[::2], np.array([0, 10_000])))
    assert (bands.powers == 1).all()
    lower, upper = bands.reach(movement[1::2], np.array([0.5, 0.9]))
    held = (lower <= errors[1::2, :, None]) & (errors[1::2, :, None] <= upper)
    np.testing.assert_allclose(held.mean(axis=0), np.tile([0.5, 0.9], (3, 1)), atol=0.02)
    assert bands.quantiles.shape == (3, len(TAUS))


def test_intervals_follow_how_much_they_held_of_what_is_known() -> None:
    generator = np.random.default_rng(0)
    outcomes = generator.normal(size=(4000, 4))
    outcomes[2000:] *= 2  # errors double
    levels, bands = np.array([0.5, 0.9]), normal_bands(4)

    def factors_of(errors: DoubleArray) -> DoubleArray:
        below, above = follow(bands, np.ones((4000, 1)), errors, np.array([0, 4000]), levels)
        reach = bands.reach(np.ones(1), levels)
        np.testing.assert_allclose(below / reach[0], above / reach[1])
        return np.asarray(above / reach[1])

    factors = factors_of(outcomes)
    held = np.abs(outcomes)[:, :, None] <= factors * bands.reach(np.ones(1), levels)[1]
    np.testing.assert_allclose(held[2500:].mean(axis=(0, 1)), levels, atol=0.02)
    np.testing.assert_allclose(held[:2000].mean(axis=(0, 1)), levels, atol=0.02)
    assert factors.min() >= 0.5 and factors.max() <= 5
    later = outcomes.copy()
    later[1000:] = 100  # column k of row t is known from row t + k + 1 on
    again = factors_of(later)
    np.testing.assert_array_equal(again[:1001], factors[:1001])
    assert again[1001, 0, 1] > factors[1001, 0, 1]
    np.testing.assert_array_equal(again[1001, 1:], factors[1001, 1:])


def test_levels_that_are_not_followed_lie_between_those_that_are() -> None:
    generator = np.random.default_rng(2)
    errors, bands = 3 * generator.normal(size=(300, 2)), normal_bands(2)
    tracker = bands.tracker(1)  # follows 0.2, 0.5, 0.8, ...
    tracker.follow(np.ones((300, 1)), errors, np.array([0, 300]), np.array([0.9]))
    tracker.expect(np.ones((1, 1)))
    levels = np.array([0.8, 0.05, 0.85, 0.9])
    low, high, between = (tracker.bounds(one)[1][0] for one in (levels[:1], levels[-1:], levels[2:3]))
    assert ((low < between) & (between < high)).all()
    below, above = tracker.bounds(levels)
    np.testing.assert_array_equal(above[0][:, [0, 3]], np.hstack([low, high]))
    order = np.argsort(levels)
    assert (np.diff(above[..., order]) >= 0).all() and (np.diff(below[..., order]) <= 0).all()


def test_bands_of_errors_with_one_sign_are_widened_to_both_sides() -> None:
    """Forecasts were too low on all validation rows; then they are right, and outcomes lie on both sides."""
    generator = np.random.default_rng(3)
    learnt = CalibrationRows(np.ones((400, 1)), generator.uniform(1, 3, size=(400, 1)), np.array([0, 400]))
    bands, levels = HorizonBands.fit(learnt), np.array([0.9])
    outcomes = generator.normal(size=(2000, 1))
    below, above = follow(bands, np.ones((2000, 1)), outcomes, np.array([0, 2000]), levels)
    assert (below < 0).all()
    assert above.max() < 3 * 3  # it was widened to five times 3, and held half of the outcomes still
    held = (below[:, 0, 0] <= outcomes[:, 0]) & (outcomes[:, 0] <= above[:, 0, 0])
    assert 0.85 < held[500:].mean() < 0.95


def test_neighbouring_steps_have_bands_alike() -> None:
    """Where errors hardly go with movements, steps one by one would choose by chance whether they do."""
    generator = np.random.default_rng(1)
    movement = generator.lognormal(sigma=0.5, size=400)
    errors = np.cumsum(generator.normal(size=(400, 40)) * movement[:, None] ** 0.25, axis=1)
    bands = HorizonBands.fit(CalibrationRows(movement[:, None], errors, np.array([0, 400])))
    lower, upper = bands.reach(np.array([0.2]), np.array([0.9]))
    widths = (upper - lower)[0, :, 0]
    assert ENOUGH > 400 / 40  # some have enough errors of their own, some have not
    assert np.max(np.maximum(widths[1:] / widths[:-1], widths[:-1] / widths[1:])[3:]) < 1.25


def test_a_few_small_errors_do_not_make_bands_further_ahead_narrow() -> None:
    errors = np.random.default_rng(0).normal(size=(60, 40))
    errors[:, 20:] /= 10
    bands = HorizonBands.fit(CalibrationRows(np.ones((60, 1)), errors, np.array([0, 60])))
    spread = bands.quantiles[:, 9] - bands.quantiles[:, 2]
    assert (spread[20:] > 0.8 * spread[19]).all()
