"""Compile functions of the training engine with numba, and cache them as those of the step are."""

from collections.abc import Callable
from typing import Any, TypeVar

from varnn.step.compiling import jitted

Scalar = Any  # a float of the arrays' own precision
Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function when it is first called; its sums may be reordered."""
    compiled: Function = jitted(function, exact=False, cached=True)
    return compiled
