"""Jobs of one shape on a GPU, in one launch: sent there, watched while they run, fetched."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from varnn.network.engines.cuda._driver import Kernel
from varnn.network.engines.cuda._layout import (
    AVERAGE,
    BEST,
    BEST_EPOCH,
    DONE,
    MEMBER,
    PROGRESS,
    STATES,
    WEIGHTS,
)
from varnn.network.engines.cuda.job import JobResult, SingleArray, TrainingJob
from varnn.network.training.record import Epoch

_ALIGNED = 256  # bytes
_cuda: Any = torch.cuda  # torch gives some of it no types


class Launch:
    """A launch that trains jobs of one shape; made, it is under way.

    Parameters
    ----------
    kernel : Kernel
        Compiled for their shape.
    jobs : sequence of TrainingJob
        What to train, each in a block of its own.
    on_epoch : callable or None
        Called after each epoch with the number of the job and its line of the history.

    Attributes
    ----------
    state : Tensor
        On the GPU, (jobs, STATES, P): weights, Adam's two running means, average of weights, best weights.
    """

    def __init__(
        self, kernel: Kernel, jobs: Sequence[TrainingJob], on_epoch: Callable[[int, Epoch], None] | None
    ) -> None:
        device = torch.device("cuda", kernel.device)
        self._stream = _cuda.Stream(device)
        self._start, self._ended = (_cuda.Event(enable_timing=True) for _ in range(2))
        self._board = Board(jobs, on_epoch, pinned=True)
        with torch.cuda.device(device), torch.cuda.stream(self._stream):
            # Made here and copied: the smallest kernel waits until a training that is under way has ended.
            state = np.zeros((len(jobs), STATES, len(jobs[0].weights)), np.float32)
            state[:, [WEIGHTS, AVERAGE, BEST]] = np.stack([job.weights for job in jobs])[:, None]
            self.state = torch.from_numpy(state).to(device)
            rows = Rows(jobs)
            self._rows = torch.empty(rows.n_bytes, dtype=torch.uint8, device=device)
            self._rows.copy_(torch.from_numpy(rows.joined()))
            table = member_table(jobs, rows, self._rows.data_ptr(), self.state, self._board)
            self._members = torch.from_numpy(table.view(np.uint8)).to(device)
            self._stream.synchronize()  # what was copied from may go now
            self._start.record(self._stream)
            self._board.begin()
            kernel.launch(self._members.data_ptr(), len(jobs), self._stream.cuda_stream)
            self._ended.record(self._stream)

    def poll(self) -> bool:
        """Hand on the epochs that ended since it was last asked; tell whether all has ended."""
        ended = bool(self._ended.query())  # before looking: what ends after this is seen the next time
        self._board.look()
        return ended

    def stop(self) -> None:
        """Ask the members to end after the batches under way."""
        self._board.stop[0] = 1

    def wait(self) -> None:
        """Wait until the GPU has ended, however it ended."""
        self._ended.synchronize()

    def gpu_seconds(self) -> float:
        """Seconds that the GPU took, once all has ended."""
        return float(self._start.elapsed_time(self._ended)) / 1000

    def results(self) -> list[JobResult]:
        """What came of each job, once all has ended."""
        with torch.cuda.stream(self._stream):
            kept = self.state.cpu().numpy()[:, BEST].copy()  # in one piece: what is cut out needs a kernel
        return [self._board.result(index, weights) for index, weights in enumerate(kept)]


class Board:
    """Memory of the host that the GPU writes to as epochs end, and what was read of it so far.

    Parameters
    ----------
    jobs : sequence of TrainingJob
        What is trained.
    on_epoch : callable or None
        Called after each epoch with the number of the job and its line of the history.
    pinned : bool
        Whether a GPU can write to it.
    """

    def __init__(
        self,
        jobs: Sequence[TrainingJob],
        on_epoch: Callable[[int, Epoch], None] | None,
        *,
        pinned: bool,
    ) -> None:
        self.jobs, self.on_epoch = jobs, on_epoch
        longest = max(job.last for job in jobs)
        self.losses = torch.zeros(len(jobs), 2, longest, pin_memory=pinned)  # and validation losses
        self.progress = torch.zeros(len(jobs), PROGRESS, dtype=torch.int32, pin_memory=pinned)
        self.stop = torch.zeros(1, dtype=torch.int32, pin_memory=pinned)
        self._seconds: list[list[float]] = [[] for _ in jobs]
        self.begin()

    def begin(self) -> None:
        """Start the clocks."""
        self._latest = [time.perf_counter()] * len(self.jobs)

    def look(self) -> None:
        """Hand on the epochs that ended since it was last looked at."""
        now = time.perf_counter()
        counts = self.progress.numpy()[:, DONE].tolist()
        for index, (job, seconds, count) in enumerate(zip(self.jobs, self._seconds, counts, strict=True)):
            new = count - len(seconds)
            each = (now - self._latest[index]) / max(new, 1)
            for _ in range(new):
                seconds.append(each)  # first: on_epoch may raise, and none is told twice
                self._latest[index] += each
                if self.on_epoch is None:
                    continue
                loss, unseen = self.losses[index, :, len(seconds) - 1].tolist()
                if math.isfinite(loss):
                    self.on_epoch(index, job.line(len(seconds), loss, unseen, each))

    def result(self, index: int, weights: SingleArray) -> JobResult:
        """What came of a job, with the weights that were kept."""
        seconds = np.array(self._seconds[index])
        losses, unseen = self.losses[index, :, : len(seconds)].numpy().copy()
        validated = None if self.jobs[index].validation is None else unseen
        return JobResult(weights, losses, validated, seconds, int(self.progress[index, BEST_EPOCH]))


def member_table(
    jobs: Sequence[TrainingJob], rows: "Rows", base: int, state: torch.Tensor, board: Board
) -> npt.NDArray[np.void]:
    """Structs of members as the kernel reads them, of rows that lie at the address ``base``."""
    table = np.zeros(len(jobs), MEMBER)
    for index, (job, member) in enumerate(zip(jobs, table, strict=True)):
        config, unseen = job.config, job.validation
        member["x"], member["y"], member["order"] = (base + rows.at(one) for one in job.training)
        member["first"] = base + rows.at(job.first)
        if unseen is not None:
            member["vx"], member["vy"], member["vends"] = (base + rows.at(one) for one in unseen)
            member["vwindows"] = len(unseen.ends)
        member["state"] = state[index].data_ptr()
        member["losses"], member["vlosses"] = (one.data_ptr() for one in board.losses[index])
        member["progress"], member["stop"] = board.progress[index].data_ptr(), board.stop.data_ptr()
        member["batch"], member["epochs"], member["last"] = config.batch_size, config.epochs, job.last
        member["patience"] = config.patience or 0
        member["cosine"] = config.schedule == "cosine"
        member["rate"], member["clip"] = config.learning_rate, config.gradient_clip or 0
        member["keep"] = config.weight_ema
    return table


class Rows:
    """Arrays of jobs as one block of bytes, which is sent at once; an array of several jobs is in it once."""

    def __init__(self, jobs: Sequence[TrainingJob]) -> None:
        self._arrays: list[npt.NDArray[Any]] = []
        self._places: dict[int, int] = {}
        self.n_bytes = 0
        for array in arrays_of(jobs):
            self._places[id(array)] = self.n_bytes
            self._arrays.append(array)
            self.n_bytes += -(-array.nbytes // _ALIGNED) * _ALIGNED

    def at(self, array: npt.NDArray[Any]) -> int:
        """Place of an array."""
        return self._places[id(array)]

    def joined(self) -> npt.NDArray[np.uint8]:
        """The block."""
        block = np.empty(self.n_bytes, np.uint8)
        for array in self._arrays:
            begin = self.at(array)
            block[begin : begin + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return block


def arrays_of(jobs: Sequence[TrainingJob]) -> list[npt.NDArray[Any]]:
    """Arrays that jobs learn from, each once."""
    found = {}
    for job in jobs:
        for array in (*job.training, job.first, *(job.validation or ())):
            found[id(array)] = array
    return list(found.values())
