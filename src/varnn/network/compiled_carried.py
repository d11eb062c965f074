"""The cell with a state that is carried, compiled; needs numba (``varnn[fast]``).

What `varnn.network.carried` does, one member and one row at a time, for the cells of the default and its
relatives. All that a step reads lies in one row of numbers; each layer is a product with a part of it ::

    e  1  h_1 .. h_M  u_1 .. u_K  x_1 .. x_D
       [------------ hidden layer -----------]
    [--- memory ---]

Shapes: N rows, D inputs, K hidden, M memory; U is K with activation memory, and 0 without.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray, IntArray
from varnn.network import compiled_code
from varnn.network.cell import Architecture, Weights
from varnn.network.compiled_code import in_one_layout
from varnn.network.compiled_products import is_within, layer, product_of
from varnn.network.handled import ANY, HandledCells
from varnn.network.jit import Scalar, kernel

Float32 = npt.NDArray[np.float32]

BEFORE = 2  # numbers before the state in a row: the error and 1
LARGEST = 1e19  # limit of states: its square is finite in single precision

CELLS = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False, True),
        "activation_memory": (False, True),
        "residual": ("projected",),
        "memory_activation": ("relu",),
        "horizon": ANY,
    }
)


class StepMatrices(NamedTuple):
    """Matrices of all members, as the functions below take them one by one."""

    to_hidden: Float32  # (E, K, 1 + M + U + D): from [1 h u x]
    readout: Float32  # (E, K)
    readout_bias: Float32  # (E,)
    to_memory: Float32  # (E, M, 2 + M): from [e 1 h]; (E, M, 2) where the memory does not accumulate

    @classmethod
    def of(cls, architecture: Architecture, weights: Weights) -> "StepMatrices":
        """Put a cell's weights together."""
        inputs, state = np.split(weights.fusion, [architecture.n_inputs], axis=1)
        news = [weights.error, weights.error_bias]
        return cls(
            to_hidden=_transposed([weights.fusion_bias, state, inputs]),
            readout=in_one_layout(weights.readout[..., 0]),
            readout_bias=np.ascontiguousarray(weights.readout_bias[:, 0, 0]),
            to_memory=_transposed([*news, weights.carry] if architecture.accumulate else news),
        )


def _transposed(matrices: list[Float32]) -> Float32:
    """Put matrices (E, I, J) below each other: (E, J, I)."""
    return np.ascontiguousarray(np.concatenate(matrices, axis=1).swapaxes(1, 2))


def go_through(
    architecture: Architecture,
    weights: Weights,
    limit: float,
    states: Float32,
    inputs: Float32,
    target: Float32,
    starts: IntArray,
    predictions: Float32,
    memory: Float32,
    hidden: Float32,
) -> None:
    """Fill in what scoring gives of all rows, and carry states (E, n, any) on; members go side by side."""
    matrices = StepMatrices.of(architecture, weights)
    inputs, labels, starts = (in_one_layout(one) for one in (inputs, target, starts))
    most = np.float32(min(limit, LARGEST))

    def one(member: int) -> None:
        state = np.ascontiguousarray(states[member])
        own: Any = [matrix[member] for matrix in matrices]
        found: Any = [hidden[member], predictions[member], memory[member]]
        carried_rows(inputs, labels, starts, state, most, *own, *found)
        states[member] = state

    compiled_code.on_all_cores(one, range(len(predictions)))


@kernel
def advance(
    row: FloatArray, to_hidden: FloatArray, readout: FloatArray, bias: Scalar, hidden: FloatArray
) -> Scalar:
    """Compute hidden layer and output of a row whose state and inputs are there."""
    layer(to_hidden, row[1:], hidden)
    return product_of(hidden, readout) + bias


@kernel
def remember(
    known: bool,
    error: Scalar,
    hidden: FloatArray,
    row: FloatArray,
    state: int,
    to_memory: FloatArray,
    limit: Scalar,
    news: FloatArray,
) -> None:
    """Take in the error of a row, where its label is known; one that is no number makes a state begin anew.

    ``state`` is how wide the state is, and ``news`` (M,) scratch.
    """
    width = len(news)
    if known:
        row[0] = error
        layer(to_memory, row[: to_memory.shape[1]], news)
        row[BEFORE : BEFORE + width] = news
    if state > width:  # activation memory needs no label
        row[BEFORE + width : BEFORE + state] = hidden
    if not is_within(row[BEFORE : BEFORE + state], limit):
        row[BEFORE : BEFORE + state] = 0


@kernel
def carried_rows(
    inputs: FloatArray,
    labels: FloatArray,
    starts: IntArray,
    states: FloatArray,
    limit: Scalar,
    to_hidden: FloatArray,
    readout: FloatArray,
    bias: Scalar,
    to_memory: FloatArray,
    hidden: FloatArray,
    outputs: FloatArray,
    memory: FloatArray,
) -> None:
    """Go through the rows of all series for one member.

    Parameters
    ----------
    inputs, labels, starts : arrays of shape (N, D), (N,) and (series + 1,)
        Inputs, labels with NaN where missing, and where series begin.
    states, limit : array of shape (series, M + U), float
        States, which are changed, and the size from which on one begins anew.
    to_hidden, readout, bias, to_memory
        Those of :class:`StepMatrices`.
    hidden, outputs, memory : arrays of shape (N, K), (N,) and (N, M)
        What is filled in, outputs always, others where they have rows; memory is as before each row.
    """
    width, size = to_memory.shape[0], states.shape[1]
    news, now = np.empty(width, states.dtype), np.empty(len(readout), states.dtype)
    row = np.ones(1 + to_hidden.shape[1], states.dtype)
    for series in range(len(states)):
        row[BEFORE : BEFORE + size] = states[series]
        for place in range(starts[series], starts[series + 1]):
            if len(memory):
                memory[place] = row[BEFORE : BEFORE + width]
            row[BEFORE + size :] = inputs[place]
            outputs[place] = advance(row, to_hidden, readout, bias, now)
            if len(hidden):
                hidden[place] = now
            label = labels[place]
            remember(label == label, label - outputs[place], now, row, size, to_memory, limit, news)
        states[series] = row[BEFORE : BEFORE + size]
