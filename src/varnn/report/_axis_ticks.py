"""Two ends of an axis -> the places to name on it, and their names."""

import numpy as np

_MINUS = "−"  # a hyphen is too short to be seen before a figure
# How far apart ticks of a time axis may stand, as a unit of NumPy and so many of it, the finest first.
_STEPS = [
    *[("s", many) for many in (1, 2, 5, 10, 15, 30)],
    *[("m", many) for many in (1, 2, 5, 10, 15, 30)],
    *[("h", many) for many in (1, 2, 3, 6, 12)],
    *[("D", many) for many in (1, 2, 4, 7, 14)],
    *[("M", many) for many in (1, 2, 3, 6)],
    *[("Y", many) for many in (1, 2, 5, 10, 20, 50, 100, 1000)],
]


def number_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two, and how to write them.

    Examples
    --------
    >>> number_ticks(-1.2, 3.9)
    [(-1.0, '−1'), (0.0, '0'), (1.0, '1'), (2.0, '2'), (3.0, '3')]
    """
    wide = high - low
    if not (np.isfinite(wide) and wide > 0):
        return []
    power = 10.0 ** np.floor(np.log10(wide / most))
    step = next(many * power for many in (1, 2, 5, 10, 20) if wide / (many * power) <= most + 0.5)
    first = np.ceil(low / step)
    # Nothing added makes a plain zero of a negative one.
    values = [float(step * number) + 0.0 for number in np.arange(first, np.floor(high / step) + 1)]
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    large = max(abs(low), abs(high)) >= 1e6
    return [
        (value, (f"{value:.3g}" if large or digits > 6 else f"{value:,.{digits}f}").replace("-", _MINUS))
        for value in values
    ]


def time_ticks(first: float, last: float, most: int = 7) -> list[tuple[float, str]]:
    """Round times between two, which are microseconds since 1970, and how to write them.

    Examples
    --------
    >>> days = np.array(["2026-01-15", "2026-01-18"], dtype="datetime64[us]").astype(float)
    >>> [label for _, label in time_ticks(*days, most=4)]
    ['15 Jan 2026', '16 Jan', '17 Jan', '18 Jan']
    """
    start, end = (np.datetime64(int(one), "us") for one in (first, last))
    for unit, many in _STEPS:
        numbers = (start.astype(f"M8[{unit}]").astype(int), end.astype(f"M8[{unit}]").astype(int))
        if (numbers[1] - numbers[0]) / many <= most:
            break
    inside = [number for number in range(numbers[0], numbers[1] + 1) if number % many == 0]
    times = [one for one in np.array(inside, dtype=f"M8[{unit}]").astype("M8[us]") if start <= one <= end]
    labels: list[str] = []
    for place, one in enumerate(times):
        before = times[place - 1] if place else None
        labels.append(_written(one, before, unit))
    return [(float(one.astype(np.int64)), label) for one, label in zip(times, labels, strict=True)]


def _written(time: np.datetime64, before: np.datetime64 | None, unit: str) -> str:
    """Write a time as briefly as the tick before it allows."""
    moment = time.astype("M8[s]").item()
    if unit == "Y":
        return f"{moment:%Y}"
    if unit == "M":
        return f"{moment:%b %Y}"
    day = f"{moment.day} {moment:%b}"
    last = None if before is None else before.astype("M8[s]").item()
    if unit == "D":
        return day if last is not None and last.year == moment.year else f"{day} {moment:%Y}"
    clock = f"{moment:%H:%M}" if unit in "hm" else f"{moment:%H:%M:%S}"
    if last is None:
        return f"{day} {moment:%Y} {clock}"
    return clock if last.date() == moment.date() else f"{day} {clock}"
