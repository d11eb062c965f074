"""How far off a forecast may be: quantiles of past errors at each step, wider when labels move more.

An error at step k is taken in units of (how much the label moved lately) ** p_k, where p_k is 0, 1/2
or 1, whichever gives the sharper quantiles on validation rows. As outcomes come in, intervals that hold
too few of them are widened and those that hold too many are narrowed, for each series, step and level
apart: adaptive conformal prediction.

Few validation rows tell little about far steps: forecasts k rows ahead overlap, so n of their errors
are worth n / k separate ones, and beyond the end of the rows there are none at all. Where they are worth
less than `ENOUGH`, quantiles are those of Student's t distribution, mixed with the errors' own by the share
of `ENOUGH` that is there ::

    scale_k ** 2  =  (c_k rms_k ** 2  +  PRIOR scale_(k-1) ** 2 k / (k-1)) / (c_k + PRIOR),    c_k = n_k / k

where rms_k is what the errors at step k are like, and the other term what they would be like if errors
grew from the step before as those of a random walk do; c_k are the degrees of freedom, `FEWEST` at least.
"""

from dataclasses import dataclass

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.model.intervals import TAUS

POWERS = (0.0, 0.5, 1.0)
ENOUGH = 20  # separate errors, from which on their own quantiles are taken
PRIOR = 4  # separate errors that the growth of a random walk counts as much as
FEWEST = 3  # degrees of freedom: with fewer, the far tails of Student's t say nothing
_LEAST = 0.1  # of the usual movement: a label that stood still may move again
_RATE = 0.05  # of widening and narrowing
_NARROWEST, _WIDEST = 0.5, 5.0  # times as wide as on validation rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Bands:
    """Quantiles of forecast errors, for H steps and T quantiles.

    Parameters
    ----------
    usual
        Usual movement of the label from row to row: its mean on validation rows.
    powers
        p of each step: (H,).
    quantiles
        Of errors in units of movement ** p, at `varnn.model.intervals.TAUS`: (H, T).

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> movement = generator.uniform(0.5, 2, size=1000)
    >>> errors = generator.normal(size=(1000, 2)) * movement[:, None] * [1, 3]
    >>> bands = Bands.of(errors, movement)
    >>> lower, upper = bands.reach(np.array([0.5, 2.0]), np.array([0.9]))
    >>> lower.shape, bool(upper[1, 0, 0] > 1.5 * upper[0, 0, 0]), bool(upper[0, 1, 0] > upper[0, 0, 0])
    ((2, 2, 1), True, True)
    """

    usual: float
    powers: DoubleArray
    quantiles: DoubleArray

    @classmethod
    def of(cls, errors: DoubleArray, movement: DoubleArray) -> "Bands":
        """Learn from errors (N, H), NaN where unknown, and how much the label had moved, (N,)."""
        usual = float(movement.mean()) or 1.0
        powers, quantiles, size = [], [], 0.0
        for step, column in enumerate(errors.T, 1):
            known = ~np.isnan(column)
            own, worth = column[known], int(known.sum()) / step
            grown = size * (step / max(1, step - 1)) ** 0.5
            size = _size(own, worth, grown if step > 1 else None)
            tried = []
            for power in POWERS if worth >= ENOUGH else POWERS[:1]:
                scale = _scales(movement[known], usual, power)
                found = np.quantile(own / scale, TAUS) if len(own) else np.zeros(len(TAUS))
                tried.append((_pinball(own, scale[:, None] * found), power, found))
            _, power, found = min(tried, key=lambda one: one[0])
            if worth < ENOUGH:
                trust = worth / ENOUGH
                found = trust * found + (1 - trust) * size * _student(max(FEWEST, worth))
            powers.append(power)
            quantiles.append(found)
        return cls(usual=usual, powers=np.array(powers), quantiles=np.array(quantiles))

    def reach(self, movement: DoubleArray, levels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Give how far below and above a forecast its intervals reach: (n, H, L) each."""
        scales = _scales(movement[:, None], self.usual, self.powers)[:, :, None]  # (n, H, 1)
        low, high = (
            np.stack([np.interp((1 + sign * levels) / 2, TAUS, one) for one in self.quantiles])
            for sign in (-1, 1)
        )
        # An interval holds its forecast, whatever side past errors were on.
        return np.minimum(scales * low, 0), np.maximum(scales * high, 0)


def adjusted(
    outcomes: DoubleArray, lower: DoubleArray, upper: DoubleArray, levels: DoubleArray
) -> DoubleArray:
    """Give by how much to widen or narrow the intervals of one series, from outcomes before each row.

    Parameters
    ----------
    outcomes
        What came, less what was forecast from before each row: (N, H), NaN where unknown. Column k of
        row t is about row t + k, so it is known from row t + k + 1 on.
    lower, upper
        How far below and above each forecast its intervals reach: (N, H, L).
    levels
        The share of outcomes that each should hold: (L,).

    Returns
    -------
    array of shape (N, H, L)
        Factors.
    """
    rows, horizon = outcomes.shape
    beyond = np.empty(lower.shape)  # how often its reach each outcome is away: an interval holds up to 1
    for step in range(horizon):  # one after the other: of many rows all together are large
        away, reach = outcomes[:, step, None], (lower[:, step], upper[:, step])
        beyond[:, step] = np.maximum(_over(away, reach[1]), _over(-away, -reach[0]))
    factors = np.ones((rows + 1, horizon, len(levels)))
    for row in range(rows):
        factors[row + 1] = factors[row]
        steps = np.arange(min(row + 1, horizon))
        origin = row - steps  # whose outcome at this step is row ``row``
        missed = beyond[origin, steps] > factors[origin, steps]  # (k, L)
        known = ~np.isnan(outcomes[origin, steps])
        change = _RATE * (missed - (1 - levels)) * known[:, None]
        factors[row + 1, steps] = np.clip(factors[row + 1, steps] + change, _NARROWEST, _WIDEST)
    return factors[:-1]


def poorly_known(errors: DoubleArray) -> IntArray:
    """List the steps, from 1 on, whose errors (N, H) are too few to take their own quantiles.

    Examples
    --------
    >>> poorly_known(np.ones((50, 4))).tolist()
    [3, 4]
    """
    steps = np.arange(1, errors.shape[1] + 1)
    few = np.count_nonzero(~np.isnan(errors), axis=0) < ENOUGH * steps
    return np.asarray(steps[few])


def _size(errors: DoubleArray, worth: float, grown: float | None) -> float:
    """Give how large errors of one step are: as they were, and as they grew from the one before."""
    own = float(np.square(errors).mean()) if len(errors) else 0.0
    if grown is None:
        return float(own**0.5)
    return float(((worth * own + PRIOR * grown**2) / (worth + PRIOR)) ** 0.5)


def _student(freedom: float) -> DoubleArray:
    """Give the quantiles of Student's t distribution at `TAUS`."""
    from scipy.stats import t  # late: it takes a while to import, and only fitting needs it

    return np.asarray(t.ppf(TAUS, freedom))


def _over(step: DoubleArray, reach: DoubleArray) -> DoubleArray:
    """Divide; what is beyond a reach of nothing is infinitely far."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(step / reach, nan=0.0, posinf=np.inf)


def _scales(movement: DoubleArray, usual: float, power: float | DoubleArray) -> DoubleArray:
    return np.asarray(np.maximum(movement / usual, _LEAST) ** power)


def _pinball(errors: DoubleArray, quantiles: DoubleArray) -> float:
    """Give the mean quantile loss of errors (N,) against quantiles (N, T)."""
    if len(errors) == 0:
        return 0.0
    beyond = errors[:, None] - quantiles
    return float(np.mean(np.maximum(TAUS * beyond, (TAUS - 1) * beyond)))
