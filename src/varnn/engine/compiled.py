"""RM with relu memory, below the cost of its matrix products; needs numba (``varnn[fast]``).

The memory h = relu(e w + b) of RM depends on one number, the last error e. So what it adds to the
hidden layer, h W_m, is piecewise linear in e: unit j switches at the break point -b_j / w_j, the M
break points cut the line into M + 1 segments, and with sums over the units j active in segment s ::

    h W_m = e A_s + B_s      A_s = sum of w_j W_m[j]      B_s = sum of b_j W_m[j]

One table of A and B per call, and a row needs no product with W_m: find its segment, add two vectors.
Backwards, with E_s = sum of e d(z) and D_s = sum of d(z) over the rows whose memory is in segment s,
and with sums over the segments s in which unit j is active ::

    d(W_m[j]) = w_j E + b_j D      d(w_j) = W_m[j] . E      d(b_j) = W_m[j] . D
    E = sum of E_s                 D = sum of D_s

The chain from one step to the one before is a scalar, g_t-1 = -g_t (w_o * [z_t > 0]) . A_s, known
after the forward pass. The two products with the inputs are left to BLAS. Names are those of
``fused``. Exactly at a break point, where the reference takes the slope zero, a unit here takes the
slope of its left side.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from varnn.cell import Architecture
from varnn.engine import unpack

Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.int64]
Scalar = Any  # a float of the arrays' own precision
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def supports(architecture: Architecture) -> bool:
    """Tell whether this engine can compute a cell: RM with the paper's relu memory.

    The other variants multiply matrices that depend on the state, which BLAS does best.

    Examples
    --------
    >>> supports(Architecture.of("RM", n_inputs=2)), supports(Architecture.of("ARM", n_inputs=2))
    (True, False)
    """
    switches = (architecture.accumulate, architecture.activation_memory)
    kinds = (architecture.residual, architecture.memory_activation)
    return switches == (False, False) and kinds == ("projected", "relu")


class CompiledEngine:
    """Loss and gradient of a batch of windows of an RM cell, on the CPU.

    Parameters
    ----------
    architecture
        The cell, one that `supports` accepts.
    inputs, target
        All rows, (N, D) and (N,), scaled; NaN in the target is a missing label.
    window
        Rows in a window.

    Notes
    -----
    The gradient is a buffer that the next call overwrites. The first call in a new installation
    compiles for some seconds; the result is cached on disk. Kernels let go of Python's lock, so
    members of an ensemble can train in threads.

    Examples
    --------
    >>> from varnn.cell import initial_weights
    >>> from varnn.engine import pack
    >>> cell = Architecture.of("RM", n_inputs=2, hidden_size=4)
    >>> engine = CompiledEngine(cell, torch.ones(9, 2), torch.arange(9.0), window=3)
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    def __init__(self, architecture: Architecture, inputs: Tensor, target: Tensor, window: int) -> None:
        self.architecture = architecture
        self.window = window
        n_rows, n_inputs = inputs.shape
        # A window is one stretch of memory, so gathering it is one copy; these views overlap.
        starts = n_rows - window + 1
        self._windows = inputs.contiguous().as_strided((starts, window * n_inputs), (n_inputs, 1))
        self._labels = target.contiguous().as_strided((starts, window), (1, 1))
        self._weights: _Matrices | None = None
        size = sum(rows * columns for rows, columns in architecture.shapes.values())
        self._gradient = _Matrices(architecture, inputs.new_zeros(size))
        table = (architecture.memory_size + 2, 2, architecture.hidden_size)
        self._table: Floats = inputs.new_empty(table).numpy()
        self._sums: Floats = inputs.new_empty(table).numpy()
        self._workspaces: dict[int, _Workspace] = {}

    @torch.inference_mode()
    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Give the mean squared error of the windows ending at rows ``ends``, and its gradient."""
        if self._weights is None or self._weights.flat is not flat:
            self._weights = _Matrices(self.architecture, flat)
        weights, gradient, work = self._weights, self._gradient, self._workspace(len(ends))
        starts = ends - (self.window - 1)
        torch.index_select(self._windows, 0, starts, out=work.x)
        torch.index_select(self._labels, 0, starts, out=work.labels)
        torch.addmm(weights.fusion_bias, work.x_rows, weights.of_inputs, out=work.z)
        loss = _memory_pass(
            work.z_array, work.labels_array, *weights.arrays, *gradient.arrays, self._table, self._sums
        )
        torch.mm(work.x_rows_t, work.z, out=gradient.of_inputs)
        return torch.tensor(loss, dtype=flat.dtype), gradient.flat

    def _workspace(self, batch: int) -> "_Workspace":
        work = self._workspaces.get(batch)
        if work is None:
            if len(self._workspaces) == 2:
                del self._workspaces[next(iter(self._workspaces))]  # the older one
            work = self._workspaces[batch] = _Workspace(self.architecture, self.window, batch, self._windows)
        return work


class _Matrices:
    """One flat vector as the matrices of an RM cell: those for BLAS, and those for the kernel."""

    def __init__(self, architecture: Architecture, flat: Tensor) -> None:
        self.flat = flat
        named = unpack(architecture, flat)
        self.of_inputs = named.fusion[: architecture.n_inputs]
        self.fusion_bias = named.fusion_bias[0]
        self.arrays: tuple[Floats, ...] = tuple(
            part.numpy()
            for part in (
                named.fusion[architecture.n_inputs :],
                self.fusion_bias,
                named.readout[:, 0],
                named.readout_bias[0],
                named.error[0],
                named.error_bias[0],
            )
        )


class _Workspace:
    """Buffers for one batch size, and the shapes in which they are used."""

    def __init__(self, architecture: Architecture, window: int, batch: int, like: Tensor) -> None:
        self.x = like.new_empty(batch, window * architecture.n_inputs)
        self.x_rows = self.x.view(batch * window, architecture.n_inputs)
        self.x_rows_t = self.x_rows.t()
        self.labels = like.new_empty(batch, window)
        self.labels_array: Floats = self.labels.numpy()
        self.z = like.new_empty(batch * window, architecture.hidden_size)
        self.z_array: Floats = self.z.view(batch, window, -1).numpy()


def _compiled(function: Kernel) -> Kernel:
    # Sums may be reordered, as vector instructions need; NaN and infinity keep their meaning.
    reordered = {"reassoc", "contract", "nsz"}
    kernel: Kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=reordered)(function)
    return kernel


# The loops over the hidden units are functions of their own: inlined by hand into their callers,
# they are no longer turned into vector instructions, and the whole becomes four times slower.
@_compiled
def _predict(
    row: Floats, error: Scalar, slope: Floats, intercept: Floats, readout: Floats
) -> tuple[Scalar, Scalar]:
    """Turn x W_x + b into u; give u w_o, and its derivative by the error behind the memory."""
    zero = row.dtype.type(0)
    y_hat, reach = zero, zero
    for k in range(len(row)):
        z = row[k] + error * slope[k] + intercept[k]
        off = z <= zero  # a NaN is not off: it must reach the loss
        u = zero if off else z
        row[k] = u
        y_hat += readout[k] * u
        reach += zero if off else readout[k] * slope[k]
    return y_hat, reach


@_compiled
def _learn(
    row: Floats, g: Scalar, error: Scalar, readout: Floats, d_readout: Floats, of_error: Floats, of_one: Floats
) -> None:
    """Turn u into d(z), and add it to the sums of its segment."""
    zero = row.dtype.type(0)
    for k in range(len(row)):
        u = row[k]
        d_readout[k] += g * u
        dz = zero if u <= zero else g * readout[k]
        row[k] = dz
        of_error[k] += error * dz
        of_one[k] += dz


@_compiled
def _segment_of(error: Scalar, breaks: Floats) -> int:
    """Count the break points below an error; faster than a binary search, whose branches are guesses."""
    below = 0
    for j in range(len(breaks)):
        below += breaks[j] < error
    return below


@_compiled
def _rises(error: Scalar, error_bias: Scalar) -> bool:
    """Tell whether a unit is active above its break point; if not, it is active below."""
    return bool(error > 0 or (error == 0 and error_bias <= 0))


@_compiled
def _add_scaled(out: Floats, factor: Scalar, vector: Floats) -> None:
    for k in range(len(out)):
        out[k] += factor * vector[k]


@_compiled
def _dot(left: Floats, right: Floats) -> Scalar:
    total = left.dtype.type(0)
    for k in range(len(left)):
        total += left[k] * right[k]
    return total


@_compiled
def _tabulate(
    memory: Floats, error: Floats, error_bias: Floats, order: Integers, breaks: Floats, table: Floats
) -> None:
    """Fill ``breaks`` and the table (M + 2, 2, K) of A and B; its last entry, zero, is no memory yet.

    Sums over the units that rise run upwards and over those that fall downwards: nothing is ever
    subtracted, so nothing cancels.
    """
    size = len(error)
    table[:] = 0
    for rank in range(size):
        j = order[rank]
        table[rank + 1] = table[rank]
        if _rises(error[j], error_bias[j]):
            _add_scaled(table[rank + 1, 0], error[j], memory[j])
            _add_scaled(table[rank + 1, 1], error_bias[j], memory[j])
    table[size + 1] = 0
    falling = np.zeros_like(table[0])
    for rank in range(size - 1, -1, -1):
        j = order[rank]
        if not _rises(error[j], error_bias[j]):
            _add_scaled(falling[0], error[j], memory[j])
            _add_scaled(falling[1], error_bias[j], memory[j])
        table[rank] += falling


@_compiled
def _memory_pass(
    z: Floats,
    labels: Floats,
    memory: Floats,
    fusion_bias: Floats,
    readout: Floats,
    readout_bias: Floats,
    error: Floats,
    error_bias: Floats,
    d_memory: Floats,
    d_fusion_bias: Floats,
    d_readout: Floats,
    d_readout_bias: Floats,
    d_error: Floats,
    d_error_bias: Floats,
    table: Floats,
    sums: Floats,
) -> float:
    """Turn x W_x + b in ``z`` (B, w, K) into d(z); write all gradients but that of W_x; give the loss."""
    batch, steps, _ = z.shape
    size = len(error)
    breaks = np.empty_like(error)
    for j in range(size):
        breaks[j] = -error_bias[j] / error[j] if error[j] != 0 else np.inf
    order = np.argsort(breaks)
    breaks = breaks[order]
    _tabulate(memory, error, error_bias, order, breaks, table)
    sums[:] = 0
    d_readout[:] = 0
    d_readout_bias[:] = 0
    zero = z.dtype.type(0)
    scale = z.dtype.type(-2 / batch)
    segments = np.empty(steps, np.int64)
    errors = np.empty(steps, z.dtype)
    reaches = np.empty(steps, z.dtype)
    loss = 0.0
    for b in range(batch):
        segment = size + 1
        e = zero
        last = zero
        for t in range(steps):
            segments[t], errors[t] = segment, e
            y_hat, reaches[t] = _predict(z[b, t], e, table[segment, 0], table[segment, 1], readout)
            last = labels[b, t] - readout_bias[0] - y_hat
            if not np.isnan(labels[b, t]):
                e = last
                segment = _segment_of(e, breaks)
        loss += last * last
        g = scale * last
        for t in range(steps - 1, -1, -1):
            if np.isnan(labels[b, t]):
                z[b, t] = 0
                continue
            d_readout_bias[0] += g
            segment = segments[t]
            _learn(z[b, t], g, errors[t], readout, d_readout, sums[segment, 0], sums[segment, 1])
            g = -g * reaches[t]
    d_fusion_bias[:] = 0
    for s in range(size + 2):
        d_fusion_bias += sums[s, 1]
    for rises in (True, False):
        active = np.zeros_like(sums[0])
        for step in range(size):
            rank = size - 1 - step if rises else step
            active += sums[rank + 1] if rises else sums[rank]
            j = order[rank]
            if _rises(error[j], error_bias[j]) == rises:
                d_memory[j] = 0
                _add_scaled(d_memory[j], error[j], active[0])
                _add_scaled(d_memory[j], error_bias[j], active[1])
                d_error[j] = _dot(memory[j], active[0])
                d_error_bias[j] = _dot(memory[j], active[1])
    return loss / batch
