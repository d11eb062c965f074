"""What coefficients that keep adapting learned: gain, forgetting factors and noise (`varnn.step.adaptation`).

Shapes: E members, F features and a constant, R forgetting factors.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.step.adaptation import BOUND

LEAST_FORGETTING = 0.9  # a memory of ten rows
_RIDGE = 1e-3  # on the second moments, relative to their mean: some features are hardly ever there


@dataclass(frozen=True, eq=False, kw_only=True)
class Adaptation:
    """Gain, forgetting factors and noise of coefficients that adapt, as learnt.

    Parameters
    ----------
    forgetting : tuple of float
        Weights that a row keeps with each row after it, R of them.
    gain : array of shape (E, F + 1, F + 1)
        G^-1 of each member.
    noise : float
        Variance of the error that is left, in scaled units.
    """

    forgetting: tuple[float, ...]
    gain: DoubleArray
    noise: float

    @cached_property
    def whitening(self) -> npt.NDArray[np.float32]:
        """L of each member, lower triangular, with G^-1 = L L': (E, F + 1, F + 1).

        In single precision: to read it is what a step takes longest for, and any other L does as well.
        """
        return np.linalg.cholesky(self.gain).astype(np.float32)

    @property
    def bound(self) -> float:
        """Size of an error that larger ones count as."""
        return float(BOUND * self.noise**0.5)


def gain_of(features: npt.NDArray[Any]) -> DoubleArray:
    """Inverse second moments of each member's features and 1: (E, N, F) -> (E, F + 1, F + 1)."""
    members, rows, width = features.shape
    gain = np.empty((members, width + 1, width + 1))  # second moments first
    for member, values in enumerate(features):
        phi = np.column_stack([values, np.ones(rows)])
        gain[member] = phi.T @ phi / rows
    # One ridge for all: second moments of features that members have in common stay the same.
    ridge = _RIDGE * np.trace(gain, axis1=1, axis2=2).mean() / (width + 1)
    inverse = np.linalg.inv(gain + ridge * np.eye(width + 1))
    return np.asarray((inverse + inverse.swapaxes(1, 2)) / 2)
