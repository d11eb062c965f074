"""One-step predictions for every row of a panel, without making windows.

Row t is predicted from the window of rows t - w + 1 .. t (shorter at the start of a series). Each
row's inputs are projected once and shared by the w windows that contain it: the step "w - 1 rows
back" of all windows of a chunk reads one contiguous slice. Memory is bounded by the chunk.

Runs on NumPy arrays (so it needs no torch) and, during training on a GPU, on torch tensors.
"""

from dataclasses import dataclass

import numpy as np

from varnn import cell
from varnn.cell import Architecture, Array, State, Weights

_CHUNK_FLOATS = 1 << 17  # half a megabyte of hidden layer at a time: it stays in a core's own cache


@dataclass(frozen=True, eq=False)
class Scores:
    """What scoring gives, for E members and N rows."""

    predictions: Array  # (E, N)
    memory: Array  # (E, N, M), the residual memory each row was predicted with; None unless kept


def score(
    architecture: Architecture,
    weights: Weights,
    inputs: Array,
    target: Array,
    first_rows: Array,
    window: int,
    *,
    closed_loop: bool = False,
    keep_memory: bool = False,
) -> Scores:
    """Predict every row from the labelled rows before it, within its own series and window.

    Parameters
    ----------
    architecture, weights
        The cell; its matrices have a leading axis of E members.
    inputs, target, first_rows
        All rows (N, D), (N,) and the row at which each row's series begins (N,).
    window
        Rows in a full window.
    closed_loop
        Take the error of a row with no label as zero, instead of holding the memory.
    keep_memory
        Also return the memory each row was predicted with.
    """
    n_rows, members = len(target), len(weights.fusion)
    blank = _Blank(inputs)
    predictions = blank.empty((members, n_rows))
    memory = blank.empty((members, n_rows, architecture.memory_size)) if keep_memory else None
    chunk = max(window, _CHUNK_FLOATS // (members * architecture.hidden_size))
    for begin in range(0, n_rows, chunk):
        end = min(begin + chunk, n_rows)
        # Windows of the first rows reach back before row 0: there the slices hold zeros, and the
        # state is set back to zero as long as a row's window has not begun.
        reach = min(begin, window - 1)
        head = window - 1 - reach
        projected = blank.zeros((members, head + reach + end - begin, architecture.hidden_size))
        projected[:, head:] = cell.project(architecture, weights, inputs[begin - reach : end])
        labels = blank.zeros((head + reach + end - begin, 1))
        labels[head:, 0] = target[begin - reach : end]
        context = blank.arange(begin, end) - first_rows[begin:end]  # labelled rows at hand
        state = cell.initial_state(architecture, like=projected[:, : end - begin])
        shortest = int(context.min())
        for back in range(window - 1, -1, -1):
            here = slice(window - 1 - back, window - 1 - back + end - begin)
            if back == 0 and memory is not None:
                memory[:, begin:end] = state.residual
            y_hat, u = cell.predict(architecture, weights, projected[:, here], state)
            if back == 0:
                predictions[:, begin:end] = y_hat[..., 0]
                break
            error = labels[here] - y_hat
            missing = labels[here] != labels[here]
            if not missing.any():
                state = cell.update(architecture, weights, error, u, state)
            elif closed_loop:
                error[:, missing[:, 0]] = 0
                state = cell.update(architecture, weights, error, u, state)
            else:
                state = cell.update(architecture, weights, error, u, state, missing)
            if shortest < back:
                state = _reset(state, context < back)
    return Scores(predictions, memory)


def _reset(state: State, rows: Array) -> State:
    for part in state:
        if part is not None:
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

    def arange(self, begin: int, end: int) -> Array:
        if self.numpy:
            return np.arange(begin, end)
        import torch

        return torch.arange(begin, end, device=self.like.device)
