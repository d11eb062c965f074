"""Threads that keep products to one thread bring back what there was, however they overlap."""

import threading

from threadpoolctl import threadpool_info

from varnn.data.blas import one_blas_thread


def threads() -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_the_last_one_out_brings_back_what_there_was() -> None:
    before, inside, first_is_out = threads(), threading.Event(), threading.Event()

    def second() -> None:
        with one_blas_thread():
            inside.set()
            first_is_out.wait(10)
            assert set(threads()) <= {1}

    with one_blas_thread():
        assert set(threads()) <= {1}
        other = threading.Thread(target=second)
        other.start()
        inside.wait(10)
    first_is_out.set()
    other.join()
    assert threads() == before
