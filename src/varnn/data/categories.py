"""Texts of a table -> inputs of 0 and 1: one for each frequent category of the training rows.

::

    sky        sky=sun  sky=rain        known: sun, rain
    sun           1        0
    rain          0        1
    fog           0        0            rare, never seen before, or missing: none of those known

No label is looked at, and no row is refused: what a model does not know is none of what it knows. A panel
holds the categories that are frequent in its own rows, and, until a model says which inputs it wants, the
texts of all rows: ``Panel.with_inputs`` makes the inputs of a model from them. ``fit`` takes the
categories that are frequent in its training rows, and a model keeps them.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, FloatArray
from varnn.data.rules import shown
from varnn.errors import DataError

MOST_INPUTS = 8  # of one column
MOST_VALUES = 50  # different texts of a column; with more they are names, or notes
_FREQUENT = 0.01  # share of the rows from which on a category is learnt from

Categories = Mapping[str, tuple[str, ...]]  # columns, and of each the categories that have an input
Codes = npt.NDArray[np.int16]


class Texts(NamedTuple):
    """Text columns: the different texts of each, and which of them each row holds."""

    values: dict[str, tuple[str, ...]]  # by column, in the order in which they first appear
    codes: Codes  # (N, columns); -1 is none of them

    def at(self, rows: Any) -> "Texts":
        """Texts of some rows."""
        return self._replace(codes=self.codes[rows])

    def frequent(self, columns: Collection[str]) -> Categories:
        """Categories to learn from: the most frequent ones, ties in the order in which they first appear.

        Examples
        --------
        >>> texts = Texts({"sky": ("fog", "sun", "rain")}, np.array([[0], [1], [2], [1], [2]], np.int16))
        >>> texts.frequent(["sky"])
        {'sky': ('sun', 'rain', 'fog')}
        """
        found = {}
        for place, (column, values) in enumerate(self.values.items()):
            if column not in columns:
                continue
            codes = self.codes[:, place]
            counts = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
            order = np.argsort(-counts, kind="stable")[:MOST_INPUTS]
            least = max(1, _FREQUENT * len(codes))
            # What all rows hold tells nothing.
            learnt = [one for one in order if least <= counts[one] < len(codes)]
            found[column] = tuple(values[one] for one in learnt)
        return found

    def holds(self, column: str, category: str) -> BoolArray:
        """Tell which rows hold a category, (N,)."""
        place, values = list(self.values).index(column), self.values[column]
        code = values.index(category) if category in values else -2
        found: BoolArray = self.codes[:, place] == code
        return found


def input_name(column: str, category: str) -> str:
    """Name of the input that tells a category.

    Examples
    --------
    >>> input_name("sky", "sun")
    'sky=sun'
    """
    return f"{column}={category}"


def source_columns(input_names: Iterable[str], categories: Categories) -> list[str]:
    """Columns of a table that inputs are made from, each once.

    Examples
    --------
    >>> source_columns(["heat", "sky=sun", "sky=rain"], {"sky": ("sun", "rain")})
    ['heat', 'sky']
    """
    made_from = {input_name(column, one): column for column, known in categories.items() for one in known}
    return list(dict.fromkeys(made_from.get(name, name) for name in input_names))


def spelt_out(columns: Iterable[str], categories: Categories) -> list[str]:
    """Names of the inputs that columns are made into.

    Examples
    --------
    >>> spelt_out(["sky", "heat"], {"sky": ("sun", "rain")})
    ['sky=sun', 'sky=rain', 'heat']
    """
    names = []
    for column in columns:
        known = categories.get(column)
        names += [column] if known is None else [input_name(column, one) for one in known]
    return names


def are_categories(n_values: int, n_cells: int) -> bool:
    """Tell whether so many different texts in so many cells are categories, and not names or notes.

    Examples
    --------
    >>> are_categories(3, 6), are_categories(4, 6), are_categories(60, 10**6)
    (True, False, False)
    """
    return 0 < n_values <= min(MOST_VALUES, n_cells // 2)


class Inputs(NamedTuple):
    """Inputs of all rows, their names, and those of them that are categories."""

    values: FloatArray  # (N, D)
    names: tuple[str, ...]
    categories: Categories

    def with_categories(self, texts: Texts, categories: Categories) -> "Inputs":
        """Add inputs of categories."""
        made = [texts.holds(column, one) for column, known in categories.items() for one in known]
        names = (*self.names, *spelt_out(categories, categories))
        if len(set(names)) < len(names):
            twice = next(one for one in names if names.count(one) > 1)
            raise DataError(
                f"each input needs a name of its own; {twice!r} is there twice. Rename its column."
            )
        values = np.column_stack([self.values, *made]).astype(self.values.dtype) if made else self.values
        return Inputs(values, names, dict(categories))

    def matched(self, names: tuple[str, ...], texts: Texts | None, rows: str) -> "Inputs":
        """Bring inputs into an order, made of texts where they are categories; refuse rows that lack some."""
        pairs = {
            input_name(column, one): (column, one)
            for column, known in self.categories.items()
            for one in known
        }
        pairs |= {name: pair for name in names if name not in self.names and (pair := _pair(name, texts))}
        lacking = [name for name in names if name not in self.names and name not in pairs]
        if lacking:
            raise DataError(
                f"the model was fitted on {len(names)} inputs; {rows} lack {lacking[:5]}. "
                f"They have {list(self.names)[:10]}.{self._hint(lacking, texts)}"
            )
        categories: dict[str, tuple[str, ...]] = {}
        for column, category in (pairs[name] for name in names if name in pairs):
            categories[column] = (*categories.get(column, ()), category)
        there = [name in self.names for name in names]
        places = [self.names.index(name) for name in names if name in self.names]
        if texts is None or all(there):
            return Inputs(self.values[:, places], names, categories)
        values = np.empty((len(self.values), len(names)), self.values.dtype)
        values[:, there] = self.values[:, places]
        for place, name in enumerate(names):
            if not there[place]:
                values[:, place] = texts.holds(*pairs[name])
        return Inputs(values, names, categories)

    def _hint(self, lacking: Sequence[str], texts: Texts | None) -> str:
        """Say where texts and numbers were taken for each other."""
        for name in lacking:
            if texts is not None and name in texts.values:
                return f" Column {name!r} held numbers when the model was fitted, and holds texts here."
            column = next((one for one in self.names if name.startswith(input_name(one, ""))), None)
            if column is not None:
                return f" Column {column!r} held texts when the model was fitted, and holds numbers here."
        return ""


def _pair(name: str, texts: Texts | None) -> tuple[str, str] | None:
    """Column and category of an input that texts can make; the longest column that fits."""
    columns = [] if texts is None else [one for one in texts.values if name.startswith(input_name(one, ""))]
    best = max(columns, key=len, default=None)
    return None if best is None else (best, name.removeprefix(input_name(best, "")))


def category_numbers(cell: Any, column: str, known: Sequence[str]) -> list[float]:
    """Numbers of the inputs of one text: 1 for the category that it is, and 0 for the others.

    Examples
    --------
    >>> category_numbers("rain", "sky", ("sun", "rain")), category_numbers(None, "sky", ("sun", "rain"))
    ([0.0, 1.0], [0.0, 0.0])
    """
    missing = cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell))
    if not missing and not isinstance(cell, str):
        raise DataError(
            f"input {column!r} must be a text, such as {shown(known[0])}, or missing: it held texts when the "
            f"model was fitted; got {shown(cell)}."
        )
    text = "" if missing else cell.strip()
    return [float(text == one) for one in known]
