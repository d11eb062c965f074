"""What a service holds: read from its files and asked of itself, to be compared."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from varnn.service.client import Client

_TABLES = {  # without when things came, which is another time in another service
    "series": "name, seq",
    "history": "series, row, y, prediction, lower, upper, CASE WHEN time IS NULL THEN NULL ELSE at END",
    "events": "series, row, kind, began, size",
    "answers": "series, seq, key, answer",
    "challenges": "model, series, row, prediction, lower, upper",
    "facts": "name, value",
}
_ANSWERS = 1000  # of each series that a service keeps by default
_OWN = {
    "states": "scope, entry, state",
    "journal": "scope, entry, message",
    "summaries": "series, numbers, alarms",
}


class HasPlace(Protocol):
    """A service: its port, and its folder."""

    @property
    def port(self) -> int:
        """Where it answers."""

    @property
    def folder(self) -> Path:
        """Where it keeps everything."""


def content(place: HasPlace, *, own: bool = True) -> dict[str, str]:
    """Digests of all that a service holds, by name.

    Parameters
    ----------
    place
        The service.
    own
        Whether to add what is another one in another service that was asked the same.
    """
    found = {path.name: _hash(path.read_bytes()) for path in (place.folder / "models").glob("*.varnn")}
    with Client(f"http://127.0.0.1:{place.port}") as client:
        for stream in [one["name"] for one in client.streams()]:
            for table, columns in (_TABLES | (_OWN if own else {})).items():
                query = f"SELECT {columns} FROM {table} ORDER BY 1, 2"
                with closing(_opened(place.folder / "streams" / f"{stream}.state")) as database:
                    rows = database.execute(query).fetchall()
                    found[f"{stream} {table}"] = _hash(
                        repr(_joined(rows) if table == "answers" else rows).encode()
                    )
                    names = [json.loads(name) for (name,) in database.execute("SELECT name FROM series")]
            told = Client(f"http://127.0.0.1:{place.port}", stream=stream)
            with told:
                for name in names:
                    if _can_be_asked_for(name, names):
                        found[f"{stream} state of {name!r}"] = _hash(told.snapshot(name))
                found[f"{stream} roles"] = json.dumps(
                    {name: one for name, one in told.get(f"/v1/streams/{stream}").items() if name != "scores"}
                )
    return found


def _joined(rows: list[Any]) -> dict[int, list[Any]]:
    """Answers that must be kept, without how they were put together, which depends on what came at one time.

    Of what is older some more is kept for a while, which depends on when a series was on disk alone.
    """
    found: dict[int, list[Any]] = {}
    for series, _, key, sealed in rows:
        found.setdefault(series, []).extend((key, line) for line in sealed[8:].split("\n"))
    return {series: lines[-_ANSWERS:] for series, lines in found.items()}


def _can_be_asked_for(name: Any, names: list[Any]) -> bool:
    """Whether a path can name a series: no part of it may be a line break, or what another one has."""
    if name == "~" or (type(name) is int and str(name) in names):
        return False
    text = str(name)
    return text.isprintable() and "\ufffd" not in text and not text.endswith(("/snapshot", "/history"))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0)


class Stamp:
    """Tells whether anything on disk has changed since it was asked last.

    Parameters
    ----------
    folder
        That of a service.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._databases: dict[tuple[str, int], sqlite3.Connection] = {}
        self._last = self._now()

    def close(self) -> None:
        """Close what is open."""
        for database in self._databases.values():
            database.close()

    def changed(self) -> bool:
        """Whether a transaction was written, or a file came or went."""
        now = self._now()
        changed, self._last = now != self._last, now
        return changed

    def _now(self) -> list[Any]:
        return [sorted(path.name for path in (self._folder / "models").iterdir()), *self._streams()]

    def _streams(self) -> Iterator[Any]:
        places = {}
        for path in sorted((self._folder / "streams").glob("[!.]*")):
            if not path.name.endswith(("-wal", "-shm", "-lock")):
                places[path.name, path.stat().st_ino] = path
        for gone in self._databases.keys() - places.keys():
            self._databases.pop(gone).close()
        for name, path in places.items():
            if path.suffix == ".state":
                if name not in self._databases:
                    self._databases[name] = _opened(path)
                yield name, self._databases[name].execute("PRAGMA data_version").fetchone()
            else:
                yield name
