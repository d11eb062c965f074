"""How many threads a product takes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep the products of torch and NumPy to one thread: they are small here.

    A second thread gains little on an idle machine, and on a busy one the threads wait for each
    other: ten times slower was seen. A second core is better used by a second member.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)
