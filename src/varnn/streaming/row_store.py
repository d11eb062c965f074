"""A store whose rows are numbered: labels may come late, and others keep what they need beside it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.streaming._journal import Journal
from varnn.streaming.companion import ALONE, Companion
from varnn.streaming.kept import Entry, Group, Known, State
from varnn.streaming.late import LateLabels
from varnn.streaming.messages import check, check_name, name_of, respond
from varnn.streaming.rows import Taken, check_rows, peeked, respond_in_rows
from varnn.streaming.store import DUE, LONGEST_ERROR, Store

_MOST_ANSWERS = 2_000_000  # of all series, about
ANY_WINDOW = 1 << 40  # rows: of a label that was taken, it is known that it was not too late
_AT_ONCE = 500  # series whose states are brought up to date in one transaction


class RowStore(Store):
    """Streams of one model by name, kept on disk, whose messages are those of `varnn.streaming.rows`.

    Parameters
    ----------
    model : object
        A fitted ``VARNNRegressor``, or its ``fitted_``; its series must not be linked.
    path : str or Path
        File to keep everything in and to go on from, also one of ``varnn stream --state``.
    late : int, default=24
        Rows that a label may come late, from 1; may be another one when a file is opened again.
    level : float or None, default=None
        Level of intervals to give, and keep, with every prediction.
    companion : Companion, default=ALONE
        Who keeps something beside, in the same transactions.
    admit : callable, optional
        Raises a ``DataError`` for a new message that is not to be taken.
    settings
        Those of :class:`Store`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, X[:, 0])
    >>> with RowStore(model, Path(tempfile.mkdtemp()) / "live.state") as store:
    ...     first = store.answer({"series": "north", "x": [0.1, 0.2], "key": "noon"})
    ...     second = store.answer({"series": "north", "x": [0.3, 0.1]})
    ...     late = store.answer({"series": "north", "y": 0.4, "for": "noon"})
    ...     store.commit()
    >>> first["row"], second["row"], late["row"]
    (0, 1, 0)
    """

    _in_rows = True

    def __init__(
        self,
        model: Any,
        path: str | Path,
        *,
        late: int = 24,
        level: float | None = None,
        companion: Companion = ALONE,
        admit: Callable[[Mapping[str, Any]], None] = lambda message: None,
        **settings: Any,
    ) -> None:
        if getattr(model, "fitted_", model).pipeline.peers:
            raise ConfigError(
                "labels of linked series cannot come late, so that a model with peers=True cannot be served "
                "so. Use varnn stream, or fit without peers."
            )
        if late < 1:
            raise ConfigError(f"labels must be let come late by 1 row at least; got {late}.")
        self._late, self._level, self._companion, self._admit = late, level, companion, admit
        self._window = late  # any, while messages of before are done again: they were taken once
        self._by_lines = False  # whether messages are done again that were lines of `varnn stream`
        self._done = Taken()  # what the message under way did
        super().__init__(model, path, **settings)
        self._asked = self._kept  # answers of each series, while there are not too many in all
        if self._journal is not None:
            try:
                with self._journal.explained():
                    companion.open(self._journal.database)
                if not self._journal.is_in_rows:
                    self._finish_lines(self._journal)
            except BaseException:
                self._journal.close()
                raise

    @property
    def has_news(self) -> bool:
        """Whether there is something to commit."""
        return bool(self._group.series)

    def peek(self, message: Any) -> dict[str, Any]:
        """Predict the row of a message as the next one of its series, and change nothing."""
        answer: dict[str, Any] = {}
        with self._guard:
            try:
                if not isinstance(message, dict) or "x" not in message:
                    raise DataError("a prediction needs an object with 'x'.")
                check_name(message)
                if message.get("series") is not None:
                    answer["series"] = message["series"]
                check({name: message[name] for name in message.keys() - {"y", "last_y"}}, self._texts)
                name = name_of(message)
                known = self._look_up(name)
                live: Any = self.streams[name] if known else self._begun(name, self._kept_under(name))
                return answer | peeked(live, message, self._level)
            except ModelFileError:
                raise
            except (ValueError, OverflowError) as error:
                return answer | {"error": str(error)[:LONGEST_ERROR]}

    def give_up(self) -> None:
        """Take back what was answered since the last commit, which could not be written: it was never said.

        The series it was about come back from the file when they are asked for. With an error, what is in
        memory is not to be gone on with until another call succeeds.
        """
        with self._guard:
            for name in list(self._group.series):
                self._leave(name)
            self._begin_group()
            if self._journal is not None:
                with self._journal.explained():
                    self._companion.gave_up()
                self.n_series, self._last_id = self._journal.size, self._journal.last_id

    def checkpoint(self) -> None:
        """Bring the states of all series on disk up to date, also of those that are not in memory."""
        with self._guard:
            self._commit()
            names = [] if self._journal is None else self._journal.behind()
            for first in range(0, len(names), _AT_ONCE):
                for name in names[first : first + _AT_ONCE]:
                    self._look_up(name)
                    known = self._group.series[name] = self._series[name]
                    self._since[known.id] = DUE
                self._commit()

    def try_to_write(self) -> None:
        """See whether something can be written; an error tells why not."""
        if self._journal is not None:
            self._journal.try_to_write()

    def stream(self, name: str) -> LateLabels | None:
        """The stream of a series, by its name as JSON, from disk if need be; None if there is none."""
        with self._guard:
            return None if self._look_up(name) is None else self.streams.get(name)  # type: ignore[return-value]  # this store's streams are of that class

    def put(self, name: str, state: bytes) -> None:
        """Let a series, by its name as JSON, go on from a snapshot, which is kept with the next commit.

        What was answered before is forgotten: it may be of rows that never were. The series may be one whose
        state on disk is damaged.
        """
        with self._guard:
            self._commit()
            live, known = self._restored(state), self._find(name)
            if known is None:
                self._check_room(json.loads(name))
                known = self._numbered(name)
            known = Known(known.id, known.seq + 1)
            self.streams[name] = live
            self._series[name] = self._group.series[name] = known
            self._since[known.id] = DUE
            self._group.answered[known.id] = known.seq
            self._companion.put(name, known, live.row + (live.open_row is not None))

    def forget(self, name: str) -> bool:
        """Forget a series, by its name as JSON, for good; tell whether there was one."""
        with self._guard:
            self._commit()
            known = self._find(name)
            if known is None or self._journal is None:
                return False
            self._journal.drop(known.id, also=lambda database: self._companion.drop(database, known))
            if name in self._series:
                self._leave(name)
            self.n_series -= 1
            return True

    def _due_answers(self, group: Group) -> dict[int, int]:
        share = _MOST_ANSWERS // max(1, self.n_series)
        self._kept = max(2 * self._late + 2, min(self._asked, share))  # labels name messages by their keys
        return super()._due_answers(group)

    @property
    def _texts(self) -> Any:
        return self.streams.model.categories

    def _begun(self, name: str, resume: str | None = None) -> Any:
        return LateLabels(super()._begun(name, resume), self._window)

    def _restored(self, state: bytes) -> Any:
        streams = self.streams
        waiting = LateLabels.restore(streams.model, state, self._window, guard=streams.guard)
        if self._watch is None:
            waiting.unwatch()
        elif waiting.live.monitor is None:
            waiting.watch(**self._watch)
        return waiting

    def _resolved(
        self, message: dict[str, Any], text: str | bytes | None, known: Known | None
    ) -> tuple[dict[str, Any], str | bytes | None]:
        check_rows(message)
        self._admit(message)
        if "for" not in message:
            return message, text
        row = self._answered.row_of(known, message["for"])
        return {name: value for name, value in message.items() if name != "for"} | {"row": row}, None

    def _finish_lines(self, journal: Journal) -> None:
        """Do the lines since each state again as they were meant: here, some mean something else."""
        self._by_lines = True
        self.checkpoint()
        self._by_lines = False
        journal.be_in_rows()

    def _respond(self, live: Any, message: Mapping[str, Any]) -> dict[str, Any]:
        if self._by_lines:
            return respond(live.live, message)
        answer, self._done = respond_in_rows(live, message, self._level)
        return answer

    def _took(self, name: str, known: Known, message: dict[str, Any]) -> None:
        self._companion.took(name, known, message, self._done)

    def _write(self, journal: Journal, group: Group) -> None:
        journal.write(group, also=lambda database: self._companion.write(database, group.states))
        self._companion.wrote()

    def _leave(self, name: str) -> None:
        self._companion.left(name, self._series[name])
        super()._leave(name)

    def _bring_back(self, scope: int, name: str) -> tuple[State | None, list[Entry]]:
        self._window = ANY_WINDOW
        try:
            found = super()._bring_back(scope, name)
        finally:
            self._window = self._late
        late: Any = self.streams[name]
        if self._by_lines:
            late = self.streams[name] = LateLabels(late.live, self._late)  # type: ignore[assignment]  # as all are
        late.narrow(self._late)
        self._companion.came_back(name, Known(scope, 0), *found)
        return found

    def _numbered(self, name: str) -> Known:
        known = super()._numbered(name)
        self._companion.begun(name, known)
        return known
