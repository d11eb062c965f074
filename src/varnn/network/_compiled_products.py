"""Products of one row with a matrix, compiled; need numba (``varnn[fast]``).

Loops over columns are functions of their own: within others they are not turned into vector instructions.
"""

from varnn._types import FloatArray
from varnn.network.jit import Scalar, kernel


@kernel
def product_of(left: FloatArray, right: FloatArray) -> Scalar:
    """Sum of products: (I,) and (I,)."""
    total = left.dtype.type(0)
    for place in range(len(left)):
        total += left[place] * right[place]
    return total


@kernel
def layer(matrix: FloatArray, values: FloatArray, units: FloatArray) -> None:
    """Compute relu(matrix @ values), (J, I) and (I,), into units (J,); NaN stays."""
    zero = units.dtype.type(0)
    for unit in range(len(units)):
        found = product_of(matrix[unit], values)
        units[unit] = zero if found < zero else found


@kernel
def is_within(values: FloatArray, limit: Scalar) -> bool:
    """Tell whether no value is larger than a limit; NaN is."""
    if product_of(values, values) <= limit * limit:  # nearly always, and quicker than to look at each
        return True
    within = True
    for place in range(len(values)):
        within &= abs(values[place]) <= limit
    return within
