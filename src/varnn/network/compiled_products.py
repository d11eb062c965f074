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
def two_products(values: FloatArray, first: FloatArray, second: FloatArray) -> tuple[Scalar, Scalar]:
    """Sums of products with two rows, for which values are read once."""
    one = values.dtype.type(0)
    other = one
    for place in range(len(values)):
        one += values[place] * first[place]
        other += values[place] * second[place]
    return one, other


@kernel
def layer(matrix: FloatArray, values: FloatArray, units: FloatArray) -> None:
    """Compute relu(matrix @ values), (J, I) and (I,), into units (J,); NaN stays."""
    zero, even = units.dtype.type(0), len(units) - len(units) % 2
    for unit in range(0, even, 2):
        units[unit], units[unit + 1] = two_products(values, matrix[unit], matrix[unit + 1])
    if even < len(units):
        units[even] = product_of(matrix[even], values)
    for unit in range(len(units)):
        units[unit] = zero if units[unit] < zero else units[unit]


@kernel
def upper_product(matrix: FloatArray, values: FloatArray, first: int, last: int, found: FloatArray) -> None:
    """Compute rows of matrix @ values, of a matrix that is zero below its diagonal, into those of found."""
    row = first
    while row + 2 <= last:
        found[row], found[row + 1] = two_products(values[row:], matrix[row, row:], matrix[row + 1, row:])
        row += 2
    if row < last:
        found[row] = product_of(matrix[row, row:], values[row:])


@kernel
def is_within(values: FloatArray, limit: Scalar) -> bool:
    """Tell whether no value is larger than a limit; NaN is."""
    if product_of(values, values) <= limit * limit:  # nearly always, and quicker than to look at each
        return True
    within = True
    for place in range(len(values)):
        within &= abs(values[place]) <= limit
    return within
