"""predict / observe, one step at a time, without torch.

The arithmetic is that of `varnn.step`, as in a batch: a stream gives the numbers of ``model.predict`` on the
same rows. Here is what surrounds it: checks, threads, intervals, monitoring, checkpoints and snapshots.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.data.rules import optional, whole
from varnn.data.timestamps import read_back, timestamp
from varnn.errors import ConfigError, DataError, ModelFileError, ThreadError
from varnn.model.calendar import calendar_of
from varnn.model.expert_weights import known_experts
from varnn.model.fitted import Fitted, LastRows
from varnn.model.floor import floored
from varnn.model.forecast import Forecast, Forecaster
from varnn.model.forecast.recent import Recent
from varnn.model.intervals import Interval, Tracker, check_levels, known_calibrator
from varnn.model.peers import peer_inputs
from varnn.monitoring.monitor import Event, Monitor
from varnn.persistence import model_file
from varnn.step.series import Levels, SeriesStep
from varnn.streaming._display import html_of, one_line
from varnn.streaming._snapshot_checks import check_header, check_owner, check_states, check_step
from varnn.streaming._values import inputs_of, label_of, labels_of, later_than, refuse_unusable
from varnn.streaming.resume import Resume, kept_series


class Guard:
    """One thread at a time; another one gets an error instead of waiting: it would see half a step."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        if not self.acquire(blocking=False):
            raise self.error()

    def __exit__(self, *_: object) -> None:
        self.release()

    @staticmethod
    def error() -> ThreadError:
        """Return the error of a thread that came second."""
        return ThreadError(
            "a stream belongs to one thread at a time; another one is within predict or observe of it, or of "
            "a stream that shares its guard. Give each thread a stream of its own, or put a lock around it."
        )


class Checkpoint(NamedTuple):
    """Where a stream was, for it to roll back to: its open row as well."""

    steps: int
    given: FloatArray | None  # x of the open row; None if none was open
    time: np.datetime64 | None
    last_time: np.datetime64 | None
    events: list[Event]
    step: list[npt.NDArray[np.uint8]]
    prediction: DoubleArray
    tracker: DoubleArray | None
    monitor: Monitor | None
    recent: dict[str, npt.NDArray[Any]] | None


class ReplayRow(NamedTuple):
    """A row to go through again: its label, and the x and time of the row after it, if there is one."""

    label: Any
    next_x: FloatArray | None
    next_time: np.datetime64 | None


class Stream:
    """A fitted model at work on live data; made by ``model.stream()``.

    ``predict(x)`` may be called any number of times; ``observe(y)`` then closes the step with the
    label of the last x predicted. The results are those of ``model.predict`` on the same rows.

    A stream belongs to one thread: calls of two threads at the same time are refused (``ThreadError``). Where
    threads take turns, put a lock around it.

    Parameters
    ----------
    model : object
        A fitted ``VARNNRegressor``, or its ``fitted_``.
    n_series : int or None, default=None
        None for one series: x is (D,), y a number. Otherwise n series in step: (n, D) and (n,).
    forecaster : Forecaster or None, default=None
        What looks several rows ahead, if anything does; a ``VARNNRegressor`` brings its own.
    resume : bool, str or sequence of str, default=False
        Whether to start from the last training rows, and of which series; see ``VARNNRegressor.stream``.
    guard : Guard or None, default=None
        What keeps out other threads, to share with other streams of one thread; None for its own.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> X, y = np.random.default_rng(0).normal(size=(2, 60, 1))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, y[:, 0])
    >>> live = model.stream()
    >>> predictions = []
    >>> for x, label in zip(X, y[:, 0]):
    ...     predictions.append(live.predict(x))
    ...     innovation = live.observe(label)
    >>> bool(np.allclose(predictions, model.predict(X, y[:, 0]), atol=1e-5))
    True
    """

    def __init__(
        self,
        model: Any,
        n_series: int | None = None,
        forecaster: Forecaster | None = None,
        *,
        resume: Resume = False,
        guard: Guard | None = None,
    ) -> None:
        if wrong := optional(whole(1)).broken("n_series", n_series):
            raise ConfigError(wrong)
        fitted: Fitted = getattr(model, "fitted_", model)
        self.model, self.n_series = fitted, n_series
        self.forecaster = forecaster or getattr(model, "forecaster_", None)
        width = 1 if n_series is None else n_series
        if fitted.pipeline.peers and width == 1 and not self._sees_peers_itself:
            raise DataError(
                "this model sees what the other series do (peers=True), so it streams all of them together: "
                "model.stream(n_series=...)."
            )
        self._step = SeriesStep(fitted.step, width)
        self._shape = (self.n_inputs,) if n_series is None else (width, self.n_inputs)
        self._cycles, self._peers = fitted.pipeline.calendar, fitted.pipeline.peers
        n_calendar = self._step.extra.shape[1] - (3 if self._peers else 0)
        self._calendar, self._of_peers = self._step.extra[:, :n_calendar], self._step.extra[:, n_calendar:]
        self._tracker: Tracker | None = None  # of an interval method that is not part of the step
        if fitted.calibrator is not None and fitted.calibrator.step_numbers() is None:
            self._tracker = fitted.calibrator.tracker(width)
        self._open = False  # whether an x was predicted and waits for its label
        self._given: FloatArray = np.zeros(self._shape)  # that x, as it came
        self._time: np.datetime64 | None = None  # and its time
        self._recent = None
        if self.forecaster is not None:
            ahead = self.forecaster
            self._recent = Recent(ahead.rows_kept, width, self.n_inputs, ahead.rows_followed)
        self.steps = 0  # rows observed so far
        self.monitor: Monitor | None = None  # see `watch`
        self.events: list[Event] = []  # what the monitor noticed at the last label
        self.last_time: np.datetime64 | None = None  # of the latest row observed that had one
        self.guard = guard or Guard()
        self._acquire, self._release = self.guard.acquire, self.guard.release
        self._look_back(kept_series(fitted, n_series, resume))

    _sees_peers_itself = False  # `varnn.streaming.linked` has streams of one series that do

    @property
    def n_inputs(self) -> int:
        """Length of one x."""
        return len(self.model.input_names)

    @property
    def weights(self) -> dict[str, Any]:
        """How much each expert counts in the next prediction: floats by name, of a fleet arrays (n,).

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> live = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0]).stream()
        >>> max(live.weights.values()) < 1, round(sum(live.weights.values()), 9)
        (True, 1.0)
        """
        names = known_experts(self.model).names
        now = self._step.weights()
        return dict(zip(names, now[0].tolist() if self.n_series is None else now.T.copy(), strict=True))

    def predict(
        self,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Predict the label of x from what was observed so far; changes nothing that is observed.

        Parameters
        ----------
        x : array or mapping
            Inputs in the order of ``model.feature_names_in_``, or (one series) a mapping by name:
            (D,) for one series, (n, D) for a fleet. Missing inputs (NaN, None) are filled as in
            ``model.predict``: with ``fill="forward"`` by the last value known of that series, before any by
            the mean of the training rows; with "zero" by 0. With "none" they are refused, and with
            "interpolate", too: it would have to know the value after the gap.
        time : object or None, default=None
            Time of x, as `varnn.data.timestamps.timestamp` reads it; later than that of the last row
            observed. Needed by a model that sees the time of day or week.
        interval : float or sequence of float or None, default=None
            Level, or levels, of intervals to give with the prediction.

        Returns
        -------
        float or array of shape (n,)
            In the target's units; with ``interval`` an :class:`~varnn.model.intervals.Interval`.
        """
        levels: Levels = ()
        several = False
        if interval is not None:
            levels, several = levels_of(interval)
            known_calibrator(self.model.calibrator)
        when = None if time is None else later_than(self.last_time, time)
        if not self._acquire(False):  # not `with self.guard`: that takes four times as long
            raise self.guard.error()
        try:
            model = self.model
            self._advance(inputs_of(x, model.input_names, self._shape, model.categories), when, levels)
            return self._answer(levels, several=several)
        finally:
            self._release()

    def peek(
        self,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Predict as :meth:`predict` does, and leave the x that waits for its label as it is.

        Parameters and answers are those of :meth:`predict`. An x that was open before stays so, and where
        none was, ``observe`` still has none to close.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> live = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0]).stream()
        >>> y_hat = live.predict([0.1, 0.2])
        >>> what_if = live.peek([3.0, 0.2])
        >>> live.observe(0.3) == 0.3 - y_hat
        True
        """
        levels, several = levels_of(interval)
        if levels:
            known_calibrator(self.model.calibrator)
        when = None if time is None else later_than(self.last_time, time)
        with self.guard:
            model = self.model
            given = inputs_of(x, model.input_names, self._shape, model.categories)
            try:
                self._predict(given, when, levels)
                return self._answer(levels, several=several)
            finally:
                self._reopen()

    def _answer(self, levels: Levels, *, several: bool) -> Any:
        """Return what a caller gets of the x that was predicted last."""
        if self.n_series is None:
            prediction = self._step.prediction.item(0)
            if not levels:
                return prediction
            if not several and self._tracker is None:  # the usual case, without copies
                lower, upper = self._step.bounds
                return Interval(prediction, lower[0, 0], upper[0, 0])
            lower, upper = self._bounds(levels)
            return Interval(prediction, *((lower[0], upper[0]) if several else (lower[0, 0], upper[0, 0])))
        # A fleet's caller gets arrays of its own: writing into them must not change the innovation.
        answer = self._step.prediction.copy()
        if not levels:
            return answer
        lower, upper = self._bounds(levels)
        return Interval(answer, lower, upper) if several else Interval(answer, lower[:, 0], upper[:, 0])

    def _bounds(self, levels: Levels) -> tuple[DoubleArray, DoubleArray]:
        """Return the bounds of the open row: (n, L) each."""
        if self._tracker is None:
            lower, upper = self._step.bounds
            return lower.copy(), upper.copy()
        prediction = self._step.prediction[:, None]
        below, above = self._tracker.bounds(np.array(levels))
        lower = prediction + below
        if self.model.positive:
            lower = floored(lower, self._has_been_negative[:, None])
        return lower, prediction + above

    @property
    def _has_been_negative(self) -> BoolArray:
        """Whether a label of each series was below zero: (n,)."""
        return self._step.field("has_been_negative") > 0

    def _predict(self, given: FloatArray, time: np.datetime64 | None, levels: Levels = ()) -> None:
        """Predict the row with these inputs; raise DataError if they cannot be used."""
        step = self._step
        step.x[:] = given
        if self._cycles:
            self._calendar[:] = calendar_of(time, self._cycles)
        if self._peers:
            self._of_peers[:] = self._peer_inputs()
        if not step.predict(levels if self._tracker is None else ()):
            refuse_unusable(given, self.model.pipeline.fill)
        if self._tracker is not None:
            self._tracker.expect(step.first_hidden)

    def _peer_inputs(self) -> DoubleArray:
        """Compute what each series sees of the others: (n, 3)."""
        linear, field = self.model.pipeline.linear, self._step.field
        return peer_inputs(
            field("last_label"),
            field("has_label"),
            field("last_change"),
            field("linear_residual"),
            np.inf if linear is None else linear.largest_change,
        )

    def _advance(self, given: FloatArray, time: np.datetime64 | None, levels: Levels = ()) -> None:
        """Open a row; if x cannot be used, the one that was open stays so."""
        try:
            self._predict(given, time, levels)
        except DataError:
            self._reopen()
            raise
        self._given, self._time, self._open = given, time, True

    def _reopen(self) -> None:
        """Open again what was open: another x, which was not to stay, has taken its place."""
        if self._open:
            self._predict(self._given, self._time)

    def observe(self, y: Any) -> Any:
        """Take in the label of the last x predicted; NaN or None holds the memory.

        Returns
        -------
        float or array of shape (n,)
            The innovation y - y_hat in the target's units, NaN where the label is missing.
        """
        if not self._open:
            raise DataError(
                "observe(y) closes a step that predict(x) opened; no x was predicted since the last "
                "observe. Call predict(x) first."
            )
        if not self._acquire(False):
            raise self.guard.error()
        try:
            return self._close(y)
        finally:
            self._release()

    def _close(self, y: Any) -> Any:
        if self.n_series is None:
            labels: Any = label_of(y)
            innovation: Any = labels - self._step.prediction.item(0)
        else:
            labels = labels_of(y, self.n_series)
            innovation = labels - self._step.prediction
        if self.monitor is not None:
            self.events = self._noticed(self.monitor, innovation)
        self._observe(labels)
        self.steps += 1
        self._open = False
        if self._time is not None:
            self.last_time = self._time
        return innovation

    def _observe(self, labels: Any, *, teach: bool = True) -> None:
        """Hand labels, a number or (n,), to the step and to an interval method outside it."""
        self._step.labels[:] = labels
        if self._tracker is not None and teach:
            self._tracker.observe(self._step.labels - self._step.prediction)
        self._step.observe(teach=teach)
        if self._recent is not None:
            inputs = self._step.field("inputs")
            self._recent.add(inputs[0] if self.n_series is None else inputs, labels, self._time)

    def forecast(
        self,
        horizon: int | None = None,
        *,
        inputs: npt.ArrayLike | None = None,
        interval: float | Sequence[float] | None = None,
    ) -> Forecast:
        """Forecast the rows after the last one observed, as ``model.forecast`` does; changes nothing.

        Parameters
        ----------
        horizon : int or None, default=None
            Rows ahead; None is the ``horizon`` the model was fitted with.
        inputs : array or None, default=None
            Coming values of the inputs known in the future: (H, inputs), for a fleet (n, H, inputs).
        interval : float or sequence of float or None, default=None
            Level, or levels, of intervals.
        """
        if self.forecaster is None or self._recent is None:
            raise ConfigError(
                "this stream's model was fitted for one row ahead. Fit with horizon=..., for example 24."
            )
        rows = self._recent.panel(self.model.input_names, self.model.target_name)
        return self.forecaster.forecast(
            rows, horizon=horizon, inputs=inputs, interval=interval, free=self._has_been_negative
        )

    @property
    def open_inputs(self) -> tuple[FloatArray, np.datetime64 | None]:
        """Inputs and time of the open step, as they came."""
        return self._given, self._time

    def watch(self, *, coverage: float | None = None, **settings: Any) -> None:
        """Look out for changes from here on: each ``observe`` then leaves what it noticed in ``events``.

        Parameters
        ----------
        coverage : float or None, default=None
            Level of intervals, such as 0.9, to watch the coverage of; they need not be asked for.
        settings
            Those of :class:`~varnn.monitoring.monitor.Monitor`: ``false_alarms``, ``warm_up``, ``memory``,
            ``quiet``.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(800, 2))
        >>> y = X[:, 0] + 0.1 * X[:, 1] * np.where(np.arange(800) < 600, 1, 5)
        >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X[:400, :1], y[:400])
        >>> live = model.stream()
        >>> live.watch()
        >>> for x, label in zip(X[400:, :1], y[400:]):
        ...     y_hat, innovation = live.predict(x), live.observe(label)
        ...     for event in live.events:
        ...         print(event.kind, event.row > 200)
        variance change True
        """
        if coverage is not None:
            known_calibrator(self.model.calibrator)
        self.monitor = Monitor(self.n_series or 1, coverage=coverage, **settings)
        self.monitor.rows = self.steps  # events are counted as the stream's rows are
        self.events = []

    def snapshot(self, *, answered: float | None = None) -> bytes:
        """Return the whole state as bytes, to continue elsewhere with :meth:`restore`.

        Parameters
        ----------
        answered : float or None, default=None
            What was answered to the open x, to be kept with it, if that is not its prediction now.
        """
        with self.guard:
            return self._packed({} if answered is None else {"answered": answered})

    def _packed(self, more: Mapping[str, float]) -> bytes:
        tensors = self._states()
        if self._open:
            tensors["pending"] = self._given
        header = {
            "time": None if self._time is None else str(self._time),
            "last_time": None if self.last_time is None else str(self.last_time),
            "format": model_file.FORMAT,
            "steps": self.steps,
            "n_series": self.n_series,
            "monitor": None if self.monitor is None else self.monitor.settings(),
            "model": self.model.fingerprint,
            **more,
        }
        return model_file.to_bytes(tensors, header)

    def _states(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays of a snapshot, but for an x that waits for its label."""
        tensors: dict[str, npt.NDArray[Any]] = {"step": self._step.snapshot()}
        if self._tracker is not None:
            tensors["tracker"] = self._tracker.state()
        if self.monitor is not None:
            tensors["monitor"] = self.monitor.state()
        if self._recent is not None:
            tensors |= {f"recent.{name}": array for name, array in self._recent.state().items()}
        return tensors

    @classmethod
    def restore(
        cls,
        model: Any,
        blob: bytes,
        forecaster: Forecaster | None = None,
        *,
        guard: Guard | None = None,
    ) -> "Stream":
        """Continue from a snapshot, with the model it was taken from.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
        >>> live = model.stream()
        >>> y_hat = live.predict([0.1, 0.2])
        >>> Stream.restore(model, live.snapshot()).observe(0.3) == live.observe(0.3)
        True
        """
        tensors, header = model_file.from_bytes(blob, "the snapshot")
        return cls._unpacked(model, tensors, header, forecaster, guard)

    @classmethod
    def _unpacked(
        cls,
        model: Any,
        tensors: Mapping[str, npt.NDArray[Any]],
        header: Mapping[str, Any],
        forecaster: Forecaster | None,
        guard: Guard | None,
    ) -> "Stream":
        """Continue from what the bytes of a snapshot hold."""
        what, fitted = "the snapshot", getattr(model, "fitted_", model)
        check_owner(header, fitted)
        check_header(tensors, header, fitted, what)
        stream = cls(model, header["n_series"], forecaster, guard=guard)
        try:
            if header["monitor"] is not None:
                stream.watch(**header["monitor"])
            check_states(tensors, stream._states(), what)
            stream._continue_from(tensors, header, what)
        except (ConfigError, DataError) as error:
            raise ModelFileError(f"{what} is damaged or was not written by this library: {error}") from None
        return stream

    def _continue_from(
        self, tensors: Mapping[str, npt.NDArray[Any]], header: Mapping[str, Any], what: str
    ) -> None:
        """Continue from what a snapshot holds, whose shapes were checked."""
        self.steps = header["steps"]
        last, pending = (header[name] for name in ("last_time", "time"))
        self.last_time = None if last is None else read_back(last)
        self._step.restore(tensors["step"])
        check_step(self._step, what)
        if self._tracker is not None:
            self._tracker.restore(tensors["tracker"])
        if self.monitor is not None:
            self.monitor.restore(tensors["monitor"])
        recent = {name[7:]: array for name, array in tensors.items() if name.startswith("recent.")}
        if self._recent is not None and recent:
            self._recent.restore(recent)
        if "pending" in tensors:
            self._advance(tensors["pending"], None if pending is None else read_back(pending))

    def checkpoint(self) -> Checkpoint:
        """Return where it is now: a snapshot for this process alone, in a fiftieth of the time."""
        recent = None
        if self._recent is not None:
            recent = {name: array.copy() for name, array in self._recent.state().items()}
        return Checkpoint(
            self.steps,
            self._given if self._open else None,
            self._time,
            self.last_time,
            self.events,
            self._step.checkpoint(),
            self._step.prediction.copy(),
            None if self._tracker is None else self._tracker.state(),
            copy(self.monitor),  # its state is replaced from row to row, never written into
            recent,
        )

    def rollback(self, checkpoint: Checkpoint) -> None:
        """Be again where it was; a checkpoint may be rolled back to any number of times."""
        saved = checkpoint
        self.steps, self._time, self.last_time, self.events = (
            saved.steps,
            saved.time,
            saved.last_time,
            saved.events,
        )
        self._step.rollback(saved.step)
        self._step.prediction[:] = saved.prediction
        self.monitor = copy(saved.monitor)
        if self._recent is not None and saved.recent is not None:
            self._recent.restore(saved.recent)
        self._open = saved.given is not None
        if saved.given is not None:
            self._given = saved.given
        if self._tracker is not None and saved.tracker is not None:
            self._tracker.restore(saved.tracker)
            self._reopen()

    def replay(self, checkpoint: Checkpoint, rows: Iterable[ReplayRow]) -> list[Event]:
        """Roll back, then close the open row and go through those after it; return what the monitor noticed.

        All that follows is bit for bit what a stream gives that got these labels in time.
        """
        self.rollback(checkpoint)
        events: list[Event] = []
        for row in rows:
            self._close(row.label)
            events += self.events
            if row.next_x is not None:
                self._advance(row.next_x, row.next_time)
        return events

    @property
    def is_open(self) -> bool:
        """Whether an x was predicted and waits for its label."""
        return self._open

    @property
    def prediction(self) -> Any:
        """The prediction of the open row: a float, or (n,)."""
        return self._step.prediction.item(0) if self.n_series is None else self._step.prediction.copy()

    def __repr__(self) -> str:
        return one_line(self, is_open=self._open)

    def _repr_html_(self) -> str:
        return html_of(self, is_open=self._open)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by snapshot: the buffers are views of each other, which copies would not be."""
        return Stream.restore, (self.model, self.snapshot(), self.forecaster)

    def _noticed(self, monitor: Monitor, innovation: Any) -> list[Event]:
        """Tell the monitor how wrong the open row was, and whether its interval covered the label."""
        if monitor.coverage is None:
            return monitor.observe(innovation)
        return monitor.observe(innovation, self._covered(monitor.coverage, innovation))

    def _covered(self, level: float, innovation: Any) -> DoubleArray:
        """Whether intervals cover the labels, given the innovations: (n,), NaN if a label is missing."""
        if self._tracker is None:
            below, above = self._step.reach((level,))
        else:
            below, above = self._tracker.bounds(np.array([level]))
        errors = np.atleast_1d(innovation)
        covers = (below[:, 0] <= errors) & (errors <= above[:, 0])
        return np.where(np.isnan(errors), np.nan, covers)

    def _look_back(self, rows: Sequence[LastRows]) -> None:
        """Replay training rows to warm up the state without learning from them."""
        for place in range(len(rows[0].target) if rows else 0):
            x = np.stack([series.inputs[place] for series in rows])
            labels = np.array([series.target[place] for series in rows])
            time = None if rows[0].time is None else timestamp(rows[0].time[place])
            alone = self.n_series is None
            self._advance(x[0] if alone else x, time)
            self._pass_over(labels[0] if alone else labels)

    def _pass_over(self, labels: Any) -> None:
        """Close a row that is looked back on with its labels, as `_close` does, but learn nothing."""
        self._observe(labels, teach=False)
        self._open, self.last_time = False, self._time


def levels_of(interval: float | Sequence[float] | FloatArray | None) -> tuple[Levels, bool]:
    """Read levels of intervals, and whether there may be several; reject what is none.

    Examples
    --------
    >>> levels_of(None), levels_of(0.9), levels_of([0.5, 0.9])
    (((), False), ((0.9,), False), ((0.5, 0.9), True))
    """
    if interval is None:
        return (), False
    if type(interval) is float:
        return _checked((interval,)), False
    if type(interval) is list and all(type(level) is float for level in interval):
        return _checked(tuple(interval)), True
    return tuple(check_levels(interval).tolist()), isinstance(interval, Sequence | np.ndarray)


@lru_cache(maxsize=64)
def _checked(levels: tuple[float, ...]) -> Levels:
    """Check levels, which are the same from row to row."""
    return tuple(check_levels(levels[0] if len(levels) == 1 else list(levels)).tolist())
