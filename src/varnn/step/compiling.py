"""Compile marked functions with numba, and cache the result on disk. The only module here that imports it."""

import contextlib
import hashlib
import logging
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, get_args, get_type_hints

import numba
import numpy as np
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, overload, register_model
from numba.np.arrayobj import populate_array

from varnn.step.kernel import DIMENSIONS, Function, records, spellings

logger = logging.getLogger(__name__)

_PACKAGE = Path(__file__).parent
_NUMBERS = {int: types.int64, float: types.float64}
_ELEMENTS = {np.float64: types.float64, np.float32: types.float32, np.int64: types.int64}


_dispatchers: dict[Callable[..., Any], Any] = {}
_lock = threading.RLock()


def compiled(function: Function, *, cached: bool = False) -> Function:
    """Return the numba version of a marked function; ``cached`` keeps its code on disk."""
    with _lock:
        if function not in _dispatchers:
            if function in records:
                _dispatchers[function] = record_access(records[function])
            else:
                _dispatchers[function] = dispatcher(*spellings[function], cached=cached)
        found: Function = _dispatchers[function]
        return found


def dispatcher(function: Callable[..., Any], kind: str, *, cached: bool) -> Any:
    """Return a function that numba compiles when it is first called.

    numba sees a copy of the function in which all marked functions that it calls are compiled, too.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"only Python functions can be compiled; got {function!r}.")
    names = {
        name: compiled(value)
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names and isinstance(value, FunctionType) and _is_marked(value)
    }
    copy = FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__
    )
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    if kind == "elementwise":
        return _elementwise(copy)
    if kind == "operation":
        return jitted(copy, exact=False, cached=cached, _nrt="dot" in function.__code__.co_names)
    # Code of kernels is shorter without counts of references, and they make no arrays.
    return jitted(copy, exact=True, cached=cached, _nrt=False, inline="always" if kind == "part" else "never")


def _elementwise(function: Callable[..., Any]) -> Any:
    """Return a function that computes another one for each number of its last argument.

    numba can do the same (`numba.vectorize`), but then compiles everything twice, and longer loops.
    """
    number = numba.njit(inline="always", error_model="numpy")(function)

    def loops(*arguments: Any) -> None:
        raise NotImplementedError  # compiled code alone calls it

    @overload(loops, strict=False, jit_options={"error_model": "numpy"})  # type: ignore[untyped-decorator]
    def choose(*kinds: Any) -> Any:
        axes = "ijkl"[: kinds[-1].ndim]
        numbers = [_element(f"a{place}", kind, axes) for place, kind in enumerate(kinds[:-1])]
        names = [f"a{place}" for place in range(len(numbers))]
        lines = [f"def fill({', '.join(names)}, out):"]
        lines += [
            f"{' ' * (axis + 1)}for {name} in range(out.shape[{axis}]):" for axis, name in enumerate(axes)
        ]
        lines += [f"{' ' * (len(axes) + 1)}out[{', '.join(axes)}] = number({', '.join(numbers)})"]
        names_of_code: dict[str, Any] = {"number": number}
        exec("\n".join(lines), names_of_code)
        return names_of_code["fill"]

    return loops


def _element(name: str, kind: Any, axes: str) -> str:
    """Return the code for one number of an operand; an axis of several may be of size 1."""
    if not isinstance(kind, types.Array):
        return name
    own = axes[len(axes) - kind.ndim :]
    if kind.ndim == 1:
        return f"{name}[{own}]"
    return f"{name}[{', '.join(f'min({axis}, {name}.shape[{place}] - 1)' for place, axis in enumerate(own))}]"


def jitted(function: Callable[..., Any], *, exact: bool, cached: bool, **more: Any) -> Any:
    """Return a function that numba compiles as it is; ``cached`` keeps the code on disk, if possible."""
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "fastmath": False if exact else {"reassoc", "contract", "nsz"},  # NaN and infinity keep their meaning
        **more,
    }
    folder = cache_folder() if cached else None
    if folder is None:
        return numba.njit(**options)(function)
    wanted, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no place for its cache: compile in memory
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = wanted


def _is_marked(function: Callable[..., Any]) -> bool:
    return function in spellings or function in records


class RecordType(types.Type):  # type: ignore[misc]  # numba has no types
    """A named tuple of numbers and arrays, of which compiled code holds the address table.

    To pass a hundred arrays from function to function would take numba minutes to compile. So an array is
    put together from the table where it is used.
    """

    def __init__(self, kind: type[tuple[Any, ...]]) -> None:
        self.fields: dict[str, Any] = {}
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if hint in _NUMBERS:
                self.fields[name] = _NUMBERS[hint]
            else:
                array, dimensions = get_args(hint)
                element = _ELEMENTS[get_args(get_args(array)[1])[0]]
                self.fields[name] = types.Array(element, dimensions, "C")
        super().__init__(name=f"Record({kind.__name__})")


register_model(RecordType)(models.OpaqueModel)


@infer_getattr
class _RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:
        return record.fields.get(name)


@lower_getattr_generic(RecordType)  # type: ignore[untyped-decorator]
def _lower_attribute(context: Any, builder: Any, record: RecordType, table: Any, name: str) -> Any:
    """Load a number, or put an array together, from its row of the table."""
    row, kind = list(record.fields).index(name), record.fields[name]
    words = builder.bitcast(table, context.get_value_type(types.CPointer(types.int64)))

    def word(column: int) -> Any:
        place = context.get_constant(types.intp, row * (1 + DIMENSIONS) + column)
        return builder.load(builder.gep(words, [place]))

    if kind is types.int64:
        return word(0)
    if kind is types.float64:
        return builder.bitcast(word(0), context.get_value_type(kind))
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    itemsize = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
    strides = [itemsize]
    for size in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], size))
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(word(0), array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


def record_access(kind: type[tuple[Any, ...]]) -> Any:
    """Return the function that turns an address table into a record, in compiled code."""
    record = RecordType(kind)

    @intrinsic  # type: ignore[untyped-decorator]
    def access(_: Any, table: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.bitcast(data, context.get_value_type(record))

        return record(types.Array(types.int64, 2, "C")), code

    return access


@cache
def cache_folder() -> Path | None:
    """Return the folder that compiled code is cached in; None if no folder can be written.

    numba checks the file of a function to see whether its cached code is still valid, but not the files of
    the functions and constants it uses. So the folder is named after the source of all that is compiled: a
    change of any file means another folder.
    """
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for path in sorted((*_PACKAGE.glob("*.py"), *_PACKAGE.parent.glob("network/engines/*.py"))):
        digest.update(path.read_bytes())
    for parent in _cache_parents():
        folder = parent / digest.hexdigest()[:16]
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"0" * 4096)  # a full disk accepts an empty file
            return folder
    return None


def _cache_parents() -> list[Path]:
    """List folders to try: the one NUMBA_CACHE_DIR names, or else next to the sources, then the user's own.

    A shared temporary folder is not among them: what is cached is executed, and others can write there.
    """
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR) / "varnn-compiled"]
    parents = [_PACKAGE / "__pycache__" / "compiled"]
    with contextlib.suppress(RuntimeError):  # a user without a home
        parents.append(Path.home() / ".cache" / "varnn" / "compiled")
    return parents


def announce(*functions: Any) -> None:
    """Log one line if calling these compiled functions compiles them first, which takes seconds."""
    folder = cache_folder()
    for function in functions:
        found = folder is not None and any(folder.rglob(f"*.{function.py_func.__name__}-*.nbi"))
        if not function.signatures and not found:
            often = "in every process, as no cache folder can be written" if folder is None else "once"
            logger.warning("compiling the prediction step (%s, about fifteen seconds) ...", often)
            return
