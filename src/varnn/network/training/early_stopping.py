"""Early stopping: when a training ends, and which of its epochs is kept."""

import math
from dataclasses import dataclass, field

from varnn.network.training.record import Epoch


@dataclass
class EarlyStopping:
    """Epochs of one member, the best of them, and whether to go on (Prechelt, 1998).

    Parameters
    ----------
    last : int
        Epochs after which training ends in any case.

    Examples
    --------
    >>> stopping = EarlyStopping(last=9)
    >>> [stopping.add({"validation_loss": loss}, patience=2) for loss in (3.0, 1.0, 2.0, 2.0)]
    [True, True, False, False]
    >>> stopping.ended, stopping.best_epoch
    (True, 2)

    References
    ----------
    .. [1] L. Prechelt, "Early stopping - but when?", Neural Networks: Tricks of the Trade, 1998.
    """

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
        out_of_patience = validated and patience is not None and epoch - self.best_epoch >= patience
        self.ended = out_of_patience or epoch >= self.last
        return better
