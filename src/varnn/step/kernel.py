"""Mark the functions of `varnn.step` for compilation; run the same source without it.

A function decorated with `kernel` stays a plain Python function that NumPy executes. `compiling.compiled`
returns its numba version. Both exist side by side, so importing this package does not import numba, and tests
run the same source both ways.

The source keeps to what NumPy executes and numba compiles: ``np.dot(a, b, out)`` on contiguous matrices,
elementwise array expressions, ``if`` and ``for``. The few operations that the two libraries spell differently
have a NumPy spelling and a compiled one, side by side in `varnn.step.operations`.
"""

import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

from varnn._types import IntArray

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])
Record = TypeVar("Record", bound=tuple[Any, ...])

SWITCH = "VARNN_COMPILED"  # environment variable; 0 runs the plain source even if numba is installed
_OFF = ("0", "false", "no", "off")
DIMENSIONS = 4  # of an array of a record, at most

spellings: dict[Callable[..., Any], tuple[Callable[..., Any], str]] = {}  # what to compile, and as what
records: dict[Callable[..., Any], type[tuple[Any, ...]]] = {}


def kernel(function: Function) -> Function:
    """Mark a function that can be compiled, with every sum in the order in which it is written."""
    spellings[function] = function, "kernel"
    return function


def part(function: Function) -> Function:
    """Mark a kernel that is called from one place: it is compiled into its caller.

    numba would optimize a function of its own once for itself and once more for each function above it.
    """
    spellings[function] = function, "part"
    return function


def elementwise(function: Callable[..., Any]) -> Callable[..., None]:
    """Turn a function of numbers into one of arrays, which are broadcast; the last argument is the output.

    NumPy computes the function of whole arrays, numba of each number in one loop. Write it so that it is
    right for both: no ``if``, but `numpy.minimum` and the like.

    Examples
    --------
    >>> @elementwise
    ... def mix(left, right, share):
    ...     return left + share * (right - left)
    >>> out = np.empty(2)
    >>> mix(np.zeros(2), np.ones(2), 0.5, out)
    >>> out.tolist()
    [0.5, 0.5]
    """

    @wraps(function)
    def apply(*arguments: Any) -> None:
        arguments[-1][...] = function(*arguments[:-1])

    spellings[apply] = function, "elementwise"
    return apply


def compiled_form_of(function: Function) -> Callable[[Function], Function]:
    """Mark a function as the compiled spelling of another one, which plain code calls.

    Sums in it may be reordered, as vector instructions need.

    Examples
    --------
    >>> def add(left, right, out):
    ...     np.add(left, right, out=out)
    >>> @compiled_form_of(add)
    ... def _add(left, right, out):
    ...     for index in range(len(out)):
    ...         out[index] = left[index] + right[index]
    """

    def mark(loops: Function) -> Function:
        spellings[function] = loops, "operation"
        return loops

    return mark


def record_of(kind: type[Record]) -> Callable[[Record], Record]:
    """Return the function by which compiled code gets at a named tuple, given its `address_table`.

    Plain code passes the tuple itself, and the function returns it. Fields are ``int``, ``float``, or arrays
    that are annotated with their number of dimensions.
    """

    def record(values: Record) -> Record:
        return values

    records[record] = kind
    return record


def address_table(values: tuple[Any, ...]) -> IntArray:
    """Return addresses and shapes of the arrays of a named tuple, and its numbers: (fields, 5).

    The table holds no references: the caller must keep the arrays alive.
    """
    table = np.zeros((len(values), 1 + DIMENSIONS), np.int64)
    for row, value in zip(table, values, strict=True):
        if isinstance(value, float):
            row[:1].view(np.float64)[0] = value
        elif isinstance(value, int):
            row[0] = value
        else:
            if not value.flags.c_contiguous:
                raise TypeError("arrays of a step must be contiguous.")
            row[0] = value.ctypes.data
            row[1 : 1 + value.ndim] = value.shape
    return table


def use_compiled() -> bool:
    """Tell whether to run compiled code: numba is installed and not switched off.

    Examples
    --------
    >>> os.environ[SWITCH] = "0"
    >>> use_compiled()
    False
    >>> del os.environ[SWITCH]
    """
    return os.environ.get(SWITCH, "").strip().lower() not in _OFF and numba_available()


@cache
def numba_available() -> bool:
    """Tell whether numba, and SciPy, which it takes BLAS from, can be imported and are not switched off."""
    # With colors in its errors, numba has colorama end every output with a reset code, also in files.
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    try:
        import numba
        import scipy  # noqa: F401  # whether it is there
    except ImportError:  # not installed, or a numba that rejects the installed NumPy
        return False
    if not hasattr(numba, "njit"):
        logger.warning("%r is not numba, but is imported as such: running plain NumPy.", numba.__file__)
        return False
    return not numba.config.DISABLE_JIT  # set by people who debug numba code of their own
