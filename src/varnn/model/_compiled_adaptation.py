"""Coefficients that go on learning, compiled; needs numba (``varnn[fast]``).

What `varnn.model.adaptation.Adapter` does, one member, one series and one row at a time. Shapes: N rows, K
hidden units, F regressors, S features with the constant, R forgetting factors.
"""

import numpy as np

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.model.adaptation import LEAK
from varnn.network._compiled_products import product_of, upper_product
from varnn.network.jit import Scalar, kernel

_ROWS_AT_ONCE = 32


@kernel
def whiten(
    hidden: FloatArray,
    regressors: DoubleArray,
    whitening: DoubleArray,
    own: int,
    phi: DoubleArray,
    common: DoubleArray,
    white: DoubleArray,
) -> None:
    """Bring [hidden regressors 1] to coordinates of unit second moments: (K,) and (F,) -> (S,).

    ``whitening`` is L', upper triangular, and ``phi`` scratch. From ``own`` on, the outcome is that of
    another member, ``common``.
    """
    width = len(hidden)
    phi[:width] = hidden
    phi[width:-1] = regressors
    phi[-1] = 1.0
    upper_product(whitening, phi, 0, own, white)
    white[own:] = common[own:]


@kernel
def whiten_rows(phi: DoubleArray, whitening: DoubleArray, own: int, white: DoubleArray) -> None:
    """Do so for several rows of features (B, S), four of which share what is read of L'; up to ``own``."""
    first, last = 0, len(phi)
    while first + 4 <= last:
        a, b, c, d = phi[first], phi[first + 1], phi[first + 2], phi[first + 3]
        for place in range(own):
            row = whitening[place, place:]
            found = _four_products(row, a[place:], b[place:], c[place:], d[place:])
            for offset in range(4):
                white[first + offset, place] = found[offset]
        first += 4
    while first < last:
        upper_product(whitening, phi[first], 0, own, white[first])
        first += 1


@kernel
def _four_products(
    row: DoubleArray, a: DoubleArray, b: DoubleArray, c: DoubleArray, d: DoubleArray
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    total_a, total_b, total_c, total_d = 0.0, 0.0, 0.0, 0.0
    for place in range(len(row)):
        total_a += row[place] * a[place]
        total_b += row[place] * b[place]
        total_c += row[place] * c[place]
        total_d += row[place] * d[place]
    return total_a, total_b, total_c, total_d


@kernel
def correct(white: DoubleArray, change: DoubleArray, corrections: DoubleArray) -> None:
    """Compute what each of R sets of coefficients adds to an output."""
    for rate in range(len(change)):
        corrections[rate] = product_of(change[rate], white)


@kernel
def learn(
    left: Scalar,
    white: DoubleArray,
    corrections: DoubleArray,
    steps: DoubleArray,
    bound: Scalar,
    change: DoubleArray,
) -> None:
    """Learn from what an output left of its target; NaN teaches nothing."""
    if left != left:
        return
    size = product_of(white, white)
    for rate in range(len(change)):
        error = min(max(left - corrections[rate], -bound), bound)
        _fade_and_add(change[rate], steps[rate] * error / (1.0 + steps[rate] * size), white)


@kernel
def _fade_and_add(change: DoubleArray, factor: Scalar, white: DoubleArray) -> None:
    for place in range(len(change)):
        change[place] = LEAK * change[place] + factor * white[place]


@kernel
def adapted_rows(
    hidden: FloatArray,
    regressors: DoubleArray,
    common: DoubleArray,
    outputs: FloatArray,
    targets: FloatArray,
    starts: IntArray,
    whitening: DoubleArray,
    steps: DoubleArray,
    bound: Scalar,
    change: DoubleArray,
    corrections: DoubleArray,
) -> None:
    """Go through the rows of all series for one member.

    Parameters
    ----------
    hidden, regressors, common : arrays of shape (N, K), (N, F) and (N, C)
        What the features are made of, and what the last of them are whitened to, in all members.
    outputs, targets : arrays of shape (N,)
        What is corrected, and labels with NaN where missing.
    starts : array of shape (series + 1,)
        Where series begin.
    whitening, steps, bound : arrays of shape (S, S) and (R,), float
        L', one less the forgetting factors, and the largest error.
    change, corrections : arrays of shape (series, R, S) and (N, R)
        Coefficients, which are changed, and what is filled in.
    """
    size, width, own = len(whitening), hidden.shape[1], len(whitening) - common.shape[1]
    phi, white = np.ones((_ROWS_AT_ONCE, size)), np.empty((_ROWS_AT_ONCE, size))
    for series in range(len(change)):
        for begin in range(starts[series], starts[series + 1], _ROWS_AT_ONCE):
            end = min(begin + _ROWS_AT_ONCE, starts[series + 1])
            phi[: end - begin, :width] = hidden[begin:end]
            phi[: end - begin, width:-1] = regressors[begin:end]
            whiten_rows(phi[: end - begin], whitening, own, white)
            white[: end - begin, own:] = common[begin:end]
            for row in range(begin, end):
                now = white[row - begin]
                correct(now, change[series], corrections[row])
                learn(targets[row] - outputs[row], now, corrections[row], steps, bound, change[series])
