"""With compiled code and without: both are timed in one run, and what was loaded is told with the figures."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.cost.trained import LEVEL, rows_after_training, trained_default
from benchmarks.fresh import call

COMPILED, NUMPY_ONLY = "varnn, compiled", "varnn, NumPy only"
VARIABLE = "VARNN_COMPILED"  # 0 turns compiled code off for streams and predictions that begin then


@contextmanager
def compiled_code(on: bool) -> Iterator[None]:
    """Let streams and predictions that begin inside use compiled code, or NumPy alone.

    Examples
    --------
    >>> with compiled_code(False):
    ...     print(os.environ["VARNN_COMPILED"])
    0
    """
    before = os.environ.pop(VARIABLE, None)
    if not on:
        os.environ[VARIABLE] = "0"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def ways() -> dict[str, bool]:
    """Contenders of ours by name, and whether each may use compiled code; one where numba is missing."""
    return {COMPILED: True, NUMPY_ONLY: False} if find_spec("numba") is not None else {NUMPY_ONLY: False}


def yardstick() -> str:
    """Name the contender of ours that others are measured by: the compiled one, where there is one."""
    return next(iter(ways()))


def without_numba() -> list[str]:
    """Name the contender that is absent where numba is."""
    return [] if COMPILED in ways() else [f"{COMPILED} (numba)"]


def told(what: str, **settings: Any) -> str:
    """Say whether ``"stream"`` or ``"predict"`` brings compiled code in, seen in fresh processes."""
    loaded = {
        name: call("benchmarks.cost.compiled:loads_numba", threads=1, what=what, on=on, settings=settings)
        for name, on in ways().items()
    }
    found = ", ".join(f"{'loaded' if did else 'not loaded'} by {name!r}" for name, did in loaded.items())
    return f"numba is {found}"


def loads_numba(*, threads: int, what: str, on: bool, settings: dict[str, Any]) -> bool:
    """Make a few steps in this process, and see whether they brought numba in."""
    model = trained_default(**settings)
    after = {"trained_on": settings["rows"]} if "rows" in settings else {}
    rows = rows_after_training(30, model, **after)
    with compiled_code(on):
        if what == "predict":
            model.predict(rows, interval=LEVEL)
        else:
            live = model.stream()
            for x, y, time in zip(rows.inputs, rows.target, np.asarray(rows.time), strict=True):
                live.predict(x, time=time, interval=LEVEL)
                live.observe(y)
    return "numba" in sys.modules
