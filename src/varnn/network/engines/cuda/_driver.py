"""Machine code -> a kernel that can be launched, by the CUDA driver, beside torch in torch's own context."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from varnn.network.engines.cuda._nvrtc import UnavailableError

_SHARED_OF_A_BLOCK = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_KERNEL, _SIZES = b"train", b"SIZES"  # names in the source


class Sizes(NamedTuple):
    """What a source says of itself: shared memory and threads of a block, weights of a member."""

    shared_bytes: int
    threads: int
    n_weights: int


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel on one GPU, ready to launch; it is there as long as the process.

    Parameters
    ----------
    function : int
        What the driver knows it by.
    device : int
        Number of the GPU.
    shared_bytes, threads : int
        Shared memory and threads of a block.
    n_weights : int
        Weights of a member.
    """

    function: int
    device: int
    shared_bytes: int
    threads: int
    n_weights: int

    def launch(self, members: int, count: int, stream: int) -> None:
        """Launch one block for each of the structs at an address of the GPU, on a stream."""
        argument = ctypes.c_uint64(members)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        with context(self.device):
            grid, block = (count, 1, 1), (self.threads, 1, 1)
            _call("cuLaunchKernel", self.function, *grid, *block, self.shared_bytes, stream, arguments, None)


def load(code: bytes, device: int) -> Kernel:
    """Load machine code onto a GPU."""
    function = ctypes.c_void_p()
    with context(device):
        module = _module(code)
        sizes = _sizes(module)
        _call("cuModuleGetFunction", ctypes.byref(function), module, _KERNEL)
        _call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, sizes.shared_bytes)
    return Kernel(function.value or 0, device, *sizes)


def sizes_in(code: bytes, device: int) -> Sizes:
    """Read what a source says of its sizes, in machine code of all of it or of its head."""
    with context(device):
        module = _module(code)
        try:
            return _sizes(module)
        finally:
            _call("cuModuleUnload", module)


def _module(code: bytes) -> ctypes.c_void_p:
    module = ctypes.c_void_p()
    _call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
    return module


def _sizes(module: ctypes.c_void_p) -> Sizes:
    numbers, where, size = (ctypes.c_int * 4)(), ctypes.c_uint64(), ctypes.c_size_t()
    _call("cuModuleGetGlobal_v2", ctypes.byref(where), ctypes.byref(size), module, _SIZES)
    _call("cuMemcpyDtoH_v2", ctypes.byref(numbers), where, ctypes.sizeof(numbers))
    return Sizes(*numbers[:3])


def shared_memory_of_a_block(device: int) -> int:
    """Bytes of shared memory that one block may have on a GPU."""
    found = ctypes.c_int()
    _call("cuDeviceGetAttribute", ctypes.byref(found), _SHARED_OF_A_BLOCK, _device(device))
    return found.value


@contextlib.contextmanager
def context(device: int) -> Iterator[None]:
    """Make the context that torch uses on a GPU the one of this thread."""
    _call("cuCtxPushCurrent_v2", _primary(device))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@cache
def _primary(device: int) -> ctypes.c_void_p:
    found = ctypes.c_void_p()
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(found), _device(device))
    return found


@cache
def _device(number: int) -> int:
    found = ctypes.c_int()
    _call("cuInit", 0)
    _call("cuDeviceGet", ctypes.byref(found), number)
    return found.value


def _call(name: str, *arguments: Any) -> None:
    driver = _library()
    if code := getattr(driver, name)(*arguments):
        message = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(message))
        raise UnavailableError(f"{name} gives error {code} ({(message.value or b'').decode()})")


@cache
def _library() -> Any:
    try:
        driver = ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
    except OSError as error:
        raise UnavailableError(f"the CUDA driver is not found ({error})") from None
    number, pointer, size = ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t
    for name, kinds in {
        "cuInit": [number],
        "cuGetErrorString": [ctypes.c_int, pointer],
        "cuDeviceGet": [pointer, ctypes.c_int],
        "cuDeviceGetAttribute": [pointer, ctypes.c_int, ctypes.c_int],
        "cuDevicePrimaryCtxRetain": [pointer, ctypes.c_int],
        "cuCtxPushCurrent_v2": [pointer],
        "cuCtxPopCurrent_v2": [pointer],
        "cuModuleLoadData": [pointer, pointer],
        "cuModuleUnload": [pointer],
        "cuModuleGetFunction": [pointer, pointer, ctypes.c_char_p],
        "cuModuleGetGlobal_v2": [pointer, pointer, pointer, ctypes.c_char_p],
        "cuMemcpyDtoH_v2": [pointer, ctypes.c_uint64, size],
        "cuFuncSetAttribute": [pointer, ctypes.c_int, ctypes.c_int],
        "cuLaunchKernel": [pointer, *[number] * 7, pointer, pointer, pointer],
    }.items():
        getattr(driver, name).argtypes = kinds
    return driver
