"""Whether the kernel is right: every check is a number beside the largest that it may be."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.gpu import made
from benchmarks.gpu.kinks import away_from_kinks
from benchmarks.gpu.stand_in import StandIn
from varnn._types import FloatArray
from varnn.errors import TrainingError
from varnn.network.cell import VARIANTS, Architecture
from varnn.network.engines.cuda import training as cuda
from varnn.network.engines.cuda._kernels import kernel_for
from varnn.network.engines.cuda._layout import AVERAGE, BEST, MEAN, SQUARE, WEIGHTS, Shape
from varnn.network.engines.cuda.job import TrainingJob
from varnn.network.engines.cuda.launch import Launch
from varnn.network.engines.cuda.limits import reasons
from varnn.network.training import Epoch, Member, TrainConfig, Trained, train_members
from varnn.network.training.early_stopping import EarlyStopping
from varnn.network.training.validation import validation_loss_of

LOSS, GRADIENT = 1e-5, 2e-5  # of the first step, as a share of the largest number
LATER = 1e-3  # after some steps: Adam divides by numbers that may be small


class Checked(NamedTuple):
    """One number that was checked."""

    what: str
    error: float
    largest: float

    @property
    def holds(self) -> bool:
        """Whether it is as small as it must be, and a number."""
        return self.error <= self.largest


def why_not() -> str:
    """Why nothing can be checked here; empty where it can."""
    cell = Architecture.of("RM", n_inputs=2, hidden_size=8)
    return ", ".join(reasons([made.member(cell, rows=100)], TrainConfig(batch_size=8)))


def first_steps() -> Iterator[Checked]:
    """Loss and gradient of a first batch, of all variants and sizes, against the reference in doubles."""
    small: dict[str, Any] = {"n_inputs": 3, "hidden_size": 7, "memory_size": 5}
    wide: dict[str, Any] = {"n_inputs": 28, "hidden_size": 64, "memory_size": 48}
    paper: dict[str, Any] = {"n_inputs": 9, "hidden_size": 128, "memory_size": 9}
    for variant in VARIANTS:
        for activation in ("relu", "tanh"):
            for sizes, window, loss_rows, batches in (
                (small, 6, 1, (1, 5, 20)),
                (small, 7, 7, (9,)),
                (wide, 24, 12, (9, 12, 16)),
                (paper, 5, 1, (128,)),
                ({**wide, "hidden_size": 33, "memory_size": 17}, 10, 3, (10, 37)),
                ({**small, "n_inputs": 0, "memory_size": 1, "hidden_size": 4}, 2, 1, (4,)),
            ):
                cell = Architecture.of(variant, memory_activation=activation, **sizes)
                for batch in batches:
                    yield from _first_step(cell, window, loss_rows, batch)


def _first_step(cell: Architecture, window: int, loss_rows: int, batch: int) -> Iterator[Checked]:
    config = TrainConfig(window=window, loss_rows=loss_rows, batch_size=batch, epochs=1)
    name = f"{_variant(cell)} {cell.memory_activation} {cell.n_inputs}-{cell.hidden_size}-{cell.memory_size}"
    name += f" window {window} loss rows {loss_rows} batch {batch}"
    for missing in (0.0, 0.3):
        job = TrainingJob.of(made.member(cell, seed=3, rows=600, missing=missing), config)
        job = away_from_kinks(made.only(job, job.training.ends[:batch]))
        block = StandIn(job, torch.float64)
        ends = torch.from_numpy(job.training.ends.astype(np.int64))
        loss, gradient = block.engine.loss_and_gradient(block.adam.flat, ends)
        [state], [losses] = _states([job])
        found = state[MEAN] / 0.1  # Adam's first mean is a tenth of the gradient
        yield Checked(f"loss, {name}, {missing:.0%} missing", _apart(losses[:1], [float(loss)]), LOSS)
        yield Checked(f"gradient, {name}, {missing:.0%} missing", _apart(found, gradient.numpy()), GRADIENT)


def _variant(cell: Architecture) -> str:
    return ("ARM" if cell.accumulate else "RM") + ("+AM" if cell.activation_memory else "")


def later_steps() -> Iterator[Checked]:
    """All that is kept after some steps, the last one of fewer windows: clip, cosine, average of weights."""
    small = Architecture.of("ARM+AM", n_inputs=3, hidden_size=7, memory_size=5)
    for cell, window, loss_rows, batch in ((made.DEFAULT, 24, 12, 9), (small, 6, 1, 16)):
        for name, settings in {
            "plain": {},
            "clip": {"gradient_clip": 0.05},
            "cosine": {"schedule": "cosine"},
            "average": {"weight_ema": 0.99},
            "all": {"gradient_clip": 0.05, "schedule": "cosine", "weight_ema": 0.6},
        }.items():
            config = TrainConfig(
                window=window,
                loss_rows=loss_rows,
                batch_size=batch,
                epochs=4,
                **settings,  # type: ignore[arg-type]  # of many kinds
            )
            job = TrainingJob.of(made.member(cell, seed=3, rows=600, missing=0.1), config)
            job = made.only(job, job.training.ends[: 5 * batch + batch // 2])
            block = StandIn(job, torch.float64)
            loss = block.epoch(0)
            [state], [losses] = _states([job])
            what = f"{cell.n_inputs} inputs, {name}"
            yield Checked(f"mean loss of 6 steps, {what}", _apart(losses[:1], [loss]), LATER)
            pairs = {"weights": (WEIGHTS, block.adam.flat), "average": (AVERAGE, block.average)}
            pairs |= {"mean": (MEAN, block.adam._mean), "square": (SQUARE, block.adam._square)}
            for part, (row, expected) in pairs.items():
                yield Checked(f"{part} after 6 steps, {what}", _apart(state[row], expected.numpy()), LATER)
            kept = state[AVERAGE if config.weight_ema else WEIGHTS]
            yield Checked(f"kept after 6 steps, {what}", _apart(state[BEST], kept), 0.0)


def _states(jobs: Sequence[TrainingJob]) -> tuple[FloatArray, FloatArray]:
    """Train jobs of one shape: their states, and losses of their epochs."""
    shape = Shape.of(jobs[0].architecture, jobs[0].config)
    kernel = kernel_for(shape, jobs[0].config.batch_size, torch.cuda.current_device())
    launch = Launch(kernel, jobs, lambda index, line: None)
    while not launch.poll():
        time.sleep(1e-4)
    losses = np.array([one.losses for one in launch.results()])
    return launch.state.cpu().numpy(), losses


def _apart(found: Any, expected: Any) -> float:
    """Largest difference, as a share of the largest number that is expected."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    largest = float(np.abs(expected).max())
    return float(np.abs(found - expected).max()) / (largest or 1.0)


def validation() -> Iterator[Checked]:
    """Validation losses, as the CPU has them of the same weights."""
    small = Architecture.of("ARM", n_inputs=3, hidden_size=7, memory_size=5, memory_activation="tanh")
    for cell, window, loss_rows in ((made.DEFAULT, 24, 12), (small, 6, 1)):
        for missing in (0.0, 0.3):
            config = TrainConfig(
                window=window,
                loss_rows=loss_rows,
                batch_size=12,
                epochs=3,
                weight_ema=0.9,
                learning_rate=1e-3,
            )
            member = made.member(cell, rows=800, missing=missing, series=3)
            [trained] = cuda.train_by_jobs([member], config)
            line = trained.history[trained.best_epoch - 1]
            flat = torch.from_numpy(_flat(trained))
            expected = validation_loss_of(cell, _unseen(member), config, torch.device("cpu"))(flat)
            what = f"validation loss, {cell.n_inputs} inputs, {missing:.0%} missing"
            yield Checked(what, _apart([line["validation_loss"]], expected), LOSS * 5)


def _flat(trained: Trained) -> FloatArray:
    return np.concatenate([one.ravel() for one in trained.weights.as_dict().values()])


def _unseen(member: Member) -> Any:
    return member.validation


def stops() -> Iterator[Checked]:
    """Which epoch is kept, when training ends, and that an end asked for is an end."""
    cell = Architecture.of("ARM+AM", n_inputs=3, hidden_size=16)
    config = TrainConfig(window=6, batch_size=16, epochs=60, patience=2, learning_rate=0.05)
    members = [made.member(cell, seed, rows=400) for seed in range(6)]
    for index, (one, trained) in enumerate(zip(members, cuda.train_by_jobs(members, config), strict=True)):
        replayed = EarlyStopping(config.epochs)
        lines = iter(trained.history)
        while not replayed.ended and (line := next(lines, None)) is not None:
            replayed.add(line, config.patience)
        yield Checked(f"epochs, member {index}", abs(len(replayed.history) - len(trained.history)), 0)
        yield Checked(f"it ended by itself, member {index}", float(not replayed.ended), 0)
        yield Checked(f"best epoch, member {index}", abs(replayed.best_epoch - trained.best_epoch), 0)
        again = replace(one, validation=None, stop_after=trained.best_epoch)
        [shorter] = cuda.train_by_jobs([again], config)
        yield Checked(f"weights of the best epoch, member {index}", _apart(_flat(shorter), _flat(trained)), 0)
        yield Checked(f"epochs where told, member {index}", abs(len(shorter.history) - trained.best_epoch), 0)
    yield from _stopped(cell)
    yield from _failed(cell)


def _stopped(cell: Architecture) -> Iterator[Checked]:
    stop, config = Event(), TrainConfig(window=6, batch_size=16, epochs=100_000, patience=None)
    job = TrainingJob.of(made.member(cell, rows=400, stop_after=20_000), config)
    told: list[int] = []

    def on_epoch(_: int, line: Epoch) -> None:
        told.append(int(line["epoch"]))
        if len(told) == 3:
            stop.set()

    [result] = cuda.run_jobs([job], on_epoch, stop)
    history = job.trained(result).history
    yield Checked("ended when asked to, and not before", float(not 3 <= len(history) < 20_000), 0)
    yield Checked("every epoch was told of once", float(told != list(range(1, len(history) + 1))), 0)
    begun = Event()
    begun.set()
    [nothing] = cuda.run_jobs([job], None, begun)
    yield Checked("ended before it began: few epochs", float(len(nothing.losses) > 200), 0)


def _failed(cell: Architecture) -> Iterator[Checked]:
    config = TrainConfig(window=6, batch_size=16, epochs=50, learning_rate=1e25, patience=None)
    jobs = [TrainingJob.of(made.member(cell, seed, rows=400), config) for seed in (1, 2)]
    good = replace(jobs[1], config=replace(config, learning_rate=1e-3))
    bad, fine = cuda.run_jobs([jobs[0], good])
    said = ""
    try:
        jobs[0].trained(bad)
    except TrainingError as error:
        said = str(error)
    yield Checked("a loss that explodes is an error", float("must" not in said), 0)
    yield Checked("and the others go on", float(len(good.trained(fine).history) != 50), 0)


def same_again() -> Iterator[Checked]:
    """One seed, one result: alone, among others, twice, and with two threads at a time."""
    config = made.default_config(9, epochs=3)
    members = [made.member(made.DEFAULT, seed, rows=1500) for seed in range(140)]
    together = cuda.train_by_jobs(members, config)
    [alone] = cuda.train_by_jobs([members[137]], config)
    yield Checked("alone and among 140", _apart(_flat(alone), _flat(together[137])), 0)
    again = cuda.train_by_jobs(members[:5], config)
    found: dict[int, list[Trained]] = {}

    def trained(number: int) -> None:
        found[number] = cuda.train_by_jobs(members[:5], config)

    threads = [Thread(target=trained, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(5):
        kept = _flat(together[index])
        yield Checked(f"twice, member {index}", _apart(_flat(again[index]), kept), 0)
        worst = max((_apart(_flat(one[index]), kept) for one in found.values()), default=np.nan)
        yield Checked(f"three threads, member {index}", worst if len(found) == 3 else np.nan, 0)


def several_shapes() -> Iterator[Checked]:
    """Jobs of several shapes and settings in one call give what each gives alone."""
    cells = [
        Architecture.of(variant, n_inputs=inputs, hidden_size=16) for variant in VARIANTS for inputs in (3, 5)
    ]
    jobs = []
    for index, cell in enumerate(cells * 3):
        config = TrainConfig(window=6, batch_size=8 + index % 5, epochs=2 + index % 3)
        jobs.append(TrainingJob.of(made.member(cell, index, rows=300 + 10 * index), config))
    for index, (job, result) in enumerate(zip(jobs, cuda.run_jobs(jobs), strict=True)):
        [alone] = cuda.run_jobs([job])
        what = f"job {index} of {len(jobs)}, {_variant(job.architecture)}"
        yield Checked(what, _apart(result.weights, alone.weights), 0)
        yield Checked(f"epochs of {what}", abs(len(result.losses) - job.last), 0)


def as_good() -> Iterator[Checked]:
    """Trained members of the default: validation errors as those of the CPU, by the spread of seeds."""
    config = made.default_config(9, epochs=12)
    members = [made.member(made.DEFAULT, seed, rows=6000) for seed in range(8)]
    on_gpu = _best(train_members(members, replace(config, engine="cuda")))
    on_cpu = _best(train_members(members, replace(config, device="cpu")))
    spread = float(np.sqrt(on_gpu.var(ddof=1) / 8 + on_cpu.var(ddof=1) / 8))
    what = f"default's validation error, {on_gpu.mean():.5f} on the GPU, {on_cpu.mean():.5f} on the CPU"
    what += f" (spread of seeds {on_cpu.std(ddof=1):.5f}), in standard errors"
    yield Checked(what, abs(float(on_gpu.mean() - on_cpu.mean())) / spread, 3.0)


def _best(members: Sequence[Trained]) -> FloatArray:
    return np.array([min(line["validation_loss"] for line in one.history) for one in members])


CHECKS: tuple[Callable[[], Iterator[Checked]], ...] = (
    first_steps,
    later_steps,
    validation,
    stops,
    same_again,
    several_shapes,
    as_good,
)
