"""How much of the network's correction to add to the linear prediction."""

import numpy as np

from varnn._types import DoubleArray, FloatArray


def shrinkage_of(
    corrections: DoubleArray,
    residuals: DoubleArray,
    trust: float = 1.0,
    weights: FloatArray | None = None,
) -> float:
    """Least-squares factor of corrections that are to explain linear residuals, from 0 to 1.

    Parameters
    ----------
    corrections : array of shape (N,)
        What the network would add on validation rows.
    residuals : array of shape (N,)
        What the linear part leaves there; NaN is unknown.
    trust : float, default=1.0
        From 0 to 1: few residuals are little to go by, and their factor is made smaller.
    weights : array of shape (N,) or None, default=None
        How much each row counts.

    Examples
    --------
    >>> shrinkage_of(np.array([2.0, 2.0]), np.array([1.0, np.nan]))
    0.5
    """
    known = ~np.isnan(residuals)
    counted = corrections[known] if weights is None else corrections[known] * weights[known]
    size = float(counted @ corrections[known])
    if not size and trust:
        return 1.0
    return float(trust * np.clip(counted @ residuals[known] / (size or 1.0), 0, 1))
