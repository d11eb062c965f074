"""The coefficient of determination, of rows that may have weights."""

import numpy as np

from varnn._types import FloatArray


def r_squared(truth: FloatArray, prediction: FloatArray, weights: FloatArray | None = None) -> float:
    """1 - (weighted) squared error / that of the labels' (weighted) mean.

    Of labels that are all equal it is 1 where all predictions are right and 0 elsewhere, as scikit-learn
    has it; of fewer than two it is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    0.5
    """
    if len(truth) < 2:
        return float("nan")
    error = np.average(np.square(truth - prediction, dtype=np.float64), weights=weights)
    mean = np.average(truth, weights=weights)
    variance = np.average(np.square(truth - mean, dtype=np.float64), weights=weights)
    if variance == 0:
        return 1.0 if error == 0 else 0.0
    return float(1 - error / variance)
