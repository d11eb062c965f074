"""Functions of arrays and numbers, compiled when they are first called and kept on disk; needs numba."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# With colours in its errors, numba has colorama end every output by a code that resets them, of files, too.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

import numba  # it reads the above when it is imported

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


def is_kept(compiled: Any) -> bool:
    """Tell whether a function was compiled before, here or, as far as its files tell, in another process."""
    if compiled.signatures:
        return True
    source = Path(inspect.getfile(compiled.py_func))
    kept = Path(compiled.stats.cache_path or "").glob(f"{source.stem}.{compiled.py_func.__name__}-*.nbi")
    return any(one.stat().st_mtime > source.stat().st_mtime for one in kept)


def _compiled(function: Function, **options: Any) -> Function:
    options |= {"nogil": True, "error_model": "numpy"}
    compiled: Function
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep it in can be written to: then each process compiles anew
        compiled = numba.njit(**options)(function)
    return compiled
