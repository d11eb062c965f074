"""The kernel for a shape on a GPU: compiled, loaded, and remembered."""

from functools import cache
from pathlib import Path
from threading import Lock

import torch

from varnn.network.engines.cuda import _driver, _nvrtc
from varnn.network.engines.cuda._driver import Kernel
from varnn.network.engines.cuda._layout import Shape, windows_at_once
from varnn.network.engines.cuda._nvrtc import UnavailableError

OLDEST = (8, 0)  # compute capability: shared memory enough for a window of the default
_SOURCE = Path(__file__).with_name("train.cu")
_lock = Lock()
_locks: dict[tuple[Shape, tuple[int, ...], int], Lock] = {}


def kernel_for(shape: Shape, batch: int, device: int) -> Kernel:
    """Kernel for members of a shape on a GPU.

    It takes as many windows of a batch at once as its shared memory can hold.

    Parameters
    ----------
    shape : Shape
        What to compile for.
    batch : int
        Windows in a batch.
    device : int
        Number of the GPU.
    """
    choices = windows_at_once(batch)
    with _lock:
        own = _locks.setdefault((shape, choices, device), Lock())
    with own:  # threads that want the same one wait for it, others compile theirs
        found = _found(shape, choices, device)
    if isinstance(found, str):
        raise UnavailableError(found)
    return found


@cache
def _found(shape: Shape, choices: tuple[int, ...], device: int) -> Kernel | str:
    """The kernel, or why there is none."""
    source, capability = _SOURCE.read_text(), torch.cuda.get_device_capability(device)
    needed, most = 0, _driver.shared_memory_of_a_block(device)
    try:
        for at_once in choices:
            how = options(shape, at_once, capability)
            needed = _driver.sizes_in(_nvrtc.compiled(head(source), how), device).shared_bytes
            if needed <= most:
                return _loaded(source, tuple(how), device)
    except UnavailableError as error:
        return str(error)
    return f"a block needs {needed:,} bytes of shared memory, and there are {most:,}"


@cache
def _loaded(source: str, how: tuple[str, ...], device: int) -> Kernel:
    return _driver.load(_nvrtc.compiled(source, how), device)


def head(source: str) -> str:
    r"""The source up to what it says of its sizes: that much compiles in no time.

    Examples
    --------
    >>> print(head("a;\nint SIZES[4] = {1, 2, 3, 4};\nb;"))
    a;
    int SIZES[4] = {1, 2, 3, 4};
    """
    return source[: source.index("\n", source.index(" SIZES[4]"))]


def options(shape: Shape, at_once: int, capability: tuple[int, int]) -> list[str]:
    """Options of the compiler."""
    major, minor = capability
    constants = [f"-D{name}={value}" for name, value in shape.constants(at_once).items()]
    return [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", *constants]
