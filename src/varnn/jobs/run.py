"""One function and many jobs: their outcomes, from every core or from a cluster, as they come."""

import sys
import time
from collections.abc import Callable, Generator, Sequence
from threading import Event
from typing import Any, TypeVar

from varnn.errors import ConfigError
from varnn.jobs import cores
from varnn.jobs._outcome import Done, Failure

__all__ = ["Done", "Failure", "run"]

Job = TypeVar("Job")
Shared = TypeVar("Shared")
Result = TypeVar("Result")


def run(
    function: Callable[[Job, Shared], Result],
    jobs: Sequence[Job],
    *,
    shared: Shared = None,  # type: ignore[assignment]  # a function of such jobs takes None
    workers: int | None = None,
    cluster: str | None = None,
    retries: int = 2,
    isolated: bool = False,
    stop: Event | None = None,
) -> Generator[Done[Result]]:
    """Run a function on many jobs, several at a time; outcomes are given as they are finished.

    An error of one job is its own outcome, and the others go on. A worker that dies (killed, or out of
    memory) costs the job it ran one more try. Closing the iterator, or Ctrl-C, ends what is under way at
    once and leaves no process behind; ``with contextlib.closing(run(...))`` closes it whatever happens.

    Parameters
    ----------
    function : callable
        Takes a job and what all share; best one of a module. What it prints goes to standard error.
    jobs : sequence
        What to run it on. Read one by one shortly before they begin, so that it may be lazy, and millions.
    shared : object, default None
        What all jobs need, such as the rows; sent to each worker once.
    workers : int or None, default None
        Processes; by default one a core, each with one thread (on Windows, this one). With 1 and no cluster,
        jobs run in this process. On a cluster: the most jobs at a time, by default as many as it has cores.
    cluster : str or None, default None
        A Ray cluster to run on: "auto" (the one that ``RAY_ADDRESS`` or this machine names, else one that is
        started here and ended again) or an address, such as "ray://head:10001" or "head:6379".
    retries : int, default 2
        How often a job is tried again whose worker died.
    isolated : bool, default False
        Whether one worker is a process of its own, too, for the sake of its one thread, or of Ctrl-C, which
        a fit in this process would take for itself.
    stop : Event or None, default None
        Once set, nothing more begins, and what is under way is ended; jobs in this process end first.

    Yields
    ------
    Done
        Index of the job, its result or why it failed, and seconds.

    Examples
    --------
    >>> outcomes = run(pow, [2, 3, "x"], shared=2, workers=1)
    >>> [(one.index, one.result, one.failure and one.failure.kind) for one in outcomes]
    [(0, 4, None), (1, 9, None), (2, None, 'TypeError')]
    """
    for name, value, least in (("workers", workers, 1), ("retries", retries, 0)):
        if value is not None and (type(value) is not int or value < least):
            raise ConfigError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if cluster is not None and len(jobs):
        from varnn.jobs._ray import on_ray

        return on_ray(function, jobs, shared, workers, cluster, retries, stop)
    several = sys.platform != "win32"  # where processes cannot be handed sockets, one is what there is
    count = workers or (cores.usable() if several else 1)
    if not len(jobs) or (count == 1 and not (isolated and several)):
        return _here(function, jobs, shared, stop)
    from varnn.jobs._processes import on_processes

    return on_processes(function, jobs, shared, count, retries, stop)


def _here(
    function: Callable[[Any, Any], Any], jobs: Sequence[Any], shared: Any, stop: Event | None
) -> Generator[Done[Any]]:
    """Run jobs in this process, one after the other."""
    for index in range(len(jobs)):
        if stop is not None and stop.is_set():
            return
        began = time.perf_counter()
        result, failure = None, None
        try:
            result = function(jobs[index], shared)
        except Exception as error:
            failure = Failure.of(error)
        yield Done(index, result, failure, time.perf_counter() - began)
