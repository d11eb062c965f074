"""Scaled panels -> trained weights: epochs, Adam, schedules, early stopping.

The loop is ``train_members -> train_together -> _run_epoch``; everything a member learns from is drawn
from its seed, so one seed on one machine gives one result.
"""

import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits

from varnn.cell import Architecture, Weights, initial_weights, look_ahead
from varnn.engine import Engine, pack, unpack
from varnn.engine.adam import FlatAdam
from varnn.engine.choice import EngineName, make_adam, make_engine
from varnn.engine.scoring import score
from varnn.errors import ConfigError, DataError, TrainingError, check_choice
from varnn.panel import Panel
from varnn.windows import Rows, graded_ends, training_ends, window_ends

logger = logging.getLogger(__name__)

Schedule = Literal["constant", "cosine"]
Epoch = dict[str, float]


class Ahead(NamedTuple):
    """Targets of the rows after each row, (N, H - 1): of training and validation rows; NaN is unknown."""

    training: npt.NDArray[np.float32]
    validation: npt.NDArray[np.float32] | None


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train; checked when it is made.

    Examples
    --------
    >>> TrainConfig(learning_rate=-1.0)
    Traceback (most recent call last):
    ...
    varnn.errors.ConfigError: learning_rate must be above 0; got -1.0.
    """

    window: int = 5
    graded: int = 1
    epochs: int = 50
    batch_size: int = 128
    learning_rate: float = 3e-3
    schedule: Schedule = "constant"
    patience: int | None = 10
    gradient_clip: float | None = None
    averaging: float = 0.0
    device: str = "auto"
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        for name in ("window", "graded", "epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ConfigError(f"{name} must be a whole number, at least 1; got {value!r}.")
        for name in ("learning_rate", "gradient_clip"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} must be above 0; got {value}.")
        if not 0 <= self.averaging < 1:
            raise ConfigError(f"averaging must be at least 0 and below 1; got {self.averaging}.")
        if self.graded > self.window:
            raise ConfigError(f"graded must be at most window = {self.window}; got {self.graded}.")
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_choice("engine", self.engine, get_args(EngineName))


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


def pick_device(name: str) -> torch.device:
    """Turn ``"auto"``, ``"cpu"`` or ``"cuda"`` into a device that is there.

    Examples
    --------
    >>> pick_device("cpu").type
    'cpu'
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device must be 'auto', 'cpu' or 'cuda'; got {name!r}.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device={name!r} asks for a GPU, and none is usable here. Use 'auto'.")
    return device


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


def train_members(
    members: Sequence[Member],
    config: TrainConfig,
    on_epoch: Callable[[int, Epoch], None] | None = None,
) -> list[Trained]:
    """Train networks side by side on the CPU, as one batch on a GPU.

    On the CPU each trains on one thread and gives what :func:`train` gives for it alone. Threads, not
    processes: those were a tenth faster once they ran, but each first imports torch for seconds. On a
    GPU networks of one shape that learn from the same rows are one: it takes the time of a single one.

    Parameters
    ----------
    members
        What to train.
    config
        How to train.
    on_epoch
        Called after each epoch with the member's number and its line of the history.
    """
    stop = Event()

    def run(index: int) -> Trained:
        def numbered(line: Epoch) -> None:
            if on_epoch is not None:
                on_epoch(index, line)

        one = members[index]
        rows = (one.training, one.validation)
        how: dict[str, Any] = {"ahead": one.ahead, "stop_after": one.stop_after}
        return train(one.architecture, *rows, config, one.seed, numbered, stop, **how)

    with _one_thread():
        if pick_device(config.device).type != "cpu":
            first = members[0]
            if all(one.training is first.training for one in members):
                seeds = [one.seed for one in members]
                cell, rows = first.architecture, (first.training, first.validation)
                ends = [one.stop_after for one in members]
                return train_together(cell, *rows, config, seeds, on_epoch, stop, first.ahead, ends)
            return [run(index) for index in range(len(members))]
        if len(members) == 1:
            return [run(0)]
        with ThreadPoolExecutor(min(len(members), os.cpu_count() or 1)) as pool:
            futures = [pool.submit(run, index) for index in range(len(members))]
            try:
                return [future.result() for future in futures]
            except BaseException as error:
                stop.set()  # the others end their epoch and keep their best weights
                if isinstance(error, KeyboardInterrupt):
                    return [future.result() for future in futures]
                raise


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
    """Fit one cell to the windows of a scaled panel.

    Parameters
    ----------
    architecture
        The cell to fit.
    training, validation
        Scaled panels with no missing inputs. With a validation panel the weights of its best epoch
        are kept and ``config.patience`` epochs without a better one end the training; without
        one, the last weights are kept.
    config, seed
        How to train, and where weights and batches are drawn from.
    on_epoch
        Called after each epoch with its line of the history.
    stop
        Ends training after the current epoch once it is set, as Ctrl-C does at once.
    ahead
        Targets of the rows after each row, for a cell that looks ahead.
    stop_after
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
    """Fit one cell per seed to the same panels, all in every step; as :func:`train` otherwise.

    Several are fitted by the reference engine, whose operations take a leading axis of members; to
    rounding each is what it would be alone.
    """
    device = pick_device(config.device)
    training_ends(training, config.window)  # refuses what is too short
    inputs, target = (_on(device, one) for one in (training.inputs, training.target))
    alone = len(seeds) == 1
    name = config.engine if alone else "reference"
    later = None if ahead is None else _on(device, ahead.training)
    engine = make_engine(name, architecture, inputs, target, config.window, config.graded, later)
    judge = None
    if validation is not None:
        unseen = None if ahead is None else ahead.validation
        judge = _Judge(architecture, validation, config.window, device, unseen)
    drawn = np.stack([pack(initial_weights(architecture, seed)) for seed in seeds])
    flat = _on(device, drawn[0] if alone else drawn)
    adam = make_adam(engine, flat, config.learning_rate)
    # Apart from the stream the weights came from.
    generators = [np.random.default_rng([seed, 1]) for seed in seeds]
    lasts = stop_after or [None] * len(seeds)
    best, records = flat.clone(), [_Record(last or config.epochs) for last in lasts]
    average = _Average(flat, config.averaging)
    try:
        for epoch in range(1, config.epochs + 1):
            began = time.perf_counter()
            ends = _windows_of_epoch(training, config, epoch)
            order = np.stack([generator.permutation(ends) for generator in generators])
            losses = _run_epoch(engine, adam, average, order[0] if alone else order, config, epoch)
            kept = average.weights
            judged = None if judge is None else judge(kept)
            seconds = time.perf_counter() - began
            for index, record in enumerate(records):
                if record.ended:
                    continue
                line: Epoch = {"epoch": epoch, "loss": losses[index]}
                if judged is not None:
                    line["validation_loss"] = judged[index]
                line |= {"learning_rate": adam.learning_rate, "seconds": seconds}
                if record.add(line, config.patience):
                    (best if alone else best[index]).copy_(kept if alone else kept[index])
                if on_epoch is not None:
                    on_epoch(index, line)
            if all(record.ended for record in records) or (stop is not None and stop.is_set()):
                break
    except KeyboardInterrupt:
        if not records[0].history:
            raise
        epochs = [record.best_epoch for record in records]
        logger.warning(
            "training interrupted: keeping the weights of epoch %s", epochs[0] if alone else epochs
        )
    weights = best.cpu().numpy().reshape(len(seeds), -1)
    return [
        Trained(unpack(architecture, flat), record.history, record.best_epoch)
        for flat, record in zip(weights, records, strict=True)
    ]


@dataclass
class _Record:
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
        judged = "validation_loss" in line
        tired = judged and patience is not None and epoch - self.best_epoch >= patience
        self.ended = tired or epoch >= self.last
        return better


class _Average:
    """A running mean of the weights over the steps of training: less noisy than the weights themselves.

    The first steps count for less, as they start from nowhere: after t steps a mean keeps no more of
    itself than (1 + t) / (10 + t). With ``keep`` of 0 there is no mean: the weights are their own.
    """

    def __init__(self, flat: torch.Tensor, keep: float) -> None:
        self.flat, self.keep, self.steps = flat, keep, 0
        self.weights = flat.clone() if keep else flat

    def step(self) -> None:
        if self.keep:
            self.weights.lerp_(self.flat, 1 - min(self.keep, (1 + self.steps) / (10 + self.steps)))
            self.steps += 1


def _windows_of_epoch(training: Panel, config: TrainConfig, epoch: int) -> Rows:
    """List the windows of an epoch: all of them, or (several graded rows) a shifted comb of them."""
    if config.graded == 1:
        return training_ends(training, config.window)
    # The shift is drawn from the epoch alone, so that members have the same number of windows.
    offset = int(np.random.default_rng(epoch).integers(config.graded))
    ends = graded_ends(training, config.window, config.graded, offset)
    if len(ends) == 0:  # shifted beyond the end of the only windows there are
        ends = graded_ends(training, config.window, config.graded, 0)
    return ends


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch, and NumPy's products when validation rows are scored, to one thread: they are small here.

    A second thread gains little on an idle machine, and on a busy one the threads wait for each
    other: ten times slower was seen. A second core is better used by a second member.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


def _run_epoch(
    engine: Engine,
    adam: FlatAdam,
    average: _Average,
    order: Rows,
    config: TrainConfig,
    epoch: int,
) -> list[float]:
    """Make one pass over the windows, ([E,] N), in the given order; give each member's mean loss."""
    flat = adam.flat
    rows = _on(flat.device, order.astype(np.int64))
    batches = torch.split(rows, config.batch_size, dim=-1)
    total = torch.zeros(flat.shape[:-1], device=flat.device, dtype=torch.float64)
    for number, batch in enumerate(batches):
        if config.schedule == "cosine":
            done = (epoch - 1 + number / len(batches)) / config.epochs
            adam.learning_rate = config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        loss, gradient = engine.loss_and_gradient(flat, batch)
        if config.gradient_clip is not None:
            norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
            gradient.mul_((config.gradient_clip / (norm + 1e-12)).clamp(max=1.0))
        adam.step(gradient)
        average.step()
        total += loss * batch.shape[-1]
    means = [float(one) / rows.shape[-1] for one in total.cpu().reshape(-1)]
    for mean in means:
        if not math.isfinite(mean):
            raise TrainingError(
                f"the loss must stay finite; in epoch {epoch} it became {mean}. Lower learning_rate "
                f"(now {config.learning_rate:g}), set gradient_clip=1.0, or use memory_activation='tanh'."
            )
    return means


class _Judge:
    """Mean squared error of a panel's one-step predictions; of a cell that looks ahead, of those too."""

    def __init__(
        self,
        architecture: Architecture,
        panel: Panel,
        window: int,
        device: torch.device,
        ahead: npt.NDArray[np.float32] | None = None,
    ) -> None:
        self.architecture = architecture
        self.window = window
        # Rows with a full window, as in training; where a part is too short for any, all its rows.
        scored = window_ends(panel, window)
        if len(scored) == 0:
            scored = window_ends(panel, 1)
        if len(scored) == 0:
            raise DataError(
                "the validation rows must hold at least one known target, and they hold none. "
                "Change validation_fraction, or give a `validation` panel."
            )
        self.scored = scored
        self.on_host = device.type == "cpu"
        arrays = (panel.inputs, panel.target, panel.first_rows)
        self.arrays: tuple[Any, ...] = arrays if self.on_host else tuple(_on(device, one) for one in arrays)
        self.target: npt.NDArray[np.float64] = panel.target[scored].astype(np.float64)
        self.ahead = None if ahead is None else ahead[scored]

    def __call__(self, flat: torch.Tensor) -> list[float]:
        """Score the weights in ``flat``, ([E,] P); on the CPU in NumPy, on views of the same memory."""
        members = flat.reshape(-1, flat.shape[-1])
        weights = unpack(self.architecture, members.numpy() if self.on_host else members)
        inputs, target, first_rows = self.arrays
        rows = (inputs, target, first_rows)
        kept = self.ahead is not None
        scores = score(self.architecture, weights, *rows, self.window, keep_hidden=kept)
        losses = np.square(self.target - self._scored(scores.predictions)).mean(axis=1)
        if self.ahead is not None:
            later = np.square(self.ahead - self._scored(look_ahead(weights, scores.hidden)))
            losses += np.nansum(later, axis=(1, 2)) / max(1, np.count_nonzero(~np.isnan(self.ahead)))
        return [float(one) for one in losses]

    def _scored(self, values: Any) -> npt.NDArray[np.float32]:
        """Bring values (E, N, ...) home, and keep those of the rows that are scored."""
        return np.asarray(values if self.on_host else values.cpu().numpy())[:, self.scored]


def _on(device: torch.device, array: npt.NDArray[Any]) -> torch.Tensor:
    """Bring an array to a device; on the CPU it is shared, not copied, and nothing here writes to it."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
