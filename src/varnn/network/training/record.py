"""What goes into a training, and what comes out of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.data.panel import Panel
from varnn.network.cell import Architecture, Weights

Epoch = dict[str, float]


class Ahead(NamedTuple):
    """Targets of the rows after each row, (N, H - 1): of training and validation rows; NaN is unknown."""

    training: npt.NDArray[np.float32]
    validation: npt.NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Member:
    """One network to train: a cell, prepared rows, and the seed its weights and batches are drawn from.

    A cell that looks ahead comes with what it is to see there. With ``stop_after`` training ends after so
    many epochs of the schedule, as if nothing had come after them.
    """

    architecture: Architecture
    training: Panel
    validation: Panel | None
    seed: int
    ahead: Ahead | None = None
    stop_after: int | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """The product of one training: NumPy weights, and what happened in each epoch."""

    weights: Weights
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
