"""The chi-squared distribution with whole degrees of freedom, whose tail is a finite sum.

SciPy has it too; it is not needed to predict, and takes longer to import than a stream takes to start.
"""

import math


def survival(statistic: float, freedom: int) -> float:
    """Probability of a larger value than the statistic.

    References
    ----------
    M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions (1964), 26.4.4 and 26.4.5.

    Examples
    --------
    >>> round(survival(3.841, 1), 3)
    0.05
    """
    if not 0 < statistic < math.inf:
        return math.nan if math.isnan(statistic) else float(statistic <= 0)
    half, odd = statistic / 2, freedom % 2
    first = math.erfc(math.sqrt(half)) if odd else 0.0
    powers = (one + odd / 2 for one in range(freedom // 2))
    return first + sum(math.exp(one * math.log(half) - half - math.lgamma(one + 1)) for one in powers)
