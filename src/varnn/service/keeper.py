"""What a service keeps beside the journal of a stream, in the same transactions: history, events and scores.

Four tables: ``history``, a row for each row of a series with what was said and what came; ``events`` of the
monitor; ``summaries``, what a list of series shows; and those of challengers (`varnn.service.challenger`).
All are bounded: of each series the last rows are kept, and of events the last ones.
"""

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from varnn.data.timestamps import seconds_since_1970, timestamp
from varnn.service import challenger
from varnn.service.challenger import Challenger
from varnn.service.requests import LastRequest
from varnn.service.said import Said
from varnn.service.summary import Summary
from varnn.streaming.companion import Companion
from varnn.streaming.kept import Entry, Known, State
from varnn.streaming.rows import Taken
from varnn.streaming.turns import turn

TABLES = """
    CREATE TABLE IF NOT EXISTS history (series INTEGER, row INTEGER, at REAL NOT NULL, time TEXT, y REAL,
        prediction REAL, lower REAL, upper REAL, PRIMARY KEY (series, row)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, series INTEGER, row INTEGER, at REAL,
        kind TEXT, began INTEGER, size REAL);
    CREATE INDEX IF NOT EXISTS events_of ON events (series, id);
    CREATE TABLE IF NOT EXISTS summaries (series INTEGER PRIMARY KEY, numbers BLOB, alarms TEXT);
"""
_PRUNED_EVERY = 256  # rows of a series between two cuts of its history, at most
_MOST_EVENTS = 100_000

Told = Callable[[list[dict[str, Any]], list[dict[str, Any]]], None]


class Keeper(Companion):
    """History, events, summaries and challengers of one stream.

    Parameters
    ----------
    late : int
        Rows a label may come late.
    most_rows : int
        Rows of history kept of each series.
    most_in_all : int
        Rows of history kept of all series together, about.
    tell : callable
        Whom to tell of rows and events, once they are on disk.
    """

    def __init__(self, *, late: int, most_rows: int, most_in_all: int, tell: Told) -> None:
        self.challengers: list[Challenger] = []
        self.requests = LastRequest()
        self.summaries: dict[int, Summary] = {}  # of all series, also of those on disk
        self.ids: dict[str, int] = {}  # numbers of all series by their names as JSON
        self._late, self._most_rows, self._most_in_all, self._tell = late, most_rows, most_in_all, tell
        query = "SELECT prediction, lower, upper, at FROM history WHERE series = ? AND row = ?"
        self._said = Said(query, late)
        self._database: sqlite3.Connection | None = None
        self._clean()

    def _clean(self) -> None:
        """Begin a group."""
        self._opened: list[tuple[Any, ...]] = []
        self._labels: list[tuple[Any, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._touched: set[int] = set()
        self._cuts: dict[int, int] = {}  # series, and the first row to be kept
        self._undone: dict[int, int] = {}  # rows from which on history is not that of the series any more
        self.requests.forget()
        self._rows: list[dict[str, Any]] = []  # to be told
        self._noticed: list[dict[str, Any]] = []

    def open(self, database: sqlite3.Connection) -> None:
        """Make the tables, and read the summaries."""
        with database:
            for statement in (TABLES + challenger.TABLES).split(";"):
                database.execute(statement)
        self._database = self._said.database = database
        self.requests.open(database)
        self._read(database)
        for one in self.challengers:
            one.open(database)

    def _read(self, database: sqlite3.Connection) -> None:
        query = "SELECT id, name, numbers, alarms FROM series LEFT JOIN summaries ON summaries.series = id"
        self.summaries, self.ids = {}, {}
        for series, name, numbers, alarms in database.execute(query):
            known = numbers is not None  # not of what another command has written
            self.summaries[series] = Summary.unpacked(name, numbers, alarms) if known else Summary(name)
            self.ids[name] = series

    def begun(self, name: str, known: Known) -> None:
        """Begin a summary."""
        self.summaries[known.id] = Summary(name)
        self.ids[name] = known.id

    def took(self, name: str, known: Known, message: Mapping[str, Any], taken: Taken) -> None:
        """Note what a message did."""
        series = known.id
        summary = self.summaries[series]
        self._touched.add(series)
        if taken.labelled is not None and taken.labelled != taken.opened:
            self._label(series, summary, taken.labelled, taken)
        if taken.opened is not None:
            self._open(series, summary, message, taken.opened, taken)
        self._notice(series, summary, taken)
        for one in self.challengers:
            one.took(known, message, taken)

    def _open(
        self, series: int, summary: Summary, message: Mapping[str, Any], opened: int, taken: Taken
    ) -> None:
        bounds = (taken.prediction, taken.lower, taken.upper)
        at, text = _when(message.get("time"))
        y = taken.y if taken.labelled == opened else None
        self._opened.append((series, opened, at, text, y, *bounds))
        summary.open(opened, at, *bounds)
        if taken.prediction is not None:
            self._said.keep(series, opened, (taken.prediction, taken.lower, taken.upper, at))
        row = {"series": summary.series, "row": opened, "at": at}
        row |= {"prediction": taken.prediction, "lower": taken.lower, "upper": taken.upper}
        if taken.labelled == opened and y is not None:
            row["y"] = y
            self._count(summary, opened, y, None if taken.prediction is None else bounds)
        self._rows.append(row)
        kept = self._kept
        every = max(1, min(_PRUNED_EVERY, kept // 4))
        if opened > kept and (opened + turn(series, every)) % every == 0:
            self._cuts[series] = opened - kept

    def _label(self, series: int, summary: Summary, row: int, taken: Taken) -> None:
        self._labels.append((taken.y, series, row))
        said = self._said.of(series, row)
        if taken.y is not None:
            self._count(summary, row, taken.y, None if said is None else said[:3])
        told = {"series": summary.series, "row": row, "at": self._at(series, row), "y": taken.y}
        if said is not None:
            told |= dict(zip(("prediction", "lower", "upper"), said, strict=False))
        self._rows.append(told)

    def _at(self, series: int, row: int) -> float | None:
        """Time of a row, in seconds since 1970; None where it is not kept."""
        found = self._said.of(series, row)
        if found is not None:
            return float(found[3])
        if self._database is None:
            return None
        query = "SELECT at FROM history WHERE series = ? AND row = ?"
        (at,) = self._database.execute(query, (series, row)).fetchone() or (None,)
        return at

    @staticmethod
    def _count(summary: Summary, row: int, y: float, said: tuple[Any, ...] | None) -> None:
        summary.label(row, y)
        if said is not None:
            summary.score.add(row, y, *said)

    def _notice(self, series: int, summary: Summary, taken: Taken) -> None:
        for event in taken.events:
            at = self._at(series, event["row"])
            self._events.append((series, event["row"], at, event["kind"], event["began"], event["size"]))
            told = {"series": summary.series, "at": at, **event}
            summary.alarm(told)
            self._noticed.append(told)

    @property
    def _kept(self) -> int:
        """Rows of history that are kept of a series: those whose labels may come still, at least."""
        share = self._most_in_all // max(1, len(self.summaries))
        return max(self._late + 1, min(self._most_rows, share))

    def write(self, database: sqlite3.Connection, states: Sequence[State]) -> None:
        """Write the group."""
        if self._undone:
            self._undo(database)
        database.executemany("INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._opened)
        database.executemany("UPDATE history SET y = ? WHERE series = ? AND row = ?", self._labels)
        for event, told in zip(self._events, self._noticed, strict=True):
            told["id"] = database.execute(
                "INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?)", event
            ).lastrowid
        if self._events:
            query = "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?"
            database.execute(query, (_MOST_EVENTS,))
        database.executemany(
            "INSERT OR REPLACE INTO summaries VALUES (?, ?, ?)",
            ((one, *self.summaries[one].packed()) for one in sorted(self._touched)),
        )
        self.requests.write(database)
        if self._cuts:
            self._cut(database)
        for one in self.challengers:
            one.write(database, states)

    def _undo(self, database: sqlite3.Connection) -> None:
        """Delete rows that never were, of series that were put somewhere else."""
        for table in ("history", "events", "challenges"):
            query = f"DELETE FROM {table} WHERE series = ? AND row >= ?"
            database.executemany(query, self._undone.items())

    def _cut(self, database: sqlite3.Connection) -> None:
        """Delete the oldest rows of series that have many."""
        cuts = self._cuts.items()
        database.executemany("DELETE FROM history WHERE series = ? AND row < ?", cuts)
        query = "DELETE FROM challenges WHERE model = ? AND series = ? AND row < ?"
        for one in self.challengers:
            database.executemany(query, ((one.name, *cut) for cut in cuts))

    def wrote(self) -> None:
        """Tell those who follow."""
        rows, noticed = self._rows, self._noticed
        self._clean()
        for one in self.challengers:
            one.wrote()
        if rows or noticed:
            self._tell(rows, noticed)

    def gave_up(self) -> None:
        """Go back to what is on disk."""
        self._clean()
        if self._database is not None:
            self._read(self._database)
            for one in self.challengers:
                one.gave_up(self._database)

    def came_back(self, name: str, known: Known, state: State | None, entries: Sequence[Entry]) -> None:
        """Bring back the challengers of a series."""
        if self._database is not None:
            for one in self.challengers:
                one.came_back(self._database, known.id, state, entries)

    def left(self, name: str, known: Known) -> None:
        """Let go of what is in memory of a series, but for its summary."""
        self._said.left(known.id)
        for one in self.challengers:
            one.left(known.id)

    def put(self, name: str, known: Known, rows: int) -> None:
        """Go on with a series from where it was put: what came after that never was."""
        series = known.id
        summary = self.summaries[series]
        if self._database is not None:
            query = "SELECT at, prediction, lower, upper FROM history WHERE series = ? AND row = ?"
            last = self._database.execute(query, (series, rows - 1)).fetchone()
            query = (
                "SELECT row, y FROM history WHERE series = ? AND row < ? AND y IS NOT NULL "
                "ORDER BY row DESC LIMIT 1"
            )
            summary.go_back(rows, last, self._database.execute(query, (series, rows)).fetchone())
        self._touched.add(series)
        self._undone[series] = rows
        self._said.left(series)
        for one in self.challengers:
            one.replaced(series)

    def drop(self, database: sqlite3.Connection, known: Known) -> None:
        """Delete all that is kept of a series."""
        for table in ("history", "events", "summaries", "challengers", "challenges"):
            database.execute(f"DELETE FROM {table} WHERE series = ?", (known.id,))
        summary = self.summaries.pop(known.id, None)
        if summary is not None:
            self.ids.pop(summary.name, None)
        for one in self.challengers:
            one.scores.pop(known.id, None)


def _when(given: Any) -> tuple[float, str | None]:
    """Seconds since 1970 of a row, and its time as text: when it came, if it has none."""
    if given is None:
        return time.time(), None
    at = timestamp(given)
    return seconds_since_1970(at), str(at)
