"""Whether there is compiled code to use, and cores to use it on.

Modules called ``compiled_...`` hold second implementations, by numba (``varnn[fast]``), of what others do on
NumPy alone; those others remain what they are tested against. The first call after an installation compiles,
for ten to twenty seconds, and keeps the result on disk. It can be done ahead in a process beside this one, so
that nobody waits for it (`varnn.estimator.warm_up`).
"""

import contextlib
import importlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from varnn.jobs import cores

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Rows that take NumPy a quarter of a second: to load compiled code takes as long. Not "where it is loaded
# already": the same call must give the same digits whatever was called before it.
ROWS_WORTH_IT = 2048
# In a fit, which goes through its rows half a dozen times beside the training.
FITTED_ROWS_WORTH_IT = 1536
FEWEST_EACH = 128  # series of a fleet that are worth a core of their own
SWITCH = "VARNN_COMPILED"  # variable of the environment; 0 does without
_OFF = ("0", "false", "no", "off")


def is_there() -> bool:
    """Tell whether compiled code can be used: numba is installed, and not switched off.

    Examples
    --------
    >>> os.environ[SWITCH] = "0"
    >>> is_there()
    False
    >>> del os.environ[SWITCH]
    """
    return os.environ.get(SWITCH, "").strip().lower() not in _OFF and _loads()


def wait_for_it() -> None:
    """Wait for the process that compiles, if there is one: to begin anew would take longer."""
    with _waiting:
        if _beside:
            logger.warning("waiting for code that is being compiled, once after an installation.")
            with contextlib.suppress(subprocess.TimeoutExpired):
                _beside.pop().wait(_LONGEST_WAIT)


_beside: list[subprocess.Popen[bytes]] = []  # the process that compiles, while there is one
_waiting = threading.Lock()
_LONGEST_WAIT = 120.0  # seconds


def compile_beside(module: str) -> None:
    """Compile in a process beside this one, by running a module; who needs what it compiles waits for it.

    Where no process can be started nothing happens: it is compiled when it is needed.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # which would start an application again
        return
    nowhere, paths = subprocess.DEVNULL, os.pathsep.join(one for one in sys.path if one)
    # -P: no module of the folder that one happens to be in.
    command = [sys.executable, "-P", "-m", module]
    try:
        process = subprocess.Popen(
            command,
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            env={**os.environ, "PYTHONPATH": paths},
        )
    except OSError as error:
        logger.info("code could not be compiled ahead: %s.", error)
        return
    _beside.append(process)


@cache
def _loads() -> bool:
    try:
        jit = importlib.import_module("varnn.network.jit")
    except ImportError:  # numba is not installed, or is one that refuses this version of NumPy
        return False
    return not jit.numba.config.DISABLE_JIT  # whoever debugs by it means code of their own


def is_worth_it(rows: int) -> bool:
    """Tell whether so many rows are enough for compiled code, and it is there."""
    return max(rows, _in_all.get()) >= ROWS_WORTH_IT and is_there()


_in_all: ContextVar[int] = ContextVar("rows of the work under way", default=0)


@contextlib.contextmanager
def worth_it_for(rows: int) -> Iterator[None]:
    """Let all that is done within be for so many rows in all, whatever each part of it has.

    Examples
    --------
    >>> with worth_it_for(10**6):
    ...     is_worth_it(1) == is_there()
    True
    """
    token = _in_all.set(max(rows, _in_all.get()))
    try:
        yield
    finally:
        _in_all.reset(token)


def worth_it_in_a_fit(rows: int) -> contextlib.AbstractContextManager[None]:
    """Let all that is done within be parts of a fit to so many rows."""
    return worth_it_for(ROWS_WORTH_IT if rows >= FITTED_ROWS_WORTH_IT else 0)


def n_cores() -> int:
    """How many cores this process may use, and no more than ``OMP_NUM_THREADS``, as products do."""
    return min(cores.usable(), cores.named_in("OMP_NUM_THREADS"))


def on_all_cores(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Do some work on each of several items, as many at once as there are cores.

    Examples
    --------
    >>> on_all_cores(abs, [-1, 2])
    [1, 2]
    """
    listed = list(items)
    count = min(len(listed), n_cores())
    if count < 2:
        return [work(item) for item in listed]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, listed))


def ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Give items one by one, each made while the one before it is worked on.

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    end = object()
    with ThreadPoolExecutor(1) as pool:
        coming: Future[Any] = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item


def in_one_layout(array: Any) -> Any:
    """Copy an array that is cut out of another or must not be written to: for it, code is compiled anew.

    Examples
    --------
    >>> in_one_layout(np.arange(6)[::2]).flags.c_contiguous
    True
    """
    return np.require(array, requirements=["C", "A", "W"])


def shares(count: int) -> list[slice]:
    """Cut so many items into one share for each core.

    Examples
    --------
    >>> sum(one.stop - one.start for one in shares(10))
    10
    """
    most = max(1, min(n_cores(), count // FEWEST_EACH))
    ends = [count * core // most for core in range(most + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]
