"""Groups of rows -> columns with their predictions.

Whole series go through `varnn.model.prediction`, as in ``model.predict``; a series that is too long to be
held goes row by row through a stream, whose predictions are the same but for rounding.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from varnn.data.panel import Panel, from_columns
from varnn.data.roles import NONE
from varnn.data.tables import columns_of
from varnn.errors import DataError, RowError, nearest
from varnn.model.fitted import Fitted
from varnn.model.intervals import Interval, bound_name
from varnn.model.prediction import predict_rows
from varnn.model.warm_start import rows_before
from varnn.scale._groups import Group
from varnn.scale._scoring import Scoring
from varnn.scale.hashing import hashed
from varnn.streaming.closed_loop import continue_from_training
from varnn.streaming.stream import Stream


class GroupReader:
    """Groups of rows of one file, one after the other -> columns to write.

    Parameters
    ----------
    scoring : Scoring
        What to do.
    names : list of str
        Columns of the file.
    """

    def __init__(self, scoring: Scoring, names: list[str]) -> None:
        reading = scoring.reading
        self.scoring, self.n_series, self.without_model = scoring, 0, 0
        self.series = None if reading.series == NONE else reading.series
        self.times = [] if reading.time == NONE else reading.times_in(names)
        target = None if reading.target == NONE else reading.target
        if target not in names and not scoring.must_have_target:
            target = None
        inputs = reading.inputs or ()
        roles = [("target", target), ("series", self.series), *(("time", one) for one in self.times)]
        for role, name in (*roles, *(("input", one) for one in inputs)):
            if name is not None and name not in names:
                raise DataError(f"{role} column {name!r} is not in the file. {nearest(name, names)}")
        self.reading = replace(reading, target=target, series=self.series, time=self.times or None)
        wanted = (*self.times, self.series, target, *inputs)
        self.columns = list(dict.fromkeys(one for one in wanted if one is not None))
        self._long: LongSeries | None = None
        self._latest: Any = None  # time of the last row of a long series, so far
        self._hashes: list[bytes] = []

    @property
    def hashes(self) -> bytes:
        """Hashes of the names of all series, one after the other; none where series have no names."""
        return b"".join(self._hashes)

    def predicted(self, group: Group, *, is_whole: bool) -> dict[str, Any]:
        """Predict the rows of a group: time, series, label, prediction and bounds by name.

        ``is_whole`` is whether there are no others in the file.
        """
        table = columns_of(group.table)
        kept = {name: table[name] for name in (*self.times, self.series) if name is not None}
        if not len(group.table):  # which is no panel
            return {name: _plain(column.to_arrow()) for name, column in kept.items()} | self._no_rows()
        try:
            panel = from_columns(table, self.reading)
        except RowError as error:
            raise error.at(f"row {group.first + error.row:,}") from None
        if group.piece:
            self._check_order(panel, group)
        found = self._found(panel, group, alone=self.scoring.alone and is_whole and panel.n_series == 1)
        if not group.continues:
            self.n_series += panel.n_series
            self._hashes += map(hashed, panel.ids if self.series is not None else ())
        columns = {name: _plain(column.to_arrow()) for name, column in kept.items()}
        if len(panel) < len(group.table):  # of several rows of one time, one is left
            there = np.sort(panel.rows)
            columns = {name: column.take(there) for name, column in columns.items()}
        if self.reading.target is not None:
            columns[panel.target_name] = panel.in_caller_order(panel.target)
        columns["prediction"] = panel.in_caller_order(found.prediction)
        for place, level in enumerate(self.scoring.levels):
            columns[bound_name("lower", level)] = panel.in_caller_order(found.lower[:, place])
            columns[bound_name("upper", level)] = panel.in_caller_order(found.upper[:, place])
        return columns

    def _no_rows(self) -> dict[str, Any]:
        names = [] if self.reading.target is None else [self.reading.target]
        bounds = [bound_name(side, level) for level in self.scoring.levels for side in ("lower", "upper")]
        return {name: np.empty(0) for name in (*names, "prediction", *bounds)}

    def _found(self, panel: Panel, group: Group, *, alone: bool) -> Interval:
        if group.piece:
            if self._has_none(panel.ids[0]):
                return self._no_model(panel, is_new=not group.continues)
            if not group.continues or self._long is None:
                self._long = LongSeries(self._model(panel.ids[0]), panel, self.scoring)
            return self._long.predict(panel)
        self._long = None
        if isinstance(self.scoring.models, Fitted):
            return whole_series(self.scoring.models, panel, self.scoring, alone=alone)
        return _joined([self._of_one(panel, index) for index in range(panel.n_series)])

    def _of_one(self, panel: Panel, index: int) -> Interval:
        """Predict one series by a model of its own; without one, there is no prediction."""
        own = panel.between(int(panel.starts[index]), int(panel.starts[index + 1]))
        if self._has_none(panel.ids[index]):
            return self._no_model(own, is_new=True)
        return whole_series(self._model(panel.ids[index]), own, self.scoring, alone=True)

    def _has_none(self, name: str) -> bool:
        models = self.scoring.models
        return not isinstance(models, Fitted) and name not in models

    def _no_model(self, rows: Panel, *, is_new: bool) -> Interval:
        """What is said of rows whose series has no model."""
        self.without_model += is_new
        bounds = np.full((len(rows), len(self.scoring.levels)), np.nan) if self.scoring.levels else None
        return Interval(np.full(len(rows), np.nan), bounds, bounds)

    def _check_order(self, panel: Panel, group: Group) -> None:
        """Refuse a piece of a long series that does not come after the one before: none can be sorted in."""
        if panel.time is None:
            return
        if group.continues and not panel.time[0] > self._latest:
            raise DataError(
                f"series {panel.ids[0]!r} is too long to be held and sorted, so that its rows must come in "
                f"the order of time; after {self._latest} there is {panel.time[0]}, from row "
                f"{group.first:,} on. "
                "varnn.scale.partition_files(time=...) brings them into order."
            )
        self._latest = panel.time[-1]

    def _model(self, name: str) -> Fitted:
        models = self.scoring.models
        found: Fitted = models if isinstance(models, Fitted) else models[name].fitted_
        return found


def whole_series(fitted: Fitted, panel: Panel, scoring: Scoring, *, alone: bool) -> Interval:
    """Predict series that are there from their first row to their last.

    One that is ``alone`` may be that of the training rows under another name; one of many, which happens to
    be the only one of its group, may not.
    """
    known = alone or any(name in fitted.last_rows for name in panel.ids)
    if scoring.in_closed_loop:
        if not known:
            raise _never_trained(panel.ids[0])
        return Interval(continue_from_training(fitted, panel), None, None)
    levels = np.array(scoring.levels) if scoring.levels else None
    resume = scoring.resume if known else False
    return _joined([found for _, found in predict_rows(fitted, panel, levels, resume=resume)])


class LongSeries:
    """One series, piece by piece.

    Parameters
    ----------
    fitted : Fitted
        Its model.
    first : Panel
        Its first piece, which tells whether it follows the training rows.
    scoring : Scoring
        What to do.
    """

    def __init__(self, fitted: Fitted, first: Panel, scoring: Scoring) -> None:
        (name,) = first.ids
        if scoring.in_closed_loop:
            raise DataError(
                f"rows without labels are predicted from all before them, and series {name!r} is too long to "
                "be held. Give labels, or predict fewer rows."
            )
        is_known = name in fitted.last_rows
        follows = is_known and rows_before(fitted, fitted.matched(first), scoring.resume)[0] > 0
        self._live = Stream(fitted, resume=name if follows else False)
        self._fitted, self._levels = fitted, list(scoring.levels)

    def predict(self, piece: Panel) -> Interval:
        """Predict the rows that come next."""
        panel, live, levels = self._fitted.matched(piece), self._live, self._levels
        prediction = np.empty(len(panel))
        bounds = np.empty((2, len(panel), len(levels)))
        is_dated = panel.time is not None and panel.time.dtype.kind == "M"
        times: Any = panel.time if is_dated else [None] * len(panel)
        for row, (x, y, time) in enumerate(zip(panel.inputs, panel.target, times, strict=True)):
            found = live.predict(x, time=time, interval=levels or None)
            if levels:
                found, bounds[0, row], bounds[1, row] = found
            prediction[row] = found
            live.observe(y)
        return Interval(prediction, *bounds) if levels else Interval(prediction, None, None)


def _never_trained(name: str) -> DataError:
    return DataError(
        f"without labels a prediction goes on after the training rows of its series; series {name!r} was not "
        "trained on. Give labels."
    )


def _joined(parts: list[Interval]) -> Interval:
    return Interval(*(None if one[0] is None else np.concatenate(one) for one in zip(*parts, strict=True)))


def _plain(column: Any) -> Any:
    """Spell out texts that are numbers of a list."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
