"""Texts of a table -> inputs of 0 and 1: one for each frequent category of the training rows.

::

    sky        sky=sun  sky=rain        known: sun, rain
    sun           1        0
    rain          0        1
    fog           0        0            rare, never seen before, or missing: none of those known

No label is looked at, and no row is refused: what a model does not know is none of what it knows. A panel
holds the categories that are frequent in its own rows, and, until a model says which inputs it wants, the
texts of all rows: :meth:`Panel.with_inputs` makes the inputs of a model from them. ``fit`` takes the
categories that are frequent in its training rows, and a model keeps them.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray
from varnn.data.rules import shown
from varnn.errors import DataError

if TYPE_CHECKING:
    from varnn.data.panel import Panel

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


def encoded(panel: "Panel", texts: Texts, categories: Categories) -> "Panel":
    """Give a panel the inputs of some categories, and its texts."""
    names = [input_name(column, one) for column, known in categories.items() for one in known]
    every = (*panel.input_names, *names)
    if len(set(every)) < len(every):
        twice = next(name for name in names if every.count(name) > 1)
        raise DataError(f"each input needs a name of its own; {twice!r} is there twice. Rename its column.")
    panel = replace(panel, texts=texts, categories=dict(categories))
    if not names:
        return panel
    made = [texts.holds(column, one) for column, known in categories.items() for one in known]
    inputs = np.column_stack([panel.inputs, np.column_stack(made).astype(panel.inputs.dtype)])
    return replace(panel, inputs=inputs, input_names=every)


def with_learnt_inputs(panel: "Panel", training: "Panel") -> "Panel":
    """Keep the categories that are frequent in training rows.

    Examples
    --------
    >>> import polars
    >>> from varnn.data.panel import Panel
    >>> frame = polars.DataFrame({"sky": ["sun", "rain", "sun", "rain", "sun", "fog"], "load": range(6)})
    >>> panel = Panel.from_frame(frame, target="load")
    >>> with_learnt_inputs(panel, panel.between(0, 5)).input_names
    ('sky=sun', 'sky=rain')
    """
    made = set(spelt_out(panel.categories, panel.categories))
    plain = [name for name in panel.input_names if name not in made]
    if training.texts is None:  # then those that are there at all
        there = dict(zip(training.input_names, np.any(training.inputs, axis=0).tolist(), strict=True))
        names = [name for name in panel.input_names if name not in made or there[name]]
        return panel.with_inputs(names)
    learnt = training.texts.frequent(panel.categories)
    return panel.with_inputs([*plain, *spelt_out(learnt, learnt)])


def matched(panel: "Panel", names: Sequence[str], rows: str) -> "Panel":
    """Bring a panel's inputs into an order, made of its texts where they are categories."""
    made: dict[str, npt.NDArray[Any]] = {}
    kept: dict[str, list[str]] = {}
    origin = {
        input_name(column, one): (column, one) for column, known in panel.categories.items() for one in known
    }
    for name in names:
        if name not in panel.input_names:
            pair = _origin(panel, name)
            if pair is None:
                continue
            origin[name] = pair
            made[name] = panel.texts.holds(*pair) if panel.texts is not None else np.empty(0)
        if name in origin:
            kept.setdefault(origin[name][0], []).append(origin[name][1])
    lacking = [name for name in names if name not in made and name not in panel.input_names]
    if lacking:
        raise DataError(
            f"the model was fitted on {len(names)} inputs; {rows} lack {lacking[:5]}. "
            f"They have {list(panel.input_names)[:10]}.{_hint(panel, lacking)}"
        )
    categories = {column: tuple(known) for column, known in kept.items()}
    places = [panel.input_names.index(name) for name in names if name not in made]
    if not made:
        inputs = panel.inputs[:, places]
    else:
        inputs = np.empty((len(panel), len(names)), panel.inputs.dtype)
        inputs[:, [name not in made for name in names]] = panel.inputs[:, places]
        for name, column in made.items():
            inputs[:, list(names).index(name)] = column
    return replace(panel, inputs=inputs, input_names=tuple(names), texts=None, categories=categories)


def _origin(panel: "Panel", name: str) -> tuple[str, str] | None:
    """Column and category of an input that a panel's texts can make; the longest column that fits."""
    columns = [] if panel.texts is None else list(panel.texts.values)
    fitting = [one for one in columns if name.startswith(input_name(one, ""))]
    best = max(fitting, key=len, default=None)
    return None if best is None else (best, name[len(best) + 1 :])


def _hint(panel: "Panel", lacking: Sequence[str]) -> str:
    """Say where texts and numbers were taken for each other."""
    texts = {} if panel.texts is None else panel.texts.values
    for name in lacking:
        if name in texts:
            return f" Column {name!r} held numbers when the model was fitted, and holds texts here."
        column = next((one for one in panel.input_names if name.startswith(input_name(one, ""))), None)
        if column is not None:
            return f" Column {column!r} held texts when the model was fitted, and holds numbers here."
    return ""


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
