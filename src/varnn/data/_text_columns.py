"""Columns of texts among the inputs -> their categories; names, notes and dates are left out, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from varnn.data import _columns
from varnn.data._notes import Note
from varnn.data._time_columns import holds_dates, holds_times_of_day
from varnn.data.categories import MOST_VALUES, Categories, are_categories
from varnn.data.display import some
from varnn.data.rules import shown
from varnn.errors import DataError

_SHOWN = 5  # columns in a note
_Columns = Mapping[str, nw.Series[Any]]


def is_numeric(column: nw.Series[Any], missing: _columns.Missing) -> bool:
    """Tell whether a column is read as numbers; one of numbers with a bad cell is refused."""
    if _columns.holds_numbers(column):  # quicker than to read them twice
        return True
    try:
        _columns.numbers(column, column.name, missing)
    except DataError:
        if _columns.is_nearly_numeric(column):
            raise
        return False
    return True


def refuse_text_target(
    table: _Columns, target: str, others: Sequence[str], missing: _columns.Missing
) -> None:
    """Refuse a target that holds text, and name those of the other columns that hold numbers."""
    column = table[target]
    if not _columns.is_text(column) or _columns.is_nearly_numeric(column) or is_numeric(column, missing):
        return  # one of numbers with a bad cell is refused by that cell
    numeric = [one for one in others if _columns.holds_numbers(table[one])]
    known = f"Columns of numbers: {some(numeric)}." if numeric else "The table has no column of numbers."
    what = f"the target must be a column of numbers; column {target!r} holds text"
    example = next((one for one in column.to_list() if one is not None and str(one).strip()), None)
    raise DataError(f"{what}, such as {example!r}. {known} Name another `target` (--target).")


def found_texts(
    table: _Columns, names: Sequence[str], missing: _columns.Missing, notes: list[Note]
) -> tuple[dict[str, _columns.Words], list[str]]:
    """Read columns of texts, list those that are no inputs, and say which are.

    Texts are kept of both: in a table of three rows to predict every text may be another one.
    """
    texts = [one for one in names if _columns.is_text(table[one])]
    found = {one: of for one in texts if (of := _columns.words(table[one], missing)) is not None}
    same = [one for one, of in found.items() if len(of.values) == 1 and of.n_cells == len(of.codes)]
    left = [one for one in texts if one not in same and not _are_categories(table[one], found.get(one))]
    taken = [f"{one!r} ({len(found[one].values)} values)" for one in texts if one not in {*same, *left}]
    if taken:
        notes.append(Note(f"text is read as categories: {', '.join(taken[:_SHOWN])}"))
    if same:
        kinds = ", ".join(map(repr, same[:_SHOWN]))
        notes.append(Note(f"text is left out: {kinds}, which is the same in every row"))
    if left:
        kinds = ", ".join(f"{one!r} ({table[one].n_unique():,} values)" for one in left[:_SHOWN])
        notes.append(
            Note(
                f"text is left out: {kinds}. Names, notes and dates are no categories; to learn from them, "
                "make fewer of them, or numbers"
            )
        )
    return found, [one for one in names if one not in found or one in {*same, *left}]


def named_texts(
    table: _Columns, names: Sequence[str], known: Categories | None, missing: _columns.Missing
) -> dict[str, _columns.Words]:
    """Read those columns, out of some that are inputs, which hold texts: those known, if any are."""
    if known is not None:
        return {one: _known_words(table[one], one, known[one]) for one in names if one in known}
    found = {}
    for name in names:
        column = table[name]
        if not _columns.is_text(column) or _holds_times(column) or is_numeric(column, missing):
            continue
        words = _columns.words(column, missing)
        if words is None or len(words.values) > MOST_VALUES:
            raise DataError(
                f"input column {name!r} must hold numbers, or categories: at most {MOST_VALUES} different "
                f"texts; it holds {column.n_unique():,}. Make fewer of them, or leave it out with `inputs`."
            )
        found[name] = words
    return found


def _are_categories(column: nw.Series[Any], words: _columns.Words | None) -> bool:
    if words is None or _holds_times(column):
        return False
    return are_categories(len(words.values), words.n_cells)


def _holds_times(column: nw.Series[Any]) -> bool:
    return holds_dates(column) or holds_times_of_day(column)


def _known_words(column: nw.Series[Any], name: str, known: Sequence[str]) -> _columns.Words:
    if _columns.is_text(column) or column.null_count() == len(column):
        return _columns.known_words(column, known)
    raise DataError(
        f"column {name!r} must hold texts, such as {shown(known[0])}, as it did when the model was fitted; "
        f"it holds {column.dtype}. Give the texts, or fit the model anew."
    )
