"""Algorithm 2 of the paper in plain float64 NumPy, one window at a time: the oracle of everything fast.

Written from the paper's text alone, with the fused vector z spelt out; nothing is shared with src/.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from varnn._types import FloatArray


def predict_window(
    weights: Mapping[str, FloatArray],
    inputs: FloatArray,
    target: FloatArray,
    *,
    variant: str,
    residual: str = "projected",
    activation: str = "relu",
    memory_size: int,
) -> float:
    """Predict the last row of one window; the label of the last row is not looked at."""
    hidden_size = weights["readout"].shape[0]
    h, u = np.zeros(memory_size), np.zeros(hidden_size)
    y_hat = np.nan
    for step, x in enumerate(inputs):
        z = np.concatenate([x, h, u] if variant.endswith("+AM") else [x, h])
        u = np.maximum(weights["fusion"].T @ z + weights["fusion_bias"][0], 0)
        y_hat = float(weights["readout"][:, 0] @ u + weights["readout_bias"][0, 0])
        if step == len(inputs) - 1:
            break
        error = target[step] - y_hat
        if np.isnan(error) or residual == "none":
            continue
        if residual == "scalar":
            h = np.array([error])
            continue
        argument = weights["error"][0] * error + weights["error_bias"][0]
        if variant.startswith("ARM"):
            argument = argument + weights["carry"].T @ h
        h = np.maximum(argument, 0) if activation == "relu" else np.tanh(argument)
    return y_hat


def predict_rows(
    weights: Mapping[str, FloatArray],
    inputs: FloatArray,
    target: FloatArray,
    starts: list[int],
    window: int,
    **cell: object,
) -> FloatArray:
    """Predict every row from its own window, cut at the start of its series."""
    predictions = np.empty(len(target))
    for first, last in pairwise(starts):
        for row in range(first, last):
            begin = max(first, row - window + 1)
            rows = slice(begin, row + 1)
            predictions[row] = predict_window(weights, inputs[rows], target[rows], **cell)  # type: ignore[arg-type]  # any cell
    return predictions
