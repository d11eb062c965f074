"""Some series in step whose state is carried: `varnn.network.carried` as a block of a stream."""

from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.network.carried import CarriedCell, Float32
from varnn.network.cell import Architecture, Weights


class CarriedBlock:
    """What `varnn.streaming._cell.CellStream` is for windows.

    Parameters
    ----------
    architecture, weights, limit : Architecture, Weights, float
        The cell, and the size of a state from which on it begins anew.
    n_series : int
        Series in this block, n below.
    """

    def __init__(self, architecture: Architecture, weights: Weights, limit: float, n_series: int) -> None:
        self._cell = CarriedCell(architecture, weights, n_series, limit)
        self.inputs: Float32 = np.ones((n_series, architecture.n_inputs + 1), np.float32)  # [x 1]
        self._labels: Float32 = np.zeros(n_series, np.float32)
        self._all = np.ones(n_series, dtype=bool)
        self._hidden, self._outputs = np.empty(0, np.float32), np.empty(0, np.float32)

    def advance(self) -> None:
        """Compute hidden layer and prediction of every series from ``inputs``."""
        self._hidden, self._outputs = self._cell.advance(self._cell.project(self.inputs[:, :-1]))

    def read(self) -> Any:
        """Predictions in scaled units: (n,), a float if n = 1."""
        found = self._outputs.mean(axis=0, dtype=np.float64)
        return found.item() if len(found) == 1 else found

    def members(self) -> tuple[Float32, Float32]:
        """Hidden layer and output, member by member: (E, n, K) and (E, n)."""
        return self._hidden, self._outputs

    def remember(self, label: Any, missing: npt.NDArray[np.bool_] | None = None) -> None:
        """Turn labels in scaled units, a number or (n,), into memory; None where no series has one."""
        self._labels[...] = 0 if label is None else label
        self._cell.remember(self._labels, self._all if label is None else missing)

    def state(self) -> Float32:
        """All that later steps depend on: (E, n, M or M + K)."""
        return self._cell.state.copy()

    def restore(self, state: Float32) -> None:
        """Take over what :meth:`state` gave."""
        self._cell.state[...] = state
