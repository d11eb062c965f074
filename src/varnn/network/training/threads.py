"""How many threads a product takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

import scipy.linalg.cython_blas  # noqa: F401  # engines call it; loaded later it is not limited
import torch

from varnn.data.blas import one_blas_thread


class _TorchThreads:
    """Torch's number of threads before anyone was within `one_thread`, and how many threads are within."""

    def __init__(self) -> None:
        self.lock, self.within, self.before = Lock(), 0, 1

    def enter(self) -> None:
        with self.lock:
            now = torch.get_num_threads()  # a new thread takes the others' number here, not after it was set
            if self.within == 0:
                self.before = now
            self.within += 1
            torch.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.within -= 1
            # It holds for this thread and for those that have not begun: each brings back its own.
            torch.set_num_threads(self.before)


_torch_threads, _mine = _TorchThreads(), local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep the products of torch and NumPy to one thread: they are small here.

    A second thread gains little on an idle machine, and on a busy one the threads wait for each
    other: ten times slower was seen. A second core is better used by a second member. Several threads may
    be within at a time: all leave with the number that there was before the first of them.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    if getattr(_mine, "within", False):
        yield
        return
    _mine.within = True
    _torch_threads.enter()
    try:
        with one_blas_thread():
            yield
    finally:
        _torch_threads.leave()
        _mine.within = False
