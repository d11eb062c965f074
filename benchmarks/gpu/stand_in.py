"""What the kernel does, in torch on the CPU by the reference engine: its measure, and its stand-in.

It reads a `TrainingJob` as the kernel reads its member: windows of an epoch by where they begin and end, in
batches; clip, Adam, average of weights; validation; the epoch that is kept.
"""

import math
import time
from collections.abc import Callable, Sequence
from threading import Event

import numpy as np
import torch

from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.cuda.job import JobResult, Labelled, TrainingJob
from varnn.network.engines.engine import Task
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.training import Epoch


class StandIn:
    """One block of the kernel.

    Parameters
    ----------
    job : TrainingJob
        What to train.
    dtype : torch.dtype, default torch.float32
        Precision; in double it is a measure of the kernel's rounding.
    """

    def __init__(self, job: TrainingJob, dtype: torch.dtype = torch.float32) -> None:
        self.job, self.dtype, config = job, dtype, job.config
        self.engine = self._engine(job.training)
        self.adam = FlatAdam(torch.tensor(job.weights, dtype=dtype), config.learning_rate)
        self.average = self.adam.flat.clone()
        self.best = self.adam.flat.clone()
        self.steps = 0

    def _engine(self, rows: Labelled) -> ReferenceEngine:
        inputs, target = (torch.tensor(one, dtype=self.dtype) for one in rows[:2])
        config = self.job.config
        return ReferenceEngine(Task(self.job.architecture, inputs, target, config.window, config.loss_rows))

    def epoch(self, number: int, stop: Event | None = None) -> float | None:
        """Go through an epoch, counted from 0; its mean loss, or None where it was ended before."""
        config = self.job.config
        begin, end = map(int, self.job.first[number : number + 2])
        starts, total = range(begin, end, config.batch_size), 0.0
        for index, start in enumerate(starts):
            if stop is not None and stop.is_set():
                return None
            rows = self.job.training.ends[start : min(start + config.batch_size, end)]
            rate = config.learning_rate
            if config.schedule == "cosine":
                rate *= 0.5 * (1 + math.cos(math.pi * (number + index / len(starts)) / config.epochs))
            total += self.step(torch.from_numpy(rows.astype(np.int64)), rate) * len(rows)
        return float(np.float32(total / (end - begin)))  # as the kernel writes it down

    def step(self, ends: torch.Tensor, rate: float) -> float:
        """Learn from a batch; its loss."""
        loss, gradient = self.engine.loss_and_gradient(self.adam.flat, ends)
        clip, keep = self.job.config.gradient_clip, self.job.config.weight_ema
        if clip is not None:
            gradient *= min(1.0, clip / (float(gradient.norm()) + 1e-12))
        self.adam.learning_rate = rate
        self.adam.step(gradient)
        kept = min(keep, (1 + self.steps) / (10 + self.steps)) if keep else 0.0
        self.average.lerp_(self.adam.flat, 1 - kept)
        self.steps += 1
        return float(loss)

    def validation_loss(self, rows: Labelled) -> float:
        """Mean squared error of the loss rows of windows."""
        ends = torch.from_numpy(rows.ends.astype(np.int64))
        return float(self._engine(rows).loss(self.average, ends))


def train_as_kernel(
    job: TrainingJob, on_epoch: Callable[[Epoch], None] | None = None, stop: Event | None = None
) -> JobResult:
    """Train a job as the kernel does."""
    block, patience = StandIn(job), job.config.patience
    losses: list[float] = []
    unseen: list[float] = []
    seconds: list[float] = []
    best_epoch, best_loss = 0, math.inf
    while len(losses) < job.last:
        began = time.perf_counter()
        loss = block.epoch(len(losses), stop)
        if loss is None:
            break
        losses.append(loss)
        unseen.append(math.nan if job.validation is None else block.validation_loss(job.validation))
        seconds.append(time.perf_counter() - began)
        if not math.isfinite(loss):
            break
        if job.validation is None or unseen[-1] < best_loss:
            best_epoch, best_loss = len(losses), unseen[-1]
            block.best.copy_(block.average)
        if on_epoch is not None:
            on_epoch(job.line(len(losses), loss, unseen[-1], seconds[-1]))
        if job.validation is not None and patience is not None and len(losses) - best_epoch >= patience:
            break
    single = [np.array(one, np.float32) for one in (losses, unseen)]
    validated = None if job.validation is None else single[1]
    return JobResult(block.best.numpy(), single[0], validated, np.array(seconds), best_epoch)


def run_as_kernel(
    jobs: Sequence[TrainingJob],
    on_epoch: Callable[[int, Epoch], None] | None = None,
    stop: Event | None = None,
) -> list[JobResult]:
    """Train jobs one after the other, in place of `varnn.network.engines.cuda.training.run_jobs`."""

    def told(index: int) -> Callable[[Epoch], None] | None:
        return None if on_epoch is None else lambda line: on_epoch(index, line)

    return [train_as_kernel(job, told(index), stop) for index, job in enumerate(jobs)]
