"""The last request of a sender, answered: kept with the rows it was about, for when it is sent again.

Keys and numbers (`varnn.streaming.store`) tell a message that was taken before. One that was refused has left
nothing to know it by, and might be taken the second time, as what came after it has changed its series. A
sender that gives each of its requests a number, and has one under way at a time, hears the same again of all
of them.
"""

import sqlite3
from typing import Any, NamedTuple

from varnn.streaming.json_text import read, write

TABLE = """
    CREATE TABLE IF NOT EXISTS requests (sender TEXT PRIMARY KEY, number INTEGER NOT NULL,
        answers TEXT NOT NULL) WITHOUT ROWID;
"""


class Request(NamedTuple):
    """A request of one sender; numbers grow, and one is answered before the next is sent."""

    sender: str
    number: int


class LastRequest:
    """The last request of the one who sends such, and what it was answered.

    Examples
    --------
    >>> database = sqlite3.connect(":memory:")
    >>> last = LastRequest()
    >>> last.open(database)
    >>> last.keep(Request("a", 1), [{"row": 0}])
    >>> last.write(database)
    >>> last.answers(Request("a", 1)), last.answers(Request("a", 2))
    ([{'row': 0}], None)
    """

    def __init__(self) -> None:
        self._database: sqlite3.Connection | None = None
        self._new: list[tuple[str, int, str]] = []  # of the group under way

    def open(self, database: sqlite3.Connection) -> None:
        """Make the table."""
        with database:
            database.execute(TABLE)
        self._database = database

    def answers(self, request: Request) -> list[dict[str, Any]] | None:
        """What a request was answered before; None if it is a new one."""
        if self._database is None:
            return None
        query = "SELECT answers FROM requests WHERE sender = ? AND number = ?"
        found = self._database.execute(query, request).fetchone()
        return None if found is None else read(found[0])

    def keep(self, request: Request, answers: list[dict[str, Any]]) -> None:
        """Keep the answers with the group under way."""
        self._new = [(*request, write(answers).decode())]

    def write(self, database: sqlite3.Connection) -> None:
        """Write what is new, in the place of what was there: who sends now is the only one."""
        if self._new:
            database.execute("DELETE FROM requests")
            database.executemany("INSERT INTO requests VALUES (?, ?, ?)", self._new)

    def forget(self) -> None:
        """The group is on disk, or is given up."""
        self._new = []
