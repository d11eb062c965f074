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
_NEARLY_ALL = 0.98
_FAR = 100.0  # times as far from the middle as nearly all numbers
_FEWEST_ROWS = 50  # to say so of
_LOOKED_AT = 100_000  # rows that are enough to say so
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


def far_off(values: npt.NDArray[Any], names: Sequence[str]) -> list[tuple[str, float, int]]:
    """List columns with a single number that nothing else is near: name, number and row.

    Examples
    --------
    >>> far_off(np.append(np.linspace(1, 2, 99), 1e9)[:, None], ["load"])
    [('load', 1000000000.0, 99)]
    """
    found = []
    for column, name in enumerate(names):
        one = values[:, column]
        some = one[:: max(1, len(one) // _LOOKED_AT)]
        some = some[~np.isnan(some)]
        if len(some) < _FEWEST_ROWS:
            continue
        middle = float(np.median(some))
        usual = float(np.quantile(np.abs(some - middle), _NEARLY_ALL))
        low, high = (float(extreme.reduce(one)) for extreme in (np.fmin, np.fmax))
        number = high if high - middle > middle - low else low
        if usual and abs(number - middle) > _FAR * usual:
            found.append((name, number, int(np.argmax(one == number))))
    return found


def _count(values: npt.NDArray[Any], number: float, low: float, high: float) -> int:
    """Count a number that stands far from the others; 0 if it does not."""
    if not number.is_integer() or (abs(number) < _SMALLEST and number not in _KNOWN):
        return 0
    at = values == number
    count = int(at.sum())
    if count < _FEWEST or (count >= len(values) / 2 and number not in _KNOWN):
        return 0
    others = values[~at]
    if np.isnan(others).all():
        return 0
    nearest = float((np.fmin if number == low else np.fmax).reduce(others))
    gap, span = abs(nearest - number), abs((high if number == low else low) - nearest)
    is_known = number in _KNOWN and gap > span / 2
    is_negative = number in _KNOWN and number < 0 <= nearest
    return count if is_negative or is_known or gap > 5 * span else 0
