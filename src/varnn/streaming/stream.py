"""predict / observe, one step at a time, without torch.

A batch prediction of row t starts its memory at zero, w - 1 rows earlier. To give the same number
without going over w rows again, a stream carries w states side by side, one per window that is
under way: each step advances all of them as rows of one small product, reads the prediction from
the oldest, and starts a new one (`varnn.streaming._cell`). The default carries a single state through its
series, in a batch and in a stream. All of one step is done by `varnn.streaming._numpy_step`, or in compiled
code by `varnn.streaming._compiled_step`; here is what surrounds it: checks, threads, intervals asked for,
monitoring, and snapshots.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.rules import optional, whole
from varnn.data.timestamps import read_back, timestamp
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.model.expert_weights import known_experts
from varnn.model.fitted import Fitted, LastRows
from varnn.model.forecast import Forecast, Forecaster
from varnn.model.forecast.recent import Recent
from varnn.model.intervals import known_calibrator
from varnn.monitoring.monitor import Event, Monitor
from varnn.persistence import model_file
from varnn.streaming._cell import Workspace
from varnn.streaming._display import html_of, one_line
from varnn.streaming._old_snapshots import as_of_today
from varnn.streaming._snapshot_checks import check_header, check_owner, check_states
from varnn.streaming._step import Levels, Step
from varnn.streaming._steps import levels_of, made_step
from varnn.streaming._values import inputs_of, label_of, labels_of, later_than
from varnn.streaming.resume import Resume, kept_series


class Kept(NamedTuple):
    """Where a stream was, for it to go back to: its open step as well."""

    steps: int
    given: FloatArray | None  # x of the open step; None where none was open
    time: np.datetime64 | None
    last_time: np.datetime64 | None
    events: list[Event]
    step: Any  # of `Step.kept`
    monitor: Monitor | None
    recent: dict[str, npt.NDArray[Any]] | None


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
    workspace : Workspace or None, default=None
        Weights and buffers to share with other streams of the model, all in one thread; None for its own.

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
        workspace: Workspace | None = None,
    ) -> None:
        if wrong := optional(whole(1)).broken("n_series", n_series):
            raise ConfigError(wrong)
        fitted: Fitted = getattr(model, "fitted_", model)
        self.model, self.n_series = fitted, n_series
        self.forecaster = forecaster or getattr(model, "forecaster_", None)
        workspace = workspace or Workspace(fitted)
        self._step = self._made(workspace)
        self._open = False  # whether an x was predicted and waits for its label
        self._given: FloatArray = self._step.x  # that x, as it came
        self._time: np.datetime64 | None = None  # and its time
        self._recent = None
        if self.forecaster is not None:
            ahead = self.forecaster
            self._recent = Recent(ahead.rows_kept, self._step.width, self.n_inputs, ahead.rows_followed)
        self.steps = 0  # rows observed so far
        self.monitor: Monitor | None = None  # see `watch`
        self.events: list[Event] = []  # what the monitor noticed at the last label
        self.last_time: np.datetime64 | None = None  # of the latest row observed that had one
        self._guard = workspace.guard
        self._acquire, self._release = self._guard.acquire, self._guard.release
        self._look_back(kept_series(fitted, n_series, resume))

    def _made(self, workspace: Workspace) -> Step:
        """Make what does the arithmetic."""
        return made_step(self.model, self.n_series, workspace)

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
        now = self._step.weights
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
        if not self._acquire(False):  # not `with self._guard`: that takes four times as long
            raise self._guard.error()
        try:
            model = self.model
            self._advance(inputs_of(x, model.input_names, self._step.shape, model.categories), when, levels)
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
        with self._guard:
            model = self.model
            given = inputs_of(x, model.input_names, self._step.shape, model.categories)
            try:
                self._step.advance(given, when, levels)
                return self._answer(levels, several=several)
            finally:
                self._reopen()

    def _answer(self, levels: Levels, *, several: bool) -> Any:
        """What a caller gets of the x that was advanced last."""
        if levels:
            return self._step.interval(levels, several=several)
        # A fleet's caller gets an array of its own: writing into it must not change the innovation.
        return self._step.answer if self.n_series is None else self._step.answer.copy()

    def _advance(self, given: FloatArray, time: np.datetime64 | None, levels: Levels = ()) -> None:
        """Open a step; where x cannot be used, that which was open stays so."""
        try:
            self._step.advance(given, time, levels)
        except DataError:
            self._reopen()
            raise
        self._given, self._time, self._open = given, time, True

    def _reopen(self) -> None:
        """Open again what was open: another x, which was not to stay, has taken its place."""
        if self._open:
            self._step.advance(self._given, self._time)

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
            raise self._guard.error()
        try:
            return self._close(y)
        finally:
            self._release()

    def _close(self, y: Any) -> Any:
        labels = label_of(y) if self.n_series is None else labels_of(y, self.n_series)
        innovation = labels - self._step.answer
        if self.monitor is not None:
            self.events = self._noticed(self.monitor, innovation)
        self._step.observe(labels)
        if self._recent is not None:
            self._recent.add(self._step.x, labels, self._time)
        self.steps += 1
        self._open = False
        if self._time is not None:
            self.last_time = self._time
        return innovation

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
            rows, horizon=horizon, inputs=inputs, interval=interval, free=self._step.lifted
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

    def snapshot(self) -> bytes:
        """The whole state as bytes, to go on elsewhere with :meth:`restore`."""
        with self._guard:
            return self._packed()

    def _packed(self, **more: float) -> bytes:
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
        tensors = self._step.states()
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
        workspace: Workspace | None = None,
    ) -> "Stream":
        """Go on from a snapshot, with the model it was taken from.

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
        return cls._unpacked(model, tensors, header, forecaster, workspace)

    @classmethod
    def _unpacked(
        cls,
        model: Any,
        tensors: Mapping[str, npt.NDArray[Any]],
        header: Mapping[str, Any],
        forecaster: Forecaster | None,
        workspace: Workspace | None,
    ) -> "Stream":
        """Go on from what the bytes of a snapshot hold."""
        what, fitted = "the snapshot", getattr(model, "fitted_", model)
        check_owner(header, fitted)
        header = {"monitor": None, "time": None, "last_time": None, **header}
        tensors = as_of_today(tensors, fitted)
        check_header(tensors, header, fitted, what)
        stream = cls(model, header["n_series"], forecaster, workspace=workspace)
        try:
            if header["monitor"] is not None:
                stream.watch(**header["monitor"])
            check_states(tensors, stream._states(), fitted, what)
            stream._take_over(tensors, header)
        except (ConfigError, DataError) as error:
            raise ModelFileError(f"{what} is damaged or was not written by this library: {error}") from None
        return stream

    def _take_over(self, tensors: Mapping[str, npt.NDArray[Any]], header: Mapping[str, Any]) -> None:
        """Go on from what a snapshot holds, which was looked at."""
        self.steps = header["steps"]
        last, pending = (header[name] for name in ("last_time", "time"))
        self.last_time = None if last is None else read_back(last)
        self._step.restore(tensors)
        if self.monitor is not None:
            self.monitor.restore(tensors["monitor"])
        recent = {name[7:]: array for name, array in tensors.items() if name.startswith("recent.")}
        if self._recent is not None and recent:
            self._recent.restore(recent)
        if "pending" in tensors:
            self._advance(tensors["pending"], None if pending is None else read_back(pending))

    def _kept(self) -> Kept:
        """Where it is now: a snapshot for this process alone, in a fiftieth of the time."""
        recent = None
        if self._recent is not None:
            recent = {name: array.copy() for name, array in self._recent.state().items()}
        return Kept(
            self.steps,
            self._given if self._open else None,
            self._time,
            self.last_time,
            self.events,
            self._step.kept(),
            copy(self.monitor),  # its state is replaced from row to row, never written into
            recent,
        )

    def _go_back(self, kept: Kept) -> None:
        """Be again where it was; that may be gone back to any number of times."""
        self.steps, given, self._time, self.last_time, self.events, step, monitor, recent = kept
        self._step.go_back(step, given, self._time)
        self.monitor = copy(monitor)
        if self._recent is not None and recent is not None:
            self._recent.restore(recent)
        self._open = given is not None
        if given is not None:
            self._given = given

    def __repr__(self) -> str:
        return one_line(self, is_open=self._open)

    def _repr_html_(self) -> str:
        return html_of(self, is_open=self._open)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by snapshot: the buffers are views of each other, which copies would not be."""
        return Stream.restore, (self.model, self.snapshot(), self.forecaster)

    def _noticed(self, monitor: Monitor, innovation: Any) -> list[Event]:
        """Tell the monitor how wrong the open step was, and whether its interval held."""
        if monitor.coverage is None:
            return monitor.observe(innovation)
        return monitor.observe(innovation, self._step.covered(monitor.coverage, innovation))

    def _look_back(self, rows: Sequence[LastRows]) -> None:
        """Go through rows that the model was trained on: they are looked back on, and teach nothing."""
        for place in range(len(rows[0].target) if rows else 0):
            x = np.stack([one.inputs[place] for one in rows])
            labels = np.array([one.target[place] for one in rows])
            time = None if rows[0].time is None else timestamp(rows[0].time[place])
            alone = self.n_series is None
            self._advance(x[0] if alone else x, time)
            self._pass_over(labels[0] if alone else labels)

    def _pass_over(self, labels: Any) -> None:
        """Close a row that is looked back on with its labels, as `_close` does, but learn nothing."""
        self._step.observe(labels, learn=False)
        if self._recent is not None:
            self._recent.add(self._step.x, labels, self._time)
        self._open, self.last_time = False, self._time
