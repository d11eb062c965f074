"""Files damaged on purpose, whose checksums fit all the same: what a reader must not fall for.

Each kind of damage is a function of a file's arrays and header, which it may change, and of a generator of
random numbers. :func:`damaged` picks one and packs what it leaves.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from varnn.persistence import model_file

Arrays = dict[str, npt.NDArray[Any]]
Header = dict[str, Any]
Damage = Callable[[Arrays, Header, np.random.Generator], None]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 25, 1000, 10**6, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.5),
    *(1e-320, 1e300, -1e300, math.nan, math.inf, -math.inf, "", "relu", "none", "2026-11-15", "x" * 10_000),
    *([], [[]], [1, 2], ["a", "a"], ["day"], [None], [0.99, math.nan], {}, {"a": 1}, {"loss": "low"}),
)
NUMBERS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 1e38, -1e38, 1e30, -1e9, 1e9, -1.0, 0.0, 1e-320)
KINDS = ("float16", "float32", "float64", "int8", "int64", "uint64", "bool", "complex64")
_DEPTHS = (13, 100, 900, 5000, 200_000)


def damaged(blob: bytes, generator: np.random.Generator) -> tuple[str, bytes]:
    """Damage a model file or a snapshot in one way, and name it.

    Examples
    --------
    >>> blob = model_file.to_bytes({"weights": np.ones(3)}, {"format": model_file.FORMAT})
    >>> kind, other = damaged(blob, np.random.default_rng(0))
    >>> kind in DAMAGES or kind in RAW, other != blob
    (True, True)
    """
    if generator.random() < _RAW_SHARE:
        kind = str(generator.choice(list(RAW)))
        return kind, RAW[kind](blob, generator)
    tensors, header = model_file.from_bytes(blob, "the file")
    arrays = {name: array.copy() for name, array in tensors.items()}
    inner = [name for name, array in arrays.items() if array.dtype == np.uint8]
    if inner and generator.random() < 0.7:  # a snapshot of several series holds one of each
        name = str(generator.choice(inner))
        kind, other = damaged(arrays[name].tobytes(), generator)
        arrays[name] = np.frombuffer(other, np.uint8)
        return kind, packed(arrays, header)
    kind = str(generator.choice(list(DAMAGES)))
    DAMAGES[kind](arrays, header, generator)
    return kind, packed(arrays, header)


def packed(arrays: Arrays, header: Header) -> bytes:
    """Pack arrays and a header with a checksum that fits, whatever they hold."""
    try:
        text = json.dumps({**header, "checksum": model_file.checksum(arrays, header)})
    except (RecursionError, ValueError):  # deeper than JSON is written, so nobody could have
        text = _deep(max(_DEPTHS))
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(contiguous, metadata={model_file.KEY: text})


def _flip_bits(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    name = _some_array(arrays, generator)
    whole = np.frombuffer(arrays[name].tobytes(), np.uint8).copy()
    for _ in range(int(generator.integers(1, 4))):
        if len(whole):
            whole[generator.integers(len(whole))] ^= 1 << generator.integers(8)
    arrays[name] = whole.view(arrays[name].dtype).reshape(arrays[name].shape)


def _put_number(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    name = _some_array(arrays, generator)
    array = arrays[name]
    if array.size and array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            array.reshape(-1)[generator.integers(array.size)] = _one_of(NUMBERS, generator)
    elif array.size:
        array.reshape(-1)[generator.integers(array.size)] = np.iinfo(array.dtype).min


def _drop_array(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    del arrays[_some_array(arrays, generator)]


def _rename_array(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    name = _some_array(arrays, generator)
    arrays[name + str(_one_of(("", ".more", "s"), generator)) + "x"] = arrays.pop(name)


def _swap_arrays(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    one, other = _some_array(arrays, generator), _some_array(arrays, generator)
    arrays[one], arrays[other] = arrays[other], arrays[one]


def _other_kind(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    name = _some_array(arrays, generator)
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(str(generator.choice(KINDS)))


def _other_shape(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    name = _some_array(arrays, generator)
    array = arrays[name]
    arrays[name] = _one_of(
        (array.T, array[None], array.reshape(-1), array[:0], array[:-1], np.concatenate([array, array])),
        generator,
    )


def _put_value(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    place, key = _some_place(header, generator)
    place[key] = _one_of(VALUES, generator)


def _drop_value(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    place, key = _some_place(header, generator)
    del place[key]


def _swap_values(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    (one, first), (other, second) = _some_place(header, generator), _some_place(header, generator)
    one[first], other[second] = json.loads(json.dumps([other[second], one[first]]))


def _scale_number(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    for _ in range(50):
        place, key = _some_place(header, generator)
        if isinstance(place[key], int | float):
            place[key] = place[key] * _one_of((-1, 2, 3, 1000, 10**9, 0.5), generator)
            return


def _nest(arrays: Arrays, header: Header, generator: np.random.Generator) -> None:
    place, key = _some_place(header, generator)
    for _ in range(_one_of(_DEPTHS[:3], generator)):
        place[key] = [place[key]]


def _cut(blob: bytes, generator: np.random.Generator) -> bytes:
    return blob[: generator.integers(len(blob))]


def _flip_anywhere(blob: bytes, generator: np.random.Generator) -> bytes:
    whole = bytearray(blob)
    for _ in range(int(generator.integers(1, 5))):
        whole[generator.integers(len(whole))] ^= 1 << int(generator.integers(8))
    return bytes(whole)


def _layout(blob: bytes, generator: np.random.Generator) -> bytes:
    """Lie about where arrays are, and of what kind."""
    size = int.from_bytes(blob[:8], "little")
    layout = json.loads(blob[8 : 8 + size])
    one = layout[_one_of([name for name in layout if name != "__metadata__"], generator)]
    key = _one_of(("dtype", "shape", "data_offsets"), generator)
    lies: tuple[Any, ...] = ("BF16", "F8_E4M3", "F64", [2**40, 2**40], [0, 2**62], [-1], [0, 8], [8, 0], None)
    one[key] = _one_of(lies, generator)
    return _with_layout(json.dumps(layout), blob[8 + size :])


def _deep_header(blob: bytes, generator: np.random.Generator) -> bytes:
    deep = _deep(_one_of(_DEPTHS, generator))
    if generator.random() < 0.5:
        return _with_layout(deep, b"")
    return save({"a": np.zeros(1)}, metadata={model_file.KEY: deep})


def _with_layout(layout: str, rest: bytes) -> bytes:
    return len(layout.encode()).to_bytes(8, "little") + layout.encode() + rest


def _deep(depth: int) -> str:
    return '{"format":' * depth + "1" + "}" * depth


def _some_array(arrays: Arrays, generator: np.random.Generator) -> str:
    return str(_one_of(sorted(arrays), generator))


def _some_place(header: Header, generator: np.random.Generator) -> tuple[Any, Any]:
    """Pick a value somewhere in a header: where it is, and under which key or number."""
    place: Any = header
    while True:
        key = _one_of(sorted(place) if isinstance(place, dict) else range(len(place)), generator)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or generator.random() < 0.3:
            return place, key
        place = inner


def _one_of(things: Any, generator: np.random.Generator) -> Any:
    return things[int(generator.integers(len(things)))]


_RAW_SHARE = 0.15
RAW: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "cut short": _cut,
    "bits flipped anywhere, checksum as it was": _flip_anywhere,
    "layout that lies": _layout,
    "header of great depth": _deep_header,
}
DAMAGES: dict[str, Damage] = {
    "bits flipped in an array": _flip_bits,
    "NaN, infinity or an extreme number": _put_number,
    "array missing": _drop_array,
    "array renamed": _rename_array,
    "two arrays swapped": _swap_arrays,
    "array of another kind": _other_kind,
    "array of another shape": _other_shape,
    "value of another type or size": _put_value,
    "value missing": _drop_value,
    "two values swapped": _swap_values,
    "number scaled": _scale_number,
    "value nested deeply": _nest,
}
