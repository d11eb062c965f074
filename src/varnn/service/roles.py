"""Which models a stream has, as its state file says, and how a challenger becomes the champion."""

import json
import sqlite3
from collections.abc import Iterator
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


def promote(path: Path, challenger: str, fingerprint: str) -> Roles:
    """Let a challenger and the champion change places, each with its states and scores, in one step.

    The file must have been closed by its store, so that every state is in it, and no message is left that is
    not. A series that the challenger has not joined begins anew with it, at the row that is next.
    """
    roles = read_roles(path)
    champion = str(roles.champion)
    others = tuple(one for one in roles.challengers if one != challenger)
    with _changing(path) as database:
        if database.execute("SELECT count(*) FROM journal").fetchone() != (0,):
            raise ModelFileError(f"{str(path)!r} holds messages that are in no state yet. Try again.")
        scores = _swapped_scores(database, challenger)
        database.execute("CREATE TEMP TABLE was AS SELECT scope, entry, state FROM states")
        database.execute("DELETE FROM states")
        database.execute(
            "INSERT INTO states SELECT series, entry, state FROM challengers "
            "WHERE model = ? AND state IS NOT NULL",
            (challenger,),
        )
        database.execute("DELETE FROM begins")
        database.executemany(
            "INSERT INTO begins SELECT ?1, ?2 WHERE ?1 NOT IN (SELECT scope FROM states)",
            ((one, Summary.unpacked("null", numbers, "[[], null]").row + 1) for one, numbers in scores.rows),
        )
        database.execute("DELETE FROM challengers WHERE model = ?", (challenger,))
        database.execute("DELETE FROM challenges WHERE model = ?", (challenger,))
        database.execute(
            "INSERT OR REPLACE INTO challengers (model, series, joined, first, entry, state) "
            "SELECT ?, scope, 1, 0, entry, state FROM was",
            (champion,),
        )
        database.execute("DROP TABLE was")
        database.executemany("UPDATE summaries SET numbers = ? WHERE series = ?", scores.summaries)
        database.executemany(
            "UPDATE challengers SET score = ? WHERE series = ? AND model = ?",
            ((score, series, champion) for score, series in scores.challenger),
        )
        database.execute("UPDATE facts SET value = ? WHERE name = 'model'", (fingerprint,))
        _put(database, challenger, (*others, champion))
    return Roles(challenger, (*others, champion), fingerprint)


class _Scores(NamedTuple):
    """What is kept of each series' scores, once two models have changed places."""

    rows: list[tuple[int, bytes]]  # series and their summaries as they were
    summaries: list[tuple[bytes, int]]
    challenger: list[tuple[bytes, int]]  # of the one that was champion


def _swapped_scores(database: sqlite3.Connection, challenger: str) -> _Scores:
    """Put the challenger's scores into summaries, and those of summaries beside."""
    rows = database.execute("SELECT series, numbers FROM summaries").fetchall()
    query = "SELECT series, score FROM challengers WHERE model = ? AND score IS NOT NULL"
    scores = dict(database.execute(query, (challenger,)).fetchall())
    summaries, before = [], []
    for series, numbers in rows:
        summary = Summary.unpacked("null", numbers, "[[], null]")
        before.append((summary.score.packed(), series))
        summary.score = Score.unpacked(scores[series]) if series in scores else Score()
        summaries.append((summary.packed()[0], series))
    return _Scores(rows, summaries, before)


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
