"""Constant-gain recursive least squares with leakage: coefficients that keep learning as labels arrive.

A prediction that is linear in some features, phi = [features 1], can follow the labels. Recursive least
squares with a forgetting factor l [1]_ would do so with the gain P phi, where the covariance P settles, as
rows keep coming, around (1 - l) G^-1, G being the mean of phi phi'. Two things make it blow up: P is itself
updated, and grows without bound in directions that no recent row excites; and the coefficients have no reason
ever to come back. Here P is what it would settle at on the training rows, and stays there; and what was
learned fades slowly. With theta = trained coefficients + d ::

    c = d' phi                          correction of the output
    e = r - output - c                  error, bounded: one outlier must not throw the coefficients
    d <- leak d + s e / (1 + s q' phi) q     with q = G^-1 phi and s = 1 - l

so that no recursion can lose its symmetry, no direction can wind up, and a step never overshoots its label.
That is LMS-Newton [3]_. It is done in the coordinates in which G is the identity: with G^-1 = L L', L lower
triangular, features are whitened to z = L' phi, and d = L c ::

    c' z = d' phi        z' z = q' phi        c <- leak c + s e / (1 + s z' z) z

which is normalized LMS with leakage [2]_ of z. Whitening is most of the work, and is shared by several
forgetting factors. Features that members have in common come last: as L is lower triangular, what they are
whitened to depends on no others, and is computed once.

References
----------
.. [1] L. Ljung and T. Soderstrom, "Theory and Practice of Recursive Identification", MIT Press, 1983.
.. [2] S. Haykin, "Adaptive Filter Theory", 4th edition, Prentice Hall, 2002.
.. [3] B. Widrow and S. D. Stearns, "Adaptive Signal Processing", Prentice Hall, 1985.
"""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import elementwise, part
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import copy_stack, fade_and_add, row_products, standardize, whiten

LEAK = 0.9998  # what was learned from a row fades over five thousand
BOUND = 5.0  # standard deviations, at which errors are clipped
MAX_DEVIATIONS = 10.0  # of a regressor from its mean: what is farther counts as so far


@part
def correct(model: StepModel, state: StepState) -> None:
    """Compute what adapted coefficients add to the outputs of members and to the linear part."""
    n_series, members, hidden = state.standard.shape[1], len(model.readout), state.own_white.shape[2]
    width = len(model.center)
    if width > 0:
        standardize(
            state.regressors, model.center, model.deviation, MAX_DEVIATIONS, state.standard[0, :, :width]
        )
    copy_stack(state.hidden[:, :n_series], state.features[:, :, :hidden])
    copy_stack(state.standard, state.features[:, :, hidden:])
    whiten(state.features, model.own_whitening, state.own_white)
    whiten(state.standard, model.common_whitening, state.common_white)
    copy_stack(state.own_white, state.white[:members, :, :hidden])
    copy_stack(state.common_white[:1], state.white[:members, :, hidden:])
    copy_stack(state.common_white[1:], state.white[members:, :, hidden:])
    row_products(state.changes, state.white, state.corrections)


@elementwise
def _factor(
    target: DoubleArray,
    output: DoubleArray,
    correction: DoubleArray,
    size: DoubleArray,
    step: DoubleArray,
    bound: DoubleArray,
) -> DoubleArray:
    """Return s e / (1 + s z' z), given 1 / s."""
    return np.minimum(np.maximum(target - output - correction, -bound), bound) / (step + size)


@part
def learn(model: StepModel, state: StepState) -> None:
    """Update the coefficients with the network's targets, in scaled units; a missing one teaches nothing."""
    steps, bounds = model.adaptation_steps, model.adaptation_bounds
    row_products(state.white_rows, state.white, state.white_sizes)
    _factor(
        state.target_clean,
        state.outputs_of_sets,
        state.corrections,
        state.white_sizes,
        steps,
        bounds,
        state.factors,
    )
    fade_and_add(state.changes, state.target_known, LEAK, state.factors, state.white)
