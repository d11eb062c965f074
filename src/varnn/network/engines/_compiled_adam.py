"""Adam in one compiled pass over the vectors; needs numba."""

import math

import numpy as np
from torch import Tensor

from varnn._types import FloatArray
from varnn.network.engines._jit import Scalar, kernel
from varnn.network.engines.adam import DECAY, EPSILON, SQUARE_DECAY, FlatAdam


class CompiledAdam(FlatAdam):
    """Adam as `FlatAdam`, in one pass over the vectors, on the CPU.

    Parameters
    ----------
    flat : Tensor
        The weights; `step` changes them in place.
    learning_rate : float
        The step size; the attribute may be changed between steps, as a schedule does.

    Examples
    --------
    >>> import torch
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
