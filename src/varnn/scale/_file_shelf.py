"""Many models in one ``.varnns`` file, or in a folder of ``.varnn`` files with an index.

Both are a SQLite database; in a folder it is called ``models.varnns`` and holds all but the models. Tables:
``entries``, a short row for each series (name, fingerprint of its settings and rows, checksum of its model or
why there is none); ``blobs``, the models, byte for byte what a ``.varnn`` file has; ``facts`` and
``settings`` as JSON. Reading one model reads some pages of an index and those of that model, however many
others there are. What comes of a job is one transaction: after a crash all of it is there, or nothing.

A rollback journal, not a log beside the file: it is one file at any time that nobody writes.
"""

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from varnn.data.files import write_atomically
from varnn.data.locks import Lock
from varnn.errors import ModelFileError, OutputError
from varnn.scale._names import file_of, of_key, to_key
from varnn.scale._shelf import Entry, checked, checksum

logger = logging.getLogger(__name__)

SUFFIX = ".varnns"
INDEX = f"models{SUFFIX}"  # in a folder
BEGINNING = b"SQLite format 3\0"
_MARK = 0x7661726D  # "varm", SQLite's application_id: the journal of a stream has another
_FORMAT = 1
_HEADER = 100  # bytes, of SQLite's file format
_PATIENCE = 60.0  # seconds to wait for others that read or write; they take milliseconds
_TABLES = """
    CREATE TABLE settings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
    CREATE TABLE entries (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, fingerprint TEXT,
        settings INTEGER, checksum TEXT, file TEXT UNIQUE COLLATE NOCASE, reason TEXT);
    CREATE INDEX fitted ON entries (settings) WHERE checksum IS NOT NULL;
    CREATE INDEX failed ON entries (id) WHERE reason IS NOT NULL;
    CREATE TABLE facts (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE blobs (id INTEGER PRIMARY KEY, blob BLOB NOT NULL);
"""


class FileShelf:
    """Models of a file or folder, for reading: any number of processes and threads, also while one writes.

    Each question opens the file and closes it again, which takes a fraction of a millisecond.

    Parameters
    ----------
    path : Path
        The ``.varnns`` file, or the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._index = path / INDEX if path.is_dir() else path
        self._one("SELECT count(*) FROM settings")  # refuses what is no such file
        self._tell_if_cut_short()

    @property
    def place(self) -> str:
        """What to call it in words."""
        return repr(str(self.path))

    def names(self) -> list[str]:
        """Names of all models, in the order of the series."""
        query = "SELECT name FROM entries WHERE checksum IS NOT NULL ORDER BY id"
        return [of_key(key) for (key,) in self._all(query)]

    def count(self) -> int:
        """How many models there are."""
        return int(self._one("SELECT count(*) FROM entries WHERE checksum IS NOT NULL")[0])

    def has(self, name: str) -> bool:
        """Tell whether there is a model."""
        query = "SELECT count(*) FROM entries WHERE name = ? AND checksum IS NOT NULL"
        return bool(self._one(query, to_key(name))[0])

    def get(self, name: str) -> bytes | None:
        """Bytes of a model, checked; None where there is none."""
        with self._opened() as database:
            # One transaction: another process may put a newer model in its place.
            blob, wanted, in_folder = self._read(database, "BEGIN", name)
        if in_folder and blob is not None and checksum(blob) != wanted:
            # A file is replaced before the index knows of it: wait for who is writing, if there is one.
            with self._opened() as database, suppress(sqlite3.OperationalError):
                database.execute("PRAGMA query_only = OFF")
                blob, wanted, _ = self._read(database, "BEGIN IMMEDIATE", name)
        return None if blob is None else checked(blob, wanted, name, self.place)

    def _read(self, database: sqlite3.Connection, begin: str, name: str) -> tuple[bytes | None, str, bool]:
        """Bytes of a model or None, their checksum, and whether they have a file of their own."""
        query = "SELECT id, checksum, file FROM entries WHERE name = ? AND checksum IS NOT NULL"
        database.execute(begin)
        row = database.execute(query, (to_key(name),)).fetchone()
        if row is None:
            return None, "", False
        number, wanted, file = row
        if file is not None:
            return self._file(name, file), wanted, True
        with self._of_one(name):
            found = database.execute("SELECT blob FROM blobs WHERE id = ?", (number,)).fetchone()
        if found is None:
            raise ModelFileError(f"{self.place} is damaged: the model of series {name!r} is not in it.")
        return bytes(found[0]), wanted, False

    def _file(self, name: str, file: str) -> bytes:
        """Read a model's own file."""
        try:
            return (self._index.parent / file).read_bytes()
        except OSError as error:
            raise ModelFileError(
                f"the model of series {name!r} cannot be read from {file!r} in {self.place}: "
                f"{error.strerror}."
            ) from None

    def reason(self, name: str) -> str | None:
        """Why a series failed; None if it did not."""
        found = self._all("SELECT reason FROM entries WHERE name = ?", to_key(name))
        return found[0][0] if found else None

    def failures(self) -> dict[str, str]:
        """Reasons of all series that failed."""
        query = "SELECT name, reason FROM entries WHERE reason IS NOT NULL ORDER BY id"
        return {of_key(key): str(reason) for key, reason in self._all(query)}

    def waiting(self) -> int:
        """How many series were to be fitted and are not yet."""
        query = "SELECT count(*) FROM entries WHERE checksum IS NULL AND reason IS NULL"
        return int(self._one(query)[0])

    def facts(self, name: str) -> dict[str, Any]:
        """What is known of a model's fit."""
        query = "SELECT text FROM facts JOIN entries USING (id) WHERE name = ?"
        found = self._all(query, to_key(name))
        return dict(json.loads(found[0][0])) if found else {}

    def different(self, fact: str) -> list[Any]:
        """What models have for a fact, each once."""
        query = "SELECT DISTINCT json_extract(text, ?) FROM facts"
        return [json.loads(found) for (found,) in self._all(query, f"$.{fact}") if found is not None]

    def settings(self) -> list[tuple[str, int]]:
        """Settings as JSON, and how many models have them."""
        counted = (
            "SELECT settings, count(*) AS models FROM entries WHERE checksum IS NOT NULL GROUP BY settings"
        )
        query = (
            f"SELECT text, models FROM settings JOIN ({counted}) ON settings = id ORDER BY models DESC, id"
        )
        return [(str(text), int(models)) for text, models in self._all(query)]

    def _tell_if_cut_short(self) -> None:
        """Say that the end of the file is missing, if it is: models that are not there are damaged."""
        there = self._index.stat().st_size
        with self._index.open("rb") as file:
            header = file.read(_HEADER)
        size = int.from_bytes(header[16:18], "big")  # of a page; 1 stands for 65,536
        wanted = int.from_bytes(header[28:32], "big") * (size if size > 1 else 1 << 16)
        if there < wanted:
            logger.warning(
                "%s is damaged: %s of %s bytes are there. Models that are whole can be read; restore the "
                "file from a copy.",
                self.place,
                f"{there:,}",
                f"{wanted:,}",
            )

    def _one(self, query: str, *values: Any) -> Any:
        return self._all(query, *values)[0]

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._opened() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file, to read it only; a process that was killed may have left something to undo first."""
        with self._explained(), closing(connect(self._index, "rw")) as database:
            database.execute("PRAGMA query_only = ON")
            database.execute(
                "PRAGMA writable_schema = ON"
            )  # else nothing of a file that was cut short is read
            check_kind(database, self.place)
            yield database

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Put what SQLite complains of into words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ModelFileError(f"{self.place} cannot be read: {error}. Try again.") from None
        except sqlite3.DatabaseError as error:
            raise ModelFileError(
                f"{self.place} is damaged, or no file of many models: {error}. Restore it from a copy; "
                "models that can still be read can be exported one by one."
            ) from None

    @contextmanager
    def _of_one(self, name: str) -> Iterator[None]:
        """Say which model it is that cannot be read."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise ModelFileError(
                f"the model of series {name!r} in {self.place} is damaged: {error}. The other models can be "
                "read; fit_many (varnn fit --each series) with the same rows and settings fits this one "
                "again."
            ) from None


class FileShelfWriter(FileShelf):
    """The same for the one process that writes.

    Parameters
    ----------
    path : Path
        A file that ends in ``.varnns``, or a folder; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        in_folder = path.suffix != SUFFIX
        _refuse_others(path, in_folder=in_folder)
        if in_folder:
            path.mkdir(exist_ok=True)
        self._folder = path if in_folder else None
        index = path / INDEX if in_folder else path
        is_new = not index.exists()
        self._lock = Lock(index, "Give another path.")
        try:
            with self._writing(path):
                self._database = connect(index, "rwc")
                if not self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    self._made()
            super().__init__(path)
        except BaseException:
            self._lock.release(and_remove=is_new)
            raise

    def _made(self) -> None:
        """Make the tables, in one step."""
        self._database.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";"):
            self._database.execute(statement)
        self._database.execute(f"PRAGMA application_id = {_MARK}")
        self._database.execute(f"PRAGMA user_version = {_FORMAT}")
        self._database.execute("COMMIT")

    def close(self) -> None:
        """End writing."""
        self._database.close()
        self._lock.release(and_remove=True)

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of series that have a model, and did not fail since."""
        query = "SELECT name, fingerprint FROM entries WHERE checksum IS NOT NULL AND reason IS NULL"
        return {of_key(key): str(found) for key, found in self._all(query)}

    def expect(self, names: Iterable[str]) -> None:
        """Note which series are to come, in their order."""
        with self._transaction() as database:
            rows = ((to_key(name),) for name in names)
            database.executemany("INSERT OR IGNORE INTO entries (name) VALUES (?)", rows)

    def put(self, entries: Sequence[Entry]) -> None:
        """Keep entries, all or none; the model of a series that failed now stays."""
        with self._transaction() as database:
            for one in entries:
                self._put(database, one)

    def _put(self, database: sqlite3.Connection, one: Entry) -> None:
        key = to_key(one.name)
        database.execute("INSERT OR IGNORE INTO entries (name) VALUES (?)", (key,))
        (number,) = database.execute("SELECT id FROM entries WHERE name = ?", (key,)).fetchone()
        if one.blob is None:
            database.execute("UPDATE entries SET reason = ? WHERE id = ?", (one.reason, number))
            return
        database.execute("INSERT OR IGNORE INTO settings (text) VALUES (?)", (one.settings,))
        row = database.execute("SELECT id FROM settings WHERE text = ?", (one.settings,)).fetchone()
        file = None
        if self._folder is None:
            database.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?)", (number, one.blob))
        else:
            file = self._file_for(database, one.name, number)
            write_atomically(self._folder / file, one.blob)
        database.execute(
            "UPDATE entries SET fingerprint = ?, settings = ?, checksum = ?, file = ?, reason = NULL "
            "WHERE id = ?",
            (one.fingerprint, row[0], checksum(one.blob), file, number),
        )
        facts = json.dumps(one.facts, allow_nan=False)
        database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (number, facts))

    def _file_for(self, database: sqlite3.Connection, name: str, number: int) -> str:
        """Name of a series' file: the one it has, or one that no other has, in upper or lower case."""
        for taken in (False, True):
            file = file_of(name, taken=taken)
            query = "SELECT count(*) FROM entries WHERE file = ? AND id != ?"
            if not database.execute(query, (file, number)).fetchone()[0]:
                break
        return file

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._writing(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @staticmethod
    @contextmanager
    def _writing(path: Path) -> Iterator[None]:
        """Put into words why nothing can be written."""
        try:
            yield
        except sqlite3.OperationalError as error:  # a full disk, no permission
            raise OutputError(f"{str(path)!r} cannot be written: {error}. Choose another place.") from None
        except sqlite3.DatabaseError as error:
            raise ModelFileError(
                f"{str(path)!r} is damaged, or no file of many models: {error}. Restore it from a copy, or "
                "give another path."
            ) from None


def connect(index: Path, mode: str) -> sqlite3.Connection:
    """Open a database; ``rw`` makes none, and reads what may not be written."""
    address = f"{index.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)


def check_kind(database: sqlite3.Connection, place: str) -> None:
    """Refuse files of others, and of other versions."""
    (mark,) = database.execute("PRAGMA application_id").fetchone()
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if mark != _MARK:
        raise ModelFileError(
            f"{place} is a SQLite file, but none of many models. Files that fit_many writes end in {SUFFIX}."
        )
    if found != _FORMAT:
        raise ModelFileError(
            f"{place} was written by another version of varnn: it has format {found}, and this one reads "
            f"{_FORMAT}. Fit the models and save them again."
        )


def _refuse_others(path: Path, *, in_folder: bool) -> None:
    """Refuse to write over, or among, what is not ours."""
    if not path.parent.is_dir():
        raise OutputError(
            f"{str(path)!r} cannot be written: the folder {str(path.parent)!r} does not exist. Make it first."
        )
    if in_folder:
        if path.exists() and not path.is_dir():
            raise OutputError(
                f"{str(path)!r} cannot hold many models: it is a file, and its name does not end in "
                f"{SUFFIX}. Name a folder, or a file that ends in {SUFFIX}."
            )
        if path.is_dir() and not (path / INDEX).exists() and any(path.iterdir()):
            raise OutputError(
                f"the folder {str(path)!r} holds other things, and no {INDEX}. Name a new or an empty one."
            )
    elif path.is_dir():
        raise OutputError(
            f"{str(path)!r} cannot be written: it is a folder. Folders of models have names without {SUFFIX}."
        )
