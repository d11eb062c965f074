"""Adam on one flat vector: a handful of operations, whatever the number of matrices."""

import math

import torch
from torch import Tensor

DECAY = 0.9  # of the running mean of the gradient
SQUARE_DECAY = 0.999  # of the running mean of its square
EPSILON = 1e-7  # as in Keras, which the paper used


class FlatAdam:
    """The update of ``torch.optim.Adam(eps=1e-7)``, to rounding, at half its cost for a small cell.

    Parameters
    ----------
    flat
        The weights; `step` changes them in place.
    learning_rate
        The step size; the attribute may be changed between steps, as a schedule does.

    Examples
    --------
    >>> flat = torch.ones(3)
    >>> adam = FlatAdam(flat, learning_rate=0.1)
    >>> adam.step(torch.tensor([2.0, -2.0, 0.0]))
    >>> flat
    tensor([0.9000, 1.1000, 1.0000])
    """

    def __init__(self, flat: Tensor, learning_rate: float) -> None:
        self.flat = flat
        self.learning_rate = learning_rate
        self.steps = 0
        self._mean = torch.zeros_like(flat)
        self._square = torch.zeros_like(flat)
        self._root = torch.empty_like(flat)

    def step(self, gradient: Tensor) -> None:
        """Move the weights against a gradient."""
        self.steps += 1
        # mean / (1 - decay^n) over sqrt(square / (1 - square_decay^n)) + epsilon, with the corrections
        # for the start at zero taken out of the vectors.
        correction = math.sqrt(1 - SQUARE_DECAY**self.steps)
        rate = self.learning_rate * correction / (1 - DECAY**self.steps)
        self._move(gradient, rate, EPSILON * correction)

    @torch.inference_mode()
    def _move(self, gradient: Tensor, rate: float, epsilon: float) -> None:
        self._mean.lerp_(gradient, 1 - DECAY)
        self._square.mul_(SQUARE_DECAY).addcmul_(gradient, gradient, value=1 - SQUARE_DECAY)
        torch.sqrt(self._square, out=self._root).add_(epsilon)
        self.flat.addcdiv_(self._mean, self._root, value=-rate)
