"""Memory that is no more needed, given back to the system between the stages of long work.

Arrow keeps the memory of tables for tables to come, and C's allocator that of arrays (below some 30 MB
each, once such have been freed) for arrays to come. Of ten million rows both are larger than what is in use.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def release() -> None:
    """Give back what the allocators hold; takes some milliseconds."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], object] | None:
    """Find the function of GNU's C library; others give memory back by themselves, or never."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
