"""Panel -> chunks of it, one after another: what ten million rows need in memory is one of them.

A chunk is whole series side by side, or one of several parts of one long series, which then comes with
some of the rows before it (its context).
"""

from collections.abc import Iterator
from typing import NamedTuple

from varnn._types import IntArray
from varnn.data.panel import Panel

ROWS_AT_ONCE = 1 << 17


class Chunk(NamedTuple):
    """Some rows of a panel."""

    panel: Panel  # the rows, and those of the context before them
    rows: slice  # which rows of the whole panel they are, without the context
    context: int
    continues: bool  # whether they go on with the series of the chunk before


def chunks(panel: Panel, *, most: int = ROWS_AT_ONCE, context: int = 0) -> Iterator[Chunk]:
    """Cut a panel into views of about ``most`` rows, each with up to ``context`` rows before it.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, range(9), series=list("aabbbbbbb"))
    >>> [one.panel.target.tolist() for one in chunks(panel, most=4, context=1)]
    [[0.0, 1.0], [2.0, 3.0, 4.0, 5.0], [5.0, 6.0, 7.0, 8.0]]
    """
    if not len(panel):
        yield Chunk(panel, slice(0, 0), 0, continues=False)
    for begin, end in _runs_of_series(panel.starts, most):
        for first in range(begin, end, most):
            last = min(first + most, end)
            before = min(first - begin, context)
            yield Chunk(panel.between(first - before, last), slice(first, last), before, first > begin)


def _runs_of_series(starts: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """First row and last + 1 of runs of whole series: as many as ``most`` rows hold, or a single one."""
    first = 0
    for last in range(1, len(starts)):
        if last == len(starts) - 1 or starts[last + 1] - starts[first] > most:
            yield int(starts[first]), int(starts[last])
            first = last
