"""Threads that keep products to one thread bring back what there was, however they overlap."""

import threading

import pytest
from threadpoolctl import threadpool_info

from varnn.data.blas import one_blas_thread


def threads() -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.mark.parametrize("nested", [False, True])
def test_what_there_was_is_brought_back_however_threads_overlap(nested: bool) -> None:
    before, inside, first_is_out = threads(), threading.Event(), threading.Event()

    def second() -> None:
        with one_blas_thread():
            inside.set()
            first_is_out.wait(10)

    with one_blas_thread():
        assert set(threads()) <= {1}
        other = threading.Thread(target=second)
        other.start()
        inside.wait(10)
        if nested:
            first_is_out.set()
            other.join()
            assert set(threads()) <= {1}
    first_is_out.set()
    other.join()
    assert threads() == before
