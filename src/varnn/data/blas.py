"""How many threads a product of NumPy takes, where several threads compute at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_before: list[tuple[Any, int]] = []  # libraries, and how many threads each took before anyone was within
_within: list[None] = []  # one for each thread that is


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep products to one thread: they are small here, and on a busy machine threads wait for each other.

    Several threads may be within at a time: the first one sets the number, the last one brings it back.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     float((np.eye(2) @ np.ones(2)).sum())
    2.0
    """
    # Late: to look for libraries takes a while. Its own limits belong to the thread that sets them.
    from threadpoolctl import ThreadpoolController

    with _lock:
        if not _within:
            found = ThreadpoolController().select(user_api="blas").lib_controllers
            _before.extend((library, library.num_threads) for library in found)
            for library, _ in _before:
                library.set_num_threads(1)
        _within.append(None)
    try:
        yield
    finally:
        with _lock:
            _within.pop()
            while not _within and _before:
                library, count = _before.pop()
                library.set_num_threads(count)
