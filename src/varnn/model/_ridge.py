"""Ridge regression from moments: rows are summed up once, and any number of forms is solved from the sums."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from varnn._types import DoubleArray, FloatArray, IntArray


class Solution(NamedTuple):
    """A regression on C columns: these, their coefficients (C,), and the constant."""

    columns: IntArray
    weights: DoubleArray
    constant: float


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
        self.rows = 0.0  # of weights, what they come to
        self.sums = np.zeros((size, size))

    def add(self, regressors: DoubleArray, target: DoubleArray, weights: FloatArray | None = None) -> None:
        """Sum up some rows: regressors (B, F), target (B,) and how often each of them counts, or once."""
        block = np.column_stack([regressors - self.origin, target, np.ones(len(target))])
        if weights is None:
            self.rows += len(block)
            self.sums += block.T @ block
        else:
            self.rows += float(weights.sum())
            self.sums += block.T @ (block * weights[:, None])

    @cached_property
    def centred(self) -> tuple[DoubleArray, DoubleArray]:
        """Covariance (F + 1, F + 1) and means (F + 1,) of regressors and target, of all rows."""
        means = self.sums[-1, :-1] / self.rows
        return self.sums[:-1, :-1] / self.rows - np.outer(means, means), means

    def solve(self, columns: IntArray, ridge: float) -> Solution:
        """Regress on some columns; see :meth:`solve_each`."""
        return self.solve_each(columns, (ridge,))[0]

    def solve_each(self, columns: IntArray, ridges: Sequence[float]) -> list[Solution]:
        """Regress on some columns, once for each ridge (Hoerl and Kennard, 1970).

        Parameters
        ----------
        columns : array of shape (C,)
            The regressors to use.
        ridges : sequence of float
            Penalties a row, for regressors of unit variance.

        Returns
        -------
        list of Solution
            One for each ridge.

        References
        ----------
        A. E. Hoerl and R. W. Kennard, "Ridge regression: biased estimation for nonorthogonal problems",
        Technometrics 12 (1970).
        """
        covariance, means = self.centred
        deviation = np.sqrt(np.maximum(covariance[columns, columns], 0))
        deviation[deviation <= self.negligible[columns]] = np.inf
        system = covariance[np.ix_(columns, columns)] / np.outer(deviation, deviation)
        systems, diagonal = np.repeat(system[None], len(ridges), axis=0), np.arange(len(columns))
        systems[:, diagonal, diagonal] += np.array(ridges)[:, None]
        against = np.broadcast_to(
            (covariance[columns, -1] / deviation)[:, None], (len(ridges), len(columns), 1)
        )
        centre = means[columns] + self.origin[columns]
        found = np.linalg.solve(systems, against)[..., 0] / deviation
        return [Solution(columns, weights, float(means[-1] - weights @ centre)) for weights in found]

    def errors(self, solutions: Sequence[Solution]) -> list[float]:
        """Mean squared errors of solutions on the same columns; infinite where one overflows."""
        columns = solutions[0].columns
        kept = np.append(columns, [len(self.sums) - 2, len(self.sums) - 1])
        sums, origin = self.sums[np.ix_(kept, kept)], self.origin[columns]
        errors, residual = [], np.ones(len(kept))
        with np.errstate(over="ignore", invalid="ignore"):  # rows like nothing in training
            for _, weights, constant in solutions:
                residual[:-2], residual[-1] = -weights, -(constant + weights @ origin)
                error = float(residual @ sums @ residual) / self.rows
                # Rounding may leave it below zero.
                errors.append(max(error, 0.0) if math.isfinite(error) else math.inf)
        return errors
