"""Weights of experts, compiled; needs numba (``varnn[fast]``).

What `varnn.model.aggregation.Aggregator` does, one series and one row at a time. Sums keep their order: the
guarantee rests on weighted sums that are nothing to the last digit. Shapes: N rows, K experts, J rates.
"""

import math
from typing import Any

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.model.aggregation import BACK, DISCOUNT, JUMP, KEPT, MOST, RATES, TRACKED, Aggregator
from varnn.network.compiled_code import in_one_layout
from varnn.network.jit import Scalar, exact_kernel

_RATES = tuple(RATES.tolist())


def follow_compiled(
    aggregator: Aggregator, experts: DoubleArray, labels: DoubleArray, starts: IntArray
) -> tuple[DoubleArray, DoubleArray]:
    """Go through the series of a panel as :meth:`Aggregator.follow` does."""
    combined, weights, state = np.empty(len(labels)), np.empty_like(experts), aggregator.state()
    scores, scale = np.ascontiguousarray(state[:, :-1]).reshape(aggregator.scores.shape), state[:, -1:].copy()
    known: Any = [in_one_layout(one) for one in (experts, labels, starts, aggregator.prior)]
    found: Any = [aggregator.least, scores, scale, combined, weights]
    aggregated_rows(*known, *found)
    aggregator.restore(np.column_stack([scores.reshape(len(scale), -1), scale]))
    return combined, weights


@exact_kernel
def weigh(scores: DoubleArray, prior: DoubleArray, weights: DoubleArray) -> None:
    """Turn scores (K, J) into weights (K,)."""
    highest = -np.inf
    for expert in range(len(weights)):
        for rate in range(len(_RATES)):
            highest = max(highest, scores[expert, rate])
    total = 0.0
    for expert in range(len(weights)):
        weight = 0.0
        for rate in range(len(_RATES)):
            weight += math.exp(DISCOUNT * (scores[expert, rate] - highest)) * _RATES[rate]
        weights[expert] = prior[expert] * weight
        total += weights[expert]
    for expert in range(len(weights)):
        weights[expert] /= total


@exact_kernel
def combine(experts: DoubleArray, weights: DoubleArray) -> Scalar:
    """Combine what experts say: (K,)."""
    total = 0.0
    for expert in range(len(weights)):
        total += weights[expert] * experts[expert]
    return total


@exact_kernel
def believe(
    error: Scalar,
    experts: DoubleArray,
    weights: DoubleArray,
    least: Scalar,
    scores: DoubleArray,
    scale: DoubleArray,
) -> None:
    """Take in the error of the combined prediction; NaN teaches nothing. ``scale`` is (1,)."""
    if error != error:
        return
    mean = 0.0  # by way of one expert: see `Aggregator.learn`
    for expert in range(len(weights)):
        mean += weights[expert] * (experts[expert] - experts[0])
    factor = 2.0 * (error / scale[0])
    largest = 0.0
    for expert in range(len(weights)):
        largest = max(largest, abs(factor * (experts[expert] - experts[0] - mean)))
    shrink = MOST / max(largest, MOST)
    for expert in range(len(weights)):
        regret = factor * (experts[expert] - experts[0] - mean) * shrink
        if not abs(regret) < np.inf:  # of errors beyond all bounds
            regret = 0.0
        for rate in range(len(_RATES)):
            step = regret * _RATES[rate]
            kept = DISCOUNT * scores[expert, rate] + step - step * step + KEPT
            high, low = max(kept, BACK), min(kept, BACK)
            scores[expert, rate] = high + math.log1p(math.exp(low - high))
    square = min(error * error, JUMP * scale[0])
    scale[0] = max(TRACKED * scale[0] + (1.0 - TRACKED) * square, least)


@exact_kernel
def aggregated_rows(
    experts: DoubleArray,
    labels: DoubleArray,
    starts: IntArray,
    prior: DoubleArray,
    least: Scalar,
    scores: DoubleArray,
    scale: DoubleArray,
    combined: DoubleArray,
    weights: DoubleArray,
) -> None:
    """Go through the rows of all series.

    Parameters
    ----------
    experts, labels, starts : arrays of shape (N, K), (N,) and (series + 1,)
        What experts say, labels with NaN where missing, and where series begin.
    prior, least : array of shape (K,), float
        Weights at the start, and the least mean square of errors.
    scores, scale : arrays of shape (series, K, J) and (series, 1)
        States, which are changed.
    combined, weights : arrays of shape (N,) and (N, K)
        What is filled in.
    """
    for series in range(len(scores)):
        for row in range(starts[series], starts[series + 1]):
            weigh(scores[series], prior, weights[row])
            combined[row] = combine(experts[row], weights[row])
            believe(
                labels[row] - combined[row], experts[row], weights[row], least, scores[series], scale[series]
            )
