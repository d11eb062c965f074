"""What runs on the machines of a cluster: one job, with what all jobs share read once in each process."""

import os
import pickle
from typing import Any

from varnn._version import VERSION
from varnn.jobs._outcome import Failure
from varnn.jobs._worker import outcome
from varnn.jobs.cores import ONE_THREAD

Outcome = tuple[bytes | None, Failure | None, float]

_read: dict[str, Any] = {}  # function and shared object of the run that this process is busy with


def run_one(run: str, version: str, common: list[Any], payload: bytes) -> Outcome | str:
    """Run a job; words in place of its outcome say that no job can be run here.

    Parameters
    ----------
    run : str
        Name of the run, new each time.
    version : str
        Of the library that sent the job.
    common : list of one reference
        Where function and shared object are; in a list, so that it is not fetched for each job.
    payload : bytes
        The job.
    """
    if run not in _read:
        if version != VERSION:
            return f"varnn must be the same there as here; it is {VERSION} there, and {version} here"
        import ray

        _read.clear()  # of the run before: it may be large
        os.environ.update(ONE_THREAD)
        try:
            _read[run] = pickle.loads(ray.get(common[0]))
        except Exception as error:
            failure = Failure.of(error)
            return (
                "the function of jobs, and what they share, must be readable there; it was "
                f"{failure.kind}: {failure.message}"
            )
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)  # whatever the environment said when libraries were loaded
    function, shared = _read[run]
    return outcome(function, payload, shared)
