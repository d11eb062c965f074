"""A table's columns by name -> numbers, times and names of series: what is what, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from varnn._types import FloatArray
from varnn.data import _columns, allocator
from varnn.data._notes import Note
from varnn.data._sentinels import far_off, suspects
from varnn.data._text_columns import found_texts, is_numeric, named_texts, refuse_text_target
from varnn.data._time_columns import holds_dates, row_times
from varnn.data.arrow_streams import as_table, is_table
from varnn.data.categories import Categories
from varnn.data.grouping import Coded
from varnn.data.odd_input import column_name, plain_frame
from varnn.data.order import Duplicates
from varnn.errors import DataError, VarnnError, nearest

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

_COUNTER = re.compile(r"column \d+|Unnamed: \d+|no\.?|idx|index|row|row_?(id|num|number)|instant|#", re.I)
_STEPS = re.compile(r"t|time|step|time_?step", re.I)  # which may count rows beside a column with their times
Columns = dict[str, nw.Series[Any]]


def collected(frame: Any) -> nw.DataFrame[Any]:
    """Take a table of any kind with plain names and cells; a lazy one is computed, a stream read."""
    try:
        table = _taken(frame)
        found = table.collect() if isinstance(table, nw.LazyFrame) else table
        found.schema  # noqa: B018  # which is where names that come twice are told
    except nw.exceptions.DuplicateError as error:
        names = ", ".join(str(error).replace("- ", "").splitlines()[1:][:5])
        raise DataError(f"each column needs a name of its own; the table has {names}. Rename them.") from None
    except VarnnError:
        raise
    except Exception as error:  # of a query; each library has its own kinds
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"the table is a query, which failed: {type(error).__name__}: {reason.rstrip('.')}. Correct it."
        ) from error
    return found


def _taken(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """Take a table by narwhals, or what hands over Arrow."""
    taken: nw.DataFrame[Any] | nw.LazyFrame[Any]
    plain = plain_frame(frame)
    try:
        taken = nw.from_native(plain)
        return taken
    except TypeError:
        pass
    try:
        taken = nw.from_native(as_table(frame) if is_table(frame) else frame)
        return taken
    except TypeError:
        raise DataError(
            "a table must be a frame (pandas, polars, pyarrow, DuckDB, ...) or hand over Arrow; got "
            f"{type(frame).__name__}."
        ) from None


def columns_of(frame: IntoDataFrame) -> Columns:
    """Columns of a table of any kind by name."""
    table = collected(frame)
    return {name: table[name] for name in table.columns}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read a table: which column is what, and how its cells are written.

    Parameters
    ----------
    target : str or None
        Column to predict; None when the table holds inputs only.
    time : str or sequence of str or None, default=None
        Column with the time of each row, or several whose cells are one time together.
    series : str or None, default=None
        Column with the series of each row.
    inputs : sequence of str or None, default=None
        Input columns; None takes all others that hold numbers or categories.
    categories : mapping or None, default=None
        Input columns that hold texts, and the categories of each that have an input; None finds them.
    time_format, time_zone : str or None, default=None
        How times are written, and whose clock they are of; see :meth:`varnn.Panel.from_frame`.
    missing : sequence of object, default=()
        Texts and numbers that stand for a missing value.
    sort, duplicates : bool, Duplicates
        Whether to put rows in the order of time, and which of several rows of one time to keep.
    """

    target: str | None
    time: str | Sequence[str] | None = None
    series: str | None = None
    inputs: Sequence[str] | None = None
    categories: Categories | None = None
    time_format: str | None = None
    time_zone: str | None = None
    missing: Sequence[object] = ()
    sort: bool = False
    duplicates: Duplicates = "error"

    def named(self, columns: Collection[str]) -> Reading:
        """All columns by their names as texts; a column called 2 may be asked for as 2."""
        if isinstance(self.inputs, str):
            raise DataError(f"inputs must be a list of columns; got {self.inputs!r}. Give [{self.inputs!r}].")

        def plain(role: str, names: Iterable[Any] | None) -> list[str] | None:
            return None if names is None else [column_name(role, one, columns) or "" for one in names]

        several = isinstance(self.time, list | tuple)
        return replace(
            self,
            target=column_name("target", self.target, columns),
            time=plain("time", self.time) if several else column_name("time", self.time, columns),
            series=column_name("series", self.series, columns),
            inputs=plain("inputs", self.inputs),
        )

    def kept(self) -> dict[str, Any]:
        """What a model remembers of how its rows were read, as plain values."""
        kept = {
            name: getattr(self, name) for name in REMEMBERED if getattr(self, name) != getattr(_PLAIN, name)
        }
        if "missing" in kept:
            kept["missing"] = [
                one if isinstance(one, int | float | str) else str(one) for one in self.missing
            ]
        return kept if self.series is not None else {**kept, "series": "none"}

    def as_before(self, kept: Mapping[str, Any]) -> Reading:
        """Take what was kept of another reading where nothing else is said."""
        names = [one for one in REMEMBERED if one in kept and getattr(self, one) == getattr(_PLAIN, one)]
        return replace(self, **{one: kept[one] for one in names})

    def times_in(self, names: Iterable[str]) -> list[str]:
        """List the columns that hold the time; "date,hour" are two, unless one is called so.

        Examples
        --------
        >>> Reading(target=None, time="date,utc,hour").times_in(["date,utc", "hour"])
        ['date,utc', 'hour']
        """
        if self.time is None:
            return []
        if not isinstance(self.time, str):
            return list(self.time)
        parts = self.time.split(",")
        return _joined(parts, set(names)) or [one.strip() for one in parts if one.strip()] or [self.time]


def _joined(parts: Sequence[str], names: Collection[str]) -> list[str] | None:
    """Put parts of a text together again so that all are names, the longest first; None if they cannot be."""
    for count in range(len(parts), 0, -1):
        joined = ",".join(parts[:count])
        found = next((one for one in (joined, joined.strip()) if one in names), None)
        rest = None if found is None else _joined(parts[count:], names) if parts[count:] else []
        if found is not None and rest is not None:
            return [found, *rest]
    return None


REMEMBERED = ("time_format", "time_zone", "missing", "sort", "duplicates")
_PLAIN = Reading(target=None)


class Gathered(NamedTuple):
    """What a table holds, by its use."""

    values: dict[str, Any]  # inputs (N, D), target (N,), codes of texts (N, C), and time (N,) or None
    series: Coded | None
    input_names: tuple[str, ...]
    target_name: str
    ignored: tuple[str, ...]  # columns that are no inputs
    notes: list[Note]
    texts: dict[str, tuple[str, ...]]  # of each column of texts that is an input, the different ones


def gathered(table: Columns, reading: Reading) -> Gathered:
    """Read columns by name as what they are for; those with numbers are taken out of the mapping."""
    reading = reading.named(table)
    names = list(table)
    n_rows = len(next(iter(table.values()), ()))
    if n_rows == 0:
        raise DataError("a table needs at least one row below the names of its columns; this one has none.")
    target, series, times = reading.target, reading.series, reading.times_in(names)
    for role, column in (("target", target), *(("time", one) for one in times), ("series", series)):
        if column is not None and column not in table:
            raise DataError(f"{role} column {column!r} is not in the table. {nearest(column, names)}")
    missing, notes = _columns.Missing.of(reading.missing), list[Note]()
    taken = {target, series, *times}
    if target is not None:
        refuse_text_target(table, target, [one for one in names if one not in taken], missing)
    chosen, words, ignored = _inputs(table, reading, taken, missing, notes)
    groups = None if series is None else _columns.coded(table[series], series)
    values: dict[str, Any] = {"time": None}
    if words:
        values["codes"] = np.column_stack([one.codes for one in words.values()])
    if times:
        values["time"], how = row_times(
            table, times, form=reading.time_format, zone=reading.time_zone, series=groups
        )
        if how:
            notes.append(Note(f"times are read as {how}"))
    elif left := _unused_times(table, taken, ignored, reading.inputs):
        notes.append(
            Note(f"column {left!r} looks like times and is not used as such: give time={left!r}", True)
        )
    values["target"] = (
        np.full(n_rows, np.nan)
        if target is None
        else _columns.numbers(table.pop(target), target, missing, is_target=True)
    )
    values["inputs"] = _side_by_side(
        [_columns.numbers(table.pop(one), one, missing) for one in chosen], n_rows
    )
    allocator.release()  # of the columns
    told = set[str]()
    for name, number, count in [
        *suspects(values["target"][:, None], [target or ""]),
        *suspects(values["inputs"], chosen),
    ]:
        text = (
            f"column {name!r} holds {number:g} {count:,} times, far from its other values: if that stands "
            f"for a missing value, say missing=[{number:g}] (--missing {number:g})"
        )
        notes.append(Note(text, is_doubt=True))
        told.add(name)
    for name, number, row in [
        *far_off(values["target"][:, None], [target or ""]),
        *far_off(values["inputs"], chosen),
    ]:
        if name not in told:
            text = f"column {name!r} holds {number:g} in row {row + 1:,}, far from its other values"
            notes.append(
                Note(f"{text}: one such value can spoil a fit. Correct it, or mark it missing", is_doubt=True)
            )
    return Gathered(
        values,
        series=groups,
        input_names=tuple(chosen),
        target_name="y" if target is None else target,
        ignored=tuple(ignored),
        notes=notes,
        texts={name: one.values for name, one in words.items()},
    )


def _inputs(
    table: Columns, reading: Reading, taken: set[str | None], missing: _columns.Missing, notes: list[Note]
) -> tuple[list[str], dict[str, _columns.Words], list[str]]:
    """List the input columns with numbers, those with texts, and those left out."""
    if reading.inputs is not None:
        chosen = list(dict.fromkeys(reading.inputs))
        for column in chosen:
            if column not in table:
                raise DataError(f"input column {column!r} is not in the table. {nearest(column, table)}")
            if column == reading.target:
                raise DataError(
                    f"the target {reading.target!r} cannot also be an input: it is not known when its "
                    "own row is predicted. Take it out of `inputs`."
                )
        words = named_texts(table, chosen, reading.categories, missing)
        return [one for one in chosen if one not in words], words, []
    free = [one for one in table if one not in taken]
    empty = [one for one in free if table[one].null_count() == len(table[one])]
    if empty:
        notes.append(Note(f"nothing is in column {', '.join(map(repr, empty[:5]))}, which is left out"))
    free = [one for one in free if one not in empty]
    named = [_COUNTER] if reading.time is None else [_COUNTER, _STEPS]
    counters = [one for one in free if _counts_rows(table[one], one, named)]
    other = [one for one in free if not is_numeric(table[one], missing)]
    if counters:
        notes.append(Note(f"column {counters[0]!r} only counts the rows and is left out"))
    words, left = found_texts(table, other, missing, notes)
    return [one for one in free if one not in {*counters, *other}], words, [*empty, *counters, *left]


def _counts_rows(column: nw.Series[Any], name: str, named: Sequence[re.Pattern[str]]) -> bool:
    """Tell whether a column holds row numbers by its name, or the lack of one, and counts the rows indeed."""
    if (
        not any(one.fullmatch(name.strip()) for one in named)
        or not column.dtype.is_integer()
        or column.null_count()
    ):
        return False
    numbers = np.asarray(column.to_numpy())
    return bool((np.diff(numbers) == 1).all())


def _unused_times(
    table: Columns, taken: set[str | None], ignored: Sequence[str], inputs: Sequence[str] | None
) -> str | None:
    """Find a column that looks like times where none is named as such."""
    free = [one for one in table if one not in taken and (inputs is None or one not in inputs)]
    return next((one for one in free if one in ignored and holds_dates(table[one])), None)


def holds_texts(table: Columns) -> bool:
    """Tell whether some column holds texts that are no numbers."""
    texts = [one for one in table.values() if _columns.is_text(one)]
    return any(not is_numeric(one, _columns.Missing()) for one in texts)


def _side_by_side(wide: list[FloatArray], n_rows: int) -> FloatArray:
    if not wide:
        return np.empty((n_rows, 0))
    return wide[0][:, None] if len(wide) == 1 else np.column_stack(wide)
