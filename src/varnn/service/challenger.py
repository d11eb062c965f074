"""A model that goes along with the champion of a stream: the same messages, its own predictions and scores.

It joins each series with the next row that is opened, and has no say in answers. A message that it cannot use
makes it leave the series, to join again with a later row; which is the same when it is done again from disk.
"""

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from varnn.errors import ModelFileError
from varnn.model.fitted import Fitted
from varnn.service.said import Said
from varnn.service.score import Score
from varnn.streaming.by_name import Streams
from varnn.streaming.json_text import read
from varnn.streaming.kept import Entry, Known, State
from varnn.streaming.late import LateLabels
from varnn.streaming.row_store import ANY_WINDOW
from varnn.streaming.rows import Taken, respond_in_rows

# Of a challenger that left a series, joined is 0: messages are counted from 1.
TABLES = """
    CREATE TABLE IF NOT EXISTS challengers (model TEXT, series INTEGER, joined INTEGER NOT NULL,
        first INTEGER NOT NULL, entry INTEGER, state BLOB, score BLOB, PRIMARY KEY (model, series));
    CREATE TABLE IF NOT EXISTS challenges (model TEXT, series INTEGER, row INTEGER, prediction REAL,
        lower REAL, upper REAL, PRIMARY KEY (model, series, row)) WITHOUT ROWID;
"""


_log = logging.getLogger("varnn.service")


class Challenger:
    """One model beside the champion.

    Parameters
    ----------
    name : str
        Name of the model.
    fitted : Fitted
        The model.
    inputs : list of str
        Inputs of the champion, in the order in which lists of them come.
    late : int
        Rows a label may come late.
    level : float or None
        Level of the intervals it is scored by.
    """

    def __init__(
        self, name: str, fitted: Fitted, inputs: Sequence[str], *, late: int, level: float | None
    ) -> None:
        self.name, self.fitted = name, fitted
        self._inputs, self._late, self._window = list(inputs), late, late
        self._level = None if fitted.calibrator is None else level
        self._known = set(needed_inputs(fitted))
        self._streams = Streams(fitted)
        self._lives: dict[int, LateLabels] = {}
        self.scores: dict[int, Score] = {}  # of all series, also of those on disk
        self.left_series = 0  # times a message could not be used
        self._said = Said(
            f"SELECT prediction, lower, upper FROM challenges WHERE model = {quoted(name)} "
            "AND series = ? AND row = ?",
            late,
        )
        # Of the group under way:
        self._predicted: list[tuple[Any, ...]] = []
        self._joined: dict[int, tuple[int, int]] = {}  # message and row with which it joined a series
        self._scored: set[int] = set()
        self._dropped: set[int] = set()

    def open(self, database: sqlite3.Connection) -> None:
        """Read the scores of all series."""
        self._said.database = database
        query = "SELECT series, score FROM challengers WHERE model = ? AND score IS NOT NULL"
        self.scores = {
            series: Score.unpacked(score) for series, score in database.execute(query, (self.name,))
        }

    def took(self, known: Known, message: Mapping[str, Any], taken: Taken) -> None:
        """Go along with a message of a series."""
        done = self._go_along(known.id, known.seq, message, taken.opened)
        if done is None:
            return
        if done.opened is not None:
            bounds = (done.prediction, done.lower, done.upper)
            self._predicted.append((self.name, known.id, done.opened, *bounds))
        if done.labelled is not None and done.y is not None:
            said = self._said.of(known.id, done.labelled)
            if said is not None:
                self.scores.setdefault(known.id, Score()).add(done.labelled, done.y, *said)
                self._scored.add(known.id)

    def _go_along(
        self, series: int, seq: int, message: Mapping[str, Any], opened: int | None
    ) -> Taken | None:
        live = self._lives.get(series)
        if live is None:
            if "x" not in message or opened is None:
                return None
            stream = self._streams.begin()
            stream.steps = opened  # rows are numbered as the champion's are
            live = self._lives[series] = LateLabels(stream, self._window)
            self._joined[series] = seq, opened
            self._dropped.discard(series)
        message = dict(message)
        if "x" in message:
            message["x"] = self._own(message["x"])
            message.pop("interval", None)
            if live.open_row is None:
                message.pop("last_y", None)
        try:
            _, taken = respond_in_rows(live, message, self._level)
        except (ValueError, OverflowError):
            if "x" in message:
                self.left_series += 1
                self.leave(series)
            return None  # a label of a row it was not there for is no matter
        if taken.opened is not None and taken.prediction is not None:
            self._said.keep(series, taken.opened, (taken.prediction, taken.lower, taken.upper))
        return taken

    def _own(self, x: Any) -> Any:
        """The inputs this model knows, by name."""
        by_name = x if isinstance(x, dict) else dict(zip(self._inputs, x, strict=False))
        return {name: value for name, value in by_name.items() if name in self._known}

    def leave(self, series: int) -> None:
        """Go along with a series no longer, until its next row is opened; what was scored stays."""
        self.left(series)
        self._joined.pop(series, None)
        self._dropped.add(series)

    def replaced(self, series: int) -> None:
        """A series goes on from another state, with rows that it was not there for."""
        self.leave(series)
        if series in self.scores:
            self.scores[series].cut_off()
            self._scored.add(series)

    def write(self, database: sqlite3.Connection, states: Sequence[State]) -> None:
        """Write what is new, and its states of the series whose states the champion writes."""
        name = self.name
        places = {**dict.fromkeys(self._dropped, (0, 0)), **self._joined}
        database.executemany(
            "INSERT INTO challengers (model, series, joined, first) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET joined = excluded.joined, first = excluded.first, "
            "entry = NULL, state = NULL",
            ((name, series, *place) for series, place in places.items()),
        )
        database.executemany("INSERT OR REPLACE INTO challenges VALUES (?, ?, ?, ?, ?, ?)", self._predicted)
        database.executemany(
            "UPDATE challengers SET score = ? WHERE model = ? AND series = ?",
            ((self.scores[one].packed(), name, one) for one in self._scored),
        )
        database.executemany(
            "UPDATE challengers SET entry = ?, state = ? WHERE model = ? AND series = ?",
            (
                (one.entry, self._lives[one.scope].snapshot(), name, one.scope)
                for one in states
                if one.scope in self._lives
            ),
        )

    def wrote(self) -> None:
        """The group is on disk."""
        self._predicted, self._joined, self._scored, self._dropped = [], {}, set(), set()

    def gave_up(self, database: sqlite3.Connection) -> None:
        """The group is given up; its series left memory before."""
        self.wrote()
        self.open(database)

    def came_back(
        self,
        database: sqlite3.Connection,
        series: int,
        state: State | None,
        entries: Sequence[Entry],
    ) -> None:
        """Bring back a series: its state, or how it joined, and the messages since."""
        query = "SELECT joined, first, entry, state FROM challengers WHERE model = ? AND series = ?"
        found = database.execute(query, (self.name, series)).fetchone()
        if found is None:
            return
        joined, first, entry, blob = found
        if not joined:
            return
        if (blob is None and state is not None and state.entry >= joined) or (
            blob is not None and (state is None or entry != state.entry)
        ):
            self.leave(series)  # messages went by without it, of a file that another command went on with
            return
        self._window = ANY_WINDOW
        try:
            if blob is not None:
                self._lives[series] = LateLabels.restore(
                    self.fitted, blob, self._window, guard=self._streams.guard
                )
            for one in entries:
                if one.entry >= joined:
                    self._go_along(series, one.entry, read(one.message), first)
        except ModelFileError as error:  # of its own state, which is no matter of the champion's
            _log.error("challenger %s leaves series %d: %s", self.name, series, error)
            self.left_series += 1
            self.leave(series)
        finally:
            self._window = self._late
        if series in self._lives:
            self._lives[series].narrow(self._late)
        self._joined.pop(series, None)  # that is on disk already

    def left(self, series: int) -> None:
        """A series left memory."""
        self._lives.pop(series, None)
        self._said.left(series)


def needed_inputs(fitted: Fitted) -> list[str]:
    """Inputs that messages must bring for a model: texts by their columns, not by their categories."""
    made = {f"{column}={one}" for column, known in fitted.categories.items() for one in known}
    return [name for name in fitted.input_names if name not in made] + list(fitted.categories)


def quoted(text: str) -> str:
    """A text as SQL has it.

    Examples
    --------
    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
