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
from varnn.step.kernel import kernel
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import copy_rows, fade_and_add, fill_missing, row_products, spread

LEAK = 0.9998  # what was learned from a row fades over five thousand
BOUND = 5.0  # errors beyond so many standard deviations count as so many
MAX_DEVIATIONS = 10.0  # of a regressor from its mean: what is farther counts as so far


@kernel
def correct(model: StepModel, state: StepState) -> None:
    """Compute what adapted coefficients add to the outputs of members and to the linear part."""
    n_series, width = state.regressors.shape
    standard = state.standard
    np.subtract(state.regressors, model.center, standard)
    np.divide(standard, model.deviation, standard)
    np.maximum(standard, -MAX_DEVIATIONS, standard)
    np.minimum(standard, MAX_DEVIATIONS, standard)
    if model.has_linear:
        copy_rows(standard, state.linear_features[:, :width])
        np.dot(state.linear_features, model.linear_whitening, state.linear_white[0])
        row_products(state.linear_change, state.linear_white, state.linear_correction)
    own = state.own_white.shape[2]
    spread(state.hidden[:, :n_series], state.features[:, :, :own])
    if model.unit != 0:
        np.multiply(standard, model.unit, state.common[0, :, :width])
        spread(state.common, state.features[:, :, own:])
    np.dot(state.common[0], model.common_whitening, state.common_white[0])
    for member in range(len(model.own_whitening)):
        np.dot(state.features[member], model.own_whitening[member], state.own_white[member])
    spread(state.own_white, state.white[:, :, :own])
    spread(state.common_white, state.white[:, :, own:])
    row_products(state.readout_change, state.white, state.corrections)


@kernel
def learn(model: StepModel, state: StepState) -> None:
    """Update the coefficients with the network's targets, in scaled units; a missing one teaches nothing."""
    n_series = len(state.target)
    fading, wanted = np.empty(n_series), np.empty((1, 1, n_series))
    np.multiply(state.target == state.target, LEAK - 1.0, fading)
    np.add(fading, 1.0, fading)  # LEAK where the target is known, 1 where it is missing
    left = np.empty((len(model.readout), 1, n_series))
    np.subtract(state.target, state.outputs[:, :n_series], left[:, 0])
    _follow(
        left,
        state.white,
        state.corrections,
        model.readout_steps,
        model.readout_bound,
        fading,
        state.readout_change,
    )
    if model.has_linear:
        np.add(
            state.target, model.target_offset / model.target_scale, wanted[0, 0]
        )  # the network adds nothing
        _follow(
            wanted,
            state.linear_white,
            state.linear_correction,
            model.linear_steps,
            model.linear_bound,
            fading,
            state.linear_change,
        )


@kernel
def _follow(
    left: DoubleArray,
    white: DoubleArray,
    corrections: DoubleArray,
    steps: DoubleArray,
    bound: float,
    fading: DoubleArray,
    change: DoubleArray,
) -> None:
    """Update coefficients (E, R, n, S), given what outputs left of their targets: (E, 1, n)."""
    members, rates, n_series, width = change.shape
    sizes, factors = np.empty((members, 1, n_series)), np.empty((members, rates, n_series))
    row_products(white.reshape(members, 1, n_series, width), white, sizes)
    np.subtract(left, corrections, factors)
    np.maximum(factors, -bound, factors)
    np.minimum(factors, bound, factors)
    np.divide(factors, sizes + steps, factors)  # s e / (1 + s z' z)
    flat = factors.ravel()
    fill_missing(flat, 0.0, flat)
    fade_and_add(change, fading, factors, white)
