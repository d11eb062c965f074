"""The cell's equations over whole windows: scoring (forward only) and training engines.

A training engine gives the loss of a batch of windows and its gradient as one flat vector, so that
the optimiser is a few operations on one buffer, whatever the variant. ``reference`` is written to
be read and is the truth the others are tested against.
"""

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from varnn.network.cell import Architecture, Array, Weights

if TYPE_CHECKING:
    from torch import Tensor


class Engine(Protocol):
    """What training needs to know about a way to compute."""

    def loss_and_gradient(self, flat: "Tensor", ends: "Tensor") -> "tuple[Tensor, Tensor]":
        """Give the mean squared error of the windows ending at rows ``ends``, and its gradient.

        An engine that takes several members at once has weights (E, P), windows (E, B) and losses (E,).
        """
        ...


def pack(weights: Weights) -> npt.NDArray[np.float32]:
    """Lay all matrices end to end in one vector."""
    return np.concatenate([matrix.ravel() for matrix in weights.as_dict().values()])


def unpack(architecture: Architecture, flat: Array) -> Weights:
    """View one vector (NumPy or torch) as the matrices of a cell; nothing is copied.

    Vectors of several members, (E, P), give matrices with a leading axis of members.

    Examples
    --------
    >>> from varnn.network.cell import initial_weights
    >>> cell = Architecture.of("ARM", n_inputs=2, hidden_size=3)
    >>> unpack(cell, pack(initial_weights(cell, seed=0))).carry.shape
    (8, 8)
    """
    views, begin = {}, 0
    for name, (rows, columns) in architecture.shapes.items():
        views[name] = flat[..., begin : begin + rows * columns].reshape(*flat.shape[:-1], rows, columns)
        begin += rows * columns
    return Weights(**views)
