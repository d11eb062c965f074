"""Ridge regression from moments: rows are summed up once, and any number of forms is solved from the sums."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from varnn._types import DoubleArray, IntArray


@dataclass(eq=False)
class Moments:
    """Second moments of F regressors, a target and 1 over some rows.

    Parameters
    ----------
    origin : array of shape (F,)
        What regressors are taken from before they are multiplied: near their means no digits are lost.
    negligible : array of shape (F,)
        Deviations of a regressor that may be rounding: up to here it is a constant, and gets no weight.
    """

    origin: DoubleArray
    negligible: DoubleArray

    def __post_init__(self) -> None:
        size = len(self.origin) + 2
        self.rows = 0
        self.sums = np.zeros((size, size))

    def add(self, regressors: DoubleArray, target: DoubleArray) -> None:
        """Sum up some rows: regressors (B, F), target (B,)."""
        block = np.column_stack([regressors - self.origin, target, np.ones(len(target))])
        self.rows += len(block)
        self.sums += block.T @ block

    @cached_property
    def centred(self) -> tuple[DoubleArray, DoubleArray]:
        """Covariance (F + 1, F + 1) and means (F + 1,) of regressors and target, of all rows."""
        means = self.sums[-1, :-1] / self.rows
        return self.sums[:-1, :-1] / self.rows - np.outer(means, means), means

    def solve(self, columns: IntArray, ridge: float) -> tuple[IntArray, DoubleArray, float]:
        """Regress on some columns (Hoerl and Kennard, 1970).

        Parameters
        ----------
        columns : array of shape (C,)
            The regressors to use.
        ridge : float
            Penalty a row, for regressors of unit variance.

        Returns
        -------
        columns, weights, constant
            The columns, their coefficients (C,), and the constant.

        References
        ----------
        A. E. Hoerl and R. W. Kennard, "Ridge regression: biased estimation for nonorthogonal problems",
        Technometrics 12 (1970).
        """
        covariance, means = self.centred
        deviation = np.sqrt(np.maximum(covariance[columns, columns], 0))
        deviation[deviation <= self.negligible[columns]] = np.inf
        system = covariance[np.ix_(columns, columns)] / np.outer(deviation, deviation)
        system[np.diag_indices_from(system)] += ridge
        weights = np.linalg.solve(system, covariance[columns, -1] / deviation) / deviation
        return columns, weights, float(means[-1] - weights @ (means[columns] + self.origin[columns]))

    def error(self, columns: IntArray, weights: DoubleArray, constant: float) -> float:
        """Mean squared error of a solution on these rows; infinite where it overflows."""
        kept = np.r_[columns, len(self.sums) - 2, len(self.sums) - 1]
        residual = np.r_[-weights, 1.0, -(constant + weights @ self.origin[columns])]
        with np.errstate(over="ignore", invalid="ignore"):  # rows like nothing in training
            error = float(residual @ self.sums[np.ix_(kept, kept)] @ residual) / self.rows
        return max(error, 0.0) if np.isfinite(error) else np.inf  # rounding may leave it below zero
