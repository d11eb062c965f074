"""The loop: ``train -> train_together -> _run_epoch``."""

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event

import numpy as np
import torch

from varnn.data.panel import Panel
from varnn.data.windows import Rows, training_ends
from varnn.network.cell import Architecture, initial_weights
from varnn.network.engines.engine import Engine, Optimiser, Task, pack, unpack
from varnn.network.engines.registry import make_engine
from varnn.network.training.batches import learning_rate_at, orders
from varnn.network.training.config import TrainConfig, pick_device, put_on
from varnn.network.training.early_stopping import EarlyStopping
from varnn.network.training.failures import refuse_infinite, refuse_unvalidated
from varnn.network.training.record import Ahead, Epoch, Trained
from varnn.network.training.validation import validation_loss_of

logger = logging.getLogger(__name__)


def train(
    architecture: Architecture,
    training: Panel,
    validation: Panel | None,
    config: TrainConfig,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None = None,
    stop: Event | None = None,
    ahead: Ahead | None = None,
    stop_after: int | None = None,
) -> Trained:
    """Train one cell on the windows of a scaled panel, by Adam with early stopping.

    Parameters
    ----------
    architecture : Architecture
        The cell to fit.
    training : Panel
    validation : Panel or None
        Scaled panels with no missing inputs. With a validation panel the weights of its best epoch
        are kept and ``config.patience`` epochs without a better one end the training; without
        one, the last weights are kept.
    config : TrainConfig
        How to train.
    seed : int
        Where weights and batches are drawn from.
    on_epoch : callable or None, default None
        Called after each epoch with its line of the history.
    stop : Event or None, default None
        Ends training once it is set, as Ctrl-C does; the best of the epochs that were gone through is kept.
        With it nothing is raised where there is none yet: the history is empty.
    ahead : Ahead or None, default None
        Targets of the rows after each row, for a cell that looks ahead.
    stop_after : int or None, default None
        Epochs of the schedule to go through; None is all of them.
    """

    def numbered(_: int, line: Epoch) -> None:
        if on_epoch is not None:
            on_epoch(line)

    rows = (training, validation)
    return train_together(architecture, *rows, config, [seed], numbered, stop, ahead, [stop_after])[0]


def train_together(
    architecture: Architecture,
    training: Panel,
    validation: Panel | None,
    config: TrainConfig,
    seeds: Sequence[int],
    on_epoch: Callable[[int, Epoch], None] | None = None,
    stop: Event | None = None,
    ahead: Ahead | None = None,
    stop_after: Sequence[int | None] | None = None,
) -> list[Trained]:
    """Train one cell per seed on the same panels, all in every step; as :func:`train` otherwise.

    Several need an engine whose operations take a leading axis of members, as those of the reference do; to
    rounding each is what it would be alone.
    """
    device = pick_device(config.device)
    training_ends(training, config.window)  # refuses what is too short
    inputs, target = (put_on(device, one) for one in (training.inputs, training.target))
    alone = len(seeds) == 1
    later = None if ahead is None else put_on(device, ahead.training)
    rows = (inputs, target, config.window, config.loss_rows, later)
    counts = None if training.weights is None else put_on(device, training.weights.astype(np.float32))
    engine = make_engine(config.engine, Task(architecture, *rows, members=len(seeds), weights=counts))
    validation_loss = None
    if validation is not None:
        unseen = None if ahead is None else ahead.validation
        validation_loss = validation_loss_of(architecture, validation, config, device, unseen)
    drawn = np.stack([pack(initial_weights(architecture, seed)) for seed in seeds])
    flat = put_on(device, drawn[0] if alone else drawn)
    optimiser = engine.optimiser(flat, config.learning_rate)
    lasts = stop_after or [None] * len(seeds)
    best, records = flat.clone(), [EarlyStopping(last or config.epochs) for last in lasts]
    average = _Average(flat, config.weight_ema)
    windows = [orders(training, config, seed) for seed in seeds]
    try:
        for epoch in range(1, config.epochs + 1):
            began = time.perf_counter()
            order = np.stack([next(one) for one in windows])
            losses = _run_epoch(engine, optimiser, average, order[0] if alone else order, config, epoch, stop)
            kept = average.weights
            scored = None if validation_loss is None else validation_loss(kept)
            seconds = time.perf_counter() - began
            for index, record in enumerate(records):
                if record.ended:
                    continue
                line: Epoch = {"epoch": epoch, "loss": losses[index]}
                if scored is not None:
                    line["validation_loss"] = scored[index]
                line |= {"learning_rate": optimiser.learning_rate, "seconds": seconds}
                if record.add(line, config.patience):
                    (best if alone else best[index]).copy_(kept if alone else kept[index])
                if on_epoch is not None:
                    on_epoch(index, line)
            if all(record.ended for record in records):
                break
    except KeyboardInterrupt:
        if stop is not None:  # whoever gave it says what is kept
            stop.set()
        elif not records[0].history:
            raise
        else:
            epochs = [record.best_epoch for record in records]
            logger.warning(
                "training interrupted: keeping the weights of epoch %s", epochs[0] if alone else epochs
            )
    for record in records:
        refuse_unvalidated(record.history, record.best_epoch, config)
    weights = best.cpu().numpy().reshape(len(seeds), -1)
    return [
        Trained(unpack(architecture, flat), record.history, record.best_epoch)
        for flat, record in zip(weights, records, strict=True)
    ]


class _Average:
    """Exponential moving average of the weights over the steps of training: less noisy than the weights.

    The first steps count for less, as they start from nowhere: after t steps a mean keeps no more of
    itself than (1 + t) / (10 + t). With ``keep`` of 0 there is no mean: the weights are their own.

    References
    ----------
    B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM Journal on
    Control and Optimization 30 (1992).
    """

    def __init__(self, flat: torch.Tensor, keep: float) -> None:
        self.flat, self.keep, self.steps = flat, keep, 0
        self.weights = flat.clone() if keep else flat

    def step(self) -> None:
        if self.keep:
            self.weights.lerp_(self.flat, 1 - min(self.keep, (1 + self.steps) / (10 + self.steps)))
            self.steps += 1


def _run_epoch(
    engine: Engine,
    optimiser: Optimiser,
    average: _Average,
    order: Rows,
    config: TrainConfig,
    epoch: int,
    stop: Event | None,
) -> list[float]:
    """Make one pass over the windows, ([E,] N), in the given order; give each member's mean loss."""
    flat = optimiser.flat
    rows = put_on(flat.device, order.astype(np.int64))
    batches = torch.split(rows, config.batch_size, dim=-1)
    total = torch.zeros(flat.shape[:-1], device=flat.device, dtype=torch.float64)
    for number, batch in enumerate(batches):
        if stop is not None and stop.is_set():  # an epoch of millions of rows takes minutes
            raise KeyboardInterrupt
        optimiser.learning_rate = learning_rate_at(config, epoch, number, len(batches))
        loss, gradient = engine.loss_and_gradient(flat, batch)
        if config.gradient_clip is not None:
            norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
            gradient.mul_((config.gradient_clip / (norm + 1e-12)).clamp(max=1.0))
        optimiser.step(gradient)
        average.step()
        total += loss * batch.shape[-1]
    means = [float(one) / rows.shape[-1] for one in total.cpu().reshape(-1)]
    for mean in means:
        refuse_infinite(mean, epoch, config)
    return means
