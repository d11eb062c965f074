"""Series by name that answer messages, each on its own or linked; on disk, if a file is given.

With a file, nothing that was answered is lost: messages and answers are kept before an answer is sent, in
groups. ::

    for message in those that are there:  store.answer(message)
    store.commit()                        one transaction (`varnn.streaming._journal`)
    send the answers

A stream killed at any point goes on from the file with the very numbers it would have given. A message that
is sent again is known by its ``seq``, which every answer carries and which counts the messages of a series
that were taken, or by a ``key`` of the sender's own; it is answered as it was, and changes nothing.

Why messages, and not states, are written each time: a state of the default is a hundred times as large. It
follows from an earlier one and the messages since, to the last bit by the same arithmetic (compiled, or not),
so that one in ``EVERY`` messages is enough. Where a group holds more than a state takes, that is written.

Series that were not used for longest leave memory once there are more than ``in_memory``; they come back from
the file when they are asked for. Linked series (``peers=True``) have one state, of all together, and stay.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Self

from varnn.data.files import check_writable
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.streaming._answered import Answered, OutOfTurn, Reply, check_next
from varnn.streaming._journal import Journal
from varnn.streaming.by_name import Streams
from varnn.streaming.json_text import read, write
from varnn.streaming.kept import Answer, Entry, Group, Known, State
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.messages import check, check_name, kept_text, name_of, of_use, respond
from varnn.streaming.stream import Guard, Stream
from varnn.streaming.turns import turn

EVERY = 500  # messages of a series between two states of it
_REPLAYED = 32  # messages that are sooner done again than a state is written and read
_MOST_ON_DISK, _MOST_IN_MEMORY = 100_000, 10_000  # series
LONGEST_ERROR = 500  # characters
_LEAST_NOTED = 20_000  # characters of messages that take as long to write as a small state
DUE = 1 << 60  # messages: a state is kept with the next commit
_ALL = 0  # scope of series that are linked


class Store:
    """Streams of one model by name, answering messages.

    It belongs to one thread at a time, as its streams do.

    Parameters
    ----------
    model : object
        A fitted ``VARNNRegressor``, or its ``fitted_``.
    path : str or Path or None, default=None
        File to keep everything in and to go on from; None for memory alone.
    in_memory : int, default=1000
        Series held in memory, where there is a file.
    most_series : int or None, default=None
        Series taken; messages of more are refused. None is 100,000, or 10,000 where all are in memory.
    answers : int, default=1000
        Answers kept for each series, at least, for messages that are sent again.
    most_together : int, default=10000
        Messages in a list.
    watch : mapping or None, default=None
        Settings of ``Stream.watch``, for answers to have ``events``; None not to watch.
    synchronous : bool, default=True
        Whether answers outlive a loss of power, too.
    resume : bool, default=False
        Whether a series that begins starts from the last training rows of the same name, if there are any;
        one without a name from those of a model that keeps one series. Those in the file go on from there.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> path = Path(tempfile.mkdtemp()) / "live.state"
    >>> store = Store(model, path)
    >>> first = store.answer({"series": "north", "x": [0.1, 0.2], "y": 0.3, "seq": 1})
    >>> store.commit()                                   # now it may be sent
    >>> store.close()
    >>> with Store(model, path) as again:
    ...     again.answer({"series": "north", "x": [0.1, 0.2], "y": 0.3, "seq": 1}) == first
    True
    """

    _in_rows = False  # whether rows are numbered (`varnn.streaming.row_store`)

    def __init__(
        self,
        model: Any,
        path: str | Path | None = None,
        *,
        in_memory: int = 1000,
        most_series: int | None = None,
        answers: int = 1000,
        most_together: int = 10_000,
        watch: Mapping[str, Any] | None = None,
        synchronous: bool = True,
        resume: bool = False,
    ) -> None:
        if most_series is None:
            most_series = _MOST_IN_MEMORY if path is None else _MOST_ON_DISK
        if min(in_memory, most_series, answers, most_together) < 1:
            raise ConfigError("in_memory, most_series, answers and most_together must be at least 1.")
        fitted = getattr(model, "fitted_", model)
        self._linked = bool(fitted.pipeline.peers)
        self.streams: Streams = LinkedStreams(fitted) if self._linked else Streams(fitted)
        self._in_memory, self._most_series, self._kept = in_memory, most_series, answers
        self._most_together = most_together
        self._watch = None if watch is None else dict(watch)
        self._resume = resume
        self._series: dict[str, Known] = {}  # those in memory; the one used last comes last
        self._since: dict[int, int] = {}  # messages since the state of a scope was kept
        self._noted: dict[int, int] = {}  # characters of a scope's messages in the group
        self._state_size = 0  # bytes of the last one
        self._pruned: dict[int, int] = {}  # number up to which a series' answers were dropped
        self._entry = 0  # of linked series: their last line
        self._group = _nothing()
        self._journal: Journal | None = None
        self._answered = Answered(None)
        self._guard = Guard()
        self._acquire, self._release = self._guard.acquire, self._guard.release
        self.n_series = self._last_id = 0
        if path is not None:
            self._open(Path(path), fitted.fingerprint, synchronous=synchronous)
        if resume and isinstance(self.streams, LinkedStreams) and not self.streams:
            self.streams.resume({json.dumps(name): name for name in fitted.last_rows})
            for live in self.streams.values():
                self._watched(live)
            self._since[_ALL] = DUE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, message: Any, text: str | bytes | None = None) -> dict[str, Any]:
        """Answer one message; with an ``error`` it has changed nothing. Send it after :meth:`commit`.

        Parameters
        ----------
        message : object
            An object as `varnn.streaming.messages` has it, with ``seq`` or ``key`` where it may be sent
            again.
        text : str or bytes or None, default=None
            The same as JSON, if at hand.
        """
        return self.reply(message, text).answer

    def reply(self, message: Any, text: str | bytes | None = None) -> Reply:
        """As :meth:`answer`, with the answer's JSON as it is kept: to be sent as it is, now and again."""
        if not isinstance(message, dict):
            return Reply({"error": "a message must be an object with 'x', 'y' or both."})
        if not self._acquire(False):  # not `with`: that takes four times as long
            raise self._guard.error()
        try:
            taken: list[dict[str, Any]] = []
            reply = self._answer(message, taken, text)
            if taken and self._linked and self._journal is not None:
                self._note_line(f"[[{kept_text(message, text)}], null]", 1)
            return reply
        finally:
            self._release()

    def answer_all(self, messages: Sequence[Any]) -> dict[str, Any] | list[dict[str, Any]]:
        """Answer the messages of one list: of linked series, the rows of one time step and no others."""
        if not messages or not all(isinstance(one, dict) for one in messages):
            return {"error": "a list must hold objects with 'x', 'y' or both."}
        if len(messages) > self._most_together:
            return {"error": f"a list may hold {self._most_together} messages; got {len(messages)}."}
        with self._guard:
            if not self._linked:
                return [self._answer(one, [], None).answer for one in messages]
            return self._answer_time_step(messages)

    def _answer_time_step(self, messages: Sequence[dict[str, Any]]) -> dict[str, Any] | list[dict[str, Any]]:
        asking = [one for one in messages if "x" in one and not self._is_known(one)]
        times = {json.dumps(one.get("time")) for one in asking}
        if len(times) > 1:
            return {"error": f"a list holds the rows of one time; this one has {len(times)}."}
        taken: list[dict[str, Any]] = []
        with self._together(asking):
            answers = [self._answer(one, taken, None).answer for one in messages]
        if taken and self._journal is not None:
            # Who asked matters, also of those that could not be answered.
            asked = [name_of(one) for one in asking]
            self._note_line(write([[of_use(one) for one in taken], asked]).decode(), len(taken))
        return answers

    def commit(self) -> None:
        """Keep what was answered since the last commit: all of it or, with an error, nothing."""
        with self._guard:
            self._commit()

    def _commit(self) -> None:
        journal, group = self._journal, self._group
        if journal is None:
            return
        # Also without news: what was refused, or answered again, may have brought series into memory.
        too_many = 0 if self._linked else max(0, len(self._series) - self._in_memory)
        if not too_many and not group.series:
            return
        surplus = list(islice(self._series, too_many))
        states, answered = self._due_states(surplus, group), self._due_answers(group) | group.answered
        covered = {one.scope for one in states}
        entries = [one for one in group.entries if one.scope not in covered]
        self._write(journal, group._replace(entries=entries, states=states, answered=answered))
        for state in states:  # only now: what could not be written is written with the next commit
            self._since[state.scope], self._state_size = 0, len(state.state)
        self._pruned |= answered
        for name in surplus:
            self._leave(name)
        self._begin_group()

    def _begin_group(self) -> None:
        self._group, self._noted = _nothing(), {}
        self._answered.forget_group()

    def _leave(self, name: str) -> None:
        """Let a series leave memory."""
        known = self._series.pop(name)
        del self.streams[name]
        self._since.pop(known.id, None)
        self._pruned.pop(known.id, None)

    def _write(self, journal: Journal, group: Group) -> None:
        journal.write(group)

    def close(self) -> None:
        """Commit, and keep the states of all series, so that the next start is quick."""
        if self._journal is None:
            return
        try:
            self.commit()
            due = [
                State(scope, entry, self._state_of(scope, name))
                for scope, entry, name in self._scopes()
                if self._since.get(scope, 0) > _REPLAYED
            ]
            if due:
                self._write(self._journal, _nothing()._replace(states=due))
        finally:
            self._journal.close()
            self._journal = None

    # -- one message ---------------------------------------------------------------------------------

    def _answer(
        self, message: dict[str, Any], taken: list[dict[str, Any]], text: str | bytes | None
    ) -> Reply:
        """Answer a message; put it with those taken if it is new and was of use."""
        answer: dict[str, Any] = {}
        try:
            check_name(message)
            if message.get("series") is not None:
                answer["series"] = message["series"]
            check(message, self.streams.model.categories, in_rows=self._in_rows)
            name = name_of(message)
            known = self._look_up(name)
            key, seq = None, 1 if known is None else known.seq + 1
            if "seq" in message or "key" in message:
                key = self._answered.checked_key(message)
                if known is not None and (again := self._answered.again(known, message, key)) is not None:
                    return again
                check_next(seq, message)
            if known is None:
                self._check_room(message.get("series"))
            live = self.streams.get(name) or self._begun(name, self._kept_under(name))
            message, text = self._resolved(message, text, known)
            found = self._respond(live, message)
        except ModelFileError:  # of what is on disk, not of the message
            raise
        except (ValueError, OverflowError) as error:  # our own errors about data, and numbers without end
            answer["error"] = str(error)[:LONGEST_ERROR]
            if self._in_rows and isinstance(error, OutOfTurn):
                answer["next"] = error.due
            return Reply(answer)
        if known is None:
            known = self._numbered(name)
            if self._kept_under(name):
                self._since[known.id] = DUE  # its messages alone do not tell what it started from
            self.streams[name] = live
        taken.append(message)
        known = Known(known.id, seq)
        self._series.pop(name, None)
        self._series[name] = known  # as the one used last
        if self._journal is None:
            answer |= found
            return Reply(answer)
        answer["seq"] = seq
        answer |= found
        if not self._linked:
            self._note(known.id, seq, kept_text(message, text, in_rows=self._in_rows), 1)
        kept = write(answer).decode()
        self._keep(name, known, key, kept)
        self._took(name, known, message)
        return Reply(answer, kept)

    def _check_room(self, series: Any) -> None:
        """Refuse a new series where there are as many as may be."""
        if self.n_series >= self._most_series:
            raise DataError(
                f"{self._most_series} series are here, and that is the limit; "
                f"{shown(series)} is not one of them. Raise the limit, or check the names."
            )

    def _numbered(self, name: str) -> Known:
        """Give a number to a series that begins."""
        self.n_series += 1
        self._last_id += 1
        return Known(self._last_id, 0)

    def _kept_under(self, name: str) -> str | None:
        """Training series that one of this name starts from, on its own; None for none."""
        if not self._resume or self._linked:
            return None
        kept, series = self.streams.model.last_rows, json.loads(name)
        if series is None and len(kept) == 1:
            return next(iter(kept))
        return str(series) if series is not None and str(series) in kept else None

    def _begun(self, name: str, resume: str | None = None) -> Any:
        """A stream for a series that begins, from the last training rows of one if asked for."""
        live = self.streams.begin(resume=resume or False)
        if self._watch is not None:
            live.watch(**self._watch)
        return live

    def _restored(self, state: bytes) -> Any:
        """A stream as its state was kept."""
        live = self.streams.bring_back(state)
        self._watched(live)
        return live

    def _respond(self, live: Any, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for, all of it or nothing."""
        return respond(live, message)

    def _resolved(
        self, message: dict[str, Any], text: str | bytes | None, known: Known | None
    ) -> tuple[dict[str, Any], str | bytes | None]:
        """A message that refers to nothing but what it says itself, to be kept; and its text, if at hand."""
        return message, text

    def _took(self, name: str, known: Known, message: dict[str, Any]) -> None:
        """A message was taken, and is kept."""

    def _find(self, name: str) -> Known | None:
        """Find a series, in memory or on disk."""
        return self._series.get(name) or (self._journal and self._journal.find(name)) or None

    def _look_up(self, name: str) -> Known | None:
        """Find a series, and bring it back into memory if it was here before."""
        known = self._series.get(name)
        if known is None and self._journal is not None and not self._linked:
            known = self._journal.find(name)
            if known is not None:
                self._bring_back(known.id, name)
                self._series[name] = known
        return known

    def _is_known(self, message: dict[str, Any]) -> bool:
        """Tell whether a message was answered before, of linked series."""
        try:
            check(message, self.streams.model.categories)
            known, key = self._series.get(name_of(message)), self._answered.checked_key(message)
            return known is not None and self._answered.again(known, message, key) is not None
        except (ValueError, OverflowError):
            return False

    # -- what is kept --------------------------------------------------------------------------------

    def _note_line(self, text: str, rows: int) -> None:
        self._entry += 1
        self._note(_ALL, self._entry, text, rows)

    def _note(self, scope: int, entry: int, text: str, rows: int) -> None:
        self._group.entries.append(Entry(scope, entry, text))
        self._since[scope] = self._since.get(scope, 0) + rows
        self._noted[scope] = self._noted.get(scope, 0) + len(text)

    def _keep(self, name: str, known: Known, key: str | None, text: str) -> None:
        group = self._group
        group.series[name] = known
        group.answers.append(Answer(known.id, known.seq, key, text))
        self._answered.keep(known, key, text)

    def _due_states(self, leaving: Sequence[str], group: Group) -> list[State]:
        """Take the states that are due, and those of series that leave memory."""
        states, due, most = [], set(), max(self._state_size, _LEAST_NOTED)
        every = EVERY * len(self.streams) if self._linked else EVERY
        for scope, entry, name in self._scopes(group):
            if self._since.get(scope, 0) >= turn(scope, every) or self._noted.get(scope, 0) > most:
                states.append(State(scope, entry, self._state_of(scope, name)))
                due.add(scope)
        for name in leaving:
            known = self._series[name]
            if known.id not in due and self._since.get(known.id, 0) > _REPLAYED:
                states.append(State(known.id, known.seq, self.streams[name].snapshot()))
        return states

    def _due_answers(self, group: Group) -> dict[int, int]:
        """List up to which number the answers of each series may be dropped."""
        last = {known.id: known.seq - self._kept for known in group.series.values()}
        enough = min(self._kept, EVERY)
        return {one: seq for one, seq in last.items() if seq - self._pruned.get(one, 0) >= turn(one, enough)}

    def _scopes(self, group: Group | None = None) -> Iterator[tuple[int, int, str]]:
        """Go through what has a state of its own, in a group or all: its scope, last entry and name."""
        if self._linked:
            yield _ALL, self._entry, ""
            return
        for name, known in (self._series if group is None else group.series).items():
            yield known.id, known.seq, name

    def _state_of(self, scope: int, name: str) -> bytes:
        return self.streams.snapshot() if scope == _ALL else self.streams[name].snapshot()

    # -- going on ------------------------------------------------------------------------------------

    def _open(self, path: Path, model: str, *, synchronous: bool) -> None:
        check_writable(path)
        self._journal = Journal(path, model, synchronous=synchronous, in_rows=self._in_rows)
        try:
            self._answered = Answered(self._journal, by_kind=self._in_rows)
            self.n_series, self._last_id = self._journal.size, self._journal.last_id
            if self._linked:
                self._series = dict(self._journal.names())
                self._bring_back(_ALL, "")
        except BaseException:
            self._journal.close()
            raise

    def _bring_back(self, scope: int, name: str) -> tuple[State | None, list[Entry]]:
        """Bring a scope back into memory: its state, and the messages since, which are given."""
        if self._journal is None:
            return None, []
        state, entries = self._journal.since(scope)
        if scope == _ALL:
            if state is not None:
                self.streams = type(self.streams).restore(self.streams.model, state.state)
                self._entry = state.entry
            for live in self.streams.values():
                self._watched(live)
        else:
            # Of a series that started from training rows there is always a state.
            self.streams[name] = self._begun(name) if state is None else self._restored(state.state)
        self._since[scope] = len(entries)
        for one in entries:
            try:
                self._do_again(scope, read(one.message), name)
            except (ValueError, OverflowError) as error:
                raise ModelFileError(
                    f"message {one.entry} of {name or 'linked series'} was taken once and is refused now: "
                    f"{error} Go on with the version of the library that wrote the file, or begin a new one."
                ) from None
            self._entry = one.entry if scope == _ALL else self._entry
        return state, entries

    def _do_again(self, scope: int, message: Any, name: str) -> None:
        if scope != _ALL:
            self._respond(self.streams[name], message)
            return
        rows, asked = message  # of a line, and the series in its list; None if it was no list
        with self._together([{"series": json.loads(one)} for one in asked or ()]):
            for row in rows:
                live = self.streams.get(name_of(row)) or self._begun(name_of(row))
                self._respond(live, row)
                self.streams[name_of(row)] = live

    def _together(self, asking: Sequence[Mapping[str, Any]]) -> Any:
        if not asking or not isinstance(self.streams, LinkedStreams):
            return nullcontext()
        return self.streams.together([name_of(one) for one in asking])

    def _watched(self, live: Stream) -> None:
        """Let a stream be watched as this store is."""
        if self._watch is None:
            live.monitor, live.events = None, []
        elif live.monitor is None:
            live.watch(**self._watch)


def _nothing() -> Group:
    return Group({}, [], [], [], {})
