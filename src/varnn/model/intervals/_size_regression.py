"""Gamma regression of the size of errors, by Fisher scoring with a ridge.

References
----------
.. [1] P. McCullagh and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman and Hall, 1989.
"""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.intervals import MAX_EXPONENT, MAX_RATIO
from varnn.step.layout import SMALLEST_SIZE

_RIDGE = 0.1  # on regressors of unit variance
_STEPS = 20  # of Fisher scoring, which is at rest after about ten


def fit_sizes(regressors: DoubleArray, errors: DoubleArray, *, none_below_zero: bool = False) -> DoubleArray:
    """Regress |errors| on exp(w' [regressors, 1]) by gamma regression: (N, R), (N,) -> (R + 1,).

    Sizes are taken as gamma distributed: for these, Fisher scoring solves the same small system at each
    step. Regressing their logarithms would be one step, but mind the smallest errors most. Regressors whose
    weight would be below zero are left out one after another, where none may be.
    """
    weights = _fit_gamma(regressors, errors)
    kept = np.ones(len(weights), np.bool_)
    while none_below_zero and (weights[:-1] < 0).any():
        kept[np.argmin(weights[:-1])] = False
        weights = np.zeros(len(weights))
        weights[kept] = _fit_gamma(regressors[:, kept[:-1]], errors)
    return weights


def _fit_gamma(regressors: DoubleArray, errors: DoubleArray) -> DoubleArray:
    known = ~np.isnan(errors)
    sizes, standard = np.abs(errors[known]) + SMALLEST_SIZE, regressors[known]
    centre, deviation = standard.mean(axis=0), standard.std(axis=0)
    deviation[deviation <= 1e-6 * deviation.max(initial=0)] = np.inf  # a unit that is never on gets no weight
    standard -= centre
    standard /= deviation
    moments = standard.T @ standard / len(sizes) + _RIDGE * np.eye(len(centre))
    weights, constant = np.zeros(len(centre)), np.log(sizes.mean())
    for _ in range(_STEPS):
        exponent = np.clip(standard @ weights + constant, -MAX_EXPONENT, MAX_EXPONENT)
        excess = np.minimum(sizes / np.exp(exponent), MAX_RATIO) - 1
        weights += np.linalg.solve(moments, standard.T @ excess / len(sizes) - _RIDGE * weights)
        constant += np.log1p(excess.mean())
    weights /= deviation
    return np.append(weights, constant - centre @ weights)
