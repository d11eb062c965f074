"""Coefficients that go on learning, compiled; needs numba (``varnn[fast]``).

What `varnn.model.adaptation.Adapter` does, one member, one series and one row at a time. Shapes: N rows, K
hidden units, F regressors, S features with the constant, R forgetting factors.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.data.blas import one_blas_thread
from varnn.model.adaptation import LEAK, Adapter
from varnn.network import compiled_code
from varnn.network.compiled_products import product_of, upper_product
from varnn.network.jit import Scalar, kernel

_BLOCK = 256  # rows that are whitened together: their features stay in a core's own cache


def corrections_compiled(
    adapter: Adapter,
    hidden: npt.NDArray[Any],
    regressors: DoubleArray,
    outputs: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    starts: IntArray,
) -> DoubleArray:
    """Adapt through the series of a panel as `varnn.model.adaptation.corrections` does, members side by side.

    Parameters
    ----------
    adapter : Adapter
        Of as many series; it learns from the rows.
    hidden, regressors : arrays of shape (E, N, K) and (N, F)
        What the features are, beside 1.
    outputs, targets, starts
        As of `corrections`.

    Returns
    -------
    array of shape (R, N)
    """
    how, rows = adapter.adaptation, len(targets)
    steps, labels = 1 - np.array(how.forgetting), targets.astype(np.float64)
    added = np.empty((len(how.gain), rows, len(steps)))
    own, size = how.own, how.gain.shape[1]
    common = np.column_stack([regressors, np.ones(rows)])[:, : size - own] @ how.factor[0, own:, own:]

    def one(member: int) -> None:
        white, phi = np.empty((rows, size)), np.empty((_BLOCK, size))
        white[:, own:] = common
        for begin in range(0, rows, _BLOCK):
            some = slice(begin, begin + _BLOCK)
            here = phi[: len(white[some])]
            here[:, : hidden.shape[2]], here[:, hidden.shape[2] : -1] = hidden[member, some], regressors[some]
            here[:, -1] = 1
            white[some, :own] = here @ how.factor[member, :, :own]
        change = np.ascontiguousarray(adapter.change[:, member].swapaxes(0, 1))
        known = (outputs[member].astype(np.float64), labels, starts)
        adapted_rows(white, *known, steps, how.bound, change, added[member])
        adapter.change[:, member] = change.swapaxes(0, 1)

    with one_blas_thread():  # of each member's products
        compiled_code.on_all_cores(one, range(len(added)))
    return np.ascontiguousarray(added.mean(axis=0).T)


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
    white: DoubleArray,
    outputs: FloatArray,
    targets: FloatArray,
    starts: IntArray,
    steps: DoubleArray,
    bound: Scalar,
    change: DoubleArray,
    corrections: DoubleArray,
) -> None:
    """Go through the rows of all series for one member.

    Parameters
    ----------
    white, outputs, targets : arrays of shape (N, S), (N,) and (N,)
        Whitened features, what is corrected, and labels with NaN where missing.
    starts : array of shape (series + 1,)
        Where series begin.
    steps, bound : array of shape (R,), float
        One less the forgetting factors, and the largest error.
    change, corrections : arrays of shape (series, R, S) and (N, R)
        Coefficients, which are changed, and what is filled in.
    """
    for series in range(len(change)):
        for row in range(starts[series], starts[series + 1]):
            now, added = white[row], corrections[row]
            correct(now, change[series], added)
            learn(targets[row] - outputs[row], now, added, steps, bound, change[series])
