"""Cells with activation memory, step after step in compiled code; needs numba.

The batches of the default are small: to ask torch for one of its products takes longer than the product.
`varnn.network.engines._compiled_through_time` makes the same products without asking, and lets go of Python's
lock meanwhile, so that two members train on two cores.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from varnn._types import FloatArray
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.engine import Engine, Task
from varnn.network.handled import ANY, HandledCells


class UnrolledEngine(Engine):
    """Loss and gradient of a batch of windows of a cell with activation memory, on the CPU.

    Parameters
    ----------
    task : Task
        What to compute.

    Notes
    -----
    The gradient is a buffer that the next call overwrites. The first call in a new installation
    compiles for some seconds; the result is cached on disk.

    Examples
    --------
    >>> from varnn.network.cell import Architecture, initial_weights
    >>> from varnn.network.engines.engine import pack
    >>> cell = Architecture.of("ARM+AM", n_inputs=2, hidden_size=4)
    >>> engine = UnrolledEngine(Task(cell, torch.ones(9, 2), torch.arange(9.0), window=3))
    >>> flat = torch.tensor(pack(initial_weights(cell, seed=0)))
    >>> loss, gradient = engine.loss_and_gradient(flat, torch.tensor([2, 5, 8]))
    >>> loss.shape, gradient.shape == flat.shape
    (torch.Size([]), True)
    """

    name = "unrolled"
    cells = HandledCells(
        {
            "n_inputs": ANY,
            "hidden_size": ANY,
            "memory_size": ANY,
            "accumulate": (False, True),
            "activation_memory": (True,),
            "residual": ("projected",),
            "memory_activation": ("relu", "tanh"),
            "horizon": ANY,
        }
    )
    packages: ClassVar[Mapping[str, str]] = {"numba": "train"}

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        from varnn.network.engines import _compiled_through_time  # it loads numba

        inputs = task.inputs.contiguous()
        self._kernels = _compiled_through_time
        self._rows: tuple[FloatArray, FloatArray] = (inputs.numpy(), task.target.contiguous().numpy())
        self._later = None if task.ahead is None else task.ahead.contiguous().numpy()
        self._is_relu = task.architecture.memory_activation == "relu"
        self._gradient = inputs.new_zeros(count_weights(task.architecture))
        self._buffers = lru_cache(maxsize=2)(lambda batch: _compiled_through_time.Buffers.of(task, batch))

    @classmethod
    def limits(cls, task: Task) -> list[str]:
        """List what is not handled: weights, and all devices but the CPU."""
        device = task.inputs.device
        found = [] if device.type == "cpu" else [f"device={str(device)!r} (only 'cpu')"]
        return found if task.weights is None else [*found, "weights of rows"]

    def optimiser(self, flat: Tensor, learning_rate: float) -> FlatAdam:
        """Adam in one compiled pass."""
        from varnn.network.engines._compiled_adam import CompiledAdam  # it loads numba

        return CompiledAdam(flat, learning_rate)

    def loss_and_gradient(self, flat: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Mean squared error of the windows ending at rows ``ends``, and its gradient."""
        weights, gradient, work = flat.detach().numpy(), self._gradient.numpy(), self._buffers(len(ends))
        rows, is_relu = ends.numpy(), self._is_relu
        loss = self._kernels.forward(*self._rows, rows, weights, is_relu, work)
        if self._later is not None:
            loss += self._kernels.look_ahead(self._later, rows, weights, gradient, work)
        self._kernels.backward(weights, gradient, is_relu, work)
        return torch.scalar_tensor(loss, dtype=flat.dtype), self._gradient
