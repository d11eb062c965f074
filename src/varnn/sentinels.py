"""Columns of numbers -> those in which some number looks as if it stood for a missing value.

Loggers write -200, -999 or 9999 where a sensor was silent. Such a number is the smallest or the largest of
its column, comes again and again, and stands far from all others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_FEWEST = 3  # times that a number has to come
_SMALLEST = 99
_NINES = {10.0**digits - 1 for digits in range(2, 7)}  # 99, 999, ...
_KNOWN = {-one for one in _NINES} | _NINES | {-200.0, -8888.0, 8888.0, -7777.0, 7777.0}


def suspects(values: npt.NDArray[Any], names: Sequence[str]) -> list[tuple[str, float, int]]:
    """List columns with such a number: name, number and how often it comes.

    Examples
    --------
    >>> suspects(np.array([[20.5, -200.0, 21.0, -200.0, 20.0, -200.0, 22.0]]).T, ["heat"])
    [('heat', -200.0, 3)]
    """
    found = []
    for column, name in enumerate(names):
        one = values[:, column]
        low, high = (float(extreme.reduce(one)) for extreme in (np.fmin, np.fmax))
        for number in (low, high):
            if low < high and (count := _count(one, number, low, high)) >= _FEWEST:
                found.append((name, number, count))
                break
    return found


def _count(values: npt.NDArray[Any], number: float, low: float, high: float) -> int:
    """Count a number that stands far from the others; 0 if it does not."""
    if not number.is_integer() or (abs(number) < _SMALLEST and number not in _KNOWN):
        return 0
    at = values == number
    count = int(at.sum())
    if not _FEWEST <= count < len(values) / 2:
        return 0
    others = values[~at]
    nearest = float((np.fmin if number == low else np.fmax).reduce(others))
    gap, span = abs(nearest - number), abs((high if number == low else low) - nearest)
    is_known = number in _KNOWN and gap > span / 2
    is_negative = number in _KNOWN and number < 0 <= nearest
    return count if is_negative or is_known or gap > 5 * span else 0
