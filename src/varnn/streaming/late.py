"""Labels that come late: a stream that goes back to where it was, and does the rows since again.

The usual live pattern is that x of the next row is asked for shortly before the label of this one is there.
Then the row is left waiting: it is closed without a label, so that the next one can be predicted, and the
state before that is kept. Once the label is there ::

    state before the oldest row that waits --> its label, or none yet --> next x --> its label --> .. --> now

all is done again from that state with what is known by then. So whatever comes afterwards is, to the last
bit, what a stream gives that got every label in time. Answers of before stay as they were given.

Two states are kept at most: that before the oldest row that waits, which all can be done again from, and
that before the latest one, which mostly is enough.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.rules import shown, whole
from varnn.data.timestamps import read_back
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.model.calendar import calendar_of
from varnn.model.forecast import Forecaster
from varnn.model.intervals import known_calibrator
from varnn.monitoring.monitor import Event
from varnn.persistence import model_file
from varnn.streaming._late_rows import Row
from varnn.streaming._snapshot_checks import check_late, check_owner
from varnn.streaming._values import inputs_of, label_of, later_than, refuse_unusable
from varnn.streaming.linked import LinkedStream
from varnn.streaming.stream import Checkpoint, Guard, ReplayRow, Stream, levels_of

_NUMBER = whole(0)


class LateLabels:
    """A stream of one series whose labels may come late.

    Rows are numbered from 0, as they are opened by ``predict``. A row that is still open when the next one
    is opened is left waiting; ``label(row, y)`` brings its label. Until then it counts as missing, and for
    good once ``window`` rows were opened after it.

    Parameters
    ----------
    live : Stream
        The stream, of one series.
    window : int
        How many rows a label may be late. With 0 none may be, and an x replaces the one that is open, as it
        does in a stream.

    Attributes
    ----------
    live : Stream
        The stream as of now, to look at; rows and labels go through this object.
    events : list of Event
        What the monitor of the stream noticed through the last label. Rows that are done again say nothing
        that they have said.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> late, in_time = LateLabels(model.stream(), window=3), model.stream()
    >>> for x in X[:3]:
    ...     y_hat = late.predict(x)
    >>> late.waiting
    [0, 1]
    >>> innovations = [late.label(1, X[1, 0]), late.label(0, X[0, 0]), late.observe(X[2, 0])]
    >>> for x in X[:3]:
    ...     y_hat, innovation = in_time.predict(x), in_time.observe(x[0])
    >>> late.predict(X[3]) == in_time.predict(X[3])
    True
    """

    def __init__(self, live: Stream, window: int) -> None:
        if wrong := _NUMBER.broken("window", window):
            raise ConfigError(wrong)
        if not isinstance(live, Stream):
            raise ConfigError(
                f"LateLabels needs a stream, as model.stream() returns it; got {shown(live)}. Call stream()."
            )
        if live.n_series is not None:
            raise ConfigError(
                f"labels may come late in a stream of one series; got one of {live.n_series} in step. Give "
                "each series a stream of its own."
            )
        if window and isinstance(live, LinkedStream):
            raise ConfigError(
                "labels of series that see each other cannot come late: the others have seen rows without "
                "them. Use window=0."
            )
        self.live, self.window = live, int(window)
        self.events: list[Event] = []
        self._answer: float = live.prediction  # of the open row: replayed, the stream may predict another
        self._rows: list[Row] = []  # from the oldest one that waits on; empty if none does
        self._states: list[Checkpoint] = []  # before the first of these; and, maybe, before a later one
        self._told: set[tuple[str, int]] = set()  # kinds and rows of events since the first of these

    @property
    def row(self) -> int:
        """Number of the open row or, where none is open, of the next one."""
        return self.live.steps

    @property
    def open_row(self) -> int | None:
        """Number of the open row; None where none is open."""
        return self.live.steps if self.live.is_open else None

    def row_at(self, time: np.datetime64) -> int | None:
        """Row of a time that is open, or waits for its label; None if there is none."""
        times = dict.fromkeys(self.waiting) | ({self.row: None} if self.live.is_open else {})
        first = self._states[0].steps if self._rows else self.row
        rows = [one.time for one in self._rows] or [self.live.open_inputs[1]]
        return next((row for row in times if rows[row - first] == time), None)

    @property
    def waiting(self) -> list[int]:
        """Rows that wait for their labels, oldest first; the open one is not among them."""
        if not self._rows:
            return []
        first = self._states[0].steps
        return [
            first + place for place, one in enumerate(self._rows[: self.row - first]) if one.label is None
        ]

    def predict(
        self,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Open the next row and predict it, as ``Stream.predict`` does; one that is open is left waiting."""
        live = self.live
        with live.guard:
            if live.is_open and self.window:
                return self._left_waiting(x, time, interval)
            answer = live.predict(x, time=time, interval=interval)
            self._opened()
            return answer

    def peek(
        self,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Answer as :meth:`predict` would; nothing changes, and no row is opened or left waiting."""
        live = self.live
        with live.guard:
            if not (live.is_open and self.window):
                return live.peek(x, time=time, interval=interval)
            here = live.checkpoint()
            try:
                live.observe(None)
                return live.predict(x, time=time, interval=interval)
            finally:
                live.rollback(here)

    def observe(self, y: Any) -> Any:
        """Take in the label of the open row; gives the innovation, y less what was answered."""
        live = self.live
        with live.guard:
            live.observe(y)
            return self._labelled(label_of(y), live.events)

    def step(
        self,
        y: Any,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> tuple[Any, Any]:
        """Observe the label of the open row, then predict the next one: both or, with an error, neither.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
        >>> late = LateLabels(model.stream(), window=3)
        >>> y_hat = late.predict(X[0])
        >>> innovation, y_hat = late.step(X[0, 0], X[1])
        >>> late.row, late.waiting
        (1, [])
        """
        live = self.live
        if isinstance(live, LinkedStream):
            raise ConfigError(
                "a row of series that see each other depends on who else comes. Use observe, then predict."
            )
        with live.guard:
            if levels_of(interval)[0]:
                known_calibrator(live.model.calibrator)
            given, when = _next_row(live, x, time)
            innovation = self.observe(y)
            answer = live.predict(given, time=when, interval=interval)  # nothing can be wrong with it by now
            self._opened()
            return innovation, answer

    def whole(self, x: Any, y: Any, *, time: Any = None, interval: Any = None) -> tuple[Any, Any]:
        """Open the next row and observe its own label: both or, with an error, neither."""
        live = self.live
        with live.guard:
            here, labels = live.checkpoint(), [(row, row.label) for row in self._rows]
            before = self._states[:], self._told.copy(), self._answer, self.events
            answer = self.predict(x, time=time, interval=interval)
            try:
                return answer, self.observe(y)
            except DataError:  # it is farther off than what looks at errors can take
                live.rollback(here)
                for row, label in labels:
                    row.label = label
                self._rows = [row for row, _ in labels]
                self._states, self._told, self._answer, self.events = before
                raise

    def label(self, row: int, y: Any) -> Any:
        """Take in the label of a row that waits, or of the open one.

        Parameters
        ----------
        row : int
            Its number.
        y : float or None
            Its label; None or NaN says that none will come.

        Returns
        -------
        float
            The innovation: y less what was answered when the row was opened.
        """
        with self.live.guard:
            if self.live.is_open and _NUMBER.holds(row) and row == self.row:
                return self.observe(y)
            one, label, now = self._waiting_row(row), label_of(y), self.row
            start = self._state_before(row)
            one.label = label
            try:
                events = self._redo(start, now)
            except DataError:  # it is farther off than what looks at errors can take
                one.label = None
                self._redo(start, now)
                raise
            self.events = [event for event in events if (event.kind, event.row) not in self._told]
            self._told.update((event.kind, event.row) for event in self.events)
            self._states = [state for state in self._states if state.steps <= row]  # others know no label
            self._forget_settled()
            return label - one.prediction

    def watch(self, *, coverage: float | None = None, **settings: Any) -> None:
        """Look out for changes as ``Stream.watch`` does: from the oldest row on that waits for its label."""
        live, now = self.live, self.row
        with live.guard:
            if not self._rows:
                live.watch(coverage=coverage, **settings)
                return
            here = live.checkpoint()
            try:
                live.rollback(self._states[0])
                live.watch(coverage=coverage, **settings)
            except ConfigError:
                live.rollback(here)
                raise
            self._states = [live.checkpoint()]
            self._redo(self._states[0], now)
            self.events, self._told = [], set()

    def unwatch(self) -> None:
        """Look out for nothing, also where rows are done again."""
        self.live.monitor, self.live.events, self.events = None, [], []
        self._states = [state._replace(monitor=None, events=[]) for state in self._states]

    def _labelled(self, label: float, events: list[Event]) -> float:
        """Take note of the label of the row that was open, and of what was noticed; give the innovation."""
        self.events = events
        if self._rows:
            self._rows[-1].label = label
            self._told.update((event.kind, event.row) for event in events)
        return label - self._answer

    def _left_waiting(self, x: Any, time: Any, interval: Any) -> Any:
        """Open a row while another one is open."""
        live = self.live
        here, left = live.checkpoint(), Row(*live.open_inputs, self._answer)
        try:
            live.observe(None)
            answer = live.predict(x, time=time, interval=interval)
        except BaseException:  # what cannot be used changes nothing
            live.rollback(here)
            raise
        self.events = live.events
        if not self._rows:
            self._rows = [left]
        self._states[1:] = [here]
        self._opened()
        return answer

    def _opened(self) -> None:
        """Take note of the row that was opened just now, and of those that are too old by that."""
        live = self.live
        self._answer = live.prediction
        if self._rows:
            self._rows.append(Row(*live.open_inputs, self._answer))
            self._settle()

    def narrow(self, window: int) -> None:
        """Let labels be that many rows late from here on; rows that are too old by that count as missing."""
        self.window = window
        if self._rows:
            self._settle()

    def _settle(self) -> None:
        """Take labels as missing that are too late."""
        old = len(self._rows) - 1 - self.window
        if old > 0:
            for one in self._rows[:old]:
                if one.label is None:
                    one.label = np.nan
            self._forget_settled()

    def _forget_settled(self) -> None:
        """Let the oldest row that is kept be one that waits; with none, nothing has to be done again."""
        waiting = self.waiting
        if not waiting:
            self._rows, self._states, self._told = [], [], set()
            return
        first, oldest = self._states[0].steps, waiting[0]
        if oldest == first:
            return
        state = self._state_before(oldest)
        if state.steps < oldest:
            here = self.live.checkpoint()
            self._redo(state, oldest)
            state = self.live.checkpoint()
            self.live.rollback(here)
        self._states = [state, *(one for one in self._states if one.steps > oldest)]
        del self._rows[: oldest - first]
        self._told = {(kind, row) for kind, row in self._told if row >= oldest}

    def _state_before(self, row: int) -> Checkpoint:
        """Find the latest state to go back to for a row."""
        return max((state for state in self._states if state.steps <= row), key=lambda state: state.steps)

    def _redo(self, start: Checkpoint, end: int) -> list[Event]:
        """Go back to a state, and do its row and those since again, up to a row that is not closed.

        Whatever there is of that row is opened. Returns what the monitor noticed.
        """
        rows, first = [], self._states[0].steps
        for place in range(start.steps - first, end - first):
            after = self._rows[place + 1] if place + 1 < len(self._rows) else None
            x, time = (None, None) if after is None else (after.x, after.time)
            rows.append(ReplayRow(self._rows[place].label, x, time))
        return self.live.replay(start, rows)

    def _waiting_row(self, row: int) -> Row:
        """Find a row that waits; refuse any other."""
        last = self.row - (not self.live.is_open)  # that was opened
        if not _NUMBER.holds(row) or row > last:
            raise DataError(
                f"a label is that of a row that was predicted, by its number below {last + 1}; got "
                f"{shown(row)}. Predict the row first."
            )
        if row < last - self.window:
            raise DataError(
                f"a label may be {self.window} rows late; row {row} is {last - row} rows before the last "
                f"one, {last}, and counts as missing. Send labels sooner, or take a larger window."
            )
        first = self._states[0].steps if self._rows else last + 1
        if row < first or self._rows[row - first].label is not None:
            raise DataError(
                f"a row takes one label; row {row} has its own, or was settled without. These wait: "
                f"{self.waiting[:10]}."
            )
        return self._rows[row - first]

    def snapshot(self) -> bytes:
        """The whole state as bytes, to go on elsewhere with :meth:`restore`."""
        live = self.live
        with live.guard:
            if not self._rows:
                differs = live.is_open and self._answer != live.prediction
                return live.snapshot(answered=self._answer if differs else None)
            here, rows = live.checkpoint(), self._rows
            live.rollback(self._states[0])
            before = live.snapshot()
            live.rollback(here)
            missing = (np.nan if one.label is None else one.label for one in rows)
            tensors = {
                "before": np.frombuffer(before, np.uint8),
                "x": np.reshape([one.x for one in rows[1:]], (len(rows) - 1, live.n_inputs)),
                "labels": np.array(list(missing)),
                "predictions": np.array([one.prediction for one in rows]),
            }
            late = {
                "times": [None if one.time is None else str(one.time) for one in rows],
                "waiting": [row - self._states[0].steps for row in self.waiting],
                "open": live.is_open,
                "told": sorted(self._told),
            }
            header = {"format": model_file.FORMAT, "model": live.model.fingerprint, "late": late}
            return model_file.to_bytes(tensors, header)

    @classmethod
    def restore(
        cls,
        model: Any,
        blob: bytes,
        window: int,
        forecaster: Forecaster | None = None,
        *,
        guard: Guard | None = None,
    ) -> "LateLabels":
        """Go on from a snapshot, also from one of a stream alone, with the model it was taken from.

        Parameters
        ----------
        model, blob, forecaster, guard : object, bytes, Forecaster or None, Guard or None
            As of ``Stream.restore``.
        window : int
            How many rows a label may be late from here on.
        """
        what = "the snapshot"
        tensors, header = model_file.from_bytes(blob, what)
        if "late" not in header:
            live = Stream.restore(model, blob, forecaster, guard=guard)
            found = cls(_one_series(live, what), window)
            found._answer = header.get("answered", found._answer)
            return found
        fitted = getattr(model, "fitted_", model)
        check_owner(header, fitted)
        check_late(tensors, header, fitted, what)
        live = Stream.restore(model, tensors["before"].tobytes(), forecaster, guard=guard)
        found = cls(_one_series(live, what), window)
        if not live.is_open:
            raise ModelFileError(f"{what} is damaged: the oldest row that waits is not there.")
        try:
            found._take_over(tensors, header["late"])
        except DataError as error:
            raise ModelFileError(f"{what} is damaged or was not written by this library: {error}") from None
        return found

    def _take_over(self, tensors: Mapping[str, npt.NDArray[Any]], late: Mapping[str, Any]) -> None:
        """Go on from what a snapshot holds, which was looked at."""
        live, times = self.live, [None if time is None else read_back(time) for time in late["times"]]
        last = live.last_time
        for time in times:
            last = last if time is None else later_than(last, time)
        given = zip((live.open_inputs[0], *tensors["x"]), times, tensors["predictions"].tolist(), strict=True)
        self._rows = [Row(x, time, prediction) for x, time, prediction in given]
        for place, label in enumerate(tensors["labels"].tolist()[: len(self._rows) - late["open"]]):
            self._rows[place].label = None if place in late["waiting"] else label
        self._states, self._told = [live.checkpoint()], {(kind, row) for kind, row in late["told"]}
        self._redo(self._states[0], live.steps + len(self._rows) - late["open"])
        live.events, self._answer = [], self._rows[-1].prediction
        self._settle()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by snapshot, as the stream does."""
        return LateLabels.restore, (self.live.model, self.snapshot(), self.window, self.live.forecaster)


def _next_row(live: Stream, x: Any, time: Any) -> tuple[FloatArray, np.datetime64 | None]:
    """Read an x that comes after the open row; refuse what could not be predicted once that is closed."""
    model = live.model
    open_time = live.open_inputs[1]
    last = live.last_time if open_time is None or not live.is_open else open_time
    when = None if time is None else later_than(last, time)
    given = inputs_of(x, model.input_names, (live.n_inputs,), model.categories)
    refuse_unusable(given, model.pipeline.fill)
    if model.pipeline.calendar:
        calendar_of(when, model.pipeline.calendar)
    return given, when


def _one_series(live: Stream, what: str) -> Stream:
    if live.n_series is not None:
        raise ModelFileError(
            f"{what} must be that of one series; it is that of {live.n_series} in step. Use Stream.restore."
        )
    return live
