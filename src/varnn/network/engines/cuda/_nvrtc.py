"""CUDA source -> machine code by NVRTC, NVIDIA's compiler as a library, which torch brings along."""

import ctypes
import ctypes.util
import logging
import os
import site
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from varnn.network.engines.cuda import _cubins

logger = logging.getLogger(__name__)

_FOLDERS = ("nvidia", "torch/lib")  # below site-packages, where wheels of torch have it
_NAMES = ("libnvrtc*.so*", "nvrtc64_*.dll")
_OTHERS = ("builtins", "alt")  # libraries beside it whose names begin alike


class UnavailableError(RuntimeError):
    """The kernel cannot be used here; the message says why, in words that fit into a list of reasons."""


def compiled(source: str, options: Sequence[str]) -> bytes:
    """Machine code of a source, from the cache where it was compiled before.

    Parameters
    ----------
    source : str
        CUDA C++.
    options : sequence of str
        Of the compiler; the architecture is among them.
    """
    major, minor = _version()
    made_from = "\0".join([source, *options, f"NVRTC {major}.{minor}"])
    return _cubins.kept(made_from, lambda: _compile(source, options))


def _compile(source: str, options: Sequence[str]) -> bytes:
    nvrtc, program = _library(), ctypes.c_void_p()
    text = ctypes.c_char_p(source.encode())
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"train.cu", 0, None, None), "begin")
    try:
        given = (ctypes.c_char_p * len(options))(*[one.encode() for one in options])
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            log = _fetched(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            logger.info("NVRTC says of the kernel:\n%s", log)
            first = next((line for line in log.splitlines() if "error" in line), "no reason is given")
            raise UnavailableError(f"NVRTC does not compile the kernel: {first.strip()}")
        return _fetched(program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _fetched(program: ctypes.c_void_p, what: str) -> bytes:
    """Log or code of a program."""
    nvrtc, size = _library(), ctypes.c_size_t()
    _check(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), f"tell the size of {what}")
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(nvrtc, f"nvrtcGet{what}")(program, buffer), f"give {what}")
    return buffer.raw


def _check(code: int, what: str) -> None:
    if code:
        message = _library().nvrtcGetErrorString(code).decode()
        raise UnavailableError(f"NVRTC does not {what}: {message}")


@cache
def _version() -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "tell its version")
    return major.value, minor.value


@cache
def _library() -> Any:
    tried = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            tried.append(str(error))
            continue
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        library.nvrtcGetErrorString.restype = text
        library.nvrtcCreateProgram.argtypes = [pointer, text, text, ctypes.c_int, pointer, pointer]
        library.nvrtcCompileProgram.argtypes = [pointer, ctypes.c_int, pointer]
        library.nvrtcDestroyProgram.argtypes = [pointer]
        for what in ("ProgramLog", "CUBIN"):
            getattr(library, f"nvrtcGet{what}Size").argtypes = [pointer, pointer]
            getattr(library, f"nvrtcGet{what}").argtypes = [pointer, pointer]
        return library
    raise UnavailableError(
        "the library NVRTC, which wheels of torch for CUDA bring, is not found"
        + "".join(f" ({one})" for one in tried[:1])
    )


def _candidates() -> Iterator[str]:
    """Paths and names of the library: what torch brought first, of its own version of CUDA before others."""
    version = (torch.version.cuda or "").split(".")[0]
    roots = [Path(torch.__file__).parent.parent, *map(Path, [*site.getsitepackages(), *sys.path])]
    seen = dict.fromkeys(root.resolve() for root in roots if root.name in ("site-packages", "dist-packages"))
    found = [
        path
        for root in seen
        for folder in _FOLDERS
        for pattern in _NAMES
        for path in sorted((root / folder).rglob(pattern))
        if not any(other in path.name for other in _OTHERS)
    ]
    found.sort(key=lambda path: f".so.{version}" not in path.name and f"nvrtc64_{version}" not in path.name)
    yield from map(str, found)
    if os.name == "posix":
        yield from (f"libnvrtc.so.{version}", "libnvrtc.so")
    if (name := ctypes.util.find_library("nvrtc")) is not None:
        yield name
