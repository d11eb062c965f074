"""Is one model's error really smaller than another's? Two answers that respect time order."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.floating[Any]]


def diebold_mariano(first: Floats, second: Floats) -> float:
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
    first: Floats, second: Floats, *, draws: int = 2000, level: float = 0.95, seed: int = 0
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
    count = len(first)
    block = max(1, min(count, round(4 * count ** (1 / 3))))
    # Sums of every block, circularly, from cumulated sums: a resample is then a sum of a few numbers.
    sums = [_circular_sums(np.asarray(one, dtype=np.float64), block) for one in (first, second)]
    starts = np.random.default_rng(seed).integers(0, count, size=(draws, -(-count // block)))
    ratios = sums[0][starts].sum(axis=1) / sums[1][starts].sum(axis=1) - 1
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _circular_sums(values: npt.NDArray[np.float64], block: int) -> npt.NDArray[np.float64]:
    cumulated = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[: block - 1]]))])
    return np.asarray(cumulated[block:] - cumulated[:-block])
