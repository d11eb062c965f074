"""Which way a stream's steps are done, and for which levels."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from varnn._types import FloatArray
from varnn.model.fitted import Fitted
from varnn.model.intervals import check_levels
from varnn.network import compiled_code
from varnn.streaming._cell import Workspace
from varnn.streaming._numpy_step import NumpyStep
from varnn.streaming._step import Levels, Step


def made_step(model: Fitted, n_series: int | None, workspace: Workspace) -> Step:
    """Make what does the arithmetic of a stream: in compiled code where that is there and knows the model."""
    if model.carried and compiled_code.is_there():
        from varnn.streaming._compiled_step import CompiledStep, handles

        if handles(model):
            return CompiledStep(model, n_series, workspace)
    return NumpyStep(model, n_series, workspace)


def levels_of(interval: float | Sequence[float] | FloatArray | None) -> tuple[Levels, bool]:
    """Read levels of intervals, and whether there may be several; refuse what is none.

    Examples
    --------
    >>> levels_of(None), levels_of(0.9), levels_of([0.5, 0.9])
    (((), False), ((0.9,), False), ((0.5, 0.9), True))
    """
    if interval is None:
        return (), False
    if type(interval) is float:
        return _one(interval)
    if type(interval) is list and all(type(level) is float for level in interval):
        return _several(tuple(interval))
    return tuple(check_levels(interval).tolist()), isinstance(interval, Sequence | np.ndarray)


@lru_cache(maxsize=64)
def _one(level: float) -> tuple[Levels, bool]:
    """Read one level, which from row to row is the same."""
    return tuple(check_levels(level).tolist()), False


@lru_cache(maxsize=64)
def _several(levels: tuple[float, ...]) -> tuple[Levels, bool]:
    """Read some levels, likewise."""
    return tuple(check_levels(list(levels)).tolist()), True
