"""Ways to have the same done by NumPy and by compiled code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from varnn.network import compiled_code


@contextmanager
def by_numpy() -> Iterator[None]:
    """Do without compiled code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(compiled_code.SWITCH, "0")
        yield


@contextmanager
def by_compiled_code() -> Iterator[None]:
    """Take compiled code for any number of rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(compiled_code.SWITCH, raising=False)
        patch.setattr(compiled_code, "ROWS_WORTH_IT", 1)
        yield


def n_forms(function: Any) -> int:
    """Count how often a function was compiled: each is a pause of seconds."""
    return len(function.signatures)
