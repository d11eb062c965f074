"""Functions of arrays and numbers, compiled when they are first called and kept on disk; needs numba.

numba looks at the file of a function to see whether what it kept is still good, and not at those of the
functions and constants it makes use of. So what is kept lies in a folder that is named by the code of all
rooms that have compiled functions, or constants of such: other code, another folder.
"""

import getpass
import hashlib
import logging
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

from varnn.network import compiled_code

logger = logging.getLogger(__name__)

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


def _can_be_kept(folder: Path) -> bool:
    """Tell whether a folder can be written to; numba would look for another one, of a name of its own."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


_FOLDER = _folder()
_IS_KEPT = _can_be_kept(_FOLDER)


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


def announce(*compiled: Any) -> None:
    """Before functions are called: wait for who compiles them, or say that they are compiled now."""
    if all(map(is_kept, compiled)):
        return
    compiled_code.wait_for_it()
    if not all(map(is_kept, compiled)):
        often = "once after an installation" if _IS_KEPT else "in every process, as it cannot be kept"
        logger.warning("compiling what makes the default fast, %s: ten to twenty seconds.", often)


def _compiled(function: Function, **options: Any) -> Function:
    options |= {"nogil": True, "error_model": "numpy"}
    compiled: Function
    wanted, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(_FOLDER)
    try:
        compiled = numba.njit(cache=_IS_KEPT, **options)(function)
    except RuntimeError:  # numba finds no place for it: then each process compiles anew
        compiled = numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = wanted
    return compiled
