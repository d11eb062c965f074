"""Weights at which gradients can be compared: no relu is so near to its kink that rounding decides.

A gradient jumps where the argument of a relu is zero. With tens of thousands of arguments in a batch one of
them is often within rounding of it, and two right programs then differ by what that unit brings.
"""

from dataclasses import replace

import numpy as np

from varnn._types import DoubleArray
from varnn.network.cell import Architecture
from varnn.network.engines.cuda.job import SingleArray, TrainingJob
from varnn.network.engines.engine import unpack

AWAY = 5e-6  # as a share of the terms of the argument: ten times what products of split numbers are wrong by
_MOST_DRAWS = 100


def away_from_kinks(job: TrainingJob) -> TrainingJob:
    """The same job with other weights, drawn until all relus are away from their kinks."""
    drawn = (replace(job, weights=_drawn(job.architecture, seed)) for seed in range(_MOST_DRAWS))
    best, farthest = job, -1.0
    for one in drawn:
        if (distance := nearest_kink(one)) > farthest:
            best, farthest = one, distance
        if farthest >= AWAY:
            break
    return best


def _drawn(cell: Architecture, seed: int) -> SingleArray:
    generator = np.random.default_rng(seed)
    shapes = cell.shapes.values()
    return np.concatenate(
        [(generator.normal(size=one) / np.sqrt(one[0] + 1)).astype(np.float32).ravel() for one in shapes]
    )


def nearest_kink(job: TrainingJob) -> float:
    """Smallest argument of a relu in the windows of a job, as a share of its terms; in double precision."""
    cell, window = job.architecture, job.config.window
    weights = unpack(cell, job.weights.astype(np.float64))
    inputs, target, ends = job.training
    bias_and_all = np.vstack([weights.fusion, weights.fusion_bias])
    h = np.zeros((len(ends), cell.memory_size))
    u = np.zeros((len(ends), cell.hidden_size))
    nearest = np.inf
    for back in range(window - 1, -1, -1):
        rows = ends - back
        parts = [inputs[rows].astype(np.float64), h, *([u] if cell.activation_memory else [])]
        terms = np.hstack([*parts, np.ones((len(ends), 1))])
        z = terms @ bias_and_all
        nearest = min(nearest, _share(z, np.abs(terms) @ np.abs(bias_and_all)))
        if back == 0:
            break
        u = np.maximum(z, 0)
        e = target[rows][:, None] - (u @ weights.readout + weights.readout_bias)
        missing = np.isnan(e)
        terms = np.hstack([np.where(missing, 0, e), np.ones_like(e), *([h] if cell.accumulate else [])])
        recurrent = np.vstack(
            [weights.error, weights.error_bias, *([weights.carry] if cell.accumulate else [])]
        )
        a = terms @ recurrent
        known = ~missing[:, 0]
        if cell.memory_activation == "relu" and known.any():
            nearest = min(nearest, _share(a[known], np.abs(terms[known]) @ np.abs(recurrent)))
        after = np.maximum(a, 0) if cell.memory_activation == "relu" else np.tanh(a)
        h = np.where(missing, h, after)
    return nearest


def _share(arguments: DoubleArray, of: DoubleArray) -> float:
    return float((np.abs(arguments) / of).min())
