"""Adam (Kingma and Ba, 2015) on one flat vector: one operation, whatever the number of matrices."""

import torch
from torch import Tensor

DECAY = 0.9  # of the running mean of the gradient
SQUARE_DECAY = 0.999  # of the running mean of its square
EPSILON = 1e-7  # as in Keras, which the paper used


class FlatAdam:
    """Adam, the stochastic gradient descent with running moments of the gradient of Kingma and Ba.

    To rounding it is ``torch.optim.Adam(eps=1e-7)``, at a fraction of its cost for a small cell.

    Parameters
    ----------
    flat : Tensor
        The weights; `step` changes them in place.
    learning_rate : float
        The step size; the attribute may be changed between steps, as a schedule does.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.

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
        self._mean = torch.zeros_like(flat)
        self._square = torch.zeros_like(flat)
        self._steps = torch.zeros((), device=flat.device)  # as the kernel wants to see them

    @torch.inference_mode()
    def step(self, gradient: Tensor) -> None:
        """Move the weights against a gradient."""
        self._steps += 1
        # What torch.optim.Adam(fused=True) comes down to: one pass over the vectors, without the lists
        # and groups around it, which take longer than the pass.
        torch._fused_adam_(
            [self.flat],
            [gradient],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            lr=self.learning_rate,
            beta1=DECAY,
            beta2=SQUARE_DECAY,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )
