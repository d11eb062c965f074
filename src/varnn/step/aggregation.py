"""Online aggregation of experts: a convex combination whose weights follow recent errors, with a guarantee.

Bernstein online aggregation [1]_ with a discount and a fixed share [3]_, over a grid of learning rates [2]_.
With experts x_1 .. x_K of row t, weights w and p = sum of w_k x_k ::

    r_k = a_t 2 (p - y) (p - x_k)                what p lost to expert k, at least: the loss is convex
    u_kj <- ln[(1 - b) exp(c u_kj + h_j r_k - (h_j r_k)^2) + b]       for each rate h_j
    w_k  in proportion to  pi_k sum over j of h_j exp(c u_kj)

where pi are the initial weights, c the discount, b the share that all get back with every row, and a_t makes
errors comparable: one over their recent mean square, and less if a row would otherwise move any r_k beyond
1 / (2 h_1), h_1 being the largest rate. So no row can, however large its error.

The guarantee holds for every sequence, adversarial ones included, on every stretch of rows s < t <= T, for
every expert and rate ::

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
from varnn.step.kernel import elementwise, part
from varnn.step.layout import LEARNING_RATES, StepModel, StepState
from varnn.step.operations import copy_marked_rows, inner_products, mark_known, products, shrink_rows

DISCOUNT = 0.998  # a row counts for a third after five hundred rows
SHARED = 1e-4  # b: an expert that was wrong for long can regain weight within a hundred rows
MAX_REGRET = float(0.5 / LEARNING_RATES[0])  # size of r_k in a row
TRACKING = 0.998  # memory of the mean square of errors
MAX_JUMP = 25.0  # times that mean square: a larger square counts as so much
MIN_MEAN_SQUARE = 1e-12  # of the initial mean square; avoids division by zero
_KEPT, _BACK = float(np.log1p(-SHARED)), float(np.log(SHARED))  # logarithms of 1 - b and b


@elementwise
def _regret(
    distance: DoubleArray, mean: DoubleArray, error: DoubleArray, mean_square: DoubleArray
) -> DoubleArray:
    """Return r_k, given how far an expert, and the mean of all, are from the first one."""
    return (distance - mean) * (error / (0.5 * mean_square))


@elementwise
def _score(score: DoubleArray, regret: DoubleArray, rate: DoubleArray) -> DoubleArray:
    """Return u_kj after a row."""
    step = rate * regret
    return np.logaddexp(DISCOUNT * score + step - step * step + _KEPT, _BACK)


@elementwise
def _power(score: DoubleArray) -> DoubleArray:
    """Return exp(c u_kj)."""
    return np.exp(DISCOUNT * score)


@elementwise
def _weight(sum_of_powers: DoubleArray, prior: DoubleArray, total: DoubleArray) -> DoubleArray:
    """Return w_k; ``total`` is the sum over all experts."""
    return sum_of_powers * prior / total


@elementwise
def _mean_square(mean: DoubleArray, error: DoubleArray, known: DoubleArray, smallest: float) -> DoubleArray:
    """Return the mean square of errors after a row."""
    square = np.minimum(error * error, MAX_JUMP * mean)
    return np.maximum(mean + (1.0 - TRACKING) * known * (square - mean), smallest)


@part
def combine(state: StepState) -> None:
    """Combine the predictions of experts: (n, X) -> (n,)."""
    inner_products(state.expert_predictions, state.weights, state.combined)


@part
def update_weights(model: StepModel, state: StepState) -> None:
    """Update scores with the errors of the row, and the weights of the next one.

    A missing label changes nothing.
    """
    np.subtract(state.residual, state.combined, state.errors)
    mark_known(state.errors, state.known, state.clean)
    # Distances from p go by way of one expert: those that predict the same then are equally far, and the
    # weighted sum is zero to the last digit, which the guarantee rests on.
    experts, regrets = state.expert_predictions, state.regrets
    np.subtract(experts, experts[:, :1], regrets)
    inner_products(state.weights, regrets, state.sums)
    _regret(regrets, state.sum_column, state.clean_column, state.mean_square_column, regrets)
    shrink_rows(regrets, MAX_REGRET)
    _score(state.scores_of_experts, state.regret_column, LEARNING_RATES, state.updated_of_experts)
    copy_marked_rows(state.known, state.updated_scores, state.score_rows)
    _mean_square(
        state.mean_square, state.clean, state.known, MIN_MEAN_SQUARE * model.mean_square, state.mean_square
    )
    _power(state.scores_of_experts, state.powers)
    products(state.powers, LEARNING_RATES, state.weight_column)
    products(state.weights, model.prior, state.sums)
    _weight(state.weights, model.prior, state.sum_column, state.weights)
