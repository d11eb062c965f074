"""How a stream goes: lines, errors, series, lines a second, and how long an answer takes."""

import time
from collections import deque

_LATEST = 1000  # groups whose times are kept


class Counters:
    """Counts since the start, and the times of the latest groups.

    Examples
    --------
    >>> counters = Counters()
    >>> counters.lines += 2
    >>> counters.add(errors=1, seconds=0.004)
    >>> counters.said(series=1).split(", ")[:3]
    ['2 lines', '1 errors', '1 series']
    """

    def __init__(self) -> None:
        self.lines = self.errors = 0
        self._since, self._said, self._lines_said = time.monotonic(), time.monotonic(), 0
        self._seconds: deque[float] = deque(maxlen=_LATEST)

    def add(self, *, errors: int, seconds: float) -> None:
        """Take in a group of lines that was answered after so long."""
        self.errors += errors
        self._seconds.append(seconds)

    def is_due(self, every: float | None) -> bool:
        """Tell whether so many seconds have passed since the counts were told."""
        return every is not None and time.monotonic() - self._said >= every

    def said(self, series: int) -> str:
        """Tell the counts in one line; lines a second are those since it was told last."""
        now = time.monotonic()
        rate = (self.lines - self._lines_said) / max(now - self._said, 1e-9)
        self._said, self._lines_said = now, self.lines
        words = [
            f"{self.lines} lines",
            f"{self.errors} errors",
            f"{series} series",
            f"{rate:.0f} lines/s",
        ]
        if self._seconds:
            ordered = sorted(self._seconds)
            middle, last = ordered[len(ordered) // 2], ordered[int(0.99 * (len(ordered) - 1))]
            words.append(f"answered in {1e3 * middle:.2f} ms (median), {1e3 * last:.2f} ms (99 %)")
        return ", ".join([*words, f"{now - self._since:.0f} s"])
