"""DATA of a command: read, its columns' roles guessed where they are not given, and said in words."""

import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from varnn.data.categories import Categories
from varnn.data.files import STANDARD, TableFile, read_table
from varnn.data.long_frames import long_target
from varnn.data.panel import Panel, from_columns
from varnn.data.roles import NONE, Roles, guessed_roles
from varnn.data.tables import Columns, Reading, columns_of
from varnn.data.understood import Understood, understood
from varnn.errors import DataError, RowError
from varnn.model.fitted import Fitted
from varnn.model.reading import as_fitted
from varnn.streaming.closed_loop import without_labels

if TYPE_CHECKING:
    from rich.console import Console

_VALUE = 11  # where the value of a line begins


@dataclass(frozen=True, kw_only=True)
class Table:
    """A panel read from a file, and how it was understood."""

    name: str
    panel: Panel
    roles: Roles
    labelled: bool
    kept: Columns  # time and series as they were, for tables of results

    @property
    def in_closed_loop(self) -> bool:
        """Whether no row has a label, so that predictions go on after the training rows."""
        return without_labels(self.panel)

    def facts(self) -> dict[str, Any]:
        """What was understood, as plain values."""
        return self._understood().facts() | {"guessed": sorted(self.roles.guessed)}

    def in_words(self) -> str:
        """Say what was understood, so that a wrong guess is seen at once."""
        hints = {role: f"  (a guess; --{role} to change it)" for role in self.roles.guessed}
        said = [f"  {role:9}{line}" for role, line in self._understood().lines(hints).items()]
        noted = [
            f"  {'note:' if not note.is_doubt else 'look:'}    {note.text}." for note in self.panel.notes
        ]
        return "\n".join([f"{self.name}:", *said, *noted])

    def show(self, words: "Console") -> None:
        """Print what was understood; at a terminal, what is long goes on below itself."""
        said = self.in_words()
        if not words.soft_wrap:
            # One column less, as some terminals break a line that is full.
            said = "\n".join(_hanging(line, words.width - 1) for line in said.splitlines())
        words.print(said, markup=False)

    def _understood(self) -> Understood:
        found = understood(self.panel, labelled=self.labelled)
        return found._replace(time=", ".join(self.roles.time) or None, series_column=self.roles.series)


def _hanging(line: str, width: int) -> str:
    """Break a line of what was understood so that it goes on where its value began.

    Examples
    --------
    >>> print(_hanging("  time     date, every 1 h  (a guess; --time to change it)", 40))
      time     date, every 1 h  (a guess;
               --time to change it)
    """
    indent = " " * _VALUE if line.startswith("  ") else ""
    broken = textwrap.wrap(
        line, max(width, 2 * _VALUE), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(broken)


def read(
    path: Path,
    reading: Reading,
    *,
    must_have_target: bool = True,
    fitted: Fitted | None = None,
    of_many: tuple[list[str], Categories] | None = None,
) -> Table:
    """Read a table; a time or series of None is guessed, and the word none stands for no column.

    With a fitted model the columns it was fitted with come before any guess, if the table has them. Of many
    models they are those of all.
    """
    file = read_table(path)
    table, file = columns_of(file.table), file._replace(table=None)  # which then is not held twice
    if reading.target is None:
        reading = replace(reading, target=long_target(table))
    if fitted is not None:
        reading = as_fitted(reading, table, fitted)
    if of_many is not None:
        reading = replace(reading, inputs=of_many[0], categories=of_many[1])
    labelled = reading.target != NONE and (must_have_target or reading.target in table)
    roles = guessed_roles(table, reading)
    kept = {name: table[name] for name in (*roles.time, roles.series) if name in table}
    known = replace(
        reading, target=reading.target if labelled else None, time=roles.time or None, series=roles.series
    )
    try:
        panel = from_columns(table, known)
    except RowError as error:
        raise _placed(error, file, roles) from None
    except DataError as error:
        if "time" in roles.guessed and any(f"column {one!r}" in str(error) for one in roles.time):
            raise DataError(f"{error} (The time was guessed; --time names another column.)") from None
        raise
    if len(panel) < panel.rows.max() + 1:  # of several rows of one time, one is left
        there = np.sort(panel.rows)
        kept = {name: column[there.tolist()] for name, column in kept.items()}
    return Table(
        name="standard input" if path == STANDARD else path.name,
        panel=replace(panel, notes=(*file.notes, *panel.notes)),
        roles=roles,
        labelled=labelled,
        kept=kept,
    )


def _placed(error: RowError, file: TableFile, roles: Roles) -> DataError:
    """Say where in the file a row is, and what else may help."""
    placed = error.at(file.where(error.row))
    if "time must increase" not in str(error):
        return placed
    said = str(placed)
    if roles.candidates and roles.series is None:
        what, _, cause = said.partition(". ")
        name = roles.candidates[0]
        hint = f"Times increase within column {name!r}: if it names series, say --series {name!r}."
        said = f"{what}. {hint} {cause}"
    if "time" in roles.guessed:
        said += f" (The time {', '.join(roles.time)!r} was guessed; --time names another column.)"
    return DataError(said)
