"""One way to fit, for the next row and for the next H rows alike.

::

    candidates -> a first member of each -> the best on validation rows -> its other members
               -> assembled -> what is left to choose on validation rows -> trained again on all rows

What differs between the two is a `FittingTask`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from threading import Event, Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from varnn.data import allocator
from varnn.data.panel import Panel
from varnn.network.training import Epoch, Member, TrainConfig, Trained, Trainer, train_members

logger = logging.getLogger(__name__)

Model = TypeVar("Model")
Train = Callable[[list[Member]], list[Trained]]


class Stage(IntEnum):
    """What an epoch is part of, as ``on_epoch`` is told it: a number, as all in a line of history is.

    Examples
    --------
    >>> Stage(3).name.lower()
    'refit'
    """

    CHOOSING = 1  # a first member of each candidate
    MEMBERS = 2  # the other members of the best one
    REFIT = 3  # all members again, on all rows


class FittingTask(Protocol[Model]):
    """What is to be fitted."""

    @property
    def config(self) -> TrainConfig:
        """How members are trained."""
        ...

    def candidates(self) -> Sequence[Any]:
        """What there is to choose from; each has ``member(seed)``."""
        ...

    def errors(self, candidates: Sequence[Any], firsts: Sequence[Trained]) -> list[float]:
        """Validation error of each candidate, from its first member."""
        ...

    def assemble(self, candidate: Any, members: list[Trained]) -> Model:
        """Put a candidate and its members together."""
        ...

    def calibrate(self, model: Model) -> Model:
        """Choose on validation rows what is left to choose; without any, leave the model as it is."""
        ...

    def refit(self, model: Model, rows: Panel, epochs: list[int], seed: int, train: Train) -> Model:
        """Train the chosen form again on other rows, each member for so many epochs."""
        ...


def fit_task(
    task: FittingTask[Model],
    *,
    ensemble: int,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None,
    stop: Event,
    in_part: bool = True,
    trainer: Trainer = train_members,
) -> tuple[Model, list[Trained], dict[str, float]]:
    """Choose among a task's candidates, and train an ensemble of the best.

    Parameters
    ----------
    task : FittingTask
        What to fit.
    ensemble : int
        Members.
    seed : int
        The first member's; the others have the following ones.
    on_epoch : callable, optional
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    stop : Event
        Ends training once it is set; KeyboardInterrupt if nothing is trained by then.
    in_part : bool, default=True
        Whether a model that was cut short is of use; if not, that is a KeyboardInterrupt, too.
    trainer : callable, default=train_members
        What trains members.

    Returns
    -------
    model, members, errors
        The model; its members; and the validation error of each candidate that was got to, by name, where
        there were several.
    """
    config, candidates = task.config, task.candidates()
    progress = Progress((len(candidates) + ensemble - 1) * config.epochs, on_epoch)
    progress.begin(Stage.CHOOSING, epochs=len(candidates) * [config.epochs])
    firsts = trainer([one.member(seed) for one in candidates], config, progress, stop)
    best, errors = 0, [np.inf]
    if len(candidates) > 1:
        errors = task.errors(candidates, firsts)
        best = int(np.argmin(errors))
        _tell_choice([str(one) for one in candidates], errors)
    members = [firsts[best]]
    if ensemble > 1 and not stop.is_set():
        others = [candidates[best].member(seed + index) for index in range(1, ensemble)]
        with suppress(KeyboardInterrupt):  # then the first one is all there is
            progress.begin(Stage.MEMBERS, first=1, epochs=len(others) * [config.epochs])
            members += [one for one in trainer(others, config, progress, stop) if one.history]
        del others  # they hold the prepared rows
    if stop.is_set() and not in_part:
        raise KeyboardInterrupt
    model = task.assemble(candidates[best], members)
    found = {str(one): error for one, error in zip(candidates, errors, strict=False) if np.isfinite(error)}
    del candidates  # and these: of millions of rows they are large
    allocator.release()
    return task.calibrate(model), members, found


def _tell_choice(names: Sequence[str], errors: Sequence[float]) -> None:
    """Log what the network sees, and the validation errors that say so."""
    ordered = sorted(zip(errors, names, strict=True))
    (lowest, first), *others = ordered
    listed = ", ".join(f"{name} {error:.4g}" for error, name in others if np.isfinite(error))
    logger.info(
        "the network sees %s: its mean squared error on validation rows is the lowest, %.4g (%s)",
        first,
        lowest,
        listed,
    )


def refit_task(
    task: FittingTask[Model],
    model: Model,
    rows: Panel,
    *,
    members: Sequence[Trained],
    seed: int,
    on_epoch: Callable[[Epoch], None] | None,
    stop: Event,
    trainer: Trainer = train_members,
) -> Model:
    """Train a model again on all rows, once everything is chosen; KeyboardInterrupt if it was cut short.

    Nothing is chosen here. Each member is trained anew, for as many epochs as were best for it before. What
    was measured on rows that the network had not seen (shrinkage, first weights, quantiles of errors) stays.
    """
    epochs = [one.best_epoch for one in members]
    progress = Progress(sum(epochs), on_epoch)
    progress.begin(Stage.REFIT, epochs=epochs, before=[one.history for one in members])

    def train(members: list[Member]) -> list[Trained]:
        if stop.is_set():
            raise KeyboardInterrupt
        trained = trainer(members, task.config, progress, stop)
        if stop.is_set():  # half of a training is worth less than what there is
            raise KeyboardInterrupt
        return trained

    allocator.release()  # of what was chosen from
    return task.refit(model, rows, epochs, seed, train)


class Progress:
    """Hands epochs on, one at a time, with their stage and the share of all epochs that is done."""

    def __init__(self, total: int, on_epoch: Callable[[Epoch], None] | None) -> None:
        self.total = total
        self.done = 0
        self.lock = Lock()
        self.on_epoch = on_epoch

    def begin(
        self, stage: Stage, *, epochs: Sequence[int], first: int = 0, before: Sequence[list[Epoch]] = ()
    ) -> None:
        """Begin a stage.

        Parameters
        ----------
        stage : Stage
            Which.
        epochs : sequence of int
            Epochs that each of its members takes at most.
        first : int, default=0
            Number of the first member that it trains.
        before : sequence of list, default=()
            Histories of its members in an earlier stage. A refit has no rows left to measure on: its epochs
            carry the validation losses that the same epochs had then.
        """
        self.stage, self.first, self.before, self.epochs = stage, first, before, epochs

    def __call__(self, member: int, line: Epoch) -> None:
        """Take in an epoch of a member."""
        told: Epoch = {**self._measured(member, line), **line}
        with self.lock:  # members are trained side by side
            self.done += 1
            if self.on_epoch is not None:
                told |= {"member": self.first + member, "stage": self.stage}
                told |= {"members": len(self.epochs), "epochs": self.epochs[member]}
                self.on_epoch({**told, "progress": self.done / self.total})

    def _measured(self, member: int, line: Epoch) -> Epoch:
        """Give the validation loss that this epoch of this member had in an earlier stage, if any."""
        lines = self.before[member] if member < len(self.before) else []
        earlier = next((one for one in lines if one["epoch"] == line["epoch"]), {})
        return {"validation_loss": earlier["validation_loss"]} if "validation_loss" in earlier else {}
