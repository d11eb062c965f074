"""A causal rate-of-change filter: labels that cannot be are left out, unless they stay.

A label is a lag of the linear part for the next rows, it makes the memory, and teaches the readout: one that
a broken sensor sent would spoil all three. Before any of them sees it, a label is compared with the last one
that was taken ::

    |y_t - level| / rows between  <=  2 x largest change a row of the training labels      plausible
    otherwise: missing, as far as later rows are concerned; but taken if it comes after another such label on
    the same side, at least half as far off; and so is the third within twenty rows

so that nothing of the training rows is ever left out, and a shift of the level is followed a row late, or two
where it is too far off for a doubt (below). Such a shift shows that changes may be larger than they were: the
bound rises to twice what it was, and halves every thousand rows until it is where it started. The first label
of a series is compared with the range of the training labels.

A label that was left out may be a glitch, or the first of a shift. Until the next label tells, predictions go
a share of the way towards it: Laplace's rule of succession over the doubts that a series has had. A half is
where it starts, as that loses least in the worse of the two cases; glitches soon leave no trace. What is too
far off to be anything but a glitch gets no share.

This is the rate-of-change test of sensor quality control [1]_, with confirmation. A Hampel filter [2]_, [3]_
replaces a value that is far from the median of a window around it, in units of the window's median absolute
deviation; here the last label taken stands for the median, as later labels are not known yet, and the
largest change of the training labels for the deviation.

References
----------
.. [1] U.S. Integrated Ocean Observing System, "Manual for Real-Time Quality Control of In-situ Temperature
   and Salinity Data", version 2.0, 2016.
.. [2] F. R. Hampel, "The influence curve and its role in robust estimation", Journal of the American
   Statistical Association 69, 1974.
.. [3] R. K. Pearson, "Outliers in process modeling and identification", IEEE Transactions on Control
   Systems Technology 10, 2002.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.data.chunks import ROWS_AT_ONCE
from varnn.data.panel import Panel

TIMES = 2.0  # the largest change of the training labels: what is beyond is not plausible
PATIENCE = 2  # labels that may be left out, if no more than
LATELY = 20  # rows lie between one and the next: a third one is taken as it is
AS_FAR = 0.5  # of the way of the label left out before it: one that is so far, on the same side, is taken
FARTHEST = 8.0  # bounds: a label that is farther off gets no share of what is predicted next
HALVING = 1000  # rows after which a bound that was raised is half as high
FILTER_NUMBERS = 9  # of the state of a filter, for each series
FILTER_COUNTS = [1, 2, 4, 5, 7, 8]  # which of them count something
FILTER_BOUND = 3  # and which is a bound, in the target's units
RANGES = 10.0  # of the training labels: a series may begin so far outside


class _Pairs(NamedTuple):
    """Labels, and how they changed from the ones before them: some rows at a time."""

    rows: IntArray  # that have a label
    labels: DoubleArray
    sizes: DoubleArray  # of changes, a row; NaN for the first label of a series


@dataclass(frozen=True, kw_only=True)
class LabelFilter:
    """Bounds of plausible labels, as learnt from training rows.

    Parameters
    ----------
    change : float
        Largest change a row from the label before, either way.
    low, high : float
        Range of the first label of a series.

    Examples
    --------
    >>> training = Panel.from_arrays(None, [1.0, 2.0, 1.0, 3.0])
    >>> plausible = LabelFilter.fit(training)
    >>> plausible(Panel.from_arrays(None, [2.0, 99.0, 3.0, 50.0, 51.0, 52.0, 53.0])).target.tolist()
    [2.0, nan, 3.0, nan, 51.0, 52.0, 53.0]
    """

    change: float
    low: float
    high: float

    @classmethod
    def fit(cls, *panels: Panel) -> "LabelFilter | None":
        """Learn from training rows, all of which are plausible; None where their labels never change."""
        change, low, high = 0.0, np.inf, -np.inf
        for panel in panels:
            for pairs in _pairs(panel):
                change = float(np.fmax.reduce(pairs.sizes, initial=change))
                low, high = min(low, float(pairs.labels.min())), max(high, float(pairs.labels.max()))
        if not 0 < change < np.inf:
            return None
        beyond = RANGES * (high - low)
        return cls(change=TIMES * change, low=low - beyond, high=high + beyond)

    def __call__(self, panel: Panel) -> Panel:
        """Mark labels that are not plausible as missing; without any, return the panel itself."""
        return self.judged(panel).without(panel)

    def judged(self, panel: Panel) -> "Judged":
        """Find the labels to leave out, and what that leaves in doubt.

        A row that is plausible after the raw label before it can only be left out if that one was, so
        that only rows that are not, and those right after them, have to be gone through one by one.
        """
        rows: list[int] = []
        offsets: dict[int, float] = {}
        done, first, last = -1, 0, 0  # row up to which all is decided, and the series it is in
        grown, since = 0.0, 0  # the raised bound, and when it was
        left, out = 0, 0  # labels left out lately, and the last of them
        stayed, gone = 0, 0  # doubts that turned out to be shifts, and glitches
        for suspect, before in self._suspects(panel):
            if suspect <= done:
                continue
            if suspect >= last:
                index = int(np.searchsorted(panel.starts, suspect, side="right"))
                first, last = int(panel.starts[index - 1]), int(panel.starts[index])
                grown, since, left, out, stayed, gone = 0.0, first, 0, first, 0, 0
            place = before if before >= first else None
            level = 0.0 if place is None else float(panel.target[place])
            doubted = np.nan
            for row in range(suspect, last):
                label = float(panel.target[row])
                if doubted == doubted:
                    offsets[row] = _share(stayed, gone) * (doubted - level)
                if label != label:
                    continue
                size = 0.0 if place is None else abs(label - level) / (row - place)
                bound = self.change
                if place is None:
                    plausible = self.low <= label <= self.high
                else:
                    bound = max(bound, float(_faded(grown, row - since)))
                    plausible = size <= bound
                done = row
                if row - out > LATELY:
                    left = 0
                again = place is not None and left > 0 and _as_far(label - level, doubted - level)
                stayed, gone = stayed + (not plausible and again), gone + (plausible and doubted == doubted)
                if plausible:
                    break
                if left == PATIENCE or again:
                    left = 0
                    if place is not None:
                        grown, since = TIMES * size, row
                    break
                rows.append(row)
                left, out = left + 1, row
                doubted = label if place is not None and size <= FARTHEST * bound else np.nan
        return Judged(rows, offsets)

    def _suspects(self, panel: Panel) -> Iterator[tuple[int, int]]:
        """Find rows whose label is not plausible after the one before it, and the row of that one."""
        before = -1
        for pairs in _pairs(panel):
            beyond = (pairs.labels < self.low) | (pairs.labels > self.high)
            wild = np.where(np.isnan(pairs.sizes), beyond, pairs.sizes > self.change)
            for index in np.flatnonzero(wild).tolist():
                yield int(pairs.rows[index]), int(pairs.rows[index - 1]) if index else before
            before = int(pairs.rows[-1])


class Judged(NamedTuple):
    """What a filter says of the rows of a panel."""

    left_out: list[int]  # rows whose labels are not plausible, the first one first
    offsets: dict[int, float]  # by row: how far a prediction goes towards a label that is in doubt

    def without(self, panel: Panel) -> Panel:
        """Mark the labels left out as missing; without any, return the panel itself."""
        if not self.left_out:
            return panel
        target = panel.target.copy()
        target[self.left_out] = np.nan
        return replace(panel, target=target)

    def doubt(self, rows: slice) -> DoubleArray | float:
        """Give the offsets of some rows: (n,), or 0 where there are none."""
        found = [row for row in self.offsets if rows.start <= row < rows.stop] if self.offsets else []
        if not found:
            return 0.0
        doubt = np.zeros(rows.stop - rows.start)
        for row in found:
            doubt[row - rows.start] = self.offsets[row]
        return doubt


class FilterStream:
    """A filter at work on n series in step, one label of each at a time.

    Parameters
    ----------
    plausible : LabelFilter
    n_series : int
    """

    def __init__(self, plausible: LabelFilter, n_series: int) -> None:
        self.plausible = plausible
        self._change = np.array(plausible.change)  # quicker to compare with than a number
        self.last_taken = np.full(n_series, np.nan)  # the label taken last
        self.waited = np.zeros(n_series)  # rows since
        self.left = np.zeros(n_series)  # labels that were left out lately
        self.out = np.zeros(n_series)  # the row of the last of them
        self.grown = np.zeros(n_series)  # the raised bound
        self.since = np.zeros(n_series)  # the row it was raised at
        self.doubted = np.full(n_series, np.nan)  # the label left out last, until the next one comes
        self.stayed = np.zeros(n_series)  # doubts that turned out to be shifts
        self.gone = np.zeros(n_series)  # and glitches
        self.rows = 0  # so far
        self.waiting = False  # whether the label before is missing in any series

    def __call__(self, labels: FloatArray) -> FloatArray:
        """Take in labels (n,); return them with those that are not plausible missing."""
        rule = self.plausible
        self.rows += 1
        sizes = np.abs(labels - self.last_taken)
        if not self.waiting and np.count_nonzero(sizes <= self._change) == len(sizes):  # nearly always
            self.last_taken = labels.copy()  # the caller may write into its own
            return labels
        sizes /= 1 + self.waited
        begun, known = ~np.isnan(self.last_taken), ~np.isnan(labels)
        bounds = np.maximum(rule.change, _faded(self.grown, self.rows - self.since))
        fine = np.where(begun, sizes <= bounds, (rule.low <= labels) & (labels <= rule.high))
        left = np.where(self.rows - self.out > LATELY, 0, self.left)
        in_doubt = ~np.isnan(self.doubted)
        again = begun & (left > 0) & _as_far(labels - self.last_taken, self.doubted - self.last_taken)
        taken = known & (fine | (left >= PATIENCE) | again)
        left_out = known & ~taken
        shifted = taken & begun & ~fine
        self.stayed += known & again & ~fine
        self.gone += known & fine & in_doubt
        near = begun & (sizes <= FARTHEST * bounds)
        self.doubted = np.where(known, np.where(left_out & near, labels, np.nan), self.doubted)
        self.grown = np.where(shifted, TIMES * sizes, self.grown)
        self.since[shifted] = self.rows
        self.last_taken = np.where(taken, labels, self.last_taken)
        self.waited = np.where(taken, 0, self.waited + 1)
        self.left = np.where(taken & ~fine, 0, left + left_out)
        self.out[left_out] = self.rows
        self.waiting = not taken.all()
        return np.where(taken, labels, np.nan)

    @property
    def doubt(self) -> DoubleArray | float:
        """How far the next predictions go towards labels that are in doubt: (n,), or 0 for none."""
        if not self.waiting:  # nearly always
            return 0.0
        offsets = _share(self.stayed, self.gone) * (self.doubted - self.last_taken)
        return np.where(np.isnan(offsets), 0.0, offsets)

    def state(self) -> DoubleArray:
        """Return a copy of all that later labels are judged by: (n, FILTER_NUMBERS)."""
        ago = [self.rows - self.out, self.rows - self.since]
        doubt = [self.doubted, self.stayed, self.gone]
        return np.column_stack([self.last_taken, self.waited, self.left, self.grown, *ago, *doubt])

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        self.last_taken, self.waited, self.left, self.grown, out, since, *doubt = state.T.copy()
        self.doubted, self.stayed, self.gone = doubt
        self.out, self.since, self.rows = -out, -since, 0
        self.waiting = bool(self.waited.any())


def _share(stayed: Any, gone: Any) -> Any:
    """Chance that a doubt is a shift, by how many were: Laplace's rule of succession."""
    return (1 + stayed) / (2 + stayed + gone)


def _as_far(way: Any, before: Any) -> Any:
    """Whether a label is on the same side as one left out before it, and at least half as far off."""
    return way * np.sign(before) >= AS_FAR * abs(before)


def _faded(grown: float | DoubleArray, age: int | DoubleArray) -> DoubleArray:
    """Compute what is left of raised bounds. Halving by steps is exact, however the rows were counted."""
    return np.asarray(np.ldexp(grown, -(np.asarray(age, np.int64) // HALVING)))


def _pairs(panel: Panel) -> Iterator[_Pairs]:
    """Go through the labels of a panel, some rows at a time."""
    latest, label = -1, np.nan
    for begin in range(0, len(panel), ROWS_AT_ONCE):
        values = panel.target[begin : begin + ROWS_AT_ONCE]
        places = np.flatnonzero(~np.isnan(values))
        if not len(places):
            continue
        rows, labels = begin + places, values[places].astype(np.float64)
        sizes = np.abs(np.diff(labels, prepend=label))
        sizes /= np.diff(rows, prepend=latest)
        series = panel.starts[np.searchsorted(panel.starts, rows, side="right") - 1]
        sizes[np.concatenate([[latest], rows[:-1]]) < series] = np.nan  # another series', or none
        yield _Pairs(rows, labels, sizes)
        latest, label = int(rows[-1]), float(labels[-1])


def bounded(inputs: FloatArray, low: DoubleArray | None, high: DoubleArray | None) -> FloatArray:
    """Keep inputs (N, D) within bounds (D,), if there are any; NaN stays."""
    if low is None or high is None:
        return inputs
    return np.minimum(np.maximum(inputs, low), high)
