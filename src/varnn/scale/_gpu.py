"""The GPU of this machine, which trains the members of many fits: whether there is one, and how it is asked.

A call of `run_jobs` is a launch, and those of 16 are under way at a time: a GPU has few queues, and one that
waits in a queue behind another is not begun. What comes meanwhile is put together, and is the next launch.
"""

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any

from varnn.errors import ConfigError, TrainingError
from varnn.estimator.details import Details
from varnn.estimator.regressor import VARNNRegressor
from varnn.scale._trainings import Refused, Trainings

if TYPE_CHECKING:  # importing them would import torch
    from varnn.network.engines.cuda.job import JobResult, TrainingJob
    from varnn.network.training import Member, TrainConfig

logger = logging.getLogger(__name__)

AT_ONCE = 4  # fits under way in a worker, so that it prepares some while the GPU trains others
_LAUNCHES = 16
_MOST_TOGETHER = 64  # jobs that a launch is made of, if they come from several: the slowest is waited for
_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"  # variable of the environment, read when the GPU is first used

RunJobs = Callable[[list[Any], Event], list[Any]]


def trainings(regressors: Iterable[VARNNRegressor]) -> Trainings | None:
    """Trainings on the GPU, where there is one that these settings may use; else None."""
    if not any(_may_use(one) for one in regressors) or not is_there():
        return None
    os.environ.setdefault(_QUEUES, "32")
    threading.Thread(target=_load, daemon=True).start()  # while workers start
    return Trainings(Together(_run), KernelJob)


def _may_use(regressor: VARNNRegressor) -> bool:
    return regressor.device != "cpu" and (regressor.details or Details()).engine in ("auto", "cuda")


def is_there() -> bool:
    """Tell whether the driver knows of a GPU; torch, which takes seconds to import, is not asked.

    Examples
    --------
    >>> isinstance(is_there(), bool)
    True
    """
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except (OSError, AttributeError):
        return False


def _load() -> None:
    """Import what trains, and wake the GPU."""
    import torch

    from varnn.network.engines.cuda import training  # noqa: F401  # so that it is loaded once, here

    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")


def _run(jobs: "list[TrainingJob]", stop: Event) -> "list[JobResult]":
    """Train jobs on the GPU; what it cannot train, or has no room for, workers train themselves."""
    from varnn.network.engines.cuda.training import run_jobs

    try:
        return run_jobs(jobs, None, stop)
    except TrainingError:
        raise
    except (ConfigError, RuntimeError) as error:
        said = str(error).partition("\n")[0]
        _tell(said)
        raise Refused(said) from None


@cache
def _tell(said: str) -> None:
    """Say once why the GPU is not made use of."""
    logger.warning("the GPU does not train these, and the CPU does: %s", said)


class KernelJob:
    """Jobs of the kernel, as workers make them."""

    @staticmethod
    def of(member: "Member", config: "TrainConfig") -> "TrainingJob":
        """Make one of a member; refuse what the kernel handles on no GPU."""
        from varnn.network.engines.cuda.job import TrainingJob
        from varnn.network.engines.cuda.limits import unhandled

        if config.device == "cpu" or config.engine not in ("auto", "cuda"):
            raise Refused("the settings say where to train")
        if found := unhandled(member, config):
            raise Refused(", ".join(found))
        return TrainingJob.of(member, config)


class Together:
    """Puts what several threads want trained into few calls, each of all that is waiting.

    Parameters
    ----------
    run : callable
        Trains jobs.
    at_once : int, default=16
        Calls under way.
    most : int, default=64
        Jobs in a call that are of several threads.

    Examples
    --------
    >>> Together(lambda jobs, stop: [2 * job for job in jobs])([1, 2], Event())
    [2, 4]
    """

    def __init__(self, run: RunJobs, at_once: int = _LAUNCHES, most: int = _MOST_TOGETHER) -> None:
        self._run, self._most = run, most
        self._pool, self._lock = ThreadPoolExecutor(at_once), threading.Lock()
        self._waiting: list[tuple[list[Any], Future[list[Any]]]] = []

    def __call__(self, jobs: list[Any], stop: Event) -> list[Any]:
        """Train jobs, with others if there are any."""
        mine: Future[list[Any]] = Future()
        with self._lock:
            self._waiting.append((jobs, mine))
        self._pool.submit(self._next, stop)
        return mine.result()

    def _next(self, stop: Event) -> None:
        """Make a call of what is waiting; it may be nothing, as another took it along."""
        taken = self._taken()
        if taken:
            self._train(taken, stop)

    def _taken(self) -> list[tuple[list[Any], "Future[list[Any]]"]]:
        """What waits longest, as much as is one call."""
        with self._lock:
            count, size = 0, 0
            while count < len(self._waiting) and (
                not count or size + len(self._waiting[count][0]) <= self._most
            ):
                size += len(self._waiting[count][0])
                count += 1
            taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _train(self, taken: Sequence[tuple[list[Any], "Future[list[Any]]"]], stop: Event) -> None:
        try:
            results = self._run([job for jobs, _ in taken for job in jobs], stop)
        except BaseException as error:
            if len(taken) == 1:
                taken[0][1].set_exception(error)
            else:  # one of them is at fault
                for one in taken:
                    self._train([one], stop)
            return
        done = 0
        for jobs, wanted in taken:
            wanted.set_result(results[done : done + len(jobs)])
            done += len(jobs)
