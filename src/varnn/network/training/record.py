"""What goes into a training beside the rows, and what comes out of it."""

import math
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

    @property
    def validation_loss(self) -> float:
        """Loss of the epoch that was kept; infinite without validation rows."""
        return self.history[self.best_epoch - 1].get("validation_loss", math.inf)


@dataclass
class Record:
    """What happened to one member, and which of its epochs is the one to keep."""

    last: int
    history: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = math.inf
    ended: bool = False

    def add(self, line: Epoch, patience: int | None) -> bool:
        """Take in an epoch; tell whether it is the best so far (without validation, the latest is)."""
        self.history.append(line)
        epoch = len(self.history)
        measured = line.get("validation_loss", -float(epoch))
        better = measured < self.best_loss
        if better:
            self.best_loss, self.best_epoch = measured, epoch
        validated = "validation_loss" in line
        tired = validated and patience is not None and epoch - self.best_epoch >= patience
        self.ended = tired or epoch >= self.last
        return better
