"""Numbers -> text that people can read: shares, changes, ratios and plain figures.

A model that diverges has an error of 10^23 times another's, and a percentage with 24 digits says no more than
"over 1,000 times". So every sentence, table and page writes its figures here: with few digits, without
exponents, and in words where a figure is beyond reason.
"""

import math

_PERCENT_ENDS = 10.0  # as a share: from 1,000 % on, a ratio is easier to read
_TIMES_END = 1000.0
_UNKNOWN = "-"
_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_SMALL = ((1e-6, "millionths"), (1e-9, "billionths"), (1e-12, "trillionths"))
_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e7  # figures between these need no word beside them


def percent(share: float, digits: int = 1) -> str:
    """Write a share in percent; beyond 1,000 % only that it is beyond.

    Parameters
    ----------
    share : float
        1 is 100 %; NaN is written as a dash.
    digits : int, default=1
        After the point.

    Examples
    --------
    >>> percent(0.1234), percent(-0.5, 0), percent(-8.28e21), percent(float("inf"))
    ('12.3%', '-50%', 'under -1,000%', 'over 1,000%')
    """
    if math.isnan(share):
        return _UNKNOWN
    if abs(share) >= _PERCENT_ENDS:
        return "over 1,000%" if share > 0 else "under -1,000%"
    return f"{share:.{digits}%}"


def times(ratio: float) -> str:
    """Write a ratio; beyond a thousand, or a thousandth, only that it is beyond.

    Parameters
    ----------
    ratio : float
        Not below 0; NaN is written as a dash.

    Examples
    --------
    >>> times(2.345), times(25.9), times(8.28e21), times(0.25), times(1e-9)
    ('2.3 times', '26 times', 'over 1,000 times', '0.25 times', 'under a thousandth of')
    """
    if math.isnan(ratio):
        return _UNKNOWN
    if ratio > _TIMES_END:
        return "over 1,000 times"
    if ratio < 1 / _TIMES_END:
        return "under a thousandth of"
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.2g} times"


def change(value: float, digits: int = 1) -> str:
    """Write how much more or less something is, for a table: with a sign, or as a ratio where it is large.

    Parameters
    ----------
    value : float
        0.1 is a tenth more; NaN is written as a dash.
    digits : int, default=1
        After the point.

    Examples
    --------
    >>> change(0.1234), change(-0.5), change(24.0), change(8.28e21)
    ('+12.3%', '-50.0%', '25 times', 'over 1,000 times')
    """
    if math.isnan(value):
        return _UNKNOWN
    if abs(value) < _PERCENT_ENDS:
        return f"{value:+.{digits}%}"
    return times(1 + value) if value > 0 else percent(value)


def beside(value: float, digits: int = 1) -> str:
    """Write how much more or less something is, so that what it is compared with may follow.

    Parameters
    ----------
    value : float
        0.1 is a tenth more; NaN means that it cannot be told.
    digits : int, default=1
        After the point.

    Examples
    --------
    >>> [f"is {beside(one)} that of persistence" for one in (-0.123, 0.05, 8.28e21)]
    ['is 12.3% below that of persistence', 'is 5.0% above ...', 'is over 1,000 times that of persistence']
    """
    if math.isnan(value):
        return "not to be compared with"
    if value >= _PERCENT_ENDS:
        return times(1 + value)
    return f"{percent(abs(value), digits)} {'below' if value < 0 else 'above'}"


def figure(value: float, digits: int = 4, *, signed: bool = False) -> str:
    """Write a number with some digits and without an exponent.

    Parameters
    ----------
    value : float
        NaN is written as a dash.
    digits : int, default=4
        That count, at least; the whole part of a number is never cut.
    signed : bool, default=False
        Write a plus before what is above 0.

    Examples
    --------
    >>> figure(3.14159), figure(1234.5), figure(0.00123456), figure(-2.0), figure(0.5, 3, signed=True)
    ('3.142', '1,234', '0.001235', '-2', '+0.5')
    >>> figure(8.28252e9), figure(8.28e21), figure(3.2e-7), figure(1e-30)
    ('8.283 billion', 'over 1,000 trillion', '0.32 millionths', 'nearly 0')
    """
    if math.isnan(value):
        return _UNKNOWN
    size, sign = abs(value), "-" if value < 0 else "+" if signed and value > 0 else ""
    if size == 0:
        return "0"
    if size >= 1e15:
        return f"under {sign}1,000 trillion" if value < 0 else "over 1,000 trillion"
    if size < 1e-15:
        return "nearly 0"
    unit, word = 1.0, ""
    if size >= _PLAIN_TO:
        unit, word = next(one for one in _LARGE if size >= one[0])
    elif size < _PLAIN_FROM:
        unit, word = next((one for one in _SMALL if size >= 0.1 * one[0]), _SMALL[-1])
    return f"{sign}{_plain(size / unit, digits)}{word and ' '}{word}"


def _plain(size: float, digits: int) -> str:
    """Write a number above 0 to some digits, without an exponent, and without zeros at its end."""
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{size:,.{min(places, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
