"""The cell with one state that goes through a series from its first row to its last, on NumPy.

A cell that was trained on windows need not begin a window for every row it predicts: its state may be carried
on. That is a w-th of the arithmetic, and gives what windows of w rows give but for what lies further back,
which a trained memory has all but forgotten.

With the symbols of `varnn.network.cell`, [h u] being one buffer of all members and series ::

    u <- relu(x W_x + b_z + [h u] [W_m; W_u])      y_hat = u W_o + b_o
    h <- rho(h W_h + (y - y_hat) W_e + b_e)

A cell that never saw more than a window may be one whose state grows without end. So there is a limit, beyond
anything that the training rows gave rise to, at which a state begins anew, as at the first row of a series.

Shapes: E members, n series in step, D inputs, K hidden, M memory.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, IntArray
from varnn.network import cell, compiled_code
from varnn.network.cell import Architecture, Weights
from varnn.network.handled import ANY, HandledCells
from varnn.network.scoring import Scores

Float32 = npt.NDArray[np.float32]

# A cell with anything else is refused: this is an implementation of its own, not the cell's.
CELLS = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False, True),
        "activation_memory": (False, True),
        "residual": ("projected", "scalar", "none"),
        "memory_activation": ("relu", "tanh"),
        "horizon": ANY,  # read from the hidden layer by those who forecast
    }
)


class CarriedCell:
    """The cells of all members, at work on n series in step.

    Parameters
    ----------
    architecture, weights : Architecture, Weights
        The cell; matrices have a leading axis of members.
    n_series : int
        Series, n.
    limit : float, default=inf
        Size of a state from which on it begins anew.

    Examples
    --------
    >>> from varnn.network.cell import initial_weights
    >>> rm = Architecture.of("RM", n_inputs=2, hidden_size=4)
    >>> drawn = {name: matrix[None] for name, matrix in initial_weights(rm, seed=0).as_dict().items()}
    >>> one = CarriedCell(rm, Weights(**drawn), n_series=1)
    >>> hidden, outputs = one.advance(one.project(np.ones((1, 2), np.float32)))
    >>> one.remember(np.array([0.5], np.float32))
    >>> hidden.shape, outputs.shape, one.state.shape
    ((1, 1, 4), (1, 1), (1, 1, 2))
    """

    def __init__(
        self, architecture: Architecture, weights: Weights, n_series: int, limit: float = np.inf
    ) -> None:
        CELLS.check(architecture, by="a state that is carried")
        self.architecture, self.weights, self.limit = architecture, weights, limit
        self._recall = weights.fusion[:, architecture.n_inputs :]  # [W_m; W_u]: (E, M [+ K], K)
        members, width, hidden = self._recall.shape
        self.state: Float32 = np.zeros((members, n_series, width), np.float32)  # [h u]
        self._hidden: Float32 = np.zeros((members, n_series, hidden), np.float32)
        self._outputs: Float32 = np.zeros((members, n_series, 1), np.float32)
        self._zeros: Float32 = np.zeros_like(self._hidden)  # quicker to compare with than the number 0

    def project(self, inputs: Float32) -> Float32:
        """Project inputs (n, D) into the hidden layer: (E, n, K)."""
        return np.asarray(cell.project(self.architecture, self.weights, inputs))

    def advance(self, projected: Float32) -> tuple[Float32, Float32]:
        """Predict the rows with these projected inputs: hidden layers (E, n, K) and outputs (E, n), buffers.

        May be asked any number of times. Of fewer series than there are, they are the first ones.
        """
        count = projected.shape[1]
        hidden, outputs = self._hidden[:, :count], self._outputs[:, :count]
        np.matmul(self.state[:, :count], self._recall, out=hidden)
        np.add(hidden, projected, out=hidden)
        np.maximum(hidden, self._zeros[:, :count], out=hidden)
        np.matmul(hidden, self.weights.readout, out=outputs)
        np.add(outputs, self.weights.readout_bias, out=outputs)
        return hidden, outputs[..., 0]

    def remember(self, labels: Float32, missing: BoolArray | None = None) -> None:
        """Take in the labels of the rows predicted last, in scaled units.

        Parameters
        ----------
        labels : array of shape (n,)
            Finite, even where they are missing.
        missing : array of shape (n,) or None, default=None
            Series without a label, whose residual memory is held; None if there are none.
        """
        architecture, count = self.architecture, len(labels)
        width, state = architecture.memory_size, self.state[:, :count]
        if architecture.residual != "none":
            memory = state[..., :width]
            news = self._remembered(labels[:, None] - self._outputs[:, :count], memory)
            memory[...] = news if missing is None else np.where(missing[:, None], memory, news)
        if architecture.activation_memory:  # needs no label
            state[..., width:] = self._hidden[:, :count]
        if not max(state.max(), -state.min()) <= self.limit:
            beyond = ~(np.abs(state).max(axis=-1) <= self.limit)
            state[beyond] = 0

    def _remembered(self, errors: Float32, memory: Float32) -> Any:
        """Memories (E, n, M) that errors (E, n, 1) make of those before."""
        if self.architecture.residual == "scalar":
            return errors
        news = errors * self.weights.error
        news += self.weights.error_bias
        if self.architecture.accumulate:
            news += memory @ self.weights.carry
        if self.architecture.memory_activation == "tanh":
            return np.tanh(news, out=news)
        return np.maximum(news, self._zeros.dtype.type(0), out=news)


def score_carried(
    carried: CarriedCell,
    inputs: Float32,
    target: Float32,
    starts: IntArray,
    *,
    keep_memory: bool = False,
    keep_hidden: bool = False,
) -> Scores:
    """One-step predictions of every row, each series from the state it has to the one after its last row.

    Parameters
    ----------
    carried : CarriedCell
        Of as many series as there are.
    inputs, target : arrays of shape (N, D) and (N,)
        All rows; a missing label is NaN.
    starts : array of shape (S + 1,)
        Row at which each series begins, and the number of rows at the end.
    keep_memory, keep_hidden : bool, default=False
        Also return the memory each row was predicted with, and the hidden layer.
    """
    members, n_rows = len(carried.state), len(target)
    width = carried.architecture.memory_size
    predictions = np.empty((members, n_rows), np.float32)
    memory = np.empty((members, n_rows if keep_memory else 0, width), np.float32)
    layers = n_rows if keep_hidden else 0
    hidden = np.empty((members, layers, carried.architecture.hidden_size), np.float32)
    rows = (inputs, target, starts, predictions, memory, hidden)
    go = _compiled_for(carried.architecture) if compiled_code.is_worth_it(n_rows) else None
    if go is None:
        _stepwise(carried, *rows)
    else:
        go(carried.architecture, carried.weights, carried.limit, carried.state, *rows)
    return Scores(predictions, memory if keep_memory else None, hidden if keep_hidden else None)


def _compiled_for(architecture: Architecture) -> Callable[..., None] | None:
    """Choose the compiled way to carry a cell's state; None where there is none."""
    from varnn.network.compiled_carried import CELLS as COMPILED
    from varnn.network.compiled_carried import go_through

    return go_through if architecture in COMPILED else None


def _stepwise(
    carried: CarriedCell,
    inputs: Float32,
    target: Float32,
    starts: IntArray,
    predictions: Float32,
    memory: Float32,
    hidden: Float32,
) -> None:
    """Fill in what is asked for, all series side by side."""
    lengths, width, projected = np.diff(starts), memory.shape[2], carried.project(inputs)
    order = np.argsort(-lengths, kind="stable")  # those that go on are the first ones, at any row
    going = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
    carried.state = carried.state[:, order]
    missing = np.isnan(target)
    labels = np.where(missing, np.float32(0), target)
    some = bool(missing.any())
    for place, count in enumerate(going.tolist()):
        rows = starts[order[:count]] + place
        if memory.size:
            memory[:, rows] = carried.state[:, :count, :width]
        layers, predictions[:, rows] = carried.advance(projected[:, rows])
        if hidden.size:
            hidden[:, rows] = layers
        carried.remember(labels[rows], missing[rows] if some else None)
    carried.state = carried.state[:, np.argsort(order)]
