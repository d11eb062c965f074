"""What a stream was told and what it answered, on disk: one SQLite file, written a group at a time.

Four tables. ``series``: a row for each, with its name and the number of its last message. ``journal``: the
messages since the state that was kept last. ``states``: that state. ``answers``: the last answers, for
messages that are sent again. A group of messages, its answers, the numbers and the states that fell due are
one transaction: after a crash, all of it is there or nothing.

The messages of a series in a group are one row, one line each, under the number of the last; and so are its
answers, but for those with a key. Rows are what SQLite takes its time for.

A state is some hundred kilobytes, a message some hundred bytes: so messages are written as they come, and a
state once in many. What a stream does follows from its state and its messages to the last bit, so that the
two give back the very stream that was lost.

The file is in WAL mode: beside it lie ``-wal`` and ``-shm`` while it is open, and ``-lock``, which says whose
it is. A lock ends with its process, however that ended.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from varnn.data.locks import Lock
from varnn.errors import ModelFileError, OutputError
from varnn.streaming.kept import Answer, Entry, Group, Known, State

_MARK = 0x7661726E  # "varn", SQLite's application_id
_VERSION = 2
_LOG_PAGES = 4000
_IN_ROWS = "in rows"  # the name of a fact
_ROOM = 1 << 16  # characters
_SEAL = 8  # hexadecimal digits of a checksum
_BEGINNING = b"SQLite format 3\0"
_TABLES = """
    CREATE TABLE series (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL);
    CREATE TABLE states (scope INTEGER PRIMARY KEY, entry INTEGER NOT NULL, state BLOB NOT NULL);
    CREATE TABLE journal (scope INTEGER, entry INTEGER, message TEXT NOT NULL, PRIMARY KEY (scope, entry))
        WITHOUT ROWID;
    CREATE TABLE answers (series INTEGER, seq INTEGER, key TEXT, answer TEXT NOT NULL,
        PRIMARY KEY (series, seq)) WITHOUT ROWID;
    CREATE INDEX keys ON answers (series, key) WHERE key IS NOT NULL;
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Journal:
    """One file, one process.

    Parameters
    ----------
    path : str or Path
        The file; made if it is not there.
    model : str
        Fingerprint of the model whose streams these are; the file of another is refused.
    synchronous : bool, default=True
        Whether each group is also brought to the disk itself: then answers outlive a loss of power, and not
        only the death of the process.
    in_rows : bool, default=False
        Whether its messages may be those of `varnn.streaming.rows`; one that holds such is refused otherwise.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "live.state"
    >>> with Journal(path, "the model") as journal:
    ...     entries, answers = [Entry(1, 1, '{"x": [1]}')], [Answer(1, 1, None, '{"prediction": 2.0}')]
    ...     journal.write(Group({'"a"': Known(1, 1)}, entries, answers, [], {}))
    >>> with Journal(path, "the model") as journal:
    ...     journal.find('"a"'), journal.answer(1, 1), journal.since(1)[1][0].message
    (Known(id=1, seq=1), '{"prediction": 2.0}', '{"x": [1]}')
    """

    def __init__(
        self,
        path: str | Path,
        model: str,
        *,
        synchronous: bool = True,
        in_rows: bool = False,
    ) -> None:
        self.path = Path(path).resolve()  # links to one file are one file
        if self.path.exists() and not self.path.is_file():
            raise OutputError(
                f"{str(path)!r} cannot keep the state of streams: it is not a regular file. Name a file."
            )
        is_new = not self.path.exists()
        if not is_new and not _is_database(self.path):
            raise ModelFileError(
                f"{str(path)!r} is not a state file of this library, or its beginning is damaged. Give "
                "another --state file."
            )
        self._lock = Lock(self.path, "Give another --state file.")
        try:
            with self.explained():
                self._database = _opened(self.path, model, synchronous=synchronous, in_rows=in_rows)
        except BaseException:
            self._lock.release(and_remove=is_new)
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and give up the lock; what lies beside it is taken in."""
        try:
            with self.explained():
                self._database.close()
        finally:
            self._lock.release()

    @property
    def size(self) -> int:
        """Number of series."""
        return int(self._one("SELECT count(*) FROM series")[0])

    @property
    def last_id(self) -> int:
        """Number of the series that came last; 0 before the first."""
        return int(self._one("SELECT coalesce(max(id), 0) FROM series")[0])

    def find(self, name: str) -> Known | None:
        """Look up a series."""
        found = self._one("SELECT id, seq FROM series WHERE name = ?", name)
        return Known(*found) if found else None

    def names(self) -> list[tuple[str, Known]]:
        """List all series, the first one first."""
        with self.explained():
            rows = self._database.execute("SELECT name, id, seq FROM series ORDER BY id").fetchall()
        return [(name, Known(id, seq)) for name, id, seq in rows]

    def answer(self, series: int, seq: int) -> str | None:
        """Answer to a message, if it is still kept."""
        found = self._one(
            "SELECT seq, answer FROM answers WHERE series = ? AND seq >= ? ORDER BY seq LIMIT 1", series, seq
        )
        if not found:
            return None
        last, texts = found[0], self._opened_seal(found[1]).split("\n")
        place = len(texts) - 1 - (last - seq)
        return texts[place] if place >= 0 else None

    def answer_by_key(self, series: int, key: str) -> str | None:
        """Answer to the message with a key, if it is still kept."""
        found = self._one(
            "SELECT answer FROM answers WHERE series = ? AND key = ? ORDER BY seq DESC", series, key
        )
        return self._opened_seal(found[0]) if found else None

    def since(self, scope: int) -> tuple[State | None, list[Entry]]:
        """State of a scope that was kept last, if any, and the messages since."""
        # A state is that after a whole group, so that a row is before it or after it.
        kept = self._one("SELECT scope, entry, state FROM states WHERE scope = ?", scope)
        state = State(*kept) if kept else None
        entry = state.entry if state else 0
        with self.explained():
            rows = self._database.execute(
                "SELECT * FROM journal WHERE scope = ? AND entry > ? ORDER BY entry", (scope, entry)
            ).fetchall()
        found = []
        for scope, last, message in rows:
            texts = self._opened_seal(message).split("\n")
            found += [Entry(scope, last - len(texts) + n, text) for n, text in enumerate(texts, start=1)]
        return state, found

    def behind(self) -> list[str]:
        """Names of the series that were told something since their state was kept."""
        with self.explained():
            query = "SELECT name FROM series WHERE id IN (SELECT scope FROM journal) ORDER BY id"
            return [name for (name,) in self._database.execute(query)]

    @property
    def is_in_rows(self) -> bool:
        """Whether its messages are those of `varnn.streaming.rows`."""
        return bool(self._one("SELECT count(*) FROM facts WHERE name = ?", _IN_ROWS)[0])

    def be_in_rows(self) -> None:
        """Let its messages be so from here on."""
        with self.explained():
            self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, 'yes')", (_IN_ROWS,))

    def try_to_write(self) -> None:
        """Write something of some size, and delete it: an error tells that there is no room."""
        with self.explained():
            self._database.execute("INSERT OR REPLACE INTO facts VALUES ('room', ?)", ("." * _ROOM,))
            self._database.execute("DELETE FROM facts WHERE name = 'room'")

    @property
    def database(self) -> sqlite3.Connection:
        """The file, for who keeps something beside (`varnn.streaming.companion`)."""
        return self._database

    def write(self, group: Group, also: Callable[[sqlite3.Connection], None] | None = None) -> None:
        """Keep a group, and what ``also`` writes: all of it or, with an error, nothing."""
        with self.explained(), self._database as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT INTO series (name, id, seq) VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq",
                ((name, known.id, known.seq) for name, known in group.series.items()),
            )
            database.executemany("INSERT INTO journal VALUES (?, ?, ?)", _entry_rows(group.entries))
            database.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", _answer_rows(group.answers))
            if group.states:
                database.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", group.states)
                database.executemany(
                    "DELETE FROM journal WHERE scope = ? AND entry <= ?",
                    ((one.scope, one.entry) for one in group.states),
                )
            if group.answered:
                database.executemany(
                    "DELETE FROM answers WHERE series = ? AND seq <= ?", group.answered.items()
                )
            if also is not None:
                also(database)

    def drop(self, series: int, also: Callable[[sqlite3.Connection], None]) -> None:
        """Forget a series: what it was told, is and answered, and what ``also`` deletes."""
        with self.explained(), self._database as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("DELETE FROM series WHERE id = ?", (series,))
            database.execute("DELETE FROM journal WHERE scope = ?", (series,))
            database.execute("DELETE FROM states WHERE scope = ?", (series,))
            database.execute("DELETE FROM answers WHERE series = ?", (series,))
            also(database)

    def _opened_seal(self, sealed: str) -> str:
        """The text without its checksum; refuse one that is not what was written."""
        text = sealed[_SEAL:]
        if sealed != _sealed(text):
            raise ModelFileError(
                f"{str(self.path)!r} is damaged: a message or an answer in it was changed. Restore it from a "
                "copy."
            )
        return text

    def _one(self, query: str, *values: int | str) -> Any:
        with self.explained():
            return self._database.execute(query, values).fetchone()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what SQLite says into what this library says."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OutputError(
                f"{str(self.path)!r} cannot be written: {error}. Nothing that is not in it was answered; "
                "make room, or correct what is wrong with the disk, and go on from there."
            ) from None
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # a wrong use of SQLite is a bug
                raise
            raise ModelFileError(
                f"{str(self.path)!r} is truncated or damaged: {error}. Restore it from a copy."
            ) from None


def _entry_rows(entries: list[Entry]) -> list[tuple[int, int, str]]:
    """Put the messages of each scope together."""
    texts: dict[int, list[str]] = {}
    lasts: dict[int, int] = {}
    for scope, entry, message in entries:
        texts.setdefault(scope, []).append(message)
        lasts[scope] = entry
    return [(scope, lasts[scope], _sealed("\n".join(some))) for scope, some in texts.items()]


def _answer_rows(answers: list[Answer]) -> list[tuple[int, int, str | None, str]]:
    """Put the answers of each series together, as far as no key comes between them."""
    rows: list[tuple[int, int, str | None, str]] = []
    texts: dict[int, list[str]] = {}
    lasts: dict[int, int] = {}
    for series, seq, key, text in answers:
        if key is None:
            texts.setdefault(series, []).append(text)
            lasts[series] = seq
            continue
        if series in texts:
            rows.append((series, lasts[series], None, _sealed("\n".join(texts.pop(series)))))
        rows.append((series, seq, key, _sealed(text)))
    rows += [(series, lasts[series], None, _sealed("\n".join(some))) for series, some in texts.items()]
    return rows


def _sealed(text: str) -> str:
    """Put a checksum before a text: SQLite itself does not notice that a letter was changed."""
    return f"{zlib.crc32(text.encode()):0{_SEAL}x}{text}"


def _is_database(path: Path) -> bool:
    """Tell whether a file begins as a database, or is empty and becomes one."""
    with path.open("rb") as file:
        beginning = file.read(len(_BEGINNING))
    return beginning in (b"", _BEGINNING)


def _opened(path: Path, model: str, *, synchronous: bool, in_rows: bool) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, timeout=5.0, check_same_thread=False)
    try:
        (page,) = database.execute("PRAGMA page_size").fetchone()
        log = path.with_name(f"{path.name}-wal")  # with something in it, all of the last page is there, too
        if path.stat().st_size % page and not (log.exists() and log.stat().st_size):
            raise sqlite3.DatabaseError("its last page is not whole")
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            with database:
                database.execute("BEGIN EXCLUSIVE")
                for statement in _TABLES.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA application_id = {_MARK}")
                facts = {"version": str(_VERSION), "model": model}
                database.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        if database.execute("PRAGMA application_id").fetchone() != (_MARK,):
            raise ModelFileError(
                f"{str(path)!r} is a database of another program. Give another --state file."
            )
        facts = dict(database.execute("SELECT name, value FROM facts"))
        if facts["version"] != str(_VERSION):
            raise ModelFileError(
                f"{str(path)!r} was written by another version of varnn: it has version {facts['version']}, "
                f"and this one reads {_VERSION}. Give another --state file, and begin anew."
            )
        if facts["model"] != model:
            raise ModelFileError(
                f"{str(path)!r} holds the state of another model. Give that model, or another --state file."
            )
        if _IN_ROWS in facts and not in_rows:
            raise ModelFileError(
                f"{str(path)!r} is the file of a service, whose messages mean something else. Go on by "
                "varnn serve, or give another --state file."
            )
        database.execute("PRAGMA journal_mode = WAL")
        # Many series write far apart: pages are taken into the file after more than the 1000 of SQLite.
        database.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        database.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'NORMAL'}")
    except BaseException:
        database.close()
        raise
    return database
