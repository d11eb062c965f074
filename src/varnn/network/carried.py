"""The cell with one state that goes through a series from its first row to its last, on NumPy.

A cell that was trained on windows need not begin a window for every row it predicts: its state may be carried
on. That is a w-th of the arithmetic, and gives what windows of w rows give but for what lies further back,
which a trained memory has all but forgotten.

With the symbols of `varnn.network.cell`, [h u] being one buffer of all members and series ::

    u <- relu(x W_x + b_z + [h u] [W_m; W_u])      y_hat = u W_o + b_o
    h <- rho(h W_h + (y - y_hat) W_e + b_e)

A call to NumPy costs more than its arithmetic, of one series. So all that a step reads lies in one row of
numbers, and each layer is a product with a part of it ::

    e  1  h_1 .. h_M  u_1 .. u_K  x_1 .. x_D
       [------------ hidden layer -----------]
    [--- memory ---]

A cell that never saw more than a window may be one whose state grows without end. So there is a limit, beyond
anything that the training rows gave rise to, at which a state begins anew, as at the first row of a series.

Shapes: E members, n series in step, D inputs, K hidden, M memory.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, IntArray
from varnn.network import compiled_code
from varnn.network.cell import Architecture, Weights
from varnn.network.handled import ANY, HandledCells
from varnn.network.scoring import Scores

Float32 = npt.NDArray[np.float32]
_BEFORE = 2  # numbers before the state in a row: the error and 1
_FINITE = 1e30  # a square of a limit: those of larger states are finite, too
_ZERO = np.zeros((), np.float32)  # quicker to compare with than the number 0

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


class CarriedMatrices(NamedTuple):
    """A cell's weights, put together for stepping; once for all who step."""

    to_hidden: Float32  # (E, 1 + M [+ K] + D, K): from [1 h u x]
    to_memory: Float32  # (E, 2 [+ M], M): from [e 1 h]

    @classmethod
    def of(cls, architecture: Architecture, weights: Weights) -> "CarriedMatrices":
        """Put the matrices together."""
        inputs, state = np.split(weights.fusion, [architecture.n_inputs], axis=1)
        news = [weights.error, weights.error_bias, *([weights.carry] if architecture.accumulate else [])]
        to_memory = news if architecture.residual == "projected" else news[:0]
        return cls(
            np.concatenate([weights.fusion_bias, state, inputs], axis=1),
            np.concatenate(to_memory, axis=1) if to_memory else np.empty((0, 0, 0), np.float32),
        )


class _Views(NamedTuple):
    """Parts of the buffers of a cell, of the first series."""

    n_series: int
    error: Float32  # e: (E, n, 1)
    seen: Float32  # [1 h u x]
    told: Float32  # [e 1 h], or [e 1]
    inputs: Float32  # x
    state: Float32  # [h u]
    memory: Float32  # h
    activation: Float32  # u, or nothing
    hidden: Float32  # (E, n, K)
    zeros: Float32
    outputs: Float32  # (E, n, 1)
    predictions: Float32  # (E, n)


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
    matrices : CarriedMatrices or None, default=None
        The weights, put together; None puts them together.

    Examples
    --------
    >>> from varnn.network.cell import initial_weights
    >>> rm = Architecture.of("RM", n_inputs=2, hidden_size=4)
    >>> drawn = {name: matrix[None] for name, matrix in initial_weights(rm, seed=0).as_dict().items()}
    >>> one = CarriedCell(rm, Weights(**drawn), n_series=1)
    >>> hidden, outputs = one.advance(np.ones((1, 2), np.float32))
    >>> one.remember(np.array([0.5], np.float32))
    >>> hidden.shape, outputs.shape, one.state.shape
    ((1, 1, 4), (1, 1), (1, 1, 2))
    """

    def __init__(
        self,
        architecture: Architecture,
        weights: Weights,
        n_series: int,
        limit: float = np.inf,
        matrices: CarriedMatrices | None = None,
    ) -> None:
        CELLS.check(architecture, by="a state that is carried")
        self.architecture, self.weights, self.limit = architecture, weights, limit
        self._most = float(limit) * float(limit)
        self._matrices = matrices or CarriedMatrices.of(architecture, weights)
        members, columns, hidden = self._matrices.to_hidden.shape
        self._rows: Float32 = np.zeros((members, n_series, 1 + columns), np.float32)
        self._rows[..., 1] = 1
        self._flat = self._rows.reshape(-1)
        self.state: Float32 = self._rows[..., _BEFORE : 1 + columns - architecture.n_inputs]  # [h u]
        self._hidden: Float32 = np.zeros((members, n_series, hidden), np.float32)
        self._outputs: Float32 = np.zeros((members, n_series, 1), np.float32)
        self._zeros: Float32 = np.zeros_like(self._hidden)  # quicker to compare with than the number 0
        self._some = self._first(n_series)

    def _first(self, count: int) -> "_Views":
        """Make views of the first series."""
        rows, state, width = self._rows[:, :count], self.state[:, :count], self.architecture.memory_size
        outputs = self._outputs[:, :count]
        return _Views(
            n_series=count,
            error=rows[..., :1],
            seen=rows[..., 1:],
            told=rows[..., : self._matrices.to_memory.shape[1]],
            inputs=rows[..., _BEFORE + state.shape[2] :],
            state=state,
            memory=state[..., :width],
            activation=state[..., width:],
            hidden=self._hidden[:, :count],
            zeros=self._zeros[:, :count],
            outputs=outputs,
            predictions=outputs[..., 0],
        )

    def advance(self, inputs: npt.NDArray[Any]) -> tuple[Float32, Float32]:
        """Predict the rows with these inputs (n, D): hidden layers (E, n, K) and outputs (E, n), buffers.

        May be asked any number of times. Of fewer series than there are, they are the first ones.
        """
        if len(inputs) != self._some.n_series:
            self._some = self._first(len(inputs))
        some = self._some
        some.inputs[...] = inputs
        np.matmul(some.seen, self._matrices.to_hidden, out=some.hidden)
        np.maximum(some.hidden, some.zeros, out=some.hidden)
        np.matmul(some.hidden, self.weights.readout, out=some.outputs)
        np.add(some.outputs, self.weights.readout_bias, out=some.outputs)
        return some.hidden, some.predictions

    def remember(self, labels: Float32, missing: BoolArray | None = None) -> None:
        """Take in the labels of the rows predicted last, in scaled units.

        Parameters
        ----------
        labels : array of shape (n,)
            Finite, even where they are missing.
        missing : array of shape (n,) or None, default=None
            Series without a label, whose residual memory is held; None if there are none.
        """
        some = self._some
        if self.architecture.residual != "none":
            np.subtract(labels[None, :, None], some.outputs, out=some.error)
            news = self._remembered()
            some.memory[...] = news if missing is None else np.where(missing[:, None], some.memory, news)
        if self.architecture.activation_memory:  # needs no label
            some.activation[...] = some.hidden
        # One sum of squares tells that none is beyond the limit, unless it is infinite itself.
        if not (self._most <= _FINITE and float(self._flat.dot(self._flat)) <= self._most):
            beyond = ~(np.abs(some.state).max(axis=-1) <= self.limit)
            some.state[beyond] = 0

    def _remembered(self) -> Any:
        """Memories (E, n, M) that errors make of those before."""
        if self.architecture.residual == "scalar":
            return self._some.error
        news = np.matmul(self._some.told, self._matrices.to_memory)
        if self.architecture.memory_activation == "tanh":
            return np.tanh(news, out=news)
        return np.maximum(news, _ZERO, out=news)


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
    lengths, width = np.diff(starts), memory.shape[2]
    order = np.argsort(-lengths, kind="stable")  # those that go on are the first ones, at any row
    going = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
    carried.state[...] = carried.state[:, order]
    missing = np.isnan(target)
    labels = np.where(missing, np.float32(0), target)
    some = bool(missing.any())
    for place, count in enumerate(going.tolist()):
        rows = starts[order[:count]] + place
        if memory.size:
            memory[:, rows] = carried.state[:, :count, :width]
        layers, predictions[:, rows] = carried.advance(inputs[rows])
        if hidden.size:
            hidden[:, rows] = layers
        carried.remember(labels[rows], missing[rows] if some else None)
    carried.state[...] = carried.state[:, np.argsort(order)]
