"""Which models a stream has, as its state file says, and how a challenger becomes the champion."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from varnn.errors import ModelFileError, OutputError


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
    with closing(_opened(path)) as database:
        facts = _asked(path, database, "SELECT name, value FROM facts")
    if "model" not in facts:
        raise ModelFileError(f"{str(path)!r} is not a state file of this library.")
    challengers = tuple(json.loads(facts.get("challengers", "[]")))
    return Roles(facts.get("champion"), challengers, facts["model"])


def write_roles(path: Path, champion: str, challengers: tuple[str, ...]) -> None:
    """Write down who is who; of challengers that are no more, all is deleted."""
    with closing(_opened(path)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        _put(database, champion, challengers)
        if _has_challengers(database):
            marks = ", ".join("?" * len(challengers))
            for table in ("challengers", "challenges"):
                database.execute(f"DELETE FROM {table} WHERE model NOT IN ({marks})", challengers)


def promote(path: Path, challenger: str, fingerprint: str) -> Roles:
    """Let a challenger and the champion change places, each with its states, in one step.

    The file must have been closed by its store, so that every state is in it. A series that the challenger
    has not joined begins anew with it.
    """
    roles = read_roles(path)
    champion = str(roles.champion)
    others = tuple(one for one in roles.challengers if one != challenger)
    with closing(_opened(path)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("CREATE TEMP TABLE was AS SELECT scope, entry, state FROM states")
        database.execute("DELETE FROM states")
        database.execute(
            "INSERT INTO states SELECT series, entry, state FROM challengers "
            "WHERE model = ? AND state IS NOT NULL",
            (challenger,),
        )
        database.execute("DELETE FROM journal")
        database.execute("DELETE FROM challengers WHERE model = ?", (challenger,))
        database.execute("DELETE FROM challenges WHERE model = ?", (challenger,))
        database.execute(
            "INSERT OR REPLACE INTO challengers (model, series, joined, first, entry, state) "
            "SELECT ?, scope, 1, 0, entry, state FROM was",
            (champion,),
        )
        database.execute("DROP TABLE was")
        database.execute("UPDATE facts SET value = ? WHERE name = 'model'", (fingerprint,))
        _put(database, challenger, (*others, champion))
    return Roles(challenger, (*others, champion), fingerprint)


def _put(database: sqlite3.Connection, champion: str, challengers: tuple[str, ...]) -> None:
    facts = {"champion": champion, "challengers": json.dumps(challengers)}
    database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())


def _has_challengers(database: sqlite3.Connection) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'challengers'"
    return bool(database.execute(query).fetchone()[0])


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=5.0)


def _asked(path: Path, database: sqlite3.Connection, query: str) -> dict[str, str]:
    try:
        return dict(database.execute(query).fetchall())
    except sqlite3.OperationalError as error:
        raise OutputError(f"{str(path)!r} cannot be read: {error}.") from None
    except sqlite3.DatabaseError as error:
        raise ModelFileError(
            f"{str(path)!r} is truncated or damaged: {error}. Restore it from a copy."
        ) from None
