"""How many threads a product of NumPy takes, where several threads compute at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_owned = threading.Lock()  # by the thread that set the number, and will bring it back


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep products to one thread: they are small here, and on a busy machine threads wait for each other.

    Several threads may be within at a time. The number is one for the whole process, so that the first one
    alone sets it, and brings it back when it leaves: two that each bring back what they found would leave it
    at one for good. Whoever stays longer computes as quickly as without.

    Examples
    --------
    >>> import numpy as np
    >>> with one_blas_thread():
    ...     float((np.eye(2) @ np.ones(2)).sum())
    2.0
    """
    from threadpoolctl import threadpool_limits  # late: to look for libraries takes a while

    if not _owned.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        _owned.release()
