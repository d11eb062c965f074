"""Is one model's error really smaller than another's? Two answers that respect time order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from varnn._types import DoubleArray, FloatArray

DRAWS = 2000  # resamples of a bootstrap


@dataclass(frozen=True)
class Difference:
    """How much one model's mean loss differs from another's, and whether chance may explain it.

    Parameters
    ----------
    change
        Ratio of the mean losses less 1: -0.1 is a tenth below.
    low, high
        Its 95 % interval, by :func:`paired_bootstrap`.
    p
        Two-sided p value of :func:`diebold_mariano`.
    p_bootstrap
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
    """Compare the losses of two models on the same rows, in time order.

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
    rarer = min(np.count_nonzero(ratios <= 0), np.count_nonzero(ratios >= 0))
    return Difference(
        change=float(_ratio(np.mean(first), np.mean(second)) - 1),
        low=low,
        high=high,
        p=diebold_mariano(first, second),
        p_bootstrap=min(1.0, 2 * (1 + int(rarer)) / (1 + len(ratios))),
    )


def diebold_mariano(first: FloatArray, second: FloatArray) -> float:
    """Give the two-sided p value of equal mean loss (Diebold-Mariano).

    The variance of the mean loss difference is Newey-West with about n^(1/3) lags, since losses of
    neighbouring rows are correlated; the statistic has the small-sample correction of Harvey,
    Leybourne and Newbold and is read from a t distribution.

    Parameters
    ----------
    first, second
        Losses of the two models on the same rows, in time order.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.random.default_rng(0).chisquare(1, size=(2, 1000))
    >>> diebold_mariano(losses[0], losses[1]) > 0.01
    True
    >>> diebold_mariano(losses[0], losses[1] + 0.5) < 1e-6
    True
    """
    difference = np.asarray(first, dtype=np.float64) - second
    count = len(difference)
    centred = difference - difference.mean()
    lags = round(count ** (1 / 3))
    variance = centred @ centred / count
    for lag in range(1, min(lags, count - 1) + 1):
        variance += 2 * (1 - lag / (lags + 1)) * (centred[lag:] @ centred[:-lag]) / count
    if variance <= 0:
        return 1.0 if abs(difference.mean()) == 0 else 0.0
    correction = np.sqrt((count - 1) / count)
    statistic = correction * difference.mean() / np.sqrt(variance / count)
    return float(2 * stats.t.sf(abs(statistic), df=count - 1))


def paired_bootstrap(
    first: FloatArray, second: FloatArray, *, draws: int = DRAWS, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Give an interval for mean(first) / mean(second) - 1, by a paired circular block bootstrap.

    Blocks of about n^(1/3) * 4 neighbouring rows are drawn together, from both models alike.

    Parameters
    ----------
    first, second
        Losses of the two models on the same rows, in time order.
    draws, level, seed
        Resamples, coverage, and where they are drawn from.

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
    """Give mean(first) / mean(second) - 1 in each resample of blocks, (draws,)."""
    count = len(first)
    block = max(1, min(count, round(4 * count ** (1 / 3))))
    # Sums of every block, circularly, from cumulated sums: a resample is then a sum of a few numbers.
    sums = [_circular_sums(np.asarray(one, dtype=np.float64), block) for one in (first, second)]
    starts = np.random.default_rng(seed).integers(0, count, size=(draws, -(-count // block)))
    return np.asarray(_ratio(sums[0][starts].sum(axis=1), sums[1][starts].sum(axis=1)) - 1)


def _ratio(above: Any, below: Any) -> Any:
    """Divide losses; two that are zero are equal, and against zero alone any loss is beyond measure."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.divide(above, below), nan=1.0)


def _circular_sums(values: DoubleArray, block: int) -> DoubleArray:
    cumulated = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return np.asarray(cumulated[block:] - cumulated[:-block])
