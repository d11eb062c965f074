"""Intervals of other methods around the same predictions: constant width, and MAPIE's adaptive one.

Both learn from the errors of past rows of a series, and both give bounds for its later rows, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from varnn._types import DoubleArray
from varnn.evaluation.metrics import interval_score

# MAPIE's step size has no default; these span what its documentation and the method's authors use.
GAMMAS = (0.005, 0.02, 0.05)


class Predicted(NamedTuple):
    """Rows of one series with known labels."""

    predictions: DoubleArray
    labels: DoubleArray


class Bounds(NamedTuple):
    """Lower and upper bounds of rows at some levels: (N, L) each."""

    lower: DoubleArray
    upper: DoubleArray


def constant(past: Predicted, now: Predicted, levels: Sequence[float]) -> Bounds:
    """Split conformal intervals: as wide as the past errors' quantile, everywhere.

    Examples
    --------
    >>> past = Predicted(np.zeros(9), np.arange(-4.0, 5.0))
    >>> constant(past, Predicted(np.ones(1), np.ones(1)), [0.5]).upper.tolist()
    [[3.0]]
    """
    sizes = np.sort(np.abs(past.labels - past.predictions))
    count = len(sizes)
    places = [min(count, math.ceil((count + 1) * level)) - 1 for level in levels]
    centre = now.predictions[:, None]
    return Bounds(centre - sizes[places], centre + sizes[places])


class _Given(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A model whose predictions were made elsewhere: its input is its output."""

    fitted_ = True  # what MAPIE looks for

    def fit(self, inputs: Any, labels: Any) -> _Given:
        return self

    def predict(self, inputs: Any) -> Any:
        return np.asarray(inputs)[:, 0]


def adaptive(past: Predicted, now: Predicted, levels: Sequence[float], gamma: float) -> Bounds:
    """MAPIE's adaptive conformal intervals, told each label before it bounds the next.

    Where it asks for an infinite interval, as it may after misses, the largest past error stands in: an
    infinite score would say nothing.

    Parameters
    ----------
    past, now
        Rows to calibrate on, and rows to bound.
    levels
        Of the intervals.
    gamma
        Its step size.
    """
    from mapie.regression import TimeSeriesRegressor

    peer = TimeSeriesRegressor(_Given(), method="aci", cv="prefit")
    peer.fit(past.predictions[:, None], past.labels)
    bounds = np.empty((len(now.labels), 2, len(levels)))
    for row, label in enumerate(now.labels):
        inputs = now.predictions[row : row + 1, None]
        _, found = peer.predict(inputs, confidence_level=levels, allow_infinite_bounds=True)
        bounds[row] = found[0]
        peer.adapt_conformal_inference(inputs, [label], gamma=gamma, confidence_level=levels)
    errors = past.labels - past.predictions
    centre = now.predictions[:, None]
    return Bounds(
        np.maximum(bounds[:, 0], centre + errors.min()), np.minimum(bounds[:, 1], centre + errors.max())
    )


def best_gamma(past: Predicted, level: float = 0.9) -> float:
    """Choose MAPIE's step size: calibrate on the first half of past rows, score on the second."""
    half = len(past.labels) // 2
    first = Predicted(past.predictions[:half], past.labels[:half])
    second = Predicted(past.predictions[half:], past.labels[half:])

    def score(gamma: float) -> float:
        lower, upper = adaptive(first, second, [level], gamma)
        return interval_score(second.labels, lower[:, 0], upper[:, 0], level)

    return min(GAMMAS, key=score)
