"""Targets that cannot be negative: predictions stop at zero, until a series has been negative after all."""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import kernel


@kernel
def floor_at_zero(values: DoubleArray, has_been_negative: DoubleArray) -> None:
    """Raise negative values (n,) to zero, unless the series has been negative."""
    np.maximum(values, np.minimum(values, 0.0) * has_been_negative, values)


@kernel
def note_negative(labels: DoubleArray, has_been_negative: DoubleArray) -> None:
    """Note which series have a negative label: (n,)."""
    np.maximum(has_been_negative, labels < 0, has_been_negative)
