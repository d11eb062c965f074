"""Functions of arrays and numbers, compiled when they are first called and kept on disk; needs numba."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Scalar = Any  # a float of the arrays' own precision
Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function whose sums may be reordered, as vector instructions need.

    NaN and infinity keep their meaning.
    """
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def exact_kernel(function: Function) -> Function:
    """Compile a function whose sums are done in the order they are written, as what rests on it needs."""
    return _compiled(function, fastmath=False)


def _compiled(function: Function, **options: Any) -> Function:
    options |= {"nogil": True, "error_model": "numpy"}
    compiled: Function
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep it in can be written to: then each process compiles anew
        compiled = numba.njit(**options)(function)
    return compiled
