"""Rows + predictions -> where and when a model fails: by hour, weekday, level, series, in which stretches.

Each group has the number of its rows and the error of persistence beside the model's: an hour in which every
model errs is hard; one in which the last label would have been better is where this model fails.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, IntArray
from varnn.data.in_words import figure
from varnn.data.panel import Panel
from varnn.data.sampling import seconds_per_row
from varnn.errors import DataError
from varnn.model.calendar import has_times
from varnn.model.linear import last_labels

_HOUR, _DAY, _WEEK = 3600, 86_400, 604_800
_MONDAY = 3 * _DAY  # the epoch was a Thursday
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LEVELS = 5
_STRETCHES = 5
_PARTS = 50  # of the rows, that a stretch is one of, where no day is known
_SHORTEST = 10


class Group(NamedTuple):
    """Some rows, and how large errors are in them."""

    name: str
    rows: int
    rmse: float
    persistence: float  # RMSE of persistence on the same rows
    bias: float  # mean of label less prediction
    coverage: float | None = None  # share of labels within their interval; None without intervals


class Stretch(NamedTuple):
    """Rows of one series, one after the other, in which errors are large."""

    series: str
    first: int  # row of the panel
    last: int  # the same; the stretch ends with it
    rmse: float
    persistence: float
    share: float  # of the squared error of all rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Failures:
    """Where and when a model fails; made by :func:`failures`.

    Parameters
    ----------
    overall : Group
        All rows with a label, a prediction and a label before them.
    hours, weekdays : tuple of Group
        By hour of the day and by day of the week; empty where rows have no such times.
    levels : tuple of Group
        By level of the target, from the lowest fifth of labels to the highest.
    series : tuple of Group
        By series, the one with the largest error first; empty of one series.
    stretches : tuple of Stretch
        Those with the most squared error, the worst first; they do not overlap.
    """

    overall: Group
    hours: tuple[Group, ...]
    weekdays: tuple[Group, ...]
    levels: tuple[Group, ...]
    series: tuple[Group, ...]
    stretches: tuple[Stretch, ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        groups = {name: value for name, value in vars(self).items() if name != "overall"}
        listed = {name: [one._asdict() for one in value] for name, value in groups.items()}
        return {"overall": self.overall._asdict(), **listed}


def failures(
    panel: Panel, prediction: npt.NDArray[Any], *, covered: npt.NDArray[Any] | None = None
) -> Failures:
    """Group the errors of one-step predictions by when, where and at which level they were made.

    Parameters
    ----------
    panel : Panel
        The rows, with labels.
    prediction : array
        Of each row of the panel, NaN where there is none.
    covered : array or None, default=None
        Whether each label lay within its interval, NaN where that is not known.

    Examples
    --------
    >>> time = np.datetime64("2026-01-01T00") + np.arange(240)
    >>> load = np.tile([5.0, 6.0], 120)
    >>> predicted = np.where(np.arange(240) % 24 == 18, load - 3, load)  # it misses what happens at six
    >>> found = failures(Panel.from_arrays(None, load, time=time), predicted)
    >>> worst = max(found.hours, key=lambda group: group.rmse)
    >>> worst.name, worst.rows, worst.rmse, worst.persistence, worst.bias
    ('18:00', 10, 3.0, 1.0, 3.0)
    """
    predicted = np.asarray(prediction, dtype=np.float64)
    if predicted.shape != (len(panel),):
        raise DataError(
            f"there must be one prediction per row of the panel, shape ({len(panel)},); "
            f"got shape {predicted.shape}."
        )
    target = panel.target.astype(np.float64)
    last, _, before = last_labels(panel, 0.0)
    known = before & ~np.isnan(target) & ~np.isnan(predicted)
    if not known.any():
        raise DataError(
            "errors need rows with a label and one before it; there is none. Give rows with labels."
        )
    rows = _Rows(
        known,
        target,
        target - predicted,
        target - last,
        None if covered is None else np.asarray(covered, float),
    )
    return Failures(
        overall=rows.group("all rows", known),
        hours=_by_hour(rows, panel),
        weekdays=_by_weekday(rows, panel),
        levels=_by_level(rows),
        series=_by_series(rows, panel),
        stretches=_stretches(rows, panel),
    )


def worst_stretches(
    errors: npt.NDArray[Any], starts: npt.NDArray[Any], length: int, most: int = 1
) -> list[slice]:
    """Find stretches with the largest sum of squared errors, each within one series, none over another.

    Parameters
    ----------
    errors : array
        Of rows, series end to end; NaN counts as none.
    starts : array of int
        Where each series begins, and the number of rows.
    length, most : int
        Rows of a stretch (fewer, where no series has so many), and stretches, at most.

    Examples
    --------
    >>> worst_stretches(np.array([0.0, 1.0, 5.0, 5.0, 0.0, 0.0]), np.array([0, 3, 6]), length=2, most=2)
    [slice(1, 3, None), slice(3, 5, None)]
    """
    length = max(1, min(length, int(np.diff(starts).max())))
    with np.errstate(over="ignore"):
        squares = np.minimum(np.square(np.nan_to_num(np.asarray(errors, np.float64))), 1e200)
    # Sums of windows, each of its own: a running sum would carry what rounding lost behind a huge error on.
    sums = np.lib.stride_tricks.sliding_window_view(squares, length).sum(axis=1)
    series = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    sums = np.where(series[: len(sums)] == series[length - 1 :], sums, -1.0)
    found: list[slice] = []
    while len(found) < most:
        first = int(np.argmax(sums))
        if sums[first] < 0 or (found and sums[first] == 0):
            break
        found.append(slice(first, first + length))
        sums[max(0, first - length + 1) : first + length] = -1.0
    return found


class _Rows(NamedTuple):
    """What is known of each row: (N,) each."""

    known: BoolArray
    target: DoubleArray
    errors: DoubleArray
    naive: DoubleArray  # errors of persistence
    covered: DoubleArray | None

    def group(self, name: str, some: BoolArray) -> Group:
        """Sum up some rows that are known."""
        covered = None
        if self.covered is not None:
            judged = self.covered[some]
            covered = float(np.nanmean(judged)) if not np.isnan(judged).all() else float("nan")
        return Group(
            name,
            int(some.sum()),
            _rms(self.errors[some]),
            _rms(self.naive[some]),
            float(self.errors[some].mean()),
            covered,
        )

    def groups(self, names: list[str], numbers: IntArray) -> tuple[Group, ...]:
        """Sum up the rows of each number, where there are some."""
        there = np.bincount(numbers[self.known], minlength=len(names)) > 0
        return tuple(
            self.group(names[one], self.known & (numbers == one)) for one in np.flatnonzero(there).tolist()
        )


def _rms(errors: DoubleArray) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(np.square(errors))))


def _seconds(panel: Panel) -> IntArray | None:
    """Seconds of a calendar, where rows are less than a day apart; None else."""
    if not has_times(panel.time):
        return None
    return np.asarray(panel.time).astype("datetime64[s]").astype(np.int64)


def _by_hour(rows: _Rows, panel: Panel) -> tuple[Group, ...]:
    seconds = _seconds(panel)
    if seconds is None:
        return ()
    hours = seconds % _DAY // _HOUR
    if len(np.unique(hours)) < 2:
        return ()
    return rows.groups([f"{hour:02d}:00" for hour in range(24)], hours)


def _by_weekday(rows: _Rows, panel: Panel) -> tuple[Group, ...]:
    seconds = _seconds(panel)
    if seconds is None or len(seconds) < 2 or int(seconds.max() - seconds.min()) < _WEEK:
        return ()
    days = (seconds + _MONDAY) % _WEEK // _DAY
    return () if len(np.unique(days)) < 2 else rows.groups(list(_WEEKDAYS), days)


def _by_level(rows: _Rows) -> tuple[Group, ...]:
    """By fifths of the labels; where many labels are alike, fewer groups of more."""
    labels = rows.target[rows.known]
    edges = np.unique(np.quantile(labels, np.linspace(0, 1, _LEVELS + 1)))
    if len(edges) < 3:
        return ()
    numbers = np.zeros(len(rows.known), np.int64)
    numbers[rows.known] = np.searchsorted(edges[1:-1], labels, side="left")  # a group holds its upper edge
    names = [f"{figure(low, 3)} to {figure(high, 3)}" for low, high in pairwise(edges)]
    return rows.groups(names, numbers)


def _by_series(rows: _Rows, panel: Panel) -> tuple[Group, ...]:
    if panel.n_series < 2:
        return ()
    found = []
    for name, begin, end in zip(panel.ids, panel.starts[:-1], panel.starts[1:], strict=True):
        some = slice(int(begin), int(end))
        if rows.known[some].any():
            own = _Rows(*(None if one is None else one[some] for one in rows))  # type: ignore[arg-type]  # each as it was
            found.append(own.group(name, own.known))
    return tuple(sorted(found, key=lambda group: -group.rmse))


def stretch_length(panel: Panel) -> tuple[int, str]:
    """Say how many rows to look at together, and what they are: a day, a week, or a part of the rows.

    Examples
    --------
    >>> time = np.datetime64("2026-01-01T00") + np.arange(24 * 30)
    >>> stretch_length(Panel.from_arrays(None, np.zeros(len(time)), time=time))
    (24, 'day')
    """
    longest, seconds = int(panel.lengths.max()), seconds_per_row(panel.time, panel.starts)
    for span, name in ((_DAY, "day"), (_WEEK, "week")):
        if seconds and span % seconds == 0 and _SHORTEST <= span // seconds <= longest // 4:
            return span // seconds, name
    return max(_SHORTEST, longest // _PARTS), "stretch"


def _stretches(rows: _Rows, panel: Panel) -> tuple[Stretch, ...]:
    length, _ = stretch_length(panel)
    errors = np.where(rows.known, rows.errors, np.nan)
    with np.errstate(over="ignore"):
        total = float(np.nansum(np.square(errors)))
    found = []
    for one in worst_stretches(errors, panel.starts, length, _STRETCHES):
        some = np.zeros(len(panel), np.bool_)
        some[one] = rows.known[one]
        if not some.any() or not total > 0:
            continue
        group = rows.group("", some)
        series = panel.ids[int(np.searchsorted(panel.starts, one.start, side="right")) - 1]
        share = min(1.0, group.rows * group.rmse**2 / total)
        found.append(Stretch(series, one.start, one.stop - 1, group.rmse, group.persistence, share))
    return tuple(found)
