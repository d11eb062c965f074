"""Names of inputs: those that are made up, and those that are given."""

from collections.abc import Sequence

from varnn.data.rules import names as unique_names
from varnn.errors import DataError


def default_names(count: int) -> tuple[str, ...]:
    """Name inputs that came without names: x0, x1, ..."""
    return tuple(f"x{index}" for index in range(count))


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Refuse names of inputs that are no texts, or not all different."""
    if wrong := unique_names.broken("input_names", names):
        raise DataError(wrong)
    return tuple(str(one) for one in names)
