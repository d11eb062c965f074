"""Losses of two models on the same rows -> whether chance may explain their difference, by two tests.

Both respect time order: the Diebold-Mariano test by a long-run variance, the paired bootstrap by resampling
blocks of rows. A model that was trained from several seeds may bring the losses of each: both then ask about
its mean over all trainings there could be, and count the spread between those at hand as chance, too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray

DRAWS = 2000  # resamples of a bootstrap
_BLOCKS = 4  # in a resample, at least: one block as long as the rows would be all of them, in every resample


@dataclass(frozen=True)
class Difference:
    """Relative difference of two models' mean losses, its interval, and p values of two tests.

    Parameters
    ----------
    change : float
        Ratio of the mean losses less 1: -0.1 is a tenth below.
    low, high : float
        Its 95 % interval, by :func:`paired_bootstrap`.
    p : float
        Two-sided p value of :func:`diebold_mariano`.
    p_bootstrap : float
        Two-sided p value of the same bootstrap; never below 1 / (half the resamples).
    """

    change: float
    low: float
    high: float
    p: float
    p_bootstrap: float

    @property
    def significant(self) -> bool:
        """Whether both tests put chance below 5 %; they need not agree."""
        return max(self.p, self.p_bootstrap) < 0.05


def difference(first: FloatArray, second: FloatArray) -> Difference:
    """Difference of two models' losses, by Diebold-Mariano and by a paired circular block bootstrap.

    Parameters
    ----------
    first : array of shape (N,) or (S, N)
        Losses of the first model on N rows in time order; of S trainings, where it was trained from S seeds.
    second : array of shape (N,)
        Losses of the second model on the same rows.

    Returns
    -------
    Difference
        Of the first model against the second.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.random.default_rng(0).chisquare(1, size=(2, 1000))
    >>> found = difference(losses[0], losses[1] + 0.5)
    >>> found.low < found.change < found.high < 0 and found.significant
    True
    """
    ratios = _resampled_ratios(first, second, draws=DRAWS, seed=0)
    low, high = _interval(ratios, 0.95)
    # A resample with no difference counts on either side: equal losses are no evidence at all.
    rarer = int(min(np.count_nonzero(ratios <= 0), np.count_nonzero(ratios >= 0)))
    if len(second) < 2:  # nothing to draw from: every resample is that row
        rarer = len(ratios)
    return Difference(
        change=float(_ratio(np.mean(first), np.mean(second)) - 1),
        low=low,
        high=high,
        p=diebold_mariano(first, second),
        p_bootstrap=min(1.0, 2 * (1 + rarer) / (1 + len(ratios))),
    )


def diebold_mariano(first: FloatArray, second: FloatArray) -> float:
    """Diebold-Mariano test: the two-sided p value of equal mean loss.

    The variance of the mean loss difference is Newey-West with about n^(1/3) lags, since losses of
    neighbouring rows are correlated; the statistic has the small-sample correction of Harvey,
    Leybourne and Newbold and is read from a t distribution.

    Losses of several trainings are averaged row by row; the variance of their mean over seeds is added to
    that over rows, and the degrees of freedom are Welch's and Satterthwaite's of the sum. Three seeds that
    differ much hence prove little, however many rows there are.

    Parameters
    ----------
    first : array of shape (N,) or (S, N)
        Losses of the first model on N rows in time order; of S trainings, where it was trained from S seeds.
    second : array of shape (N,)
        Losses of the second model on the same rows.

    Returns
    -------
    float
        The p value; 1 for losses that are equal row by row, and for a single row, which has no variance.

    References
    ----------
    F. X. Diebold and R. S. Mariano, "Comparing predictive accuracy", Journal of Business and Economic
    Statistics 13 (1995), 253-263.

    D. Harvey, S. Leybourne and P. Newbold, "Testing the equality of prediction mean squared errors",
    International Journal of Forecasting 13 (1997), 281-291.

    W. K. Newey and K. D. West, "A simple, positive semi-definite, heteroskedasticity and autocorrelation
    consistent covariance matrix", Econometrica 55 (1987), 703-708.

    F. E. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics
    Bulletin 2 (1946), 110-114.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.random.default_rng(0).chisquare(1, size=(2, 1000))
    >>> diebold_mariano(losses[0], losses[1]) > 0.01
    True
    >>> diebold_mariano(losses[0], losses[1] + 0.5) < 1e-6
    True
    """
    trainings = np.atleast_2d(np.asarray(first, dtype=np.float64))
    difference = trainings.mean(axis=0) - second
    count = len(difference)
    if count < 2:
        return 1.0
    centred = difference - difference.mean()
    lags = round(count ** (1 / 3))
    long_run = centred @ centred / count
    for lag in range(1, min(lags, count - 1) + 1):
        long_run += 2 * (1 - lag / (lags + 1)) * (centred[lag:] @ centred[:-lag]) / count
    over_rows = max(0.0, long_run) / max(1, count - 1)  # Harvey's correction: n - 1 for n
    over_seeds = trainings.mean(axis=1).var(ddof=1) / len(trainings) if len(trainings) > 1 else 0.0
    variance = over_rows + over_seeds
    if variance <= 0:
        return 1.0 if abs(difference.mean()) == 0 else 0.0
    freedom = over_rows**2 / max(1, count - 1)
    if over_seeds > 0:
        freedom += over_seeds**2 / (len(trainings) - 1)
    statistic = abs(difference.mean()) / np.sqrt(variance)
    from scipy.stats import t  # late, as it takes a while to import

    return float(2 * t.sf(statistic, df=variance**2 / freedom))


def paired_bootstrap(
    first: FloatArray, second: FloatArray, *, draws: int = DRAWS, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Paired circular block bootstrap: an interval for mean(first) / mean(second) - 1.

    Blocks of about n^(1/3) * 4 neighbouring rows, and at most n / 4, are drawn together, from both models
    alike; the last rows are followed by the first. Where there are several trainings, as many of them
    are drawn as there are. With few rows it is too sure: read it beside :func:`diebold_mariano`.

    Parameters
    ----------
    first : array of shape (N,) or (S, N)
        Losses of the first model on N rows in time order; of S trainings, where it was trained from S seeds.
    second : array of shape (N,)
        Losses of the second model on the same rows.
    draws : int, default 2000
        Resamples.
    level : float, default 0.95
        Coverage of the interval.
    seed : int, default 0
        Where resamples are drawn from.

    Returns
    -------
    low, high : float
        The percentile interval.

    References
    ----------
    D. N. Politis and J. P. Romano, "A circular block-resampling procedure for stationary data", in
    R. LePage and L. Billard (eds.), Exploring the Limits of Bootstrap, Wiley (1992), 263-270.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.random.default_rng(0).chisquare(1, size=1000)
    >>> low, high = paired_bootstrap(0.9 * losses, losses)
    >>> round(low, 6) == round(high, 6) == -0.1
    True
    """
    return _interval(_resampled_ratios(first, second, draws=draws, seed=seed), level)


def _interval(ratios: DoubleArray, level: float) -> tuple[float, float]:
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _resampled_ratios(first: FloatArray, second: FloatArray, *, draws: int, seed: int) -> DoubleArray:
    """Ratios mean(first) / mean(second) - 1 in each resample of blocks, (draws,)."""
    count = len(second)
    block = max(1, min(count // _BLOCKS, round(4 * count ** (1 / 3))))
    generator = np.random.default_rng(seed)
    starts = generator.integers(0, count, size=(draws, -(-count // block)))

    def resampled(losses: FloatArray) -> DoubleArray:
        # Sums of every block, circularly, from cumulated sums: a resample is then a sum of a few numbers.
        return np.asarray(_circular_sums(np.asarray(losses, dtype=np.float64), block)[starts].sum(axis=1))

    above = np.stack([resampled(one) for one in np.atleast_2d(first)])  # (trainings, draws)
    if len(above) > 1:
        drawn = generator.integers(0, len(above), size=above.shape)
        above = np.take_along_axis(above, drawn, axis=0)
    return np.asarray(_ratio(above.mean(axis=0), resampled(second)) - 1)


def _ratio(above: Any, below: Any) -> Any:
    """Divide losses; two that are zero are equal, and against zero alone any loss is beyond measure."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.divide(above, below), nan=1.0)


def _circular_sums(values: DoubleArray, block: int) -> DoubleArray:
    cumulated = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return np.asarray(cumulated[block:] - cumulated[:-block])
