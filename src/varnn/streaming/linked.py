"""Series that see each other, streamed one row of one series at a time.

A model with ``peers=True`` predicts a row from what the other series that have a row at the same time step
had shown *before* it: their last labels, how these changed, and what the linear part left unexplained of
them. A fleet, ``model.stream(n_series=n)``, takes a row of every series at once. Here rows come one by one,
so each time step keeps what every series brought into it: a series that has its label of the time step
already is still seen as it was before. ::

    time step t opens        every series expected at t brings (last label, change, innovation)
    a: x   predict        sees the sum of what the others brought
    a: y   observe        changes what a brings into t + 1, and nothing at t
    b: x   predict        sees a as a did itself

Who will have a row at a time step cannot be known at its first row. The series of the time step before are
taken to come again, unless the caller says who comes (:meth:`LinkedStreams.together`): then the numbers are
those of ``model.predict`` whoever is missing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray
from varnn.data.timestamps import timestamp
from varnn.errors import ConfigError, DataError
from varnn.streaming._snapshot_checks import check_linked
from varnn.streaming.by_name import Streams
from varnn.streaming.resume import Resume, time_steps
from varnn.streaming.stream import Stream

_EPOCH, _TICK = np.datetime64(0, "us"), np.timedelta64(1, "us")
# What a series brings into a time step, in a form that can be summed over series:
# last label, its change, whether there is one, innovation of the linear part, whether there is one.
_NOTHING: DoubleArray = np.zeros(5)


class TimeStep(NamedTuple):
    """When a row is: at a time, or in a round of series that come in turn."""

    kind: str  # "time" or "round"
    value: int  # microseconds since 1970, or the number of the round


class Others(NamedTuple):
    """The other series of a time step, taken as one: means over those that have something to show."""

    last: float = 0.0
    change: float = 0.0
    known: bool = False  # whether the two above are there
    innovation: float = math.nan

    @classmethod
    def of(cls, brought: DoubleArray) -> "Others":
        """Turn the sum of what they brought into means."""
        last, change, known, innovation, informed = brought.tolist()
        last, change = (last / known, change / known) if known else (0.0, 0.0)
        return cls(last, change, known > 0, innovation / informed if informed else math.nan)


class LinkedStream(Stream):
    """One series among others; made by :meth:`LinkedStreams.begin`."""

    group: "LinkedStreams"
    time_step: TimeStep | None = None  # of its latest row
    others = Others()  # as the row predicted last saw them
    _sees_peers_itself = True

    @property
    def has_had_its_turn(self) -> bool:
        """Tell whether its row of the present time step is closed."""
        return self.time_step is not None and self.time_step == self.group.now and not self._open

    def brings(self) -> DoubleArray:
        """What it brings into a time step after that of its latest row."""
        last, change, innovation = (
            self._step.field(name).item(0) for name in ("last_label", "last_change", "linear_residual")
        )
        if not self._step.field("has_label").item(0):
            return _NOTHING
        if self.is_open or math.isnan(innovation):  # a label still waited for counts as missing
            return np.array([last, 0.0, 1.0, 0.0, 0.0])
        counts = abs(innovation) <= self._largest_change
        return np.array([last, change, 1.0, innovation * counts, counts])

    @property
    def _largest_change(self) -> float:
        linear = self.model.pipeline.linear
        if linear is None:
            raise ConfigError("peers=True needs linear=True. Fit the model again.")
        return linear.largest_change

    def _states(self) -> dict[str, npt.NDArray[Any]]:
        return {**super()._states(), "others": np.array(self.others, np.float64)}

    def _continue_from(
        self, tensors: Mapping[str, npt.NDArray[Any]], header: Mapping[str, Any], what: str
    ) -> None:
        last, change, known, innovation = tensors["others"].tolist()
        self.others = Others(last, change, known > 0, innovation)  # before the open row is predicted again
        super()._continue_from(tensors, header, what)

    def _peer_inputs(self) -> DoubleArray:
        """Compute what it sees of the others, taken as one: (1, 3)."""
        own, others = self._step.field("last_label").item(0), self.others
        known = others.known and self._step.field("has_label").item(0) > 0
        gap = others.last - own if known else 0.0
        innovation = others.innovation if abs(others.innovation) <= self._largest_change else 0.0
        return np.array([[gap, others.change if others.known else 0.0, innovation]])

    def predict(
        self,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Predict as a stream does, seeing the others; time must not go back."""
        with self.guard:
            place = self.group.place(self, time)
            seen, self.others = self.others, place.others
            try:
                answer = super().predict(x, time=time, interval=interval)
            except Exception:  # what cannot be used changes nothing
                self.others = seen
                self._reopen()
                raise
            self.time_step = place.time_step
            self.group.take(self, place)
            return answer

    def peek(
        self,
        x: npt.ArrayLike | Mapping[str, float | str | None],
        *,
        time: Any = None,
        interval: float | Sequence[float] | None = None,
    ) -> Any:
        """Predict as :meth:`predict` would, seeing the others; its place at the time step is not taken."""
        with self.guard:
            place = self.group.place(self, time)
            seen, self.others = self.others, place.others
            try:
                return super().peek(x, time=time, interval=interval)
            finally:
                self.others = seen
                self._reopen()

    def observe(self, y: Any) -> Any:
        """Take in the label of the last x predicted; the others see it from the next time step on."""
        with self.guard:
            innovation = super().observe(y)
            self.group.label_came(self)
            return innovation

    def look_on(self, x: FloatArray, time: Any) -> None:
        """Open a row that is looked back on, seeing the others."""
        place = self.group.place(self, time)
        self.others = place.others
        self._advance(x, None if time is None else timestamp(time))
        self.time_step = place.time_step
        self.group.take(self, place)

    def pass_over(self, label: float) -> None:
        """Close it; nothing is learnt."""
        self._pass_over(label)
        self.group.label_came(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse to be copied without those it sees."""
        raise TypeError("a series among others is copied with them: LinkedStreams.snapshot() and restore().")


class Place(NamedTuple):
    """A series' place at a time step, before it is taken."""

    time_step: TimeStep
    brought: dict[LinkedStream, DoubleArray]  # by each series of the time step
    total: DoubleArray  # of that
    own: DoubleArray  # what the series itself brings
    others: Others


class LinkedStreams(Streams):
    """Streams of a model with ``peers=True``, by the names of their series.

    Rows come in the order of time, and within a time step in any order. The time step of a row is its
    ``time``; without times it is its round, and a new round begins when a series comes again.

    Examples
    --------
    >>> from varnn import Panel, VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(80, 1))
    >>> panel = Panel.from_arrays(X, X[:, 0].cumsum(), series=["a"] * 40 + ["b"] * 40)
    >>> model = VARNNRegressor(peers=True, epochs=1, hidden_size=4).fit(panel)
    >>> live, predictions = LinkedStreams(model), {"a": [], "b": []}
    >>> live["a"], live["b"] = live.begin(), live.begin()
    >>> for row in range(40):
    ...     for name, first in (("a", 0), ("b", 40)):
    ...         predictions[name].append(live[name].predict(X[first + row]))
    ...         innovation = live[name].observe(panel.target[first + row])
    >>> bool(np.allclose(predictions["a"] + predictions["b"], model.predict(panel), atol=1e-4))
    True
    """

    kind = LinkedStream

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.now: TimeStep | None = None  # of the latest row of any series
        self._brought: dict[LinkedStream, DoubleArray] = {}  # into it, by those that are there or expected
        self._total = _NOTHING
        self._named: list[LinkedStream] | None = None  # within `together`: those that come
        self._turn = 0  # and the round they come in

    def begin(self, *, resume: Resume = False) -> LinkedStream:
        """A stream for a series that was not here before."""
        if resume:
            raise ConfigError("series that see each other start from the training rows together: `resume`.")
        one = LinkedStream(self.model, guard=self.guard)
        one.group = self
        return one

    def resume(self, names: Mapping[str, str]) -> None:
        """Start series, by name, from the last training rows of those that the model keeps, all together.

        Parameters
        ----------
        names : mapping
            What each series is to be called here, and was called in the training rows.

        Examples
        --------
        >>> from varnn import Panel, VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(80, 1))
        >>> panel = Panel.from_arrays(X, X[:, 0].cumsum(), series=["a"] * 40 + ["b"] * 40)
        >>> model = VARNNRegressor(peers=True, epochs=1, hidden_size=4).fit(panel)
        >>> live = LinkedStreams(model)
        >>> live.resume({"a": "a", "b": "b"})
        >>> list(live)
        ['a', 'b']
        """
        streams = {name: self.begin() for name in names}
        self.update(streams)
        for time_step in time_steps(self.model, list(names.values())):
            called = {name: time_step[kept] for name, kept in names.items() if kept in time_step}
            with self.together(called):
                for name, row in called.items():
                    streams[name].look_on(row.x, row.time)
            for name, row in called.items():
                streams[name].pass_over(row.label)

    @contextmanager
    def together(self, names: Iterable[str]) -> Iterator[None]:
        """Within this context rows of one time step are predicted, of these series and no others."""
        named = [one for name in names if isinstance(one := self.get(name), LinkedStream)]
        self._turn = self._round(any(one.has_had_its_turn for one in named))
        self._named = named  # a series that is new has nothing to bring
        try:
            yield
        finally:
            self._named = None

    def place(self, one: LinkedStream, time: Any) -> Place:
        """Find out when a row is and what the others brought there; changes nothing."""
        time_step = self._time_step(one, time)
        brought, total = self._brought, self._total
        if time_step != self.now:
            expected = self._named
            if expected is None:
                expected = [other for other in brought if other.time_step == self.now]
            brought = {other: other.brings() for other in expected}
            total = np.sum([_NOTHING, *brought.values()], axis=0)
        if one in brought:
            return Place(time_step, brought, total, brought[one], Others.of(total - brought[one]))
        return Place(time_step, brought, total, one.brings(), Others.of(total))

    def take(self, one: LinkedStream, place: Place) -> None:
        """Let a series be where it was placed."""
        self.now, self._brought, self._total = place.time_step, place.brought, place.total
        if one not in self._brought:
            self._bring(one, place.own)

    def label_came(self, one: LinkedStream) -> None:
        """Let the present time step see a label of an earlier one, which it was begun without."""
        if one.time_step != self.now and one in self._brought:
            self._bring(one, one.brings())

    def _bring(self, one: LinkedStream, what: DoubleArray) -> None:
        self._total = self._total - self._brought.get(one, _NOTHING) + what
        self._brought[one] = what

    def _time_step(self, one: LinkedStream, time: Any) -> TimeStep:
        """Time step of a row; refuse one that is over."""
        now = self.now
        if time is None:
            turn = self._turn if self._named is not None else self._round(one.has_had_its_turn)
            time_step = TimeStep("round", turn)
        else:
            time_step = TimeStep("time", int((timestamp(time) - _EPOCH) // _TICK))
        if now is None:
            return time_step
        if time_step.kind != now.kind:
            raise DataError(
                "the rows of series that see each other need a time each, all of one kind, or none of them "
                f"has one; this one has {_KINDS[time_step.kind]} and the one before {_KINDS[now.kind]}."
            )
        if time_step.value < now.value:
            raise DataError(
                f"series that see each other come in the order of time; {time!r} is before the time of the "
                "row before. Sort the rows."
            )
        if one.has_had_its_turn and time_step == now:
            raise DataError(f"a series has one row at a time; this one has had its label of {time!r}.")
        return time_step

    def _round(self, again: bool) -> int:
        """Number of the present round, or of the next one if a series comes again."""
        if self.now is None or self.now.kind != "round":
            return 0
        return int(self.now.value) + again

    def _facts(self) -> dict[str, Any]:
        names = {one: name for name, one in self.items()}
        return {
            "now": self.now,
            "moments": [one.time_step for one in self.values() if isinstance(one, LinkedStream)],
            "brought": {names[one]: what.tolist() for one, what in self._brought.items() if one in names},
            "total": self._total.tolist(),  # as it was summed up: another order of sums rounds differently
        }

    def _take_over(self, facts: dict[str, Any], what: str) -> None:
        check_linked(facts, what)

        def time_step(pair: Any) -> TimeStep | None:
            return None if pair is None else TimeStep(*pair)

        self.now = time_step(facts["now"])
        for one, pair in zip(self.values(), facts["moments"], strict=True):
            if isinstance(one, LinkedStream):
                one.group, one.time_step = self, time_step(pair)
        for name, what in facts["brought"].items():
            one = self[name]
            if isinstance(one, LinkedStream):
                self._bring(one, np.array(what))
        self._total = np.array(facts["total"])


_KINDS = {"time": "a date", "number": "a number", "round": "no time"}
