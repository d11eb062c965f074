"""Jobs -> outcomes: from the cache where they are, else on every core, one thread each.

Each outcome is written as soon as it is there, so an interrupted run loses only what was under way.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path

import numpy as np

from varnn.data.files import write_atomically
from varnn.paper.jobs import Job, Outcome, run

Outcomes = dict[Job, Outcome]


class Cache:
    """Outcomes in a folder, by the key of their job: numbers as JSON, squared errors as .npy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, job: Job) -> Outcome | None:
        """A job's outcome, or None where there is none or it is damaged."""
        try:
            numbers = json.loads((self.folder / f"{job.key}.json").read_text())
            squared = np.load(self.folder / f"{job.key}.npy", allow_pickle=False)
            return Outcome(squared=squared, **numbers["outcome"])
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            return None

    def put(self, job: Job, outcome: Outcome) -> None:
        """Keep an outcome; the JSON is written last, so that it stands for both files."""
        np.save(self.folder / f"{job.key}.npy", outcome.squared)
        numbers = {name: getattr(outcome, name) for name in ("train", "test", "seconds", "epochs", "made")}
        text = json.dumps({"job": str(job), "outcome": numbers})
        write_atomically(self.folder / f"{job.key}.json", text.encode())


def run_all(
    jobs: Sequence[Job],
    cache: Cache,
    *,
    workers: int | None = None,
    device: str = "cpu",
    on_done: Callable[[Job, Outcome], None] | None = None,
) -> Outcomes:
    """Outcome of every job.

    Parameters
    ----------
    jobs : sequence of Job
        Any number; one that is listed twice runs once. Those listed first start first.
    cache : Cache
        Where finished outcomes are kept and looked for.
    workers : int or None, default=None
        Processes; by default one per core. Each keeps to one thread, but for forests, which grow on the
        cores that are left where there are fewer processes than cores.
    device : {"cpu", "cuda"}, default="cpu"
        Where recurrent networks are trained.
    on_done : callable or None, default=None
        Called for each outcome as it comes, cached ones first.
    """
    outcomes: Outcomes = {}
    open_jobs = []
    for job in dict.fromkeys(jobs):
        found = cache.get(job)
        if found is None:
            open_jobs.append(job)
        else:
            outcomes[job] = found
            if on_done is not None:
                on_done(job, found)
    if not open_jobs:
        return outcomes
    cores = os.cpu_count() or 1
    count = min(workers or cores, len(open_jobs))
    run_one = partial(run, threads=max(1, cores // count), device=device)
    # A fresh interpreter per worker: a forked one would inherit the parent's thread pools.
    context = multiprocessing.get_context("spawn")
    with (
        _single_threaded(),
        ProcessPoolExecutor(count, mp_context=context, initializer=_quiet_worker) as pool,
    ):
        pending: dict[Future[Outcome], Job] = {pool.submit(run_one, job): job for job in open_jobs}
        try:
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    job = pending.pop(future)
                    outcome = future.result()
                    cache.put(job, outcome)
                    outcomes[job] = outcome
                    if on_done is not None:
                        on_done(job, outcome)
        except BaseException:  # Ctrl-C above all: what is under way is given up at once
            workers_now = list(pool._processes.values())  # shutdown forgets them
            pool.shutdown(wait=False, cancel_futures=True)
            for process in workers_now:
                process.terminate()
            raise
    return outcomes


def _quiet_worker() -> None:
    """Leave Ctrl-C to the parent process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _single_threaded:  # noqa: N801  # used as a with-statement, it reads as one
    """Have processes started inside keep their linear algebra to one thread."""

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

    def __enter__(self) -> None:
        self.before = {name: os.environ.get(name) for name in self.names}
        os.environ.update(dict.fromkeys(self.names, "1"))

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
