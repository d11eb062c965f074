"""What goes into a training beside the rows, and what comes out of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.network.cell import Weights

Epoch = dict[str, float]


class Ahead(NamedTuple):
    """Targets of the rows after each row, (N, H - 1): of training and validation rows; NaN is unknown."""

    training: npt.NDArray[np.float32]
    validation: npt.NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class Trained:
    """The product of one training: NumPy weights, and what happened in each epoch."""

    weights: Weights
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
