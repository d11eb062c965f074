"""Ways to run the same source: as plain NumPy, and compiled."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from varnn.step.kernel import SWITCH, numba_available


@contextmanager
def by_numpy() -> Iterator[None]:
    """Run plain code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        yield


@contextmanager
def by_compiled_code() -> Iterator[None]:
    """Run compiled code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(SWITCH, raising=False)
        yield


WAYS = [
    pytest.param(by_numpy, id="plain"),
    pytest.param(
        by_compiled_code,
        id="compiled",
        marks=pytest.mark.skipif(not numba_available(), reason="needs numba"),
    ),
]
