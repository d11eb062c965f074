"""One-step predictions for every row of a panel, without making windows.

Row t is predicted from the window of rows t - w + 1 .. t (shorter at the start of a series). Each
row's inputs are projected once and shared by the w windows that contain it: the step "w - 1 rows
back" of all windows of a chunk reads one contiguous slice. Memory is bounded by the chunk.

Runs on NumPy arrays (so it needs no torch) and, during training on a GPU, on torch tensors, by the cell's own
equations. It serves training and forecasts; `varnn.step` predicts rows one step ahead.
"""

from typing import NamedTuple

import numpy as np

from varnn.network import cell
from varnn.network.cell import Architecture, Array, State, Weights

_CHUNK_FLOATS = 1 << 17  # half a megabyte of hidden layer at a time: it stays in a core's own cache


class Scores(NamedTuple):
    """What scoring gives, for E members and N rows."""

    predictions: Array  # (E, N)
    memory: Array  # (E, N, M), the residual memory each row was predicted with; None unless kept
    hidden: Array = None  # (E, N, K), the hidden layer it was read from; None unless kept


def score(
    architecture: Architecture,
    weights: Weights,
    inputs: Array,
    target: Array,
    first_rows: Array,
    window: int,
    *,
    keep_memory: bool = False,
    keep_hidden: bool = False,
) -> Scores:
    """One-step predictions of every row, from the labelled rows before it in its own series and window.

    Parameters
    ----------
    architecture : Architecture
        The cell.
    weights : Weights
        Its matrices, with a leading axis of E members.
    inputs, target, first_rows : array or Tensor
        All rows (N, D), (N,) and the row at which each row's series begins (N,).
    window : int
        Rows in a full window.
    keep_memory, keep_hidden : bool, default False
        Also return the memory each row was predicted with, and the hidden layer.
    """
    n_rows, members = len(target), len(weights.fusion)
    blank = _Blank(inputs)
    predictions = blank.empty((members, n_rows))
    memory = blank.empty((members, n_rows, architecture.memory_size)) if keep_memory else None
    hidden = blank.empty((members, n_rows, architecture.hidden_size)) if keep_hidden else None
    chunk = max(window, _CHUNK_FLOATS // (members * architecture.hidden_size))
    for begin in range(0, n_rows, chunk):
        end = min(begin + chunk, n_rows)
        # Windows of the first rows reach back before row 0: there the slices hold zeros, and the
        # state is set back to zero as long as a row's window has not begun.
        reach = min(begin, window - 1)
        head = window - 1 - reach
        projected = cell.project(architecture, weights, inputs[begin - reach : end])
        labels = target[begin - reach : end, None]
        if head > 0:
            projected, labels = blank.zeros_before(head, projected), blank.zeros_before(head, labels)
        missing = labels != labels
        any_missing = bool(missing.any())
        context = blank.arange(begin, end) - first_rows[begin:end]  # labelled rows at hand
        shortest = int(context.min())
        # All windows begin with the same zeros: one row of them is enough, and its products cost nothing.
        state = cell.initial_state(architecture, like=projected[:, :1])
        for back in range(window - 1, -1, -1):
            here = slice(window - 1 - back, window - 1 - back + end - begin)
            y_hat, u = cell.predict(architecture, weights, projected[:, here], state)
            if back == 0:
                break
            error = labels[here] - y_hat
            held = missing[here] if any_missing else None
            state = cell.update(architecture, weights, error, u, state, held)
            if shortest < back:
                state = _reset(state, context < back)
        predictions[:, begin:end] = y_hat[..., 0]
        if memory is not None:
            memory[:, begin:end] = state.residual
        if hidden is not None:
            hidden[:, begin:end] = u
    return Scores(predictions, memory, hidden)


def _reset(state: State, rows: Array) -> State:
    for part in state:
        if part is not None and part.shape[1] == len(rows):  # else it is the one row of zeros still
            part[:, rows] = 0
    return state


class _Blank:
    """New arrays of the kind, precision and device of another one."""

    def __init__(self, like: Array) -> None:
        self.like = like
        self.numpy = isinstance(like, np.ndarray)

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape, self.like.dtype) if self.numpy else self.like.new_zeros(shape)

    def empty(self, shape: tuple[int, ...]) -> Array:
        return np.empty(shape, self.like.dtype) if self.numpy else self.like.new_empty(shape)

    def zeros_before(self, head: int, array: Array) -> Array:
        """Put so many rows of zeros before those of an array (..., rows, columns)."""
        *members, rows, columns = array.shape
        longer = self.zeros((*members, head + rows, columns))
        longer[..., head:, :] = array
        return longer

    def arange(self, begin: int, end: int) -> Array:
        if self.numpy:
            return np.arange(begin, end)
        import torch

        return torch.arange(begin, end, device=self.like.device)
