"""Operations on arrays that NumPy and numba spell differently: a NumPy call, then the loops numba compiles.

They know nothing of models. Everything else in this package is written once, with these, with ufuncs that
write to an ``out`` array and with `varnn.step.kernel.elementwise` functions. A row of one series takes plain
NumPy as long as the calls it makes, so the NumPy spellings make few.
"""

from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.step.kernel import compiled_form_of, elementwise

ACTIVATIONS = ("relu", "tanh")
_RELU, _TANH = range(len(ACTIVATIONS))
_ZERO = np.float32(0)
_SMALL = 1e-200  # times any number: its square is finite


@elementwise
def larger(left: DoubleArray, right: DoubleArray) -> DoubleArray:
    """Return the larger of two numbers."""
    return np.maximum(left, right)


def activate(stack: FloatArray, activation: int) -> None:
    """Apply one of `ACTIVATIONS`, by its place there, to a stack (E, n, k)."""
    if activation == _TANH:
        np.tanh(stack, out=stack)
    else:
        np.maximum(stack, _ZERO, out=stack)


@compiled_form_of(activate)
def _activate(stack: FloatArray, activation: int) -> None:
    for member in range(stack.shape[0]):
        for row in range(stack.shape[1]):
            for column in range(stack.shape[2]):
                number = stack[member, row, column]
                if activation == _TANH:
                    stack[member, row, column] = np.tanh(number)
                elif number < 0:  # missing numbers stay
                    stack[member, row, column] = 0


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


def copy_marked_rows(marks: DoubleArray, source: DoubleArray, target: DoubleArray) -> None:
    """Copy the rows of a matrix whose marks (n,) are not zero to another matrix."""
    if np.count_nonzero(marks) == len(marks):
        target[:] = source
    else:
        np.copyto(target, source, where=marks[:, None] != 0)


@compiled_form_of(copy_marked_rows)
def _copy_marked_rows(marks: DoubleArray, source: DoubleArray, target: DoubleArray) -> None:
    for row in range(target.shape[0]):
        if marks[row] != 0:
            for column in range(target.shape[1]):
                target[row, column] = source[row, column]


def copy_stack(source: FloatArray, target: FloatArray) -> None:
    """Copy each of E matrices, or one for all: (E or 1, n, k) -> (E, n, k)."""
    target[:] = source


@compiled_form_of(copy_stack)
def _copy_stack(source: FloatArray, target: FloatArray) -> None:
    for member in range(target.shape[0]):
        rows = source[member if source.shape[0] > 1 else 0]
        for row in range(target.shape[1]):
            for column in range(target.shape[2]):
                target[member, row, column] = rows[row, column]


def shift_right(rows: DoubleArray, by: int) -> None:
    """Move the numbers of each row to the right; the first ones stay."""
    rows[:, by:] = rows[:, : rows.shape[1] - by]


@compiled_form_of(shift_right)
def _shift_right(rows: DoubleArray, by: int) -> None:
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1] - 1, by - 1, -1):
            rows[row, column] = rows[row, column - by]


def mark_known(values: DoubleArray, known: DoubleArray, clean: FloatArray) -> None:
    """Mark the values (n,) that are not missing with 1, and others with 0; copy them, 0 if missing."""
    known.fill(1.0)
    clean[:] = values
    if not np.dot(values, values) >= 0:  # a missing one makes the sum missing
        known[values != values] = 0
        clean[known == 0] = 0


@compiled_form_of(mark_known)
def _mark_known(values: DoubleArray, known: DoubleArray, clean: FloatArray) -> None:
    for place in range(len(values)):
        is_known = values[place] == values[place]
        known[place] = 1.0 if is_known else 0.0
        clean[place] = values[place] if is_known else 0.0


def drop_beyond(values: DoubleArray, limit: float) -> None:
    """Make values (n,) missing that are larger in size than a limit."""
    if not np.dot(values, values) <= limit * limit:  # the sum of squares shows that none is
        values[np.abs(values) > limit] = np.nan


@compiled_form_of(drop_beyond)
def _drop_beyond(values: DoubleArray, limit: float) -> None:
    for place in range(len(values)):
        if abs(values[place]) > limit:
            values[place] = np.nan


def are_close(left: DoubleArray, right: DoubleArray, limit: float) -> bool:
    """Tell whether no two numbers at one place of two vectors are farther apart than a limit, or missing."""
    distances = left - right
    return bool(np.dot(distances, distances) <= limit * limit or np.abs(distances).max() <= limit)


@compiled_form_of(are_close)
def _are_close(left: DoubleArray, right: DoubleArray, limit: float) -> bool:
    close = True
    for place in range(len(left)):
        close = close and abs(left[place] - right[place]) <= limit
    return close


def are_marked(marks: DoubleArray) -> bool:
    """Tell whether no mark (n,) is zero."""
    return bool(np.count_nonzero(marks) == len(marks))


@compiled_form_of(are_marked)
def _are_marked(marks: DoubleArray) -> bool:
    marked = True
    for place in range(len(marks)):
        marked = marked and marks[place] != 0
    return marked


def are_within(rows: DoubleArray, limit: float) -> bool:
    """Tell whether no number of a matrix is larger in size than a limit, or missing."""
    flat = rows.ravel() * _SMALL
    return bool(
        np.dot(flat, flat) <= (limit * _SMALL) ** 2 or np.abs(flat).max(initial=0.0) <= limit * _SMALL
    )


@compiled_form_of(are_within)
def _are_within(rows: DoubleArray, limit: float) -> bool:
    within = True
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            within = within and abs(rows[row, column]) <= limit
    return within


def clip_columns(rows: DoubleArray, low: DoubleArray, high: DoubleArray) -> None:
    """Clip each column of a matrix to a range of its own."""
    np.maximum(rows, low, out=rows)
    np.minimum(rows, high, out=rows)


@compiled_form_of(clip_columns)
def _clip_columns(rows: DoubleArray, low: DoubleArray, high: DoubleArray) -> None:
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            rows[row, column] = min(max(rows[row, column], low[column]), high[column])


def standardize(
    rows: DoubleArray, offset: DoubleArray, scale: DoubleArray, limit: float, out: DoubleArray
) -> None:
    """Subtract an offset from each column of a matrix, divide by a scale, and clip to a limit either way."""
    np.subtract(rows, offset, out=out)
    np.divide(out, scale, out=out)
    np.maximum(out, -limit, out=out)
    np.minimum(out, limit, out=out)


@compiled_form_of(standardize)
def _standardize(
    rows: DoubleArray, offset: DoubleArray, scale: DoubleArray, limit: float, out: DoubleArray
) -> None:
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            scaled = (rows[row, column] - offset[column]) / scale[column]
            out[row, column] = min(max(scaled, -limit), limit)


def shrink_rows(rows: DoubleArray, limit: float) -> None:
    """Scale down the rows of a matrix in which a number is larger than a limit; infinity becomes 0."""
    flat = rows.ravel()
    if not np.dot(flat, flat) <= limit * limit:
        with np.errstate(invalid="ignore"):  # infinity times 0
            rows *= limit / np.maximum(np.abs(rows).max(axis=1, keepdims=True), limit)
        rows[~np.isfinite(rows)] = 0.0


@compiled_form_of(shrink_rows)
def _shrink_rows(rows: DoubleArray, limit: float) -> None:
    for row in range(rows.shape[0]):
        largest = limit
        for column in range(rows.shape[1]):
            largest = max(largest, abs(rows[row, column]))
        for column in range(rows.shape[1]):
            number = rows[row, column] * (limit / largest)
            rows[row, column] = number if abs(number) < np.inf else 0.0


def clear_beyond(stack: FloatArray, limit: float) -> None:
    """Zero each row of a stack (E, n, k) in which a number is beyond a limit or missing."""
    if stack.size and not np.abs(stack).max() <= limit:
        stack[~(np.abs(stack).max(axis=2) <= limit)] = 0


@compiled_form_of(clear_beyond)
def _clear_beyond(stack: FloatArray, limit: float) -> None:
    for member in range(stack.shape[0]):
        for row in range(stack.shape[1]):
            beyond = 0
            for column in range(stack.shape[2]):
                beyond += not abs(stack[member, row, column]) <= limit
            if beyond:
                for column in range(stack.shape[2]):
                    stack[member, row, column] = 0


def stacked_products(rows: FloatArray, matrices: FloatArray, out: FloatArray) -> None:
    """Multiply matrices, one pair after the other: (E, n, I) and (E, I, K) -> (E, n, K)."""
    np.matmul(rows, matrices, out=out)


@compiled_form_of(stacked_products)
def _stacked_products(rows: FloatArray, matrices: FloatArray, out: FloatArray) -> None:
    for member in range(matrices.shape[0]):
        np.dot(rows[member], matrices[member], out[member])


def products(rows: DoubleArray, vector: DoubleArray, out: DoubleArray) -> None:
    """Multiply a matrix and a vector: (n, S) and (S,) -> (n,)."""
    np.dot(rows, vector, out)


@compiled_form_of(products)
def _products(rows: DoubleArray, vector: DoubleArray, out: DoubleArray) -> None:
    for row in range(rows.shape[0]):
        out[row] = _inner_product(rows[row], vector)


def transposed_product(rows: DoubleArray, matrix: DoubleArray, out: DoubleArray) -> None:
    """Multiply a transposed matrix and another one: (Q, n) and (Q, X) -> (n, X)."""
    np.dot(rows.T, matrix, out)


@compiled_form_of(transposed_product)
def _transposed_product(rows: DoubleArray, matrix: DoubleArray, out: DoubleArray) -> None:
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            total = 0.0
            for place in range(rows.shape[0]):
                total += rows[place, row] * matrix[place, column]
            out[row, column] = total


def split_product(rows: DoubleArray, matrix: DoubleArray, left: DoubleArray, right: DoubleArray) -> None:
    """Multiply (n, T) and (T, 2 L); the first L columns go to one matrix, and the others to another one."""
    product = np.dot(rows, matrix)
    left[:] = product[:, : left.shape[1]]
    right[:] = product[:, left.shape[1] :]


@compiled_form_of(split_product)
def _split_product(rows: DoubleArray, matrix: DoubleArray, left: DoubleArray, right: DoubleArray) -> None:
    width = left.shape[1]
    for row in range(rows.shape[0]):
        for column in range(2 * width):
            total = 0.0
            for place in range(rows.shape[1]):
                total += rows[row, place] * matrix[place, column]
            if column < width:
                left[row, column] = total
            else:
                right[row, column - width] = total


def whiten(rows: DoubleArray, matrices: DoubleArray, out: DoubleArray) -> None:
    """Multiply rows with transposed matrices: (E or 1, n, I) and (E, K, I) -> (E, n, K)."""
    np.matmul(rows, matrices.transpose(0, 2, 1), out=out)


@compiled_form_of(whiten)
def _whiten(rows: DoubleArray, matrices: DoubleArray, out: DoubleArray) -> None:
    for member in range(matrices.shape[0]):
        own = rows[member if rows.shape[0] > 1 else 0]
        if rows.shape[1] == 1:  # quicker than BLAS
            for column in range(matrices.shape[1]):
                out[member, 0, column] = _inner_product(own[0], matrices[member, column])
        else:
            np.dot(own, matrices[member].T, out[member])


def inner_products(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """Compute inner products of the rows of two matrices: (n, S) and (n, S) -> (n,)."""
    np.matmul(left[:, None, :], right[:, :, None], out=out[:, None, None])


@compiled_form_of(inner_products)
def _inner_products(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    for row in range(left.shape[0]):
        out[row] = _inner_product(left[row], right[row])


def row_products(rows: FloatArray, others: FloatArray, out: FloatArray) -> None:
    """Compute inner products of rows: (E, R, n, S) and (E, n, S) -> (E, R, n)."""
    np.matmul(rows[..., None, :], others[:, None, :, :, None], out=out[..., None, None])


@compiled_form_of(row_products)
def _row_products(rows: FloatArray, others: FloatArray, out: FloatArray) -> None:
    for member in range(rows.shape[0]):
        for rate in range(rows.shape[1]):
            for series in range(rows.shape[2]):
                out[member, rate, series] = _inner_product(rows[member, rate, series], others[member, series])


def _inner_product(left: FloatArray, right: FloatArray) -> Any:
    """Compute an inner product; a function of its own, as otherwise numba does not vectorize it."""
    return np.dot(left, right)


@compiled_form_of(_inner_product)
def _sum_of_products(left: FloatArray, right: FloatArray) -> Any:
    total = left.dtype.type(0)
    for place in range(len(left)):
        total += left[place] * right[place]
    return total


def fade_and_add(
    rows: DoubleArray, known: DoubleArray, leak: float, factors: DoubleArray, news: DoubleArray
) -> None:
    """Compute rows <- leak * rows + factors * news of known series, and leave others.

    Shapes are (E, R, n, S), (n,), (E, R, n) and (E, n, S).
    """
    if np.count_nonzero(known) == len(known):
        rows *= leak
    else:
        factors = factors * known
        rows *= np.where(known, leak, 1.0)[:, None]
    rows += factors[..., None] * news[:, None]


@compiled_form_of(fade_and_add)
def _fade_and_add(
    rows: DoubleArray, known: DoubleArray, leak: float, factors: DoubleArray, news: DoubleArray
) -> None:
    for member in range(rows.shape[0]):
        for rate in range(rows.shape[1]):
            for series in range(rows.shape[2]):
                if known[series] != 0:
                    _fade_and_add_row(
                        rows[member, rate, series], leak, factors[member, rate, series], news[member, series]
                    )


def _fade_and_add_row(row: DoubleArray, leak: float, factor: float, news: DoubleArray) -> None:
    row *= leak
    row += factor * news


@compiled_form_of(_fade_and_add_row)
def _fade_and_add_row_loop(row: DoubleArray, leak: float, factor: float, news: DoubleArray) -> None:
    for place in range(len(row)):
        row[place] = leak * row[place] + factor * news[place]


def running_maximum(rows: DoubleArray) -> None:
    """Replace each number of a row by the largest up to it: (n, T)."""
    np.maximum.accumulate(rows, axis=1, out=rows)


@compiled_form_of(running_maximum)
def _running_maximum(rows: DoubleArray) -> None:
    for row in range(rows.shape[0]):
        for column in range(1, rows.shape[1]):
            rows[row, column] = max(rows[row, column], rows[row, column - 1])


def sum_trees(
    rows: FloatArray, splits: tuple[IntArray, DoubleArray, IntArray], value: DoubleArray, out: DoubleArray
) -> None:
    """Sum what regression trees predict of rows (n, F): T trees of up to S splits.

    ``splits`` are features, thresholds and leaves to the left, (S, T) each, ``value`` of leaves (S + 1, T).
    Leaves are numbered from left to right, and each one to the left below a split has a bit. A row
    whose feature is above the threshold of a split cannot be in these; of all leaves that no split rules out,
    it is in the first (QuickScorer; see `varnn.model.boosting`).
    """
    (feature, threshold, left), trees = splits, np.arange(value.shape[1])
    for place, row in enumerate(rows):
        ruled_out = np.bitwise_or.reduce((row.take(feature) > threshold) * left, axis=0)  # (T,)
        lowest = ~ruled_out & (ruled_out + 1)  # bit that is not set
        leaf = np.frexp(lowest.astype(np.float64))[1] - 1
        out[place] = value[leaf, trees].sum()


@compiled_form_of(sum_trees)
def _sum_trees(
    rows: FloatArray, splits: tuple[IntArray, DoubleArray, IntArray], value: DoubleArray, out: DoubleArray
) -> None:
    feature, threshold, left = splits
    n_splits, trees = threshold.shape
    for row in range(rows.shape[0]):
        out[row] = 0.0
        for tree in range(trees):
            ruled_out = 0
            for split in range(n_splits):
                if rows[row, feature[split, tree]] > threshold[split, tree]:
                    ruled_out |= left[split, tree]
            leaf = 0
            while ruled_out & (1 << leaf):
                leaf += 1
            out[row] += value[leaf, tree]
