"""One table column of any kind -> one NumPy array of numbers or names.

Tables come through narwhals, so pandas, polars and pyarrow columns look the same here. Text is read
as numbers only when every cell can be: a column that is almost a number column is an error that
names the first bad cell, never a column that silently disappears.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.grouping import Coded
from varnn.errors import DataError, RowError

# 1,070.20 and 1,070,200 can be read in one way only; 1,070 may be a little more than one.
_IN_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,})")

_ROWS_AT_ONCE = 1 << 20
MOST_TEXTS = 1000  # different ones that are told apart
_BLANK = frozenset(
    {
        "",
        "na",
        "n/a",
        "n.a.",
        "nan",
        "null",
        "(null)",
        "nil",
        "none",
        "nat",
        "missing",
        "\\n",
        "?",
        "-",
        "--",
        ".",
    }
    | {
        "<na>",
        "#n/a",
        "#na",
        "#n/a n/a",
        "#value!",
        "#div/0!",
        "#ref!",
        "#null!",
        "#num!",
        "1.#qnan",
        "-1.#ind",
    }
)


class Missing(NamedTuple):
    """What stands for a missing value in a table, beside empty cells and the usual spellings of NA."""

    words: frozenset[str] = frozenset()
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, given: Iterable[object]) -> "Missing":
        """Sort words from numbers.

        Examples
        --------
        >>> Missing.of(["-200", "broken"]).values
        (-200.0,)
        """
        words = frozenset(str(one).strip().lower() for one in given)
        return cls(words, tuple(number for one in sorted(words) if (number := _number(one)) is not None))


_NOTHING = Missing()


def numbers(
    column: nw.Series[Any], name: str, missing: Missing = _NOTHING, *, is_target: bool = False
) -> FloatArray:
    """Read a column as float32 (when it is float32) or float64, NaN where it is missing."""
    if holds_numbers(column):
        wanted = nw.Float32 if column.dtype == nw.Float32 else nw.Float64
        kind = np.float32 if wanted is nw.Float32 else np.float64
        values: FloatArray = np.asarray(column.cast(wanted).to_numpy(), dtype=kind)
    elif column.null_count() == len(column):
        return np.full(len(column), np.nan)
    elif is_text(column):
        values = _parsed(_Cells.of(column), name, missing, is_target=is_target)
    else:
        raise DataError(
            f"column {name!r} must hold numbers; it holds {column.dtype}. Convert it, or "
            + ("name another target." if is_target else "leave it out with `inputs`.")
        )
    if missing.values and (found := np.isin(values, missing.values)).any():
        return np.where(found, np.nan, values)
    return values


def holds_numbers(column: nw.Series[Any]) -> bool:
    """Tell whether a column is of a kind that holds nothing but numbers."""
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean)


def is_nearly_numeric(column: nw.Series[Any]) -> bool:
    """Tell whether a text column was most likely meant as numbers (over half of it parses)."""
    if not is_text(column):
        return False
    cells = _Cells.of(column)
    counts = cells.counts()
    filled = sum(count for cell, count in zip(cells.distinct, counts, strict=True) if not _is_blank(cell))
    parsed = sum(
        count for cell, count in zip(cells.distinct, counts, strict=True) if _number(cell) is not None
    )
    return bool(2 * parsed > filled)


def coded(column: nw.Series[Any], name: str) -> Coded:
    """Read a column as the series that each row is of; no cell may be empty."""
    if (row := first_empty(column)) is not None:
        raise RowError(
            f"series column {name!r} must have a value in every row; {{where}} is empty. Drop these rows, or "
            "give them a name.",
            row=row,
        )
    cells = _Cells.of(column)
    found = _first_seen(cells.indices)
    numbers = np.zeros(len(cells.distinct), np.int32)
    numbers[found] = np.arange(len(found))
    return Coded(tuple(str(cells.distinct[index]) for index in found), numbers[cells.indices])


class Words(NamedTuple):
    """The different texts of a column, in the order in which they first appear, and where they are."""

    values: tuple[str, ...]
    codes: npt.NDArray[np.int16]  # of each row; -1 is none
    n_cells: int  # that hold one


def words(column: nw.Series[Any], missing: Missing = _NOTHING) -> Words | None:
    """Read a column of texts; None if there are more than a thousand different ones."""
    cells = _Cells.of(column)
    texts = ["" if _is_blank(one) else str(one).strip() for one in cells.distinct]
    texts = ["" if one.lower() in missing.words else one for one in texts]
    held = (cells.counts() > 0).tolist()  # a category may be known to a column, and in no cell of it
    if len({one for one, there in zip(texts, held, strict=True) if one and there}) > MOST_TEXTS:
        return None
    seen = [texts[index] for index in _first_seen(cells.indices) if index >= 0 and texts[index]]
    return _numbered(cells, texts, tuple(dict.fromkeys(seen)))


def known_words(column: nw.Series[Any], known: Sequence[str]) -> Words:
    """Read a column of texts, of which only some count."""
    cells = _Cells.of(column)
    return _numbered(cells, [str(one).strip() for one in cells.distinct], tuple(known))


def _numbered(cells: "_Cells", texts: Sequence[str], values: tuple[str, ...]) -> Words:
    """Number the texts of cells as they stand among the values."""
    numbers = {text: number for number, text in enumerate(values)}
    of_distinct = np.array([*(numbers.get(one, -1) for one in texts), -1], np.int16)
    codes = of_distinct[cells.indices]
    return Words(values, codes, int(np.count_nonzero(codes >= 0)))


def _first_seen(indices: npt.NDArray[Any]) -> list[int]:
    """Different numbers, in the order in which they first appear."""
    found = list[int]()
    for begin in range(0, len(indices), _ROWS_AT_ONCE):  # all at once they would be sorted
        fresh, first = np.unique(indices[begin : begin + _ROWS_AT_ONCE], return_index=True)
        seen = set(found)
        found += [int(one) for one in fresh[np.argsort(first)] if one not in seen]
    return found


class _Cells(NamedTuple):
    """The cells of a column: each value once, and which of them each row holds; -1 is none."""

    distinct: list[object]
    indices: npt.NDArray[Any]

    @classmethod
    def of(cls, column: nw.Series[Any]) -> "_Cells":
        try:
            import pyarrow

            arrow = column.to_arrow()
        except (ImportError, TypeError, ValueError):  # no Arrow here, or a column of mixed things
            texts: dict[str, int] = {}
            cells = (None if cell is None or cell != cell else str(cell) for cell in column.to_list())
            indices = [-1 if one is None else texts.setdefault(one, len(texts)) for one in cells]
            return cls([*texts], np.array(indices, np.int32))
        if not pyarrow.types.is_dictionary(arrow.type):
            arrow = arrow.dictionary_encode()
        if isinstance(arrow, pyarrow.ChunkedArray):  # each of its chunks has a list of values of its own
            arrow = arrow.unify_dictionaries().combine_chunks()
        if isinstance(arrow, pyarrow.ChunkedArray):  # of no chunk at all
            arrow = pyarrow.array([], arrow.type)
        numbers = arrow.indices.cast(pyarrow.int32()).fill_null(-1)
        return cls(arrow.dictionary.to_pylist(), numbers.to_numpy(zero_copy_only=False))

    def counts(self) -> npt.NDArray[np.intp]:
        """Count how often each value is there."""
        counts = np.zeros(len(self.distinct) + 1, np.intp)
        for begin in range(0, len(self.indices), _ROWS_AT_ONCE):
            counts += np.bincount(self.indices[begin : begin + _ROWS_AT_ONCE] + 1, minlength=len(counts))
        return counts[1:]


def first_empty(column: nw.Series[Any]) -> int | None:
    """Find the first row without a value."""
    empty = np.asarray(column.is_null().to_numpy())
    if is_text(column) and _holds_blank(column):  # CSV has no other way to leave text out
        empty = empty | np.asarray((column.cast(nw.String) == "").fill_null(False).to_numpy())
    return int(np.argmax(empty)) if empty.any() else None


def _holds_blank(column: nw.Series[Any]) -> bool:
    # Of names that come ten million times, the list of them is enough.
    texts = column.unique() if column.dtype == nw.Categorical else column
    return bool((texts.cast(nw.String) == "").any())


def is_text(column: nw.Series[Any]) -> bool:
    """Tell whether a column holds words."""
    return column.dtype in (nw.String, nw.Object, nw.Categorical) or isinstance(column.dtype, nw.Enum)


def _is_blank(cell: object) -> bool:
    return cell is None or cell != cell or str(cell).strip().lower() in _BLANK


def _number(cell: object) -> float | None:
    text = str(cell).strip()
    try:
        return float(text.replace(",", "") if _IN_THOUSANDS.fullmatch(text) else text)
    except ValueError:
        return None


def _parsed(cells: _Cells, name: str, missing: Missing, *, is_target: bool) -> FloatArray:
    blank = [_is_blank(cell) or str(cell).strip().lower() in missing.words for cell in cells.distinct]
    parsed = [None if empty else _number(cell) for cell, empty in zip(cells.distinct, blank, strict=True)]
    words = [one is None and not empty for one, empty in zip(parsed, blank, strict=True)]
    wrong = np.array([*words, False])[cells.indices]
    if wrong.any():
        row = int(np.argmax(wrong))
        cell = cells.distinct[cells.indices[row]]
        otherwise = "or" if is_target else "leave the column out with `inputs`, or"
        raise RowError(
            f"column {name!r} must hold numbers; {{where}} holds {cell!r}. Correct the cell, {otherwise} say "
            "that it stands for a missing value: `missing` (--missing).",
            row=row,
        )
    values = np.array([*parsed, None], np.float64)  # the last stands for no cell at all
    return np.asarray(values[cells.indices])
