"""Online aggregation of experts: a convex combination whose weights follow recent errors, with a guarantee.

Bernstein online aggregation [1]_ with a discount and a fixed share [3]_, over a grid of learning rates [2]_.
With experts x_1 .. x_K of row t, weights w and p = sum of w_k x_k ::

    r_k = a_t 2 (p - y) (p - x_k)                what p lost to expert k, at least: the loss is convex
    u_kj <- ln[(1 - b) exp(c u_kj + h_j r_k - (h_j r_k)^2) + b]       for each rate h_j
    w_k  in proportion to  pi_k sum over j of h_j exp(c u_kj)

where pi are the initial weights, c the discount, b the share that all get back with every row, and a_t makes
errors comparable: one over their recent mean square, and less if a row would otherwise move any r_k beyond
1 / (2 h_1), h_1 being the largest rate. So no row can, however large its error.

The guarantee holds for every sequence, whoever chose it, on every stretch of rows s < t <= T, for every
expert and rate ::

    sum of c^(T-t) a_t [(p_t - y_t)^2 - (x_k,t - y_t)^2]
        <=  [ln(J / pi_k) + c^(T-s) ln(1 / b) + ln(1 / (1 - b)) sum of c^(T-t)] / h_j
            + h_j sum of c^(T-t) r_k,t^2

and from the first row on, s = 0, without its second term. However wrong an expert was before the stretch, it
costs no more than ln(1 / b) to give it weight again.

Proof: let W be the sum over k and j of pi_k / J exp(u_kj), which is 1 at the start. As x - x^2 <= ln(1 + x)
for x >= -1/2, exp(c u_kj + h_j r_k - (h_j r_k)^2) is at most exp(c u_kj) (1 + h_j r_k); the sum over k of
w_k r_k is zero, so that the sum of these is at most that of pi_k / J exp(c u_kj), which by Jensen is at most
W^c before the row. So W is at most (1 - b) W^c + b after it: W stays at most 1, and each u_kj at most
ln(J / pi_k), so that no power overflows. It is at least ln(b) after any row, 0 at the start, and at least
ln(1 - b) + c u_kj + h_j r_k - (h_j r_k)^2 after a row; these added up from s to T, with the upper bound at T,
give the sum of r_k. The rest is convexity.

References
----------
.. [1] O. Wintenberger, "Optimal learning with Bernstein online aggregation", Machine Learning 106, 2017.
.. [2] W. M. Koolen and T. van Erven, "Second-order quantile methods for experts and combinatorial games",
   COLT, 2015.
.. [3] M. Herbster and M. K. Warmuth, "Tracking the best expert", Machine Learning 32, 1998.
"""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import exact_kernel
from varnn.step.layout import LEARNING_RATES
from varnn.step.operations import copy_rows, fill_missing

DISCOUNT = 0.998  # a row counts for a third after five hundred rows
SHARED = 1e-4  # b: an expert that was wrong for long can regain weight within a hundred rows
MAX_REGRET = float(0.5 / LEARNING_RATES[0])  # size of r_k in a row
TRACKING = 0.998  # memory of the mean square of errors
MAX_JUMP = 25.0  # times that mean square: a larger square counts as so much
MIN_MEAN_SQUARE = 1e-12  # of the initial mean square; avoids division by zero
_KEPT, _BACK = float(np.log1p(-SHARED)), float(np.log(SHARED))  # logarithms of 1 - b and b


@exact_kernel
def weigh(scores: DoubleArray, prior: DoubleArray, powers: DoubleArray, weights: DoubleArray) -> None:
    """Turn scores (n, X, J) into weights (n, X); ``powers`` is scratch like the scores."""
    np.multiply(scores, DISCOUNT, powers)
    np.exp(powers, powers)
    n_series, n_experts = weights.shape
    np.dot(powers.reshape(n_series * n_experts, len(LEARNING_RATES)), LEARNING_RATES, weights.ravel())
    np.multiply(weights, prior, weights)
    np.divide(weights, np.dot(weights, np.ones(n_experts)).reshape(n_series, 1), weights)


@exact_kernel
def combine(experts: DoubleArray, weights: DoubleArray, combined: DoubleArray) -> None:
    """Combine the predictions of experts: (n, X) -> (n,)."""
    np.dot(experts * weights, np.ones(experts.shape[1]), combined)


@exact_kernel
def update_scores(
    errors: DoubleArray,
    experts: DoubleArray,
    weights: DoubleArray,
    initial: float,
    scores: DoubleArray,
    mean_square: DoubleArray,
) -> None:
    """Update scores (n, X, J) and mean squares (n,) with errors (n,) of the combination; NaN changes nothing.

    ``initial`` is the mean square at the start.
    """
    known = errors == errors
    if not np.any(known):
        return
    n_series, n_experts = experts.shape
    clean, squares, steps, updated = (
        np.empty(n_series),
        np.empty(n_series),
        np.empty(scores.shape),
        np.empty(scores.shape),
    )
    fill_missing(errors, 0.0, clean)
    # Distances from p go by way of one expert: those that predict the same then are equally far, and the
    # weighted sum is zero to the last digit, which the guarantee rests on.
    regrets = experts - experts[:, :1]
    np.subtract(regrets, np.dot(weights * regrets, np.ones(n_experts)).reshape(n_series, 1), regrets)
    np.multiply(regrets, (clean / (0.5 * mean_square)).reshape(n_series, 1), regrets)
    flat = regrets.ravel()
    if not np.dot(flat, flat) <= MAX_REGRET * MAX_REGRET:  # nearly always no regret is too large
        _limit_regrets(regrets)
    np.multiply(regrets.reshape(n_series, n_experts, 1), LEARNING_RATES, steps)
    np.multiply(scores, DISCOUNT, updated)
    np.add(updated, steps, updated)
    np.multiply(steps, steps, steps)
    np.subtract(updated, steps, updated)
    np.add(updated, _KEPT, updated)
    np.logaddexp(updated, _BACK, updated)
    np.multiply(clean, clean, squares)
    np.minimum(squares, MAX_JUMP * mean_square, squares)
    np.multiply(squares, 1.0 - TRACKING, squares)
    np.add(squares, TRACKING * mean_square, squares)
    np.maximum(squares, MIN_MEAN_SQUARE * initial, squares)
    for series in range(n_series):
        if known[series]:
            copy_rows(updated[series], scores[series])
            mean_square[series] = squares[series]


@exact_kernel
def _limit_regrets(regrets: DoubleArray) -> None:
    """Make the regrets (n, X) of a row smaller where one is beyond `MAX_REGRET`."""
    for series in range(regrets.shape[0]):
        largest = MAX_REGRET
        for expert in range(regrets.shape[1]):
            largest = max(largest, abs(regrets[series, expert]))
        for expert in range(regrets.shape[1]):
            regret = regrets[series, expert] * (MAX_REGRET / largest)
            regrets[series, expert] = regret if abs(regret) < np.inf else 0.0  # of errors beyond all bounds
