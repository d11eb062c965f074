"""Operations on arrays that NumPy and numba spell differently: a NumPy call, then the loops numba compiles.

They know nothing of models. Everything else in this package is written once, with these, with ``np.dot`` and
with ufuncs that write to an ``out`` array, which both libraries run at full speed.
"""

from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.step.kernel import compiled_form_of, kernel


def copy(source: FloatArray, target: FloatArray) -> None:
    """Copy one vector to another."""
    target[:] = source


@compiled_form_of(copy)
def _copy(source: FloatArray, target: FloatArray) -> None:
    for place in range(len(target)):
        target[place] = source[place]


def copy_rows(source: FloatArray, target: FloatArray) -> None:
    """Copy one matrix to another."""
    target[:] = source


@compiled_form_of(copy_rows)
def _copy_rows(source: FloatArray, target: FloatArray) -> None:
    for row in range(target.shape[0]):
        for column in range(target.shape[1]):
            target[row, column] = source[row, column]


def spread(source: FloatArray, target: FloatArray) -> None:
    """Copy each of E matrices (E, n, k), or one for all (1, n, k), to a stack (E, A n, k), A times each."""
    members, rows, width = target.shape
    n_rows = source.shape[1]
    if n_rows == rows:
        target[:] = source
    elif n_rows:
        target.reshape(members, rows // n_rows, n_rows, width)[:] = source[:, None]


@compiled_form_of(spread)
def _spread(source: FloatArray, target: FloatArray) -> None:
    n_rows = source.shape[1]
    for member in range(target.shape[0]):
        rows = source[member if source.shape[0] > 1 else 0]
        for row in range(target.shape[1]):
            for column in range(target.shape[2]):
                target[member, row, column] = rows[row % n_rows, column]


def shift_right(rows: DoubleArray, by: int) -> None:
    """Move the numbers of each row to the right; the first ones stay."""
    rows[:, by:] = rows[:, : rows.shape[1] - by]


@compiled_form_of(shift_right)
def _shift_right(rows: DoubleArray, by: int) -> None:
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1] - 1, by - 1, -1):
            rows[row, column] = rows[row, column - by]


def copy_known(source: DoubleArray, target: DoubleArray) -> None:
    """Copy one vector to another, except for missing numbers."""
    np.copyto(target, source, where=source == source)


@compiled_form_of(copy_known)
def _copy_known(source: DoubleArray, target: DoubleArray) -> None:
    for place in range(len(target)):
        if source[place] == source[place]:
            target[place] = source[place]


def fill_missing(source: DoubleArray, number: float, target: DoubleArray) -> None:
    """Copy one vector to another with a number in place of missing ones."""
    target[:] = source
    target[source != source] = number


@compiled_form_of(fill_missing)
def _fill_missing(source: DoubleArray, number: float, target: DoubleArray) -> None:
    for place in range(len(target)):
        target[place] = source[place] if source[place] == source[place] else number


def drop_beyond(source: DoubleArray, limit: float, target: DoubleArray) -> None:
    """Copy one vector to another; numbers larger in size than a limit are missing."""
    target[:] = source
    target[np.abs(source) > limit] = np.nan


@compiled_form_of(drop_beyond)
def _drop_beyond(source: DoubleArray, limit: float, target: DoubleArray) -> None:
    for place in range(len(target)):
        target[place] = np.nan if abs(source[place]) > limit else source[place]


def row_products(rows: DoubleArray, others: DoubleArray, out: DoubleArray) -> None:
    """Compute inner products of rows: (E, R, n, S) and (E, n, S) -> (E, R, n)."""
    np.matmul(rows[..., None, :], others[:, None, :, :, None], out=out[..., None, None])


@compiled_form_of(row_products)
def _row_products(rows: DoubleArray, others: DoubleArray, out: DoubleArray) -> None:
    for member in range(rows.shape[0]):
        for rate in range(rows.shape[1]):
            for series in range(rows.shape[2]):
                out[member, rate, series] = _inner_product(rows[member, rate, series], others[member, series])


@kernel
def _inner_product(left: DoubleArray, right: DoubleArray) -> Any:
    """Compute an inner product; a function of its own, as otherwise numba does not vectorize it."""
    total = 0.0
    for place in range(len(left)):
        total += left[place] * right[place]
    return total


def fade_and_add(rows: DoubleArray, fading: DoubleArray, factors: DoubleArray, news: DoubleArray) -> None:
    """Compute rows <- fading * rows + factors * news: (E, R, n, S), (n,), (E, R, n) and (E, n, S)."""
    np.multiply(rows, fading[:, None], out=rows)
    np.add(rows, factors[..., None] * news[:, None], out=rows)


@compiled_form_of(fade_and_add)
def _fade_and_add(rows: DoubleArray, fading: DoubleArray, factors: DoubleArray, news: DoubleArray) -> None:
    for member in range(rows.shape[0]):
        for rate in range(rows.shape[1]):
            for series in range(rows.shape[2]):
                factor = factors[member, rate, series]
                _fade_and_add_row(rows[member, rate, series], fading[series], factor, news[member, series])


@kernel
def _fade_and_add_row(row: DoubleArray, fading: float, factor: float, news: DoubleArray) -> None:
    for place in range(len(row)):
        row[place] = fading * row[place] + factor * news[place]


def running_maximum(rows: DoubleArray) -> None:
    """Replace each number of a row by the largest up to it: (n, T)."""
    np.maximum.accumulate(rows, axis=1, out=rows)


@compiled_form_of(running_maximum)
def _running_maximum(rows: DoubleArray) -> None:
    for row in range(rows.shape[0]):
        for column in range(1, rows.shape[1]):
            rows[row, column] = max(rows[row, column], rows[row, column - 1])
