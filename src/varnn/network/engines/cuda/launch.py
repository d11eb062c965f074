"""Jobs of one shape on a GPU, in one launch: sent there, watched while they run, fetched."""

import math
import time
from bisect import bisect_left, bisect_right
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
_PIECE = 1 << 24  # bytes that are sent at a time
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
            rows.send(self._rows)
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
    numbers = np.arange(len(jobs), dtype=np.uint64)
    for name, tensor in {"state": state, "losses": board.losses, "progress": board.progress}.items():
        table[name] = tensor.data_ptr() + numbers * np.uint64(tensor.stride(0) * tensor.element_size())
    table["vlosses"] = table["losses"] + np.uint64(board.losses.stride(1) * board.losses.element_size())
    table["stop"] = board.stop.data_ptr()
    for job, member in zip(jobs, table, strict=True):
        config, unseen = job.config, job.validation
        member["x"], member["y"], member["order"] = (base + rows.at(one) for one in job.training)
        member["first"] = base + rows.at(job.first)
        if unseen is not None:
            member["vx"], member["vy"], member["vends"] = (base + rows.at(one) for one in unseen)
            member["vwindows"] = len(unseen.ends)
        member["batch"], member["epochs"], member["last"] = config.batch_size, config.epochs, job.last
        member["patience"] = config.patience or 0
        member["cosine"] = config.schedule == "cosine"
        member["rate"], member["clip"] = config.learning_rate, config.gradient_clip or 0
        member["keep"] = config.weight_ema
    return table


class Rows:
    """Arrays of jobs as one block of bytes; an array that several jobs have is in it once."""

    def __init__(self, jobs: Sequence[TrainingJob]) -> None:
        self._bytes: list[npt.NDArray[np.uint8]] = []
        self._places: dict[int, int] = {}  # by the array's id, in the order of the block
        self.n_bytes = 0
        for array in arrays_of(jobs):
            self._places[id(array)] = self.n_bytes
            self._bytes.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
            self.n_bytes += -(-array.nbytes // _ALIGNED) * _ALIGNED

    def at(self, array: npt.NDArray[Any]) -> int:
        """Place of an array."""
        return self._places[id(array)]

    def send(self, to: torch.Tensor) -> None:
        """Copy all to a tensor of bytes; to one on a GPU on the current stream, which may still be at it.

        It goes by way of two pieces of pinned memory, one of which is filled while the other is sent: the
        whole in one piece would have to be made first, which takes longer than to send it.
        """
        size = min(_PIECE, self.n_bytes)
        pieces = [torch.empty(size, dtype=torch.uint8, pin_memory=to.is_cuda) for _ in range(2)]
        sent = [_cuda.Event() for _ in pieces] if to.is_cuda else []
        for number, begin in enumerate(range(0, self.n_bytes, _PIECE)):
            piece, end = pieces[number % 2], min(begin + _PIECE, self.n_bytes)
            if sent:
                sent[number % 2].synchronize()
            self._fill(piece.numpy(), begin, end)
            to[begin:end].copy_(piece[: end - begin], non_blocking=True)
            if sent:
                sent[number % 2].record()

    def _fill(self, piece: npt.NDArray[np.uint8], begin: int, end: int) -> None:
        """Copy bytes ``begin:end`` of the block."""
        starts = list(self._places.values())
        for number in range(max(0, bisect_right(starts, begin) - 1), bisect_left(starts, end)):
            first, whole = starts[number], self._bytes[number]
            here = whole[max(0, begin - first) : end - first]
            at = max(0, first - begin)
            piece[at : at + len(here)] = here


def arrays_of(jobs: Sequence[TrainingJob]) -> list[npt.NDArray[Any]]:
    """Arrays that jobs learn from, each once."""
    found = {}
    for job in jobs:
        for array in (*job.training, job.first, *(job.validation or ())):
            found[id(array)] = array
    return list(found.values())
