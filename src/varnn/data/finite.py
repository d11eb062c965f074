"""Arrays of numbers, or not: what can be read as such, and what is too large to be squared."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.odd_input import unmasked
from varnn.errors import DataError, RowError

LARGEST = 1e100  # size of a number: squares of it, and of what is made of it, must be finite


def floats(values: npt.ArrayLike | None, what: str) -> FloatArray:
    """Copy nothing that is a float already; refuse what is not a number."""
    try:
        array = np.asarray(unmasked(values))
        if array.dtype.kind in "cmM":
            raise DataError(f"{what} must hold numbers only; they hold {array.dtype}.")
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{what} must hold numbers only: {error}.") from None
    return array


def refuse_unusable(values: FloatArray, names: Sequence[str]) -> None:
    """Refuse infinities, and numbers so large that their squares would be infinite."""
    # fmax and fmin pass over NaN and need no temporary array, which a large table would feel.
    low, high = (one.reduce(values, axis=0).astype(np.float64) for one in (np.fmin, np.fmax))
    bad = (low < -LARGEST) | (high > LARGEST)
    if bad.any():
        column = int(np.argmax(bad))
        row = int(np.argmax(np.abs(values[:, column]) > LARGEST))
        value = values[row, column]
        what = "infinity" if np.isinf(value) else f"{value:g}"
        raise RowError(
            f"numbers must be finite or missing (NaN), and below {LARGEST:g} in size; column "
            f"{names[column]!r} holds {what} in {{where}}. Correct it, or mark it missing.",
            row=row,
        )
