"""RM with relu memory below the cost of its matrix products; needs numba (``varnn[fast]``).

The products with the inputs are left to BLAS; all that has to do with the memory, forwards and
backwards, is one compiled call, `varnn.network.engines._piecewise.memory_pass`.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from varnn._types import FloatArray
from varnn.errors import ConfigError
from varnn.network.cell import Architecture
from varnn.network.engines._compilable import supports
from varnn.network.engines._piecewise import Scalar, kernel, memory_pass
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.adam import DECAY, EPSILON, SQUARE_DECAY, FlatAdam
from varnn.network.engines.engine import unpack


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
    >>> from varnn.network.cell import initial_weights
    >>> from varnn.network.engines.engine import pack
    >>> cell = Architecture.of("RM", n_inputs=2, hidden_size=4)
    >>> engine = CompiledEngine(cell, torch.ones(9, 2), torch.arange(9.0), window=3)
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    def __init__(self, architecture: Architecture, inputs: Tensor, target: Tensor, window: int) -> None:
        if not supports(architecture):
            raise ConfigError(
                "engine='compiled' needs an RM cell with residual='projected' and "
                f"memory_activation='relu'; got {architecture}. Use engine='auto'."
            )
        if inputs.device.type != "cpu":
            raise ConfigError(
                f"engine='compiled' needs device='cpu'; got {inputs.device}. Use engine='auto'."
            )
        self.architecture = architecture
        self.window = window
        n_rows, n_inputs = inputs.shape
        # A window is one stretch of memory, so gathering it is one copy; these views overlap.
        starts = n_rows - window + 1
        self._windows = inputs.contiguous().as_strided((starts, window * n_inputs), (n_inputs, 1))
        self._labels = target.contiguous().as_strided((starts, window), (1, 1))
        self._weights: _CompiledWeights | None = None
        self._gradient = _CompiledWeights(architecture, inputs.new_zeros(count_weights(architecture)))
        table = (architecture.memory_size + 2, 2, architecture.hidden_size)
        self._table: FloatArray = inputs.new_empty(table).numpy()
        self._sums: FloatArray = inputs.new_empty(table).numpy()
        self._workspace = lru_cache(maxsize=2)(lambda batch: _Workspace(architecture, window, batch, inputs))

    @torch.inference_mode()
    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Give the mean squared error of the windows ending at rows ``ends``, and its gradient."""
        if self._weights is None or self._weights.flat is not flat:
            self._weights = _CompiledWeights(self.architecture, flat)
        weights, gradient, work = self._weights, self._gradient, self._workspace(len(ends))
        starts = ends - (self.window - 1)
        torch.index_select(self._windows, 0, starts, out=work.x)
        torch.index_select(self._labels, 0, starts, out=work.labels)
        torch.addmm(weights.fusion_bias, work.x_rows, weights.of_inputs, out=work.z)
        loss = memory_pass(
            work.z_array, work.labels_array, self._table, self._sums, *weights.arrays, *gradient.arrays
        )
        torch.mm(work.x_rows_t, work.z, out=gradient.of_inputs)
        return torch.scalar_tensor(loss, dtype=flat.dtype), gradient.flat


class _CompiledWeights:
    """One flat vector as the matrices of an RM cell: those for BLAS, and those for the kernel."""

    def __init__(self, architecture: Architecture, flat: Tensor) -> None:
        self.flat = flat
        named = unpack(architecture, flat.detach())
        self.of_inputs = named.fusion[: architecture.n_inputs]
        self.fusion_bias = named.fusion_bias[0]
        self.arrays: tuple[FloatArray, ...] = tuple(
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
        self.labels_array: FloatArray = self.labels.numpy()
        self.z = like.new_empty(batch * window, architecture.hidden_size)
        self.z_array: FloatArray = self.z.view(batch, window, -1).numpy()


class CompiledAdam(FlatAdam):
    """`FlatAdam` in one pass over the vectors, on the CPU.

    Examples
    --------
    >>> flat = torch.ones(3)
    >>> adam = CompiledAdam(flat, learning_rate=0.1)
    >>> adam.step(torch.tensor([2.0, -2.0, 0.0]))
    >>> flat
    tensor([0.9000, 1.1000, 1.0000])
    """

    def __init__(self, flat: Tensor, learning_rate: float) -> None:
        super().__init__(flat, learning_rate)
        self._arrays: tuple[FloatArray, FloatArray, FloatArray] = (
            flat.numpy(),
            self._mean.numpy(),
            self._square.numpy(),
        )
        self._count = 0

    def step(self, gradient: Tensor) -> None:
        """Move the weights against a gradient."""
        self._count += 1
        # mean / (1 - decay^n) over sqrt(square / (1 - square_decay^n)) + epsilon, with the corrections
        # for the start at zero taken out of the vectors.
        correction = math.sqrt(1 - SQUARE_DECAY**self._count)
        rate = self.learning_rate * correction / (1 - DECAY**self._count)
        dtype = self._arrays[0].dtype.type
        _adam(*self._arrays, gradient.numpy(), dtype(rate), dtype(EPSILON * correction))


@kernel
def _adam(
    flat: FloatArray,
    mean: FloatArray,
    square: FloatArray,
    gradient: FloatArray,
    rate: Scalar,
    epsilon: Scalar,
) -> None:
    keep, keep_square = flat.dtype.type(DECAY), flat.dtype.type(SQUARE_DECAY)
    add, add_square = flat.dtype.type(1 - DECAY), flat.dtype.type(1 - SQUARE_DECAY)
    for i in range(len(flat)):
        mean[i] = keep * mean[i] + add * gradient[i]
        square[i] = keep_square * square[i] + add_square * gradient[i] * gradient[i]
        flat[i] -= rate * mean[i] / (np.sqrt(square[i]) + epsilon)
