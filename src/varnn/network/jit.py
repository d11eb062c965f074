"""Functions of arrays and numbers, compiled when they are first called and kept on disk; needs numba.

numba looks at the file of a function to see whether what it kept is still good, and not at those of the
functions and constants it makes use of. So what is kept lies in a folder that is named by the code of all
rooms that have compiled functions, or constants of such: other code, another folder.
"""

import getpass
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# With colours in its errors, numba has colorama end every output by a code that resets them, of files, too.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

import numba  # it reads the above when it is imported

Scalar = Any  # a float of the arrays' own precision
Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent.parent
_ROOMS = ("data", "network", "model", "streaming")


def _folder() -> Path:
    """Where compiled code of these sources is kept."""
    digest = hashlib.sha256()
    digest.update(f"{numba.__version__} {sys.version}".encode())
    for room in _ROOMS:
        for source in sorted((_PACKAGE / room).rglob("*.py")):
            digest.update(source.read_bytes())
    name = digest.hexdigest()[:16]
    if numba.config.CACHE_DIR:  # as the user wants it
        return Path(numba.config.CACHE_DIR, f"varnn-{name}")
    if not os.access(_PACKAGE, os.W_OK):
        try:
            return Path.home() / ".cache" / "varnn" / f"compiled-{name}"
        except RuntimeError:  # a user without a home
            return Path(tempfile.gettempdir(), f"varnn-{getpass.getuser()}", f"compiled-{name}")
    own = _PACKAGE / "__pycache__" / "compiled"
    for other in own.glob("*") if own.is_dir() else ():  # of code that is no more
        if other.name != name:
            shutil.rmtree(other, ignore_errors=True)
    return own / name


_FOLDER = _folder()


def kernel(function: Function) -> Function:
    """Compile a function whose sums may be reordered, as vector instructions need.

    NaN and infinity keep their meaning.
    """
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def exact_kernel(function: Function) -> Function:
    """Compile a function whose sums are done in the order they are written, as what rests on it needs."""
    return _compiled(function, fastmath=False)


def is_kept(compiled: Any) -> bool:
    """Tell whether a function was compiled before, here or in another process."""
    kept = Path(compiled.stats.cache_path or "").glob(f"*.{compiled.py_func.__name__}-*.nbi")
    return bool(compiled.signatures) or any(kept)


def _compiled(function: Function, **options: Any) -> Function:
    options |= {"nogil": True, "error_model": "numpy"}
    compiled: Function
    wanted, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(_FOLDER)
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep it in can be written to: then each process compiles anew
        compiled = numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = wanted
    return compiled
