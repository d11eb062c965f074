"""Jobs -> outcomes: from the cache where they are, else on every core or on a cluster, one thread each.

Each outcome is written as soon as it is there, so an interrupted run loses only what was under way.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from varnn.data.files import write_atomically
from varnn.jobs import cores
from varnn.jobs import run as run_jobs
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
    cluster: str | None = None,
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
    cluster : str or None, default=None
        A Ray cluster to run on, as :func:`varnn.jobs.run` has it; all its machines need the data sets.
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
    count = min(workers or cores.usable(), len(open_jobs))
    settings = {"threads": 1 if cluster else max(1, cores.usable() // count), "device": device}
    # Closed whatever happens, Ctrl-C above all: what is under way is given up at once.
    with closing(
        run_jobs(
            _run_one,
            open_jobs,
            shared=settings,
            workers=workers if cluster else count,
            cluster=cluster,
            isolated=True,
        )
    ) as finished:
        for done in finished:
            job = open_jobs[done.index]
            outcomes[job] = done.value()
            cache.put(job, outcomes[job])
            if on_done is not None:
                on_done(job, outcomes[job])
    return outcomes


def _run_one(job: Job, settings: dict[str, Any]) -> Outcome:
    return run(job, **settings)
