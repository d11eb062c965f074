"""How many cores this process may use."""

import os
import sys

SWITCH = "VARNN_CORES"  # variable of the environment: the most cores that a process makes use of

# What keeps a process to one thread, set before it imports what computes.
ONE_THREAD = {
    SWITCH: "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "LOKY_MAX_CPU_COUNT": "1",  # what a forest on all cores goes by
}


def usable() -> int:
    """How many cores there are for this process: by the system, and by ``VARNN_CORES``.

    Examples
    --------
    >>> os.environ[SWITCH] = "1"
    >>> usable()
    1
    >>> del os.environ[SWITCH]
    """
    allowed = getattr(os, "sched_getaffinity", None)  # not everywhere
    return min(os.cpu_count() or 1, len(allowed(0)) if allowed else sys.maxsize, named_in(SWITCH))


def named_in(variable: str) -> int:
    """The number of cores that a variable of the environment names, or more than there are."""
    wanted = os.environ.get(variable, "")
    return int(wanted) if wanted.isdigit() and int(wanted) else sys.maxsize
