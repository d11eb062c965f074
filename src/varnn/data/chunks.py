"""Panel -> chunks of it, one after another: what ten million rows need in memory is one of them.

A chunk is whole series side by side, or one of several parts of one long series, which then comes with
some of the rows before it (its context).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from varnn._types import FloatArray, IntArray
from varnn.data.panel import Panel

ROWS_AT_ONCE = 1 << 17


class Chunk(NamedTuple):
    """Some rows of a panel."""

    panel: Panel  # the rows, and those of the context before them
    rows: slice  # which rows of the whole panel they are, without the context
    context: int
    continues: bool  # whether they go on with the series of the chunk before


def chunks(
    panel: Panel, *, most: int = ROWS_AT_ONCE, context: int = 0, missing: Sequence[int] = ()
) -> Iterator[Chunk]:
    """Cut a panel into views of about ``most`` rows, each with up to ``context`` rows before it.

    The labels of rows in ``missing``, which are in order, are missing then.

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
            rows = _with_gaps(panel.between(first - before, last), missing, first - before)
            yield Chunk(rows, slice(first, last), before, first > begin)


def _with_gaps(panel: Panel, missing: Sequence[int], first: int) -> Panel:
    """Leave out labels by the numbers of their rows, which are counted from another panel's first."""
    begin, end = bisect_left(missing, first), bisect_left(missing, first + len(panel))
    if begin == end:
        return panel
    target = panel.target.copy()
    target[np.asarray(missing[begin:end]) - first] = np.nan
    return replace(panel, target=target)


def carried_chunks(
    panel: Panel, *, most: int = ROWS_AT_ONCE, context: int, missing: Sequence[int] = ()
) -> Iterator[Chunk]:
    """Do the same; what is missing in the first row of a context is what was last known there.

    Whoever looks back from the rows themselves then finds what the whole panel would show.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, [0.0, 1.0, None, None, None, 5.0])
    >>> [one.panel.target.tolist() for one in carried_chunks(panel, most=3, context=1)]
    [[0.0, 1.0, nan], [1.0, nan, nan, 5.0]]
    """
    inputs: FloatArray = np.empty(0)
    label: FloatArray = np.empty(0)
    for one in chunks(panel, most=most, context=context, missing=missing):
        rows = _with_first_row(one.panel, inputs, label) if one.continues else one.panel
        yield one._replace(panel=rows)
        past = slice(max(len(rows) - context, 0) + 1)  # up to the first row of the next context
        inputs, label = _last_known(rows.inputs[past]), _last_known(rows.target[past, None])


def _runs_of_series(starts: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """First row and last + 1 of runs of whole series: as many as ``most`` rows hold, or a single one."""
    first = 0
    for last in range(1, len(starts)):
        if last == len(starts) - 1 or starts[last + 1] - starts[first] > most:
            yield int(starts[first]), int(starts[last])
            first = last


def _with_first_row(panel: Panel, inputs: FloatArray, label: FloatArray) -> Panel:
    values = []
    for given, known in ((panel.inputs, inputs), (panel.target[:, None], label)):
        missing = np.isnan(given[0])
        if missing.any():
            given = given.copy()
            given[0, missing] = known[missing]
        values.append(given)
    return replace(panel, inputs=values[0], target=values[1][:, 0])


def _last_known(values: FloatArray) -> FloatArray:
    """Last value of each column that is there: (N, C) -> (C,)."""
    last: FloatArray = values[-1].copy()
    for column in np.flatnonzero(np.isnan(last)):
        known = np.flatnonzero(~np.isnan(values[:, column]))
        if len(known):
            last[column] = values[known[-1], column]
    return last
