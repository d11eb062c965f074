"""Reading a stream's history and events while it goes on: over connections that only read."""

import csv
import io
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from varnn._types import IntArray
from varnn.errors import ModelFileError, OutputError

COLUMNS = ("row", "at", "time", "y", "prediction", "lower", "upper")
_MOST_EVENTS = 1000
_ROWS_AT_ONCE = 1000  # of a CSV file


def history(
    path: Path, series: int, *, start: float | None = None, end: float | None = None, points: int = 2000
) -> dict[str, Any]:
    """Rows of a series in a range of time, thinned to about so many.

    Parameters
    ----------
    path : Path
        The state file.
    series : int
        Number of the series.
    start, end : float or None, default=None
        Seconds since 1970, both included; None for no bound.
    points : int, default=2000
        Rows given at most; where there are more, those with the lowest and the highest label and prediction
        of each stretch are, so that no peak is lost.
    """
    with _opened(path) as database:
        rows = database.execute(*_query(series, start, end)).fetchall()
        picked = thinned(rows, points)
        columns = {name: [row[place] for row in picked] for place, name in enumerate(COLUMNS)}
        challengers: dict[str, dict[str, list[Any]]] = {}
        if picked:
            query = (
                "SELECT model, row, prediction FROM challenges WHERE model IN (SELECT DISTINCT model FROM "
                "challengers) AND series = ? AND row BETWEEN ? AND ?"
            )
            found: dict[str, dict[int, float]] = {}
            for model, row, value in database.execute(query, (series, picked[0][0], picked[-1][0])):
                found.setdefault(model, {})[row] = value
            for model, values in found.items():
                challengers[model] = {"prediction": [values.get(row) for row in columns["row"]]}
    return {
        "columns": columns,
        "challengers": challengers,
        "rows": len(rows),
        "thinned": len(picked) < len(rows),
    }


def history_csv(
    path: Path, series: int, *, start: float | None = None, end: float | None = None
) -> Generator[str, None, None]:
    """All rows of a range as the lines of a CSV file, some at a time."""
    with _opened(path) as database:
        query, values = _query(series, start, end, "AND row > ?", "LIMIT ?")
        head, last, more = ",".join(COLUMNS) + "\r\n", -1, True
        # Not by one query: while that is read the file beside cannot be taken in, and a reader may be slow.
        while more:
            rows = database.execute(query, (*values, last, _ROWS_AT_ONCE)).fetchall()
            more = len(rows) == _ROWS_AT_ONCE
            text = io.StringIO()
            csv.writer(text).writerows(rows)
            yield head + text.getvalue()
            head, last = "", rows[-1][0] if rows else last


def events(path: Path, *, series: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """Events of the monitor, the latest ones first."""
    where, values = ("", ()) if series is None else ("WHERE events.series = ?", (series,))
    query = (
        "SELECT events.id, name, row, at, kind, began, size "
        "FROM events JOIN series ON series.id = events.series "
        f"{where} ORDER BY events.id DESC LIMIT ?"
    )
    with _opened(path) as database:
        rows = database.execute(query, (*values, max(1, min(limit, _MOST_EVENTS)))).fetchall()
    names = ("id", "name", "row", "at", "kind", "began", "size")
    return [dict(zip(names, row, strict=True)) for row in rows]


def sparks(path: Path, series: list[int], points: int) -> dict[int, list[float | None]]:
    """The last labels of some series, the oldest first."""
    query = "SELECT y FROM history WHERE series = ? AND y IS NOT NULL ORDER BY row DESC LIMIT ?"
    with _opened(path) as database:
        return {
            one: [y for (y,) in reversed(database.execute(query, (one, points)).fetchall())] for one in series
        }


def backup(path: Path, place: Path) -> None:
    """Copy a state file while it is in use: as it is at one moment."""
    with _opened(path) as database:
        try:
            with closing(sqlite3.connect(place)) as copy:
                # In one go: of a copy in several, each that finds something new would begin anew.
                database.backup(copy)
                # A copy is one file: what lies beside a journal belongs to who has it open.
                copy.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            place.unlink(missing_ok=True)
            raise OutputError(
                f"{str(place)!r} cannot be written: {error}. Make room, and try again."
            ) from None


def thinned(rows: list[Any], points: int) -> list[Any]:
    """Leave out rows, but of each stretch those with the lowest and highest label and prediction.

    Examples
    --------
    >>> rows = [(n, n, None, float(n == 50), 0.0, None, None) for n in range(100)]
    >>> [row[0] for row in thinned(rows, 12) if row[3]]
    [50]
    """
    if len(rows) <= points:
        return rows
    stretches = max(1, points // 4 - 1)
    edges = np.linspace(0, len(rows), stretches + 1).astype(np.int64)
    chosen: list[IntArray] = [np.array([0, len(rows) - 1])]
    for column in (3, 4):
        values = np.array([np.nan if row[column] is None else row[column] for row in rows])
        for pick, worst in ((np.argmin, np.inf), (np.argmax, -np.inf)):
            filled = np.where(np.isnan(values), worst, values)
            found = [first + pick(filled[first:last]) for first, last in pairwise(edges)]
            chosen.append(np.array(found))
    return [rows[place] for place in np.unique(np.concatenate(chosen)).tolist()]


def _query(
    series: int, start: float | None, end: float | None, more: str = "", limit: str = ""
) -> tuple[str, tuple[Any, ...]]:
    query = f"SELECT {', '.join(COLUMNS)} FROM history WHERE series = ?"
    values: list[Any] = [series]
    for bound, sign in ((start, ">="), (end, "<=")):
        if bound is not None:
            query += f" AND at {sign} ?"
            values.append(bound)
    return f"{query} {more} ORDER BY row {limit}", tuple(values)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file to read it, and turn what SQLite says into what this library says."""
    place = f"{path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True, timeout=5.0, check_same_thread=False)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        raise ModelFileError(
            f"{path.name!r} cannot be read: {error}. If it is there, restore it from a backup."
        ) from None
