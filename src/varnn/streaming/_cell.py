"""The windows under way of some series: their states in preallocated rows, advanced all at once.

At any time w windows are under way per series, begun 0, 1, .. w - 1 steps ago. They are kept by age,
the oldest first. With the symbols of `varnn.network.cell`, one step computes for each window k ::

    p = x W_x + b_z      u_k = relu(p + h_k W_m + u_k W_u)      y_hat_k = u_k W_o + b_o
    e_k = y - y_hat_k    h_k = rho(h_k W_h + e_k W_e + b_e)     one step older: k becomes k - 1

The inputs are projected once for all windows. The oldest window gives the prediction and is not carried
on; the newest has no memory yet. Growing older costs nothing: what follows from window k is written to
where window k - 1 was.

One step of one series is a dozen NumPy calls on a few thousand numbers, where a call costs more than its
arithmetic. Hence buffers and views made in advance, contiguous wherever possible, and a memory that is
kept as [h 1] and made from [1 e], so that biases come with the products. For many series it is the other
way round: there it matters that a block of them stays in the processor's cache.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.errors import ThreadError
from varnn.model.fitted import Fitted
from varnn.network.cell import Architecture, Weights
from varnn.network.handled import ANY, HandledCells
from varnn.streaming._carried import CarriedBlock

Float32 = npt.NDArray[np.float32]

# A cell with anything else is refused: this is an implementation of its own, not the cell's.
_CELLS = HandledCells(
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


class StepWeights(NamedTuple):
    """A cell's weights, put together for stepping; an ensemble's have a leading axis of members."""

    from_inputs: Float32  # (D + 1, K): [x 1] -> p
    from_memory: Float32  # (M + 1, K): [h 1] -> h W_m, the last row is zero
    from_activation: Float32  # (K, K), or (0, K) without activation memory: u -> u W_u
    readout: Float32  # (K, 1)
    readout_bias: Any  # a number, or (E, 1, 1)
    from_error: Float32  # (2, M + 1): [1 e] -> [e W_e + b_e, 1]
    carry: Float32 | None  # (M + 1, M + 1): [h 1] -> [h W_h, 0], where the memory accumulates

    @classmethod
    def of(cls, architecture: Architecture, weights: Weights) -> "StepWeights":
        """Put the matrices together; a single member loses its axis, as plain products are quicker."""
        _CELLS.check(architecture, by="a stream")
        given = weights.as_dict()
        if len(weights.fusion) == 1:
            given = {name: matrix[0] for name, matrix in given.items()}
        members, size = given["fusion"].shape[:-2], architecture.memory_size
        inputs, memory, activation = np.split(
            given["fusion"], [architecture.n_inputs, architecture.n_inputs + size], axis=-2
        )
        from_error: Float32 = np.zeros((*members, 2, size + 1), np.float32)
        from_error[..., 0, -1] = 1
        if architecture.residual == "projected":
            from_error[..., :1, :-1], from_error[..., 1:, :-1] = given["error_bias"], given["error"]
        else:  # "scalar" hands on the error itself; "none" never asks
            from_error[..., 1, :-1] = 1
        carry: Float32 | None = None
        if architecture.accumulate:
            carry = np.zeros((*members, size + 1, size + 1), np.float32)
            carry[..., :-1, :-1] = given["carry"]
        bias = given["readout_bias"]
        return cls(
            from_inputs=np.concatenate([inputs, given["fusion_bias"]], axis=-2),
            from_memory=np.concatenate([memory, np.zeros_like(given["fusion_bias"])], axis=-2),
            from_activation=np.ascontiguousarray(activation),
            readout=np.ascontiguousarray(given["readout"]),
            readout_bias=bias if members else float(bias[0, 0]),
            from_error=from_error,
            carry=carry,
        )


class Guard:
    """One thread at a time; another one is told so, and not kept waiting: it would see half a step."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        if not self.acquire(blocking=False):
            raise self.error()

    def __exit__(self, *_: object) -> None:
        self.release()

    @staticmethod
    def error() -> ThreadError:
        """Say what is wrong."""
        return ThreadError(
            "a stream belongs to one thread at a time; another one is within predict or observe of it, or of "
            "a stream that shares its buffers. Give each thread a stream of its own, or put a lock around it."
        )


class Scratch:
    """Buffers that hold nothing from call to call, so that all blocks of a fleet share them."""

    def __init__(self, architecture: Architecture, matrices: StepWeights, window: int, n: int) -> None:
        members = matrices.readout.shape[:-2]
        # One series has one p for all windows: as the last row of from_memory, met by the 1 of [h 1], it is
        # added within the product.
        self.from_memory = matrices.from_memory.copy() if n == 1 else matrices.from_memory
        rows, carried = window * n, (window - 1) * n
        hidden, memory = architecture.hidden_size, architecture.memory_size + 1
        self.hidden: Float32 = np.zeros((*members, rows, hidden), np.float32)
        self.recalled: Float32 = np.zeros((*members, carried, hidden), np.float32)
        self.accumulated: Float32 = np.zeros((*members, carried, memory), np.float32)
        # A maximum with an array of zeros takes a quarter of the time of one with the number 0.
        self.no_hidden: Float32 = np.zeros_like(self.hidden)
        self.no_memory: Float32 = np.zeros_like(self.accumulated)


class CellStream:
    """Some series in step: the states of their windows under way, and what the last x makes of them.

    Parameters
    ----------
    architecture, matrices, window : Architecture, StepWeights, int
        The cell and the length of a window.
    n_series : int
        Series in this block, n below.
    scratch : Scratch
        Buffers for that many series.
    """

    def __init__(
        self, architecture: Architecture, matrices: StepWeights, window: int, n_series: int, scratch: Scratch
    ) -> None:
        self._cell, self._matrices, self._scratch = architecture, matrices, scratch
        # NumPy's dot is the quicker one for two matrices, and matmul the one that knows stacks of them.
        members = matrices.readout.shape[:-2]
        self._product = np.matmul if members else np.dot
        self._alone = n_series == 1
        self._plain = self._alone and not members
        if self._alone:
            self._matrices = matrices._replace(from_memory=scratch.from_memory)
            self._projected = self._matrices.from_memory[..., -1:, :]

        # Every product sees windows x series as the rows of one matrix: the first rows are those of all
        # windows but the newest ("older"), the last ones those of all but the oldest ("younger").
        rows, carried = window * n_series, (window - 1) * n_series
        self._memory: Float32 = np.zeros((*members, rows, architecture.memory_size + 1), np.float32)
        self._memory[..., -1] = 1  # [h 1]
        self._older_memory = self._memory[..., :carried, :]
        self._younger_memory = self._memory[..., n_series:, :]
        self._hidden, self._activation = scratch.hidden, None
        if architecture.activation_memory:  # the hidden layer is wanted again when the label comes
            self._hidden, self._activation = np.zeros_like(scratch.hidden), np.zeros_like(scratch.recalled)
        self._older_hidden = self._hidden[..., :carried, :]
        self._younger_hidden = self._hidden[..., n_series:, :]
        self._newest_hidden = self._hidden[..., carried:, :]
        self._errors: Float32 = np.ones((*members, carried, 2), np.float32)  # [1 e]
        self._predicted: Float32 = np.zeros((*members, rows, 1), np.float32)  # without the readout's bias

        # The same numbers with windows and series apart: ([E,] windows, n, size).
        self.inputs: Float32 = np.ones((n_series, architecture.n_inputs + 1), np.float32)  # [x 1]
        self._error = self._apart(self._errors)[..., 1]
        self._younger_predicted = self._apart(self._predicted[..., n_series:, :])[..., 0]
        self._oldest_predicted = self._predicted[..., :n_series, :]
        self._label: Float32 = np.zeros((*members, 1, n_series), np.float32)
        if self._plain:  # NumPy is quicker with fewer axes
            self._error, self._younger_predicted = self._error[:, 0], self._younger_predicted[:, 0]
            self._label = self._label.reshape(())

    def _apart(self, rows: Float32) -> Float32:
        """View the rows of the w - 1 windows that are carried on as (windows, n, size)."""
        *members, carried, size = rows.shape
        n_series = len(self.inputs)
        return rows.reshape(*members, carried // n_series, n_series, size)

    def advance(self) -> None:
        """Compute the hidden layer and the prediction of every window from ``inputs``."""
        matrices, scratch, product = self._matrices, self._scratch, self._product
        if self._alone:
            product(self.inputs, matrices.from_inputs, out=self._projected)
            product(self._memory, matrices.from_memory, out=self._hidden)
        else:
            product(self.inputs, matrices.from_inputs, out=self._newest_hidden)
            product(self._older_memory, matrices.from_memory, out=self._older_hidden)
            older = self._apart(self._older_hidden)
            np.add(older, self._newest_hidden[..., None, :, :], out=older)
        if self._activation is not None:
            product(self._activation, matrices.from_activation, out=scratch.recalled)
            np.add(self._older_hidden, scratch.recalled, out=self._older_hidden)
        np.maximum(self._hidden, scratch.no_hidden, out=self._hidden)
        product(self._hidden, matrices.readout, out=self._predicted)

    def read(self) -> Any:
        """Prediction of the oldest window in scaled units: (n,), a float if n = 1.

        All windows start out alike, so until w rows have passed, that is the one begun at the first row.
        """
        bias = self._matrices.readout_bias
        if self._plain:
            return self._predicted.item(0) + bias
        predicted = (self._oldest_predicted + bias)[..., 0]  # ([E,] n)
        if predicted.ndim == 2:
            predicted = predicted.mean(axis=0, dtype=np.float64)
        return predicted.item() if self._alone else predicted

    def members(self) -> tuple[Float32, Float32]:
        """Oldest window's hidden layer and output, member by member: (E, n, K) and (E, n)."""
        n_series = len(self.inputs)
        hidden = self._hidden[..., :n_series, :].reshape(-1, n_series, self._hidden.shape[-1])
        outputs = (self._oldest_predicted + self._matrices.readout_bias).reshape(-1, n_series)
        return hidden, outputs

    def remember(self, label: Any, missing: npt.NDArray[np.bool_] | None = None) -> None:
        """Turn labels into the windows' next memories, and let every window grow older.

        Parameters
        ----------
        label : object
            In scaled units: a finite number or (n,); None where no series has one.
        missing : array or None, default=None
            Shape (n,): series without a label, whose memory is held; None if there are none.
        """
        if self._activation is not None:  # needs no label
            self._activation[...] = self._younger_hidden
        if self._cell.residual == "none":
            return
        if label is None:
            self._older_memory[...] = self._younger_memory
        elif missing is None:
            self._update(label)
        else:
            held = self._apart(self._younger_memory)[..., missing, :]
            self._update(label)
            self._apart(self._older_memory)[..., missing, :] = held

    def _update(self, label: Any) -> None:
        """Make the memory of each window one step older from that of the next younger one."""
        matrices, scratch, memory = self._matrices, self._scratch, self._older_memory
        self._label[...] = label - matrices.readout_bias
        np.subtract(self._label, self._younger_predicted, out=self._error)
        if matrices.carry is not None:  # first, as the memory it starts from is written over next
            self._product(self._younger_memory, matrices.carry, out=scratch.accumulated)
        self._product(self._errors, matrices.from_error, out=memory)
        if matrices.carry is not None:
            np.add(memory, scratch.accumulated, out=memory)
        if self._cell.residual == "scalar":
            return
        if self._cell.memory_activation == "relu":
            np.maximum(memory, scratch.no_memory, out=memory)  # the 1 of [h 1] stays as it is
        else:
            np.tanh(memory[..., :-1], out=memory[..., :-1])

    def state(self) -> Float32:
        """All that later steps depend on: ([E,] w - 1, n, M + 1 or M + 1 + K)."""
        parts = [self._older_memory, *([] if self._activation is None else [self._activation])]
        return np.concatenate([self._apart(part) for part in parts], axis=-1)

    def restore(self, state: Float32) -> None:
        """Take over what :meth:`state` gave."""
        width = self._older_memory.shape[-1]
        self._apart(self._older_memory)[...] = state[..., :width]
        if self._activation is not None:
            self._apart(self._activation)[...] = state[..., width:]


class Workspace:
    """What the blocks of a stream share: weights put together, and scratch by the number of series.

    Streams of one model that take turns in one thread may share one; a series then costs its state alone.

    Parameters
    ----------
    model : Fitted
        The model.
    """

    def __init__(self, model: Fitted) -> None:
        self.guard = Guard()
        self._model = model
        self._matrices: StepWeights | None = None
        self._scratch: dict[int, Scratch] = {}
        self.layout: Any = None  # of the model, for compiled code

    def block(self, n_series: int) -> "CellStream | CarriedBlock":
        """Make a block of so many series."""
        model, cell, window = self._model, self._model.architecture, self._model.window
        if model.carried:
            return CarriedBlock(cell, model.weights, model.state_limit, n_series)
        if self._matrices is None:
            self._matrices = StepWeights.of(cell, model.weights)
        if n_series not in self._scratch:
            self._scratch[n_series] = Scratch(cell, self._matrices, window, n_series)
        return CellStream(cell, self._matrices, window, n_series, self._scratch[n_series])
