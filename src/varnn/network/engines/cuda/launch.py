"""Jobs of one shape on a GPU, in one launch: sent there, watched while they run, fetched."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
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
from varnn.network.engines.cuda.job import JobResult, TrainingJob
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
    on_epoch : callable
        Called after each epoch with the number of the job and its line of the history.

    Attributes
    ----------
    state : Tensor
        On the GPU, (jobs, STATES, P): weights, Adam's two running means, average of weights, best weights.
    """

    def __init__(
        self, kernel: Kernel, jobs: Sequence[TrainingJob], on_epoch: Callable[[int, Epoch], None]
    ) -> None:
        self.jobs, self.on_epoch = jobs, on_epoch
        device = torch.device("cuda", kernel.device)
        longest = max(job.last for job in jobs)
        # The GPU writes into this memory of the host, which is read while it computes.
        self._losses = _pinned((len(jobs), 2, longest), torch.float32)
        self._progress = _pinned((len(jobs), PROGRESS), torch.int32)
        self._stop = _pinned((1,), torch.int32)
        self._seen = [0] * len(jobs)
        self._seconds: list[list[float]] = [[] for _ in jobs]
        self._stream = _cuda.Stream(device)
        self._start, self._ended = (_cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.device(device), torch.cuda.stream(self._stream):
            drawn = torch.from_numpy(np.stack([job.weights for job in jobs])).to(device)
            self.state = torch.zeros(len(jobs), STATES, drawn.shape[1], device=device)
            for row in (WEIGHTS, AVERAGE, BEST):
                self.state[:, row] = drawn
            rows = _Rows(jobs)
            self._rows = torch.empty(rows.n_bytes, dtype=torch.uint8, device=device)
            self._members = torch.from_numpy(self._table(rows).view(np.uint8)).to(device)
            self._rows.copy_(torch.from_numpy(rows.joined()))
            self._stream.synchronize()  # what was copied from may go now
            self._began = [time.perf_counter()] * len(jobs)
            self._start.record(self._stream)
            kernel.launch(self._members.data_ptr(), len(jobs), self._stream.cuda_stream)
            self._ended.record(self._stream)

    def _table(self, rows: "_Rows") -> npt.NDArray[np.void]:
        """Structs of the members, as the kernel reads them."""
        table = np.zeros(len(self.jobs), MEMBER)
        base, nowhere = self._rows.data_ptr(), 0
        for index, (job, member) in enumerate(zip(self.jobs, table, strict=True)):
            config, unseen = job.config, job.validation
            member["x"], member["y"], member["order"] = (base + rows.at(one) for one in job.training)
            member["first"] = base + rows.at(job.first)
            places = [nowhere] * 3 if unseen is None else [base + rows.at(one) for one in unseen]
            member["vx"], member["vy"], member["vends"] = places
            member["state"] = self.state[index].data_ptr()
            member["losses"], member["vlosses"] = (one.data_ptr() for one in self._losses[index])
            member["progress"] = self._progress[index].data_ptr()
            member["stop"] = self._stop.data_ptr()
            member["vwindows"] = 0 if unseen is None else len(unseen.ends)
            member["batch"], member["epochs"], member["last"] = config.batch_size, config.epochs, job.last
            member["patience"] = config.patience or 0
            member["cosine"] = config.schedule == "cosine"
            member["rate"], member["clip"] = config.learning_rate, config.gradient_clip or 0
            member["keep"] = config.weight_ema
        return table

    def poll(self) -> bool:
        """Hand on the epochs that ended since it was last asked; tell whether all has ended."""
        ended = bool(self._ended.query())  # before looking: what ends after this is seen the next time
        now = time.perf_counter()
        for index, job in enumerate(self.jobs):
            done = self._done(index, ended=ended)
            new = done - self._seen[index]
            if new == 0:
                continue
            each = (now - self._began[index]) / new
            for epoch in range(self._seen[index] + 1, done + 1):  # on_epoch may raise: none is told twice
                self._seen[index] = epoch
                self._seconds[index].append(each)
                self._began[index] += each
                loss, unseen = self._losses[index, :, epoch - 1].tolist()
                if math.isfinite(loss):
                    self.on_epoch(index, job.line(epoch, loss, unseen, each))
        return ended

    def _done(self, index: int, *, ended: bool) -> int:
        """Epochs of a job that are over; one whose loss is no number is the last."""
        done = int(self._progress[index, DONE])
        if ended and done < self.jobs[index].last and not math.isfinite(self._losses[index, 0, done]):
            done += 1
        return done

    def stop(self) -> None:
        """Ask the members to end after the batch under way."""
        self._stop[0] = 1

    def wait(self) -> None:
        """Wait until the GPU has ended, however it ended."""
        self._ended.synchronize()

    def gpu_seconds(self) -> float:
        """Seconds that the GPU took, once all has ended."""
        return float(self._start.elapsed_time(self._ended)) / 1000

    def results(self) -> Iterator[JobResult]:
        """What came of each job, once all has ended."""
        with torch.cuda.stream(self._stream):
            kept = self.state[:, BEST].cpu().numpy()
        for index, job in enumerate(self.jobs):
            done = self._seen[index]
            losses, unseen = self._losses[index, :, :done].numpy().copy()
            seconds = np.array(self._seconds[index])
            best = int(self._progress[index, BEST_EPOCH])
            yield JobResult(
                kept[index], losses, unseen if job.validation is not None else None, seconds, best
            )


class _Rows:
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


def _pinned(shape: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
    return torch.zeros(shape, dtype=kind, pin_memory=True)
