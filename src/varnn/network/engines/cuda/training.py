"""Members -> trained members on a GPU, where the kernel handles them; why not, where it does not.

Not an engine, which computes loss and gradient of one batch: this trains whole members, and takes the place
of the loop. `varnn.network.training.train_members` asks here first.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from threading import Event

import torch

from varnn.errors import ConfigError
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.cuda._driver import Kernel
from varnn.network.engines.cuda._kernels import OLDEST, kernel_for
from varnn.network.engines.cuda._layout import Shape
from varnn.network.engines.cuda._nvrtc import UnavailableError
from varnn.network.engines.cuda.job import JobResult, TrainingJob
from varnn.network.engines.cuda.launch import Launch, arrays_of
from varnn.network.engines.registry import CUDA
from varnn.network.handled import ANY, HandledCells
from varnn.network.training.config import TrainConfig, pick_device
from varnn.network.training.members import Member
from varnn.network.training.record import Epoch, Trained
from varnn.network.training.validation import validation_ends

CELLS = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False, True),
        "activation_memory": (False, True),
        "residual": ("projected",),
        "memory_activation": ("relu", "tanh"),
        "horizon": (1,),
    }
)
MOST_WEIGHTS = 2**15  # they and their gradient are in the 2**16 registers of a multiprocessor
_MOST_OF_MEMORY = 0.7  # of a GPU's, for rows and windows: the rest is others'
_MOST_NUMBERS = 2**31 - 1  # windows are told by 32 bits
_SHORTEST_WAIT, _LONGEST_WAIT = 2e-4, 5e-3  # seconds between looks at the GPU

Wave = dict[Kernel, list[int]]  # numbers of the jobs of each launch
Run = Callable[
    [Sequence[TrainingJob], Callable[[int, Epoch], None] | None, Event | None], list[JobResult]
]  # what trains jobs: `run_jobs` here, or another that sends them to it


def refusal(members: Sequence[Member], config: TrainConfig) -> ConfigError | None:
    """Explain, as an error to raise, why members cannot be trained by the kernel here; None where they can.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn.data.panel import Panel
    >>> from varnn.network.cell import Architecture
    >>> rows = Panel.from_arrays(np.zeros((9, 2)), np.arange(9.0))
    >>> member = Member(Architecture.of("RM", n_inputs=2, residual="none"), rows, None, seed=1)
    >>> print(refusal([member], TrainConfig(window=3, device="cpu")))
    engine='cuda' does not handle residual='none' (only 'projected'), device='cpu' (only 'auto' or 'cuda').
    Use Details(engine='auto'), which trains on the CPU what the GPU cannot.
    """
    found = dict.fromkeys(reason for member in members for reason in reasons(member, config))
    if not found:
        return None
    return ConfigError(
        f"engine={CUDA!r} does not handle {', '.join(found)}. "
        "Use Details(engine='auto'), which trains on the CPU what the GPU cannot."
    )


def handles(member: Member, config: TrainConfig) -> bool:
    """Tell whether a member can be trained by the kernel here."""
    return not reasons(member, config)


def reasons(member: Member, config: TrainConfig) -> list[str]:
    """List what of a member, of its settings or of this machine the kernel does not handle, in words."""
    found = CELLS.unhandled(member.architecture)
    weights = count_weights(member.architecture)
    if weights > MOST_WEIGHTS:
        found.append(f"{weights:,} weights (only up to {MOST_WEIGHTS:,})")
    if member.ahead is not None:
        found.append("targets ahead (only the next row)")
    device = _device(config)
    if isinstance(device, str):
        return [*found, device]
    found += _reasons_of_rows(member, config, device)
    if not found:  # compiling comes last: it takes a while
        try:
            kernel_for(Shape.of(member.architecture, config), config.batch_size, device)
        except UnavailableError as error:
            found.append(f"this shape ({error})")
    return found


def _device(config: TrainConfig) -> int | str:
    """Number of the GPU to train on, or why there is none."""
    if config.device != "auto":
        device = pick_device(config.device)  # refuses a name that is none, and a GPU that is not there
        if device.type != "cuda":
            return f"device={config.device!r} (only 'auto' or 'cuda')"
    elif not torch.cuda.is_available():
        return "this machine (no GPU is usable here, or torch was built without CUDA)"
    else:
        device = torch.device("cuda")
    try:
        given: int | None = device.index
        number = torch.cuda.current_device() if given is None else given
        capability = torch.cuda.get_device_capability(number)
    except (RuntimeError, AssertionError) as error:  # as in a process that was forked from one that used it
        return f"this process ({str(error).splitlines()[0].rstrip('.')})"
    if capability < OLDEST:
        have, need = (".".join(map(str, one)) for one in (capability, OLDEST))
        return f"a GPU of compute capability {have} (only {need} or above)"
    return number


def _reasons_of_rows(member: Member, config: TrainConfig, device: int) -> list[str]:
    found = []
    panels = [one for one in (member.training, member.validation) if one is not None]
    if member.validation is not None and len(validation_ends(member.validation, config)) == 0:
        found.append(f"validation rows too few for a window of {config.window}")
    epochs = min(member.stop_after or config.epochs, config.epochs)
    windows = epochs * (len(member.training) // config.loss_rows + member.training.n_series)
    if max(windows, *map(len, panels)) > _MOST_NUMBERS:
        found.append(f"{windows:,} windows in all epochs (only up to {_MOST_NUMBERS:,})")
    needed = 4 * windows + sum(4 * len(one) * (one.inputs.shape[1] + 1) for one in panels)
    most = int(_MOST_OF_MEMORY * torch.cuda.get_device_properties(device).total_memory)
    if needed > most:
        found.append(f"{needed:,} bytes of rows and windows (the GPU has room for {most:,})")
    return found


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
) -> Callable[[int, Epoch], None]:
    def told(index: int, line: Epoch) -> None:
        if on_epoch is not None:
            on_epoch(indices[index], line)

    return told


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
        device = _device(job.config)
        if isinstance(device, str):
            raise ConfigError(f"engine={CUDA!r} does not handle {device}. Use Details(engine='auto').")
        kernel = kernel_for(Shape.of(job.architecture, job.config), job.config.batch_size, device)
        arrays = {id(one): one.nbytes for one in arrays_of([job])}
        needed = sum(size for one, size in arrays.items() if one not in sent)
        if taken + needed > room and wave:
            yield wave
            wave, taken, sent = {}, 0, set()
            needed = sum(arrays.values())
        if not wave:
            room = int(_MOST_OF_MEMORY * _free(device))
        taken += needed
        sent |= arrays.keys()
        wave.setdefault(kernel, []).append(index)
    if wave:
        yield wave


def _free(device: int) -> int:
    """Bytes of a GPU's memory that torch can have."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
