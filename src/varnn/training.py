"""Scaled panels -> trained weights: epochs, Adam, schedules, early stopping.

The loop is ``train_members -> train -> _run_epoch``; everything a member learns from is drawn from its
seed, so one seed on one machine gives one result.
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
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from varnn.cell import Architecture, Weights, initial_weights
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
    """One network to train: a cell, prepared rows, and the seed its weights and batches are drawn from."""

    architecture: Architecture
    training: Panel
    validation: Panel | None
    seed: int


def train_members(
    members: Sequence[Member],
    config: TrainConfig,
    on_epoch: Callable[[int, Epoch], None] | None = None,
) -> list[Trained]:
    """Train networks side by side on the CPU, one after the other on a GPU.

    Each trains on one thread and gives what :func:`train` gives for it alone. Threads, not processes:
    those were a tenth faster once they ran, but each first imports torch for seconds.

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
        return train(one.architecture, one.training, one.validation, config, one.seed, numbered, stop)

    with _one_thread():
        if len(members) == 1 or pick_device(config.device).type != "cpu":
            return [run(index) for index in range(len(members))]
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
    """
    device = pick_device(config.device)
    ends = training_ends(training, config.window)
    inputs, target = (_on(device, one) for one in (training.inputs, training.target))
    engine = make_engine(config.engine, architecture, inputs, target, config.window, config.graded)
    judge = None if validation is None else _Judge(architecture, validation, config.window, device)
    flat = _on(device, pack(initial_weights(architecture, seed)))  # packing made it ours to change
    adam = make_adam(engine, flat, config.learning_rate)
    generator = np.random.default_rng([seed, 1])  # apart from the stream the weights came from
    best, best_loss, best_epoch = flat.clone(), math.inf, 0
    history: list[Epoch] = []
    try:
        for epoch in range(1, config.epochs + 1):
            began = time.perf_counter()
            if config.graded > 1:
                offset = int(generator.integers(config.graded))
                ends = graded_ends(training, config.window, config.graded, offset)
                if len(ends) == 0:  # shifted beyond the end of the only windows there are
                    ends = graded_ends(training, config.window, config.graded, 0)
            order = generator.permutation(ends)
            loss = _run_epoch(engine, adam, order, config, epoch)
            line: Epoch = {"epoch": epoch, "loss": loss}
            if judge is not None:
                line["validation_loss"] = judge(flat)
            line |= {
                "learning_rate": adam.learning_rate,
                "seconds": time.perf_counter() - began,
            }
            history.append(line)
            if on_epoch is not None:
                on_epoch(line)
            measured = line.get("validation_loss", -float(epoch))  # no judge: the latest is best
            if measured < best_loss:
                best_loss, best_epoch = measured, epoch
                best.copy_(flat)
            elif judge is not None and config.patience and epoch - best_epoch >= config.patience:
                break
            if stop is not None and stop.is_set():
                break
    except KeyboardInterrupt:
        if not history:
            raise
        logger.warning("training interrupted: keeping the weights of epoch %d", best_epoch)
    return Trained(unpack(architecture, best.cpu().numpy()), history, best_epoch)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: its products are small here.

    A second thread gains little on an idle machine, and on a busy one the threads wait for each
    other: ten times slower was seen. A second core is better used by a second member.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _run_epoch(
    engine: Engine,
    adam: FlatAdam,
    order: Rows,
    config: TrainConfig,
    epoch: int,
) -> float:
    """Make one pass over the windows in the given order; give the mean loss of its batches."""
    flat = adam.flat
    rows = _on(flat.device, order.astype(np.int64))
    batches = torch.split(rows, config.batch_size)
    total = torch.zeros((), device=flat.device, dtype=torch.float64)
    for number, batch in enumerate(batches):
        if config.schedule == "cosine":
            done = (epoch - 1 + number / len(batches)) / config.epochs
            adam.learning_rate = config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        loss, gradient = engine.loss_and_gradient(flat, batch)
        if config.gradient_clip is not None:
            norm = torch.linalg.vector_norm(gradient)
            gradient.mul_((config.gradient_clip / (norm + 1e-12)).clamp(max=1.0))
        adam.step(gradient)
        total += loss * len(batch)
    mean = float(total) / len(rows)
    if not math.isfinite(mean):
        raise TrainingError(
            f"the loss must stay finite; in epoch {epoch} it became {mean}. Lower learning_rate "
            f"(now {config.learning_rate:g}), set gradient_clip=1.0, or use memory_activation='tanh'."
        )
    return mean


class _Judge:
    """Mean squared error of a panel's one-step predictions."""

    def __init__(self, architecture: Architecture, panel: Panel, window: int, device: torch.device) -> None:
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

    def __call__(self, flat: torch.Tensor) -> float:
        """Score the weights in ``flat``; on the CPU this is NumPy, on views of the same memory."""
        weights = unpack(self.architecture, flat.numpy() if self.on_host else flat)
        stacked = Weights(*(None if one is None else one[None] for one in weights))
        inputs, target, first_rows = self.arrays
        scores = score(self.architecture, stacked, inputs, target, first_rows, self.window)
        predictions = scores.predictions[0]
        if not self.on_host:
            predictions = predictions.cpu().numpy()
        return float(np.mean(np.square(self.target - predictions[self.scored])))


def _on(device: torch.device, array: npt.NDArray[Any]) -> torch.Tensor:
    """Bring an array to a device; on the CPU it is shared, not copied, and nothing here writes to it."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
