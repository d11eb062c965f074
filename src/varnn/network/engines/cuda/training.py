"""Members that the kernel handles -> trained members, on a GPU.

Not an engine, which computes loss and gradient of one batch: this trains whole members, and takes the place
of the loop. `varnn.network.training.train_members` asks here first.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from threading import Event

import torch

from varnn.errors import ConfigError
from varnn.network.engines.cuda._driver import Kernel
from varnn.network.engines.cuda._kernels import kernel_for
from varnn.network.engines.cuda._layout import STATES, Shape
from varnn.network.engines.cuda.job import JobResult, TrainingJob
from varnn.network.engines.cuda.launch import Launch, arrays_of
from varnn.network.engines.cuda.limits import MOST_OF_MEMORY, gpu_of
from varnn.network.engines.registry import CUDA
from varnn.network.training.config import TrainConfig
from varnn.network.training.record import Epoch, Member, Trained

_SHORTEST_WAIT, _LONGEST_WAIT = 2e-4, 5e-3  # seconds between looks at the GPU

Wave = dict[Kernel, list[int]]  # numbers of the jobs of each launch
Run = Callable[
    [Sequence[TrainingJob], Callable[[int, Epoch], None] | None, Event | None], list[JobResult]
]  # what trains jobs: `run_jobs` here, or another that sends them to it


def train_by_jobs(
    members: Sequence[Member],
    config: TrainConfig,
    on_epoch: Callable[[int, Epoch], None] | None = None,
    stop: Event | None = None,
    *,
    run: Run | None = None,
) -> list[Trained]:
    """Train members that the kernel handles, as `train_members` does.

    Parameters
    ----------
    members, config, on_epoch, stop
        As for `train_members`.
    run : callable or None, default None
        What trains the jobs; None is `run_jobs`, on this machine's GPU.
    """
    jobs = [TrainingJob.of(member, config) for member in members]
    results = (run or run_jobs)(jobs, on_epoch, stop)
    return [job.trained(result) for job, result in zip(jobs, results, strict=True)]


def run_jobs(
    jobs: Sequence[TrainingJob],
    on_epoch: Callable[[int, Epoch], None] | None = None,
    stop: Event | None = None,
) -> list[JobResult]:
    """Train jobs on the GPU: those of one shape in one launch, those of several side by side.

    Several threads may be within at a time. A job whose loss is no number ends alone, and its result says
    so (`TrainingJob.trained` raises); the others go on.

    Parameters
    ----------
    jobs : sequence of TrainingJob
        What to train.
    on_epoch : callable or None, default None
        Called after each epoch with the number of the job and its line of the history.
    stop : Event or None, default None
        Ends training once it is set, and Ctrl-C sets it: jobs keep their best epoch so far, or have none.
        Without it Ctrl-C is raised.
    """
    results: dict[int, JobResult] = {}
    for wave in _waves(jobs):
        results |= _run(wave, jobs, on_epoch, stop)
    return [results[index] for index in range(len(jobs))]


def _run(
    wave: Wave,
    jobs: Sequence[TrainingJob],
    on_epoch: Callable[[int, Epoch], None] | None,
    stop: Event | None,
) -> dict[int, JobResult]:
    """Train the jobs of a wave, by their numbers."""
    launches: list[Launch] = []
    try:
        for kernel, indices in wave.items():
            launches.append(Launch(kernel, [jobs[one] for one in indices], _numbered(on_epoch, indices)))
        _watch(launches, stop)
    finally:
        for launch in launches:  # nothing of the memory that they write to may be let go before they end
            launch.stop()
            launch.wait()
    numbers = chain.from_iterable(wave.values())
    return dict(zip(numbers, chain.from_iterable(one.results() for one in launches), strict=True))


def _numbered(
    on_epoch: Callable[[int, Epoch], None] | None, indices: list[int]
) -> Callable[[int, Epoch], None] | None:
    if on_epoch is None:
        return None
    return lambda index, line: on_epoch(indices[index], line)


def _watch(launches: Sequence[Launch], stop: Event | None) -> None:
    """Hand on epochs until all launches have ended."""
    wait = _SHORTEST_WAIT
    while True:
        try:
            if stop is not None and stop.is_set():
                for launch in launches:
                    launch.stop()
            if all([launch.poll() for launch in launches]):  # a list: each is asked
                return
            time.sleep(wait)
            wait = min(1.3 * wait, _LONGEST_WAIT)
        except KeyboardInterrupt:
            if stop is None:
                raise
            stop.set()


def _waves(jobs: Sequence[TrainingJob]) -> Iterator[Wave]:
    """Put jobs into launches by their kernel, and launches into waves that fit into the GPU's memory."""
    wave: Wave = {}
    sent: set[int] = set()
    taken, room = 0, 0
    for index, job in enumerate(jobs):
        gpu = gpu_of(job.config)
        if isinstance(gpu, str):
            raise ConfigError(f"engine={CUDA!r} does not handle {gpu}. Use Details(engine='auto').")
        kernel = kernel_for(Shape.of(job.architecture, job.config), job.config.batch_size, gpu)
        arrays = {id(one): one.nbytes for one in arrays_of([job])}
        arrays[id(job)] = STATES * job.weights.nbytes
        needed = sum(size for one, size in arrays.items() if one not in sent)
        if taken + needed > room and wave:
            yield wave
            wave, taken, sent = {}, 0, set()
            needed = sum(arrays.values())
        if not wave:
            room = int(MOST_OF_MEMORY * _free(gpu))
        taken += needed
        sent |= arrays.keys()
        wave.setdefault(kernel, []).append(index)
    if wave:
        yield wave


def _free(gpu: int) -> int:
    """Bytes of a GPU's memory that torch can have."""
    free, _ = torch.cuda.mem_get_info(gpu)
    return free + torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
