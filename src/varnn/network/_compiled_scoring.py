"""Scoring of RM with relu memory, without a product with its memory; needs numba (``varnn[fast]``).

The memory of RM is a function of one number, the last error, so what it adds to the hidden layer comes
from the table of `varnn.network.engines._piecewise`. A window under way is then two numbers: that error, and
the segment of the table it lies in. Rows are taken one after another, each by all w windows that contain it
while its projection is in the processor's nearest cache; only the projections are left to BLAS.
"""

from typing import Any

import numpy as np

from varnn._types import FloatArray
from varnn.network.cell import Architecture, Weights
from varnn.network.engines._piecewise import Integers, break_points, segment_of, tabulate
from varnn.network.jit import Scalar, kernel

_CHUNK_FLOATS = 1 << 15  # projected at a time, 128 kB in single precision: they wait in a core's own cache


def score_compiled(
    architecture: Architecture,
    weights: Weights,
    inputs: FloatArray,
    target: FloatArray,
    first_rows: Integers,
    window: int,
) -> FloatArray:
    """One-step predictions (E, N), those of `varnn.network.scoring.score` to rounding.

    Parameters
    ----------
    architecture : Architecture
        The cell, one of `varnn.network.handled.PIECEWISE_LINEAR`.
    weights : Weights
        Its matrices, with a leading axis of E members.
    inputs, target, first_rows : array
        All rows (N, D), (N,) and the row at which each row's series begins (N,). Inputs, target and
        weights are of one precision.
    window : int
        Rows in a full window.

    Examples
    --------
    >>> from varnn.network.cell import initial_weights
    >>> cell = Architecture.of("RM", n_inputs=2, hidden_size=4)
    >>> drawn = initial_weights(cell, seed=0).as_dict()
    >>> weights = Weights(**{name: matrix[None] for name, matrix in drawn.items()})
    >>> rows, labels = np.ones((9, 2), np.float32), np.arange(9, dtype=np.float32)
    >>> score_compiled(cell, weights, rows, labels, np.zeros(9, np.int64), window=3).shape
    (1, 9)
    """
    predictions = np.empty((len(weights.fusion), len(target)), inputs.dtype)
    chunk = max(1, _CHUNK_FLOATS // architecture.hidden_size)
    projected: FloatArray = np.empty((chunk, architecture.hidden_size), inputs.dtype)
    for member, predicted in enumerate(predictions):
        one = _Member(architecture, weights, member, window)
        for begin in range(0, len(target), chunk):
            here = slice(begin, begin + chunk)
            labels = np.array(target[here])
            context = np.arange(begin, begin + len(labels)) - first_rows[here]  # labelled rows at hand
            rows = np.matmul(inputs[here], one.of_inputs, out=projected[: len(labels)])
            one.predict(rows, labels, context, out=predicted[here])
    return predictions


class _Member:
    """One member's weights as the kernel wants them, and its windows under way from chunk to chunk."""

    def __init__(self, architecture: Architecture, weights: Weights, member: int, window: int) -> None:
        # Copies: a kernel is compiled anew for arrays that may not be written to or are not contiguous.
        named = {name: np.array(matrix[member], order="C") for name, matrix in weights.as_dict().items()}
        self.of_inputs, of_memory = np.split(named["fusion"], [architecture.n_inputs])
        self.readout = named["readout"].ravel()
        self.readout_bias = named["readout_bias"][0, 0]
        kind = self.readout.dtype
        self.table: FloatArray = np.empty((architecture.memory_size + 2, 2, architecture.hidden_size), kind)
        breaks = break_points(named["error"][0], named["error_bias"][0])
        order = np.argsort(breaks)
        tabulate(of_memory, named["error"][0], named["error_bias"][0], order, self.table)
        self.breaks = breaks[order]
        self.table[:, 1] += named["fusion_bias"]  # every row needs it too, so that it need not be added
        # By age: the steps a window has made. One that begins has no memory, the last entry of the table.
        self.errors: FloatArray = np.zeros(window, kind)
        self.segments = np.full(window, len(self.table) - 1)

    def predict(
        self, projected: FloatArray, labels: FloatArray, context: Integers, *, out: FloatArray
    ) -> None:
        """Predict the rows that follow those of the call before."""
        _walk(
            projected, labels, context,
            self.readout, self.readout_bias, self.table, self.breaks, self.errors, self.segments, out,
        )  # fmt: skip


# A function of its own for the reason given in `varnn.network.engines._piecewise`.
@kernel
def _predict(
    projected: FloatArray, error: Scalar, slope: FloatArray, intercept: FloatArray, readout: FloatArray
) -> Any:
    """Compute u w_o for u = relu(x W_x + e A + B)."""
    zero = projected.dtype.type(0)
    y_hat = zero
    for k in range(len(projected)):
        z = projected[k] + error * slope[k] + intercept[k]
        y_hat += readout[k] * (zero if z <= zero else z)  # a NaN stays one
    return y_hat


@kernel
def _walk(
    projected: FloatArray, labels: FloatArray, context: Integers,
    readout: FloatArray, readout_bias: Scalar, table: FloatArray, breaks: FloatArray,
    errors: FloatArray, segments: Integers, predictions: FloatArray,
) -> None:  # fmt: skip
    """Take each row by all windows under way, the oldest first: its place is then free for the next."""
    full = len(errors) - 1
    for row in range(len(labels)):
        oldest = min(context[row], full)
        for age in range(oldest, -1, -1):
            error, segment = errors[age], segments[age]
            slope, intercept = table[segment, 0], table[segment, 1]
            y_hat = readout_bias + _predict(projected[row], error, slope, intercept, readout)
            if age == oldest:
                predictions[row] = y_hat
            if age == full:
                continue
            if not np.isnan(labels[row]):
                error = labels[row] - y_hat
                segment = segment_of(error, breaks)
            errors[age + 1], segments[age + 1] = error, segment
