"""What to believe of forecast errors where validation rows hold few of them.

Forecasts k rows ahead overlap, so n of their errors are worth n / k separate ones, and beyond the end of the
rows there are none at all. Where they are worth less than `ENOUGH`, their size is drawn towards how that of
a random walk grows ::

    scale_k ** 2  =  (c_k rms_k ** 2  +  PRIOR scale_(k-1) ** 2 k / (k-1)) / (c_k + PRIOR),    c_k = n_k / k

where rms_k is what the errors at step k are like; and their quantiles are drawn towards those of Student's t
distribution [1]_ with c_k degrees of freedom, `FEWEST` at least.

References
----------
.. [1] Student, "The probable error of a mean", Biometrika 6, 1908.
"""

import logging

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.model.intervals.levels import TAUS

logger = logging.getLogger(__name__)

ENOUGH = 20  # separate errors, from which on their own quantiles are taken
PRIOR = 4  # separate errors that the growth of a random walk counts as much as
FEWEST = 3  # degrees of freedom: with fewer, the far tails of Student's t say nothing


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


def few_in_words(errors: DoubleArray) -> str | None:
    """Say where validation rows, with errors (N, H), are too few to tell how far off forecasts are.

    Examples
    --------
    >>> few_in_words(np.ones((50, 4)))
    "validation rows hold fewer than 20 separate errors of forecasts 3 to 4 rows ahead: their bands are ..."
    """
    few = poorly_known(errors)
    if not len(few):
        return None
    none = int(np.isnan(errors).all(axis=0).sum())
    which = f"{few[0]} to {few[-1]}" if len(few) > 1 else f"{few[0]}"
    return (
        f"validation rows hold fewer than {ENOUGH} separate errors of forecasts {which} rows ahead"
        + (f" (none at all of the last {none})" if none else "")
        + ": their bands are Student's t, and widen as the errors of a random walk do"
    )


def warn_of_few(errors: DoubleArray) -> None:
    """Log it where validation rows are too few to tell how far off forecasts are."""
    if (said := few_in_words(errors)) is not None:
        logger.warning("%s.", said)


def size_of_errors(errors: DoubleArray, worth: float, grown: float | None) -> float:
    """Estimate how large errors of one step are: as they were, and as they grew from the one before."""
    own = float(np.square(errors).mean()) if len(errors) else 0.0
    if grown is None:
        return float(own**0.5)
    return float(((worth * own + PRIOR * grown**2) / (worth + PRIOR)) ** 0.5)


def student_quantiles(freedom: float) -> DoubleArray:
    """Compute the quantiles of Student's t distribution at `TAUS`."""
    from scipy.stats import t  # late: it takes a while to import, and only fitting needs it

    return np.asarray(t.ppf(TAUS, freedom))
