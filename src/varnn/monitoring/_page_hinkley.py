"""Does the mean of a stream of numbers move? The two-sided test of Page and Hinkley, self-starting.

Everything here is written once for floats (one series: a step costs a microsecond or two) and for
arrays (one number per series of a fleet): states are tuples, and a step gives a new one.

The test adds up how far the values lie above their mean, less an allowance, and never lets the sum
fall below zero; a sum above a threshold is a change. Downwards alike. Three things make its false
alarms come at the rate asked for, whatever the values look like:

* Each value is compared with the mean and the spread of the values *before* it. Such residuals are
  white with mean zero however few values there are, so that a mean still uncertain alarms nobody.
* Deviations are cut at three spreads, and the spread is that of the cut deviations. Their variance is
  then one for any distribution, their tails are short, and a long sum of them is close to Gaussian.
* What a deviation shares with the one before it is taken off, so that coloured values count as white.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Number = Any  # a float, or an array with one float per series

ALLOWANCE = 0.25  # in spreads; tuned to changes of twice this size, which a threshold of 16 sees in 60 rows
_BOUND = 3.0  # in spreads
_NEAR_ZERO = 2.0  # a sum up to here may be chance: a change is dated and sized from where it was left
_UNBOUNDED = 20  # values that no cut is made on, since the spread is not known yet
_STRONGEST_COLOUR = 0.9  # beyond it a stream wanders, and has no level that could shift
_HUGE = 1e150


class Arithmetic(NamedTuple):
    """What floats and arrays share no operator for."""

    larger: Callable[[Number, float], Number]
    within: Callable[[Number, Number], Number]  # (value, bound) -> value cut at -bound and bound
    root: Callable[[Number], Number]
    choose: Callable[[Number, Any, Any], Any]  # (condition, state where it holds, state elsewhere)
    some: Callable[[Number], bool]


def _floats_choose(condition: bool, new: Any, old: Any) -> Any:
    return new if condition else old


def _floats_within(value: float, bound: float) -> float:
    return bound if value > bound else -bound if value < -bound else value


def _arrays_choose(condition: Number, new: Any, old: Any) -> Any:
    if condition.all():
        return new
    if isinstance(new, tuple):
        return type(new)(*(_arrays_choose(condition, *pair) for pair in zip(new, old, strict=True)))
    return np.where(condition, new, old)


def _arrays_within(value: Number, bound: Number) -> Number:
    return np.minimum(np.maximum(value, -bound), bound)


FLOATS = Arithmetic(max, _floats_within, math.sqrt, _floats_choose, bool)
ARRAYS = Arithmetic(np.maximum, _arrays_within, np.sqrt, _arrays_choose, np.any)


class Excess(NamedTuple):
    """One side of the test: the sum, and what has gone into it since it was last near zero."""

    total: Number = 0.0  # in spreads
    rows: Number = 0.0
    distance: Number = 0.0  # sum of the deviations, uncut and in the values' own units

    @property
    def size(self) -> Number:
        """Mean deviation since the sum was last near zero: how large the change looks."""
        return self.distance / self.rows


def accumulate(
    excess: Excess, score: Number, deviation: Number, arithmetic: Arithmetic, allowance: float = ALLOWANCE
) -> Excess:
    """Add one score to a sum.

    Examples
    --------
    >>> excess = Excess()
    >>> for score in (1.0, 2.0, 3.0, -6.0):
    ...     excess = accumulate(excess, score, score, FLOATS)
    ...     print(excess.total, excess.rows)
    0.75 0.0
    2.5 1.0
    5.25 2.0
    0.0 0.0
    """
    total, rows, distance = excess
    total = arithmetic.larger(total + (score - allowance), 0.0)
    above = total > _NEAR_ZERO
    return Excess(total, (rows + 1) * above, (distance + deviation) * above)


class Track(NamedTuple):
    """What is known of one watched stream since the last change."""

    count: Number = 0.0  # values seen
    mean: Number = 0.0
    power: Number = 0.0  # mean square of the cut deviations
    product: Number = 0.0  # mean product of neighbouring ones
    last: Number = 0.0  # the last cut deviation
    up: Excess = Excess()
    down: Excess = Excess()


def follow(track: Track, value: Number, warm_up: int, memory: int, arithmetic: Arithmetic) -> Track:
    """Take in one value.

    Parameters
    ----------
    track : Track
        What is known so far.
    value : Number
        The next value, finite.
    warm_up : int
        Values that are only learned from: the sums stay zero.
    memory : int
        Values after which mean, spread and colour forget, by 1 / memory a value.
    arithmetic : Arithmetic
        :data:`FLOATS` or :data:`ARRAYS`.

    Examples
    --------
    >>> track = Track()
    >>> for value in [0.0, 1.0] * 50 + [3.0] * 8:
    ...     track = follow(track, value, 100, 1000, FLOATS)
    >>> track.up.total > threshold(1 / 1000), track.down.total, round(track.up.size, 1)
    (True, 0.0, 2.4)
    """
    larger, within, root = arithmetic.larger, arithmetic.within, arithmetic.root
    count, mean, power, product, last, up, down = track
    count = count + 1
    gain = larger(1 / count, 1 / memory)
    deviation = value - mean
    # Until two values differ there is no spread: nothing can be cut, and nothing is out of the ordinary.
    flat = power <= 0
    power_or_one = power + flat
    spread = root(power_or_one)
    cut = within(deviation, _BOUND * spread + ((count <= _UNBOUNDED) | flat) * _HUGE)
    colour = within(product / power_or_one, _STRONGEST_COLOUR)
    armed = (count > warm_up) & (power > 0)
    score = armed * (cut - colour * last) / (spread * root(1 - colour * colour))
    return Track(
        count,
        mean + gain * cut,
        (1 - gain) * (power + gain * cut * cut),  # Welford's rule when the gain is 1 / count
        product + gain * (cut * last - product),
        cut,
        accumulate(up, score, deviation, arithmetic),
        accumulate(down, -score, -deviation, arithmetic),
    )


# Siegmund's approximation: for Gaussian scores a sum with allowance k first passes h after
# (exp(2kb) - 2kb - 1) / (2k²) rows on average, where b = h + 1.166 makes up for the sum overshooting
# its threshold. Simulated streams keep to it, be they Gaussian, Laplace, t with 3 degrees of freedom or
# AR(1): levels within a fifth, variances from the rate asked for down to 0.4 of it (docs/monitoring.md).
_OVERSHOOT = 1.166


def threshold(rate: float, *, allowance: float = ALLOWANCE) -> float:
    """Threshold that one side of the test passes by chance at this rate per row.

    Examples
    --------
    >>> round(threshold(1 / 10_000), 1), round(threshold(1 / 100_000), 1)
    (13.1, 17.7)
    """
    twice = 2 * allowance

    def rows_until_passed(height: float) -> float:
        return (math.expm1(twice * height) - twice * height) / (2 * allowance**2)

    return max(_rising_root(lambda height: rows_until_passed(height) - 1 / rate) - _OVERSHOOT, 0.0)


def threshold_of_misses(rate: float, coverage: float, *, allowance: float = ALLOWANCE) -> float:
    """Threshold for scores of misses, (coverage - hit) / sd, which are far from Gaussian.

    The chance of an excursion to h falls as exp(-t h), where t > 0 solves E exp(t (score - k)) = 1.
    For Gaussian scores t = 2k; a miss is rarer and larger than that, t smaller, and the threshold
    grows in proportion.

    Examples
    --------
    >>> [round(threshold_of_misses(1 / 10_000, coverage), 1) for coverage in (0.5, 0.9, 0.99)]
    [12.8, 17.7, 27.4]
    """
    deviation = math.sqrt(coverage * (1 - coverage))
    miss, hit = coverage / deviation - allowance, (coverage - 1) / deviation - allowance

    def growth(tilt: float) -> float:
        return (1 - coverage) * math.exp(tilt * miss) + coverage * math.exp(tilt * hit) - 1

    # The growth is zero at zero, falls, and rises through zero once more: that root is the wanted one.
    tilt = _rising_root(growth)
    boundary = (threshold(rate, allowance=allowance) + _OVERSHOOT) * 2 * allowance / tilt
    # A sum made of such large steps overshoots by half a step; the other half comes from its lower end.
    return boundary - (miss + 1) / 2


def _rising_root(function: Callable[[float], float]) -> float:
    """Find the point from which on a convex function, negative just above zero, is positive."""
    high = 1.0
    while function(high) <= 0:
        high *= 2
    low = high
    while function(low) > 0:
        low /= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return high
