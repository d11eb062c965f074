"""Fitted model + panel -> one-step predictions and intervals, in one pass that goes forward.

A panel goes through some rows at a time, so that what a prediction takes does not grow with the rows. A
stream (`varnn.streaming`) takes the same step (`varnn.step`) with one row at a time.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.model.fitted import Fitted
from varnn.model.floor import floored, lifted
from varnn.model.intervals import Interval, Tracker, check_levels, known_calibrator
from varnn.model.rows import MAX_ROWS, run_panel
from varnn.model.warm_start import begun
from varnn.step.loops import Taps


class PredictedRows(NamedTuple):
    """Some rows of a panel, predicted: n rows, L levels."""

    rows: slice  # of the panel
    prediction: DoubleArray  # (n,)
    taps: Taps  # what else is wanted
    lower: DoubleArray | None = None  # (n, L)
    upper: DoubleArray | None = None

    @property
    def interval(self) -> Interval:
        """The predictions with their bounds, which are None if no levels were asked for."""
        return Interval(self.prediction, self.lower, self.upper)


def predict(fitted: Fitted, panel: Panel, *, resume: bool | None = None) -> FloatArray:
    """One-step predictions of every row, in the target's units and the panel's order: (N,)."""
    predictions = np.empty(len(panel))
    for rows, found in predict_rows(fitted, panel, resume=resume):
        predictions[rows] = found.prediction
    return predictions


def predict_intervals(
    fitted: Fitted,
    panel: Panel,
    interval: float | Sequence[float] | FloatArray,
    *,
    resume: bool | None = None,
) -> Interval:
    """One-step predictions (N,) with intervals: bounds are (N,) for one level, (N, L) for several."""
    levels = check_levels(interval)
    if np.isnan(panel.target).all():
        raise DataError(
            "an interval is made from the errors before it, so rows need labels; they have none. "
            "Give predict(X, y, interval=...)."
        )
    shape = (len(panel), len(levels))
    whole = Interval(np.empty(len(panel)), np.empty(shape), np.empty(shape))
    for rows, found in predict_rows(fitted, panel, levels, resume=resume):
        for values, some in zip(whole, found, strict=True):
            values[rows] = some
    if isinstance(interval, Sequence | np.ndarray):
        return whole
    return Interval(whole.prediction, whole.lower[:, 0], whole.upper[:, 0])


def predict_rows(
    fitted: Fitted,
    panel: Panel,
    levels: DoubleArray | None = None,
    *,
    resume: bool | None = None,
    max_rows: int = MAX_ROWS,
) -> Iterator[tuple[slice, Interval]]:
    """Predict a panel some rows at a time, from the training rows on if it follows them.

    Parameters
    ----------
    fitted, panel, levels, max_rows
        As those of :func:`predict_chunks`.
    resume : bool or None, default=None
        Whether the rows follow the training rows; None goes by their times (`varnn.model.warm_start`).

    Yields
    ------
    rows, found
        Rows of the panel, and what is predicted for them; bounds are None without levels.
    """
    joined, own = begun(fitted, fitted.matched(panel), resume)
    done = 0
    for chunk in predict_chunks(fitted, joined, levels, max_rows=max_rows, teach=own):
        here = own[chunk.rows]
        rows = slice(done, done + int(np.count_nonzero(here)))
        done = rows.stop
        if here.all():
            yield rows, chunk.interval
        elif here.any():
            yield rows, Interval(*(None if part is None else part[here] for part in chunk.interval))


def predict_chunks(
    fitted: Fitted,
    panel: Panel,
    levels: DoubleArray | None = None,
    *,
    wanted: Collection[str] = (),
    max_rows: int = MAX_ROWS,
    teach: BoolArray | None = None,
) -> Iterator[PredictedRows]:
    """Predict a panel chunk by chunk.

    Parameters
    ----------
    fitted : Fitted
        The model.
    panel : Panel
        The rows.
    levels : array of shape (L,), optional
        Levels of intervals to give with the predictions.
    wanted : collection of str, default=()
        What else is wanted of each row; see `varnn.step.series.new_taps`.
    max_rows : int, default=MAX_ROWS
        Rows at a time.
    teach : array of shape (N,), optional
        Rows that are learned from; others are only looked back on. None is all.
    """
    panel = fitted.pipeline.without_gaps(fitted.matched(panel))
    extra = fitted.pipeline.extra_inputs(panel)
    within_step = levels is not None and known_calibrator(fitted.calibrator).step_numbers() is not None
    separate = None
    if levels is not None and not within_step:
        separate = _SeparateIntervals(fitted, panel, levels, teach)
        wanted = {*wanted, "first hidden"}
    rows = run_panel(
        fitted.step,
        panel,
        extra,
        levels=tuple(levels.tolist()) if levels is not None and within_step else (),
        wanted=wanted,
        teach=teach,
        max_rows=max_rows,
    )
    for some, taps in rows:
        found = PredictedRows(some, taps.prediction[:, 0], taps)
        if within_step:
            found = found._replace(lower=taps.lower[:, 0], upper=taps.upper[:, 0])
        if separate is not None:
            found = separate(found)
        yield found


class _SeparateIntervals:
    """Intervals of a method that is not part of the step, added to its predictions."""

    def __init__(self, fitted: Fitted, panel: Panel, levels: DoubleArray, teach: BoolArray | None) -> None:
        self.calibrator = known_calibrator(fitted.calibrator)
        self.panel, self.levels, self.teach = panel, levels, teach
        self.tracker: Tracker | None = None
        # Rows that may be predicted below zero: a label that is not plausible does not lift the floor.
        self.free = lifted(fitted.pipeline.plausible(panel)) if fitted.positive else None

    def __call__(self, found: PredictedRows) -> PredictedRows:
        """Put bounds around predictions, series by series."""
        begin, end = found.rows.start, found.rows.stop
        errors = self.panel.target[found.rows] - found.prediction
        if self.teach is not None:
            errors = np.where(self.teach[found.rows], errors, np.nan)
        bounds: list[tuple[DoubleArray, DoubleArray]] = []
        cuts = [begin, *(start for start in self.panel.starts.tolist() if begin < start < end), end]
        for first, last in pairwise(cuts):
            if self.tracker is None or first in self.panel.starts:
                self.tracker = self.calibrator.tracker(1, self.levels)
            here = slice(first - begin, last - begin)
            starts = np.array([0, last - first])
            bounds.append(self.tracker.follow(found.taps.hidden[0, here], errors[here], starts, self.levels))
        below, above = (np.concatenate(parts) for parts in zip(*bounds, strict=True))
        lower, upper = found.prediction[:, None] + below, found.prediction[:, None] + above
        if self.free is not None:
            lower = floored(lower, self.free[found.rows, None])
        return found._replace(lower=lower, upper=upper)


def residual_memory(
    fitted: Fitted, panel: Panel, first: int = 0, last: int | None = None, *, resume: bool | None = None
) -> npt.NDArray[np.float32]:
    """Residual memory that the rows ``first:last`` were predicted with: (n, E * M), member by member."""
    last = len(panel) if last is None else last
    memory = np.empty((last - first, fitted.n_members * fitted.architecture.memory_size), np.float32)
    joined, own = begun(fitted, fitted.matched(panel), resume)
    numbers = np.where(own, np.cumsum(own) - 1, -1)  # of the panel's own rows
    for chunk in predict_chunks(fitted, joined, wanted=("memory",), teach=own):
        here = numbers[chunk.rows]
        some = (here >= first) & (here < last)
        if some.any():
            memory[here[some] - first] = np.concatenate(list(chunk.taps.memory[:, some]), axis=1)
    return memory
