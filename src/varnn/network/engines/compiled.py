"""RM with relu memory below the cost of its matrix products; needs numba.

The products with the inputs are left to BLAS; all that has to do with the memory, forwards and
backwards, is one compiled call, `varnn.network.engines._piecewise.memory_pass`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from varnn._types import FloatArray
from varnn.network.cell import Architecture
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.engine import Engine, Task, unpack
from varnn.network.handled import PIECEWISE_LINEAR


class CompiledEngine(Engine):
    """Loss and gradient of a batch of windows of an RM cell, on the CPU.

    Parameters
    ----------
    task : Task
        What to compute.

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
    >>> engine = CompiledEngine(Task(cell, torch.ones(9, 2), torch.arange(9.0), window=3))
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    name = "compiled"
    cells = PIECEWISE_LINEAR
    packages: ClassVar[Mapping[str, str]] = {"numba": "train"}

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        from varnn.network.engines._piecewise import memory_pass  # it loads numba

        self._memory_pass = memory_pass
        architecture, inputs, target, window = task.architecture, task.inputs, task.target, task.window
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

    @classmethod
    def limits(cls, task: Task) -> list[str]:
        """List what is not handled: several loss rows, weights, targets ahead, all devices but the CPU."""
        found = {
            f"loss_rows={task.loss_rows} (only 1)": task.loss_rows != 1,
            "targets ahead": task.ahead is not None,
            "weights of rows": task.weights is not None,
            f"device={str(task.inputs.device)!r} (only 'cpu')": task.inputs.device.type != "cpu",
        }
        return [limit for limit, met in found.items() if met]

    def optimiser(self, flat: Tensor, learning_rate: float) -> FlatAdam:
        """Adam in one compiled pass."""
        from varnn.network.engines._compiled_adam import CompiledAdam  # it loads numba

        return CompiledAdam(flat, learning_rate)

    @torch.inference_mode()
    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Mean squared error of the windows ending at rows ``ends``, and its gradient."""
        if self._weights is None or self._weights.flat is not flat:
            self._weights = _CompiledWeights(self.architecture, flat)
        weights, gradient, work = self._weights, self._gradient, self._workspace(len(ends))
        starts = ends - (self.window - 1)
        torch.index_select(self._windows, 0, starts, out=work.x)
        torch.index_select(self._labels, 0, starts, out=work.labels)
        torch.addmm(weights.fusion_bias, work.x_rows, weights.of_inputs, out=work.z)
        loss = self._memory_pass(
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
