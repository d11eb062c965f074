"""Which models a stream has, as its state file says, and how a challenger becomes the champion."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from varnn.errors import ModelFileError, OutputError
from varnn.service.score import Score
from varnn.service.summary import Summary


class Roles(NamedTuple):
    """Names of a stream's models, and the fingerprint of the champion.

    Parameters
    ----------
    champion : str or None
        Name of the model that answers; None in a file of ``varnn stream``.
    challengers : tuple of str
        Names of those that go along.
    fingerprint : str
        What the champion's states belong to.
    """

    champion: str | None
    challengers: tuple[str, ...]
    fingerprint: str


def read_roles(path: Path) -> Roles:
    """Read what a state file says."""
    with _explained(path, "read"), closing(_opened(path)) as database:
        facts = dict(database.execute("SELECT name, value FROM facts").fetchall())
    if "model" not in facts:
        raise ModelFileError(f"{str(path)!r} is not a state file of this library.")
    challengers = tuple(json.loads(facts.get("challengers", "[]")))
    return Roles(facts.get("champion"), challengers, facts["model"])


def write_roles(path: Path, champion: str, challengers: tuple[str, ...]) -> None:
    """Write down who is who; of challengers that are no more, all is deleted."""
    with _changing(path) as database:
        _put(database, champion, challengers)
        if _has_challengers(database):
            marks = ", ".join("?" * len(challengers))
            for table in ("challengers", "challenges"):
                database.execute(f"DELETE FROM {table} WHERE model NOT IN ({marks})", challengers)


def promote(path: Path, challenger: str, fingerprint: str, begun: Callable[[bytes], bytes]) -> Roles:
    """Let a challenger and the champion change places, each with its states and scores, in one step.

    Parameters
    ----------
    path : Path
        The state file, which must have been closed by its store, with every state in it
        (`RowStore.checkpoint`).
    challenger : str
        Name of the challenger.
    fingerprint : str
        That of the model.
    begun : callable
        Gives a state of the challenger's for a series that it has not joined, from one of the champion's.
    """
    roles = read_roles(path)
    champion = str(roles.champion)
    others = tuple(one for one in roles.challengers if one != challenger)
    with _changing(path) as database:
        if database.execute("SELECT count(*) FROM journal").fetchone() != (0,):
            raise ModelFileError(f"{str(path)!r} holds messages that are in no state yet. Try again.")
        database.execute("CREATE TEMP TABLE was AS SELECT scope, entry, state FROM states")
        scores = dict(
            database.execute("SELECT series, score FROM challengers WHERE model = ?", (challenger,))
        )
        database.execute("DELETE FROM states")
        database.execute(
            "INSERT INTO states SELECT series, entry, state FROM challengers "
            "WHERE model = ? AND state IS NOT NULL",
            (challenger,),
        )
        missing = "SELECT scope FROM was WHERE scope NOT IN (SELECT scope FROM states)"
        for (scope,) in database.execute(missing).fetchall():
            query = "SELECT entry, state FROM was WHERE scope = ?"
            entry, state = database.execute(query, (scope,)).fetchone()
            database.execute("INSERT INTO states VALUES (?, ?, ?)", (scope, entry, begun(state)))
        database.execute("DELETE FROM challengers WHERE model = ?", (challenger,))
        database.execute("DELETE FROM challenges WHERE model = ?", (challenger,))
        database.execute(
            "INSERT OR REPLACE INTO challengers (model, series, joined, first, entry, state) "
            "SELECT ?, scope, 1, 0, entry, state FROM was",
            (champion,),
        )
        database.execute("DROP TABLE was")
        _change_scores(database, champion, scores)
        database.execute("UPDATE facts SET value = ? WHERE name = 'model'", (fingerprint,))
        _put(database, challenger, (*others, champion))
    return Roles(challenger, (*others, champion), fingerprint)


def _change_scores(database: sqlite3.Connection, champion: str, scores: dict[int, bytes | None]) -> None:
    """Let summaries have the scores of who answers from here on, and the former champion keep its own."""
    for series, numbers, alarms in database.execute("SELECT * FROM summaries").fetchall():
        summary, packed = Summary.unpacked("null", numbers, alarms), scores.get(series)
        query = "UPDATE challengers SET score = ? WHERE model = ? AND series = ?"
        database.execute(query, (summary.score.packed(), champion, series))
        summary.score = Score() if packed is None else Score.unpacked(packed)
        query = "UPDATE summaries SET numbers = ?, alarms = ? WHERE series = ?"
        database.execute(query, (*summary.packed(), series))


def _put(database: sqlite3.Connection, champion: str, challengers: tuple[str, ...]) -> None:
    facts = {"champion": champion, "challengers": json.dumps(challengers)}
    database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())


def _has_challengers(database: sqlite3.Connection) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'challengers'"
    return bool(database.execute(query).fetchone()[0])


@contextmanager
def _changing(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction of its own: all of it or, with an error, nothing."""
    with _explained(path, "written"), closing(_opened(path)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        yield database


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=5.0)


@contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """Turn what SQLite says into what this library says."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OutputError(f"{str(path)!r} cannot be {what}: {error}. Nothing in it was changed.") from None
    except sqlite3.DatabaseError as error:
        raise ModelFileError(
            f"{str(path)!r} is truncated or damaged: {error}. Restore it from a copy."
        ) from None
