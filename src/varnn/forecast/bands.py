"""How far off a forecast may be: quantiles of past errors at each distance, wider when labels move more.

An error at distance k is taken in units of (how much the label moved lately) ** p_k, where p_k is 0, 1/2
or 1, whichever gives the sharper quantiles on validation rows. As outcomes come in, intervals that hold
too few of them are widened and those that hold too many are narrowed, for each series, distance and level
apart: adaptive conformal prediction.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from varnn.intervals import TAUS

Doubles = npt.NDArray[np.float64]
POWERS = (0.0, 0.5, 1.0)
_LEAST = 0.1  # of the usual movement: a label that stood still may move again
_RATE = 0.05  # of widening and narrowing
_NARROWEST, _WIDEST = 0.5, 5.0  # times as wide as on validation rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Bands:
    """Quantiles of forecast errors, for H distances and T quantiles.

    Parameters
    ----------
    usual
        Usual movement of the label from row to row: its mean on validation rows.
    powers
        p of each distance: (H,).
    quantiles
        Of errors in units of movement ** p, at `varnn.intervals.TAUS`: (H, T).

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
    powers: Doubles
    quantiles: Doubles

    @classmethod
    def of(cls, errors: Doubles, movement: Doubles) -> "Bands":
        """Learn from errors (N, H), NaN where unknown, and how much the label had moved, (N,)."""
        usual = float(movement.mean()) or 1.0
        powers, quantiles = [], []
        for column in errors.T:
            known = ~np.isnan(column)
            tried = []
            for power in POWERS:
                scale = _scales(movement[known], usual, power)
                found = np.quantile(column[known] / scale, TAUS) if known.any() else np.zeros(len(TAUS))
                tried.append((_pinball(column[known], scale[:, None] * found), power, found))
            _, power, found = min(tried, key=lambda one: one[0])
            powers.append(power)
            quantiles.append(found)
        return cls(usual=usual, powers=np.array(powers), quantiles=np.array(quantiles))

    def reach(self, movement: Doubles, levels: Doubles) -> tuple[Doubles, Doubles]:
        """Give how far below and above a forecast its intervals reach: (n, H, L) each."""
        scales = _scales(movement[:, None], self.usual, self.powers)[:, :, None]  # (n, H, 1)
        low, high = (
            np.stack([np.interp((1 + sign * levels) / 2, TAUS, one) for one in self.quantiles])
            for sign in (-1, 1)
        )
        # An interval holds its forecast, whatever side past errors were on.
        return np.minimum(scales * low, 0), np.maximum(scales * high, 0)


def adjusted(outcomes: Doubles, lower: Doubles, upper: Doubles, levels: Doubles) -> Doubles:
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
    for distance in range(horizon):  # one after the other: of many rows all together are large
        away, reach = outcomes[:, distance, None], (lower[:, distance], upper[:, distance])
        beyond[:, distance] = np.maximum(_over(away, reach[1]), _over(-away, -reach[0]))
    factors = np.ones((rows + 1, horizon, len(levels)))
    for row in range(rows):
        factors[row + 1] = factors[row]
        distances = np.arange(min(row + 1, horizon))
        origin = row - distances  # whose outcome at this distance is row ``row``
        missed = beyond[origin, distances] > factors[origin, distances]  # (k, L)
        known = ~np.isnan(outcomes[origin, distances])
        change = _RATE * (missed - (1 - levels)) * known[:, None]
        factors[row + 1, distances] = np.clip(factors[row + 1, distances] + change, _NARROWEST, _WIDEST)
    return factors[:-1]


def _over(distance: Doubles, reach: Doubles) -> Doubles:
    """Divide; what is beyond a reach of nothing is infinitely far."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(distance / reach, nan=0.0, posinf=np.inf)


def _scales(movement: Doubles, usual: float, power: float | Doubles) -> Doubles:
    return np.asarray(np.maximum(movement / usual, _LEAST) ** power)


def _pinball(errors: Doubles, quantiles: Doubles) -> float:
    """Give the mean quantile loss of errors (N,) against quantiles (N, T)."""
    if len(errors) == 0:
        return 0.0
    beyond = errors[:, None] - quantiles
    return float(np.mean(np.maximum(TAUS * beyond, (TAUS - 1) * beyond)))
