"""Reading a stream's history and events while it goes on: over connections that only read."""

import csv
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from varnn._types import IntArray
from varnn.errors import ModelFileError

COLUMNS = ("row", "at", "time", "y", "prediction", "lower", "upper")
_MOST_EVENTS = 1000
_PAGES = 1000  # of a backup that are copied at once


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
    with closing(_opened(path)) as database:
        rows = _asked(path, database, *_query(series, start, end))
        picked = thinned(rows, points)
        columns = {name: [row[place] for row in picked] for place, name in enumerate(COLUMNS)}
        challengers: dict[str, dict[str, list[Any]]] = {}
        if picked:
            query = (
                "SELECT model, row, prediction FROM challenges WHERE model IN (SELECT DISTINCT model FROM "
                "challengers) AND series = ? AND row BETWEEN ? AND ?"
            )
            found: dict[str, dict[int, float]] = {}
            for model, row, value in _asked(path, database, query, (series, picked[0][0], picked[-1][0])):
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
) -> Iterator[str]:
    """All rows of a range as the lines of a CSV file, some at a time.

    Each part is a query of its own: one that goes on while a slow caller reads would keep SQLite from
    emptying its log, which then grows and grows.
    """
    yield ",".join(COLUMNS) + "\r\n"
    query, values = _query(series, start, end)
    query, last = query.replace("ORDER BY", "AND row > ? ORDER BY") + " LIMIT 1000", -1
    while True:
        with closing(_opened(path)) as database:
            rows = _asked(path, database, query, (*values, last))
        if not rows:
            return
        last = rows[-1][0]
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        yield text.getvalue()


def events(path: Path, *, series: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
    """Events of the monitor, the latest ones first."""
    where, values = ("", ()) if series is None else ("WHERE events.series = ?", (series,))
    query = (
        "SELECT events.id, name, row, at, kind, began, size "
        "FROM events JOIN series ON series.id = events.series "
        f"{where} ORDER BY events.id DESC LIMIT ?"
    )
    with closing(_opened(path)) as database:
        rows = _asked(path, database, query, (*values, max(1, min(limit, _MOST_EVENTS))))
    names = ("id", "name", "row", "at", "kind", "began", "size")
    return [dict(zip(names, row, strict=True)) for row in rows]


def sparks(path: Path, series: list[int], points: int) -> dict[int, list[float | None]]:
    """The last labels of some series, the oldest first."""
    query = "SELECT y FROM history WHERE series = ? AND y IS NOT NULL ORDER BY row DESC LIMIT ?"
    with closing(_opened(path)) as database:
        return {one: [y for (y,) in reversed(_asked(path, database, query, (one, points)))] for one in series}


def backup(path: Path, place: Path) -> None:
    """Copy a state file while it is in use: as it is at one moment."""
    with closing(_opened(path)) as database, closing(sqlite3.connect(place)) as copy:
        # One look for all of it: SQLite begins anew whenever another connection has written meanwhile.
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        database.backup(copy, pages=_PAGES)
        database.rollback()
        # A copy is one file: what lies beside a journal belongs to who has it open.
        copy.execute("PRAGMA journal_mode = DELETE")


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


def _query(series: int, start: float | None, end: float | None) -> tuple[str, tuple[Any, ...]]:
    query = f"SELECT {', '.join(COLUMNS)} FROM history WHERE series = ?"
    values: list[Any] = [series]
    for bound, sign in ((start, ">="), (end, "<=")):
        if bound is not None:
            query += f" AND at {sign} ?"
            values.append(bound)
    return f"{query} ORDER BY row", tuple(values)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0, check_same_thread=False
    )


def _asked(path: Path, database: sqlite3.Connection, query: str, values: tuple[Any, ...]) -> list[Any]:
    try:
        return database.execute(query, values).fetchall()
    except sqlite3.DatabaseError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error}. Restore it from a copy.") from None
