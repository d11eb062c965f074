"""Run the step over the rows of a panel, some rows at a time, one series after the other."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from varnn._types import BoolArray, DoubleArray
from varnn.data.panel import Panel
from varnn.step.layout import StepModel
from varnn.step.loops import Taps
from varnn.step.series import Levels, SeriesRows

MAX_ROWS = 1 << 13  # at a time: their hidden layers take 8 MB, for 4 members of 64 units
_MEMBERS_FIRST = ("hidden", "memory")  # whose first axis is the members, not the rows


def run_panel(
    model: StepModel,
    panel: Panel,
    extra: Callable[[slice], DoubleArray] | None = None,
    *,
    levels: Levels = (),
    wanted: Collection[str] = (),
    teach: BoolArray | None = None,
    max_rows: int = MAX_ROWS,
) -> Iterator[tuple[slice, Taps]]:
    """Predict and observe every row of a panel, each series from its beginning.

    Parameters
    ----------
    model : StepModel
        The model.
    panel : Panel
        The rows; gaps in their inputs are filled as the model says.
    extra : callable, optional
        Returns the inputs of the calendar and of peers of some rows: (n, C).
    levels : tuple of float, default=()
        Levels of intervals.
    wanted : collection of str, default=()
        What is wanted besides predictions; see `varnn.step.series.new_taps`.
    teach : array of shape (N,), optional
        Which rows teach; others are only looked back on. None is all.
    max_rows : int, default=MAX_ROWS
        Rows at a time.

    Yields
    ------
    rows, taps
        Which rows, and what is wanted of them.
    """
    runner = SeriesRows(model, levels=levels, wanted=wanted)
    starts, series = panel.starts, 0
    for begin in range(0, len(panel), max_rows):
        end, pieces, first = min(begin + max_rows, len(panel)), [], begin
        while first < end:
            while starts[series + 1] <= first:
                series += 1
            last = min(end, int(starts[series + 1]))
            if first == starts[series]:
                runner.begin()
            some = slice(first, last)
            pieces.append(
                runner(
                    _doubles(panel.inputs[some]),
                    np.empty((last - first, 0)) if extra is None else _doubles(extra(some)),
                    _doubles(panel.target[some]),
                    np.ones(last - first, np.bool_) if teach is None else np.array(teach[some]),
                )
            )
            first = last
        yield slice(begin, end), pieces[0] if len(pieces) == 1 else _joined(pieces)


def _joined(pieces: list[Taps]) -> Taps:
    """Put rows of several series below each other."""
    return Taps(
        *(
            np.concatenate(arrays, axis=int(name in _MEMBERS_FIRST))
            for name, arrays in zip(Taps._fields, zip(*pieces, strict=True), strict=True)
        )
    )


def _doubles(values: Any) -> DoubleArray:
    """Copy to a contiguous array in double precision: compiled code takes no other."""
    return np.array(values, np.float64, order="C")
