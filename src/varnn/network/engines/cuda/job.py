"""What a member learns from as plain arrays, and what comes back: both can go to another process."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.windows import training_ends
from varnn.network.cell import Architecture, initial_weights
from varnn.network.engines.engine import pack, unpack
from varnn.network.training.batches import learning_rate_at, orders
from varnn.network.training.config import TrainConfig
from varnn.network.training.failures import refuse_infinite, refuse_unvalidated
from varnn.network.training.record import Epoch, Member, Trained
from varnn.network.training.validation import validation_ends

SingleArray = npt.NDArray[np.float32]
RowNumbers = npt.NDArray[np.int32]


class Labelled(NamedTuple):
    """Rows with labels, (N, D) and (N,), and the last rows of windows of them."""

    inputs: SingleArray
    target: SingleArray
    ends: RowNumbers


class JobResult(NamedTuple):
    """What a training on a GPU gives: the weights that are kept, and a number for each epoch."""

    weights: SingleArray  # (P,)
    losses: SingleArray  # (epochs,)
    validation_losses: SingleArray | None
    seconds: DoubleArray
    best_epoch: int


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """One member and how to train it, all drawn from its seed: arrays and numbers, nothing of torch.

    Members that learn from the same panel hold the same arrays, which a GPU is then sent once.

    Parameters
    ----------
    architecture : Architecture
        The cell.
    config : TrainConfig
        How to train.
    training : Labelled
        Rows, and the windows of all epochs in the order they are learnt from.
    first : array of int
        Where the windows of each epoch begin among them, and the end of the last one: (epochs + 1,).
    validation : Labelled or None
        Rows to validate on, and windows of them.
    weights : array
        Initial weights, (P,).

    Examples
    --------
    >>> from varnn.data.panel import Panel
    >>> rows = Panel.from_arrays(np.zeros((9, 2)), np.arange(9.0))
    >>> member = Member(Architecture.of("RM", n_inputs=2, hidden_size=4), rows, None, seed=1)
    >>> job = TrainingJob.of(member, TrainConfig(window=3, epochs=2))
    >>> job.first.tolist(), sorted(job.training.ends[:7].tolist())
    ([0, 7, 14], [2, 3, 4, 5, 6, 7, 8])
    """

    architecture: Architecture
    config: TrainConfig
    training: Labelled
    first: RowNumbers
    validation: Labelled | None
    weights: SingleArray

    @classmethod
    def of(cls, member: Member, config: TrainConfig) -> "TrainingJob":
        """Draw what a member learns from, as a training on the CPU does."""
        training_ends(member.training, config.window)  # refuses what is too short
        last = min(member.stop_after or config.epochs, config.epochs)
        epochs = list(islice(orders(member.training, config, member.seed), last))
        first = np.cumsum([0, *map(len, epochs)], dtype=np.int64)
        validation = None
        if member.validation is not None:
            ends = validation_ends(member.validation, config)
            rows = (_single(member.validation.inputs), _single(member.validation.target))
            validation = Labelled(*rows, ends.astype(np.int32))
        rows = (_single(member.training.inputs), _single(member.training.target))
        return cls(
            member.architecture,
            config,
            Labelled(*rows, np.concatenate(epochs).astype(np.int32)),
            first.astype(np.int32),
            validation,
            pack(initial_weights(member.architecture, member.seed)),
        )

    @property
    def last(self) -> int:
        """Epochs to go through."""
        return len(self.first) - 1

    def line(self, epoch: int, loss: float, validation_loss: float, seconds: float) -> Epoch:
        """Write down an epoch, counted from 1, as a training on the CPU does."""
        line: Epoch = {"epoch": epoch, "loss": float(loss)}
        if self.validation is not None:
            line["validation_loss"] = float(validation_loss)
        batches = math.ceil(int(self.first[epoch] - self.first[epoch - 1]) / self.config.batch_size)
        rate = learning_rate_at(self.config, epoch, batches - 1, batches)
        return {**line, "learning_rate": rate, "seconds": float(seconds)}

    def trained(self, result: JobResult) -> Trained:
        """Member that came out of it; a loss that is no number is an error, as on the CPU."""
        for epoch, loss in enumerate(result.losses, start=1):
            refuse_infinite(float(loss), epoch, self.config)
        unseen = result.losses if result.validation_losses is None else result.validation_losses
        figures = zip(result.losses, unseen, result.seconds, strict=True)
        history = [self.line(epoch, *each) for epoch, each in enumerate(figures, start=1)]
        refuse_unvalidated(history, result.best_epoch, self.config)
        return Trained(unpack(self.architecture, result.weights), history, result.best_epoch)


def _single(values: npt.NDArray[np.floating]) -> SingleArray:
    """The same array where it is in single precision and in one piece already."""
    return np.ascontiguousarray(values, dtype=np.float32)
