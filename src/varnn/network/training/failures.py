"""Trainings that went wrong, in words that say what to change."""

import math
from collections.abc import Sequence

from varnn.errors import TrainingError
from varnn.network.training.config import TrainConfig
from varnn.network.training.record import Epoch


def refuse_infinite(loss: float, epoch: int, config: TrainConfig) -> None:
    """Refuse a mean loss of an epoch that is no number."""
    if not math.isfinite(loss):
        raise TrainingError(
            f"the loss must stay finite; in epoch {epoch} it became {loss}. Lower learning_rate "
            f"(now {config.learning_rate:g}), set gradient_clip=1.0, or use memory_activation='tanh'."
        )


def refuse_unvalidated(history: Sequence[Epoch], best_epoch: int, config: TrainConfig) -> None:
    """Refuse a training of which no epoch can be kept."""
    if history and best_epoch == 0:
        raise TrainingError(
            "the validation loss must be finite; in no epoch was it. Lower learning_rate (now "
            f"{config.learning_rate:g}), or use memory_activation='tanh'."
        )
