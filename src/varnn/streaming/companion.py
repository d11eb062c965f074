"""What is kept beside a store's own, in the same file and the same transactions; here, nothing."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from varnn.streaming.kept import Entry, Known, State
from varnn.streaming.rows import Taken


class Companion:
    """Someone who is told what a store takes, and writes with it: all of a group or nothing.

    The calls come in this order: ``open`` once; for each message ``took``; for each group ``write``, then
    ``wrote`` or ``gave_up``. Series come from and go to the disk in between.

    Examples
    --------
    >>> Companion().write(sqlite3.connect(":memory:"), [])
    """

    def open(self, database: sqlite3.Connection) -> None:
        """Make what tables it needs."""

    def begun(self, name: str, known: Known) -> None:
        """Hear of a series that is here for the first time."""

    def took(self, name: str, known: Known, message: Mapping[str, Any], taken: Taken) -> None:
        """Hear of a message that was taken, as the series' ``known.seq``-th."""

    def write(self, database: sqlite3.Connection, states: Sequence[State]) -> None:
        """Write what was heard since the last group; ``states`` are those of series written with it."""

    def wrote(self) -> None:
        """Hear that the group is on disk."""

    def gave_up(self) -> None:
        """Hear that the group could not be written, and counts as never said."""

    def came_back(self, name: str, known: Known, state: State | None, entries: Sequence[Entry]) -> None:
        """Hear of a series that is in memory again: its state on disk, and its messages since."""

    def put(self, name: str, known: Known, rows: int) -> None:
        """Hear of a series that goes on from a state it was given, with so many rows behind it."""

    def drop(self, database: sqlite3.Connection, known: Known) -> None:
        """Delete what it keeps of a series, which is to be forgotten."""

    def left(self, name: str, known: Known) -> None:
        """Hear of a series that is in memory no more."""


ALONE = Companion()
