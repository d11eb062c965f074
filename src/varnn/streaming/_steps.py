"""Which way a stream's steps are done, and for which levels."""

from collections.abc import Sequence
from functools import lru_cache

from varnn._types import FloatArray
from varnn.model.fitted import Fitted
from varnn.model.intervals import check_levels
from varnn.network import compiled_code
from varnn.streaming._cell import Workspace
from varnn.streaming._numpy_step import NumpyStep
from varnn.streaming._step import Levels, Step


def made_step(model: Fitted, n_series: int | None, workspace: Workspace) -> Step:
    """Make what does the arithmetic of a stream: in compiled code where that is there and knows the model."""
    if compiled_code.is_there():
        from varnn.streaming._compiled_step import CompiledStep, handles

        if handles(model):
            return CompiledStep(model, n_series, workspace)
    return NumpyStep(model, n_series, workspace)


def levels_of(interval: float | Sequence[float] | FloatArray) -> Levels:
    """Read levels of intervals; refuse what is none.

    Examples
    --------
    >>> levels_of(0.9), levels_of([0.5, 0.9])
    ((0.9,), (0.5, 0.9))
    """
    return _one(interval) if type(interval) is float else tuple(check_levels(interval).tolist())


@lru_cache(maxsize=64)
def _one(level: float) -> Levels:
    """Read one level, which from row to row is the same."""
    return tuple(check_levels(level).tolist())
