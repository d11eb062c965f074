"""Targets that cannot be negative: predictions stop at zero, until a series has been negative after all."""

from typing import Any

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import elementwise

_LOWEST = -1e300  # below every prediction


@elementwise
def find_floor(has_been_negative: DoubleArray) -> DoubleArray:
    """Return the smallest possible prediction of a series."""
    return 0.0 + _LOWEST * has_been_negative  # 0.0 added to -0.0 is 0.0


@elementwise
def note_negative(label: DoubleArray, has_been_negative: DoubleArray) -> Any:
    """Note whether a label is negative."""
    return np.maximum(has_been_negative, 1.0 * (label < 0))
