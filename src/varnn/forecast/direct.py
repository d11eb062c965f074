"""The linear part of a forecast: one ridge regression for each distance.

Row t + k is anchored at ::

    anchor_t,k = f_t + w_k' [what the network sees of row t, latest changes of the label, 1]

where f_t is the last label before row t; inputs known in the future add how they differ at row t + k from
row t. As in `varnn.linear`, regressing the change and not the level makes ridge shrink towards
persistence, and regressors stay within the range they had in training: far from it, nothing is pulled
further. Ridge, and whether the table's inputs are looked at, is chosen on validation rows for each
distance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from varnn.forecast.rows import columns_of, last_rows, targets_ahead
from varnn.linear import last_labels
from varnn.panel import IntArray, Panel

Doubles = npt.NDArray[np.float64]

CHANGES = 24  # of the label, looked back on
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # penalty a training row, for regressors of unit variance
_NUMBERS_AT_ONCE = 1 << 23  # 64 MB of regressors


@dataclass(frozen=True, eq=False)
class Sight:
    """Rows as the regressions see them.

    Parameters
    ----------
    panel
        The rows with their labels, in the target's units.
    seen
        What the network sees of each: (N, D).
    known
        Columns of ``seen`` that are known in the future.
    given
        Columns of ``seen`` that come from the table, the first ones.
    mean
        Of the training labels: stands in for a last label where there is none yet.
    """

    panel: Panel
    seen: npt.NDArray[np.float32]
    known: IntArray
    given: int
    mean: float

    @classmethod
    def of(cls, panel: Panel, prepared: Panel, known: Sequence[str], *, blind: bool, mean: float) -> "Sight":
        """Look at rows, and at what a recipe made of them; a blind one leaves the table's inputs out."""
        columns = np.empty(0, np.int64) if blind else columns_of(panel, known)
        return cls(panel, prepared.inputs, columns, 0 if blind else panel.n_inputs, mean)

    @property
    def width(self) -> int:
        """Number of regressors."""
        return int(self.seen.shape[1]) + CHANGES + len(self.known)

    @property
    def of_inputs(self) -> npt.NDArray[np.bool_]:
        """Mark the regressors that come from the table's inputs."""
        marked = np.zeros(self.width, dtype=bool)
        marked[: self.given] = True
        marked[self.seen.shape[1] + CHANGES :] = True
        return marked

    @cached_property
    def movement(self) -> Doubles:
        """Give how much the label lately moved from row to row: (N,)."""
        return np.concatenate([np.abs(self.changes(rows)).mean(axis=1) for rows in self.chunks()])

    @cached_property
    def _labels(self) -> tuple[Doubles, Doubles, npt.NDArray[np.bool_]]:
        return last_labels(self.panel, self.mean)

    def last(self, rows: IntArray) -> Doubles:
        """Give the last label before some rows: (B,)."""
        return self._labels[0][rows]

    def changes(self, rows: IntArray) -> Doubles:
        """Give the latest changes of the label before some rows: (B, CHANGES)."""
        change = self._labels[1]
        earlier = rows[:, None] - np.arange(CHANGES)
        first = self.panel.first_rows[rows][:, None]
        return np.asarray(np.where(earlier >= first, change[np.maximum(earlier, 0)], 0))

    def regressors(self, rows: IntArray) -> Doubles:
        """Gather the regressors of some rows; what is known of the future is left for `toward`."""
        blank = np.zeros((len(rows), len(self.known)))
        return np.column_stack([self.seen[rows], self.changes(rows), blank])

    def toward(self, regressors: Doubles, rows: IntArray, distance: int) -> Doubles:
        """Add what is known of the rows so far after these, in place."""
        if len(self.known):
            later = np.minimum(rows + distance, last_rows(self.panel)[rows])
            known = self.seen[:, self.known]
            regressors[:, -len(self.known) :] = known[later] - known[rows]
        return regressors

    def chunks(self) -> Iterator[IntArray]:
        """Cut all rows into runs whose regressors fit into memory."""
        size = max(1, _NUMBERS_AT_ONCE // self.width)
        for begin in range(0, len(self.panel), size):
            yield np.arange(begin, min(begin + size, len(self.panel)))

    def latest(self) -> IntArray:
        """List the latest rows of each series with labels before them, as many as fit into memory."""
        share = max(1, _NUMBERS_AT_ONCE // self.width // self.panel.n_series)
        recent = np.arange(len(self.panel)) > last_rows(self.panel) - share
        return np.flatnonzero(recent & self._labels[2])


@dataclass(frozen=True, eq=False, kw_only=True)
class DirectPart:
    """The regressions, for H - 1 distances and F regressors.

    Parameters
    ----------
    weights, constants
        Of regressors within their range: (H - 1, F) and (H - 1,), in the target's units.
    low, high
        The range of each regressor in training: (F,).
    scales
        Usual size of what each regression leaves, on training rows: (H - 1,).
    mean
        Of the training labels.
    """

    mean: float
    weights: Doubles
    constants: Doubles
    low: Doubles
    high: Doubles
    scales: Doubles

    @classmethod
    def fit(cls, training: Sight, validation: Sight | None, horizon: int) -> "DirectPart":
        """Fit every candidate on the latest training rows, and keep each distance's best on validation."""
        rows = training.latest()
        regressors = training.regressors(rows)
        changes = targets_ahead(training.panel, horizon)[rows] - training.last(rows)[:, None]
        low, high = _range_of(training, regressors, rows, horizon)
        judged = None
        if validation is not None:
            later = validation.latest()
            outcomes = targets_ahead(validation.panel, horizon)[later] - validation.last(later)[:, None]
            judged = validation.regressors(later), later, outcomes
        weights, constants, scales = np.zeros((horizon - 1, training.width)), [], []
        for index in range(horizon - 1):
            x = training.toward(regressors, rows, index + 1).clip(low, high)
            wanted = changes[:, index]
            known = ~np.isnan(wanted)
            candidates = _candidates(x[known], wanted[known], training.of_inputs)
            best = 0
            if judged is not None:
                seen, later, outcomes = judged
                z = validation.toward(seen, later, index + 1).clip(low, high) if validation else seen
                errors = [np.square(outcomes[:, index] - z @ w - c) for w, c in candidates]
                means = [float(np.nanmean(one)) if np.isfinite(one).any() else 0.0 for one in errors]
                best = int(np.argmin(means))
            weights[index], constant = candidates[best]
            constants.append(constant)
            left = wanted[known] - x[known] @ weights[index] - constant
            scales.append(float(left.std()) or 1.0 if len(left) else 1.0)
        return cls(
            mean=training.mean,
            weights=weights,
            constants=np.array(constants),
            low=low,
            high=high,
            scales=np.array(scales),
        )

    def anchors(self, sight: Sight) -> Doubles:
        """Give the anchors of the rows after each row: (N, H - 1)."""
        anchors = np.empty((len(sight.panel), len(self.weights)))
        for rows in sight.chunks():
            regressors, last = sight.regressors(rows), sight.last(rows)
            if len(sight.known):
                for index, (weights, constant) in enumerate(zip(self.weights, self.constants, strict=True)):
                    now = sight.toward(regressors, rows, index + 1).clip(self.low, self.high)
                    anchors[rows, index] = last + now @ weights + constant
            else:
                within = regressors.clip(self.low, self.high)
                anchors[rows] = last[:, None] + within @ self.weights.T + self.constants
        return anchors


def _range_of(sight: Sight, regressors: Doubles, rows: IntArray, horizon: int) -> tuple[Doubles, Doubles]:
    """Give the range of each regressor, of those known in the future over all distances."""
    low, high = regressors.min(axis=0), regressors.max(axis=0)
    for distance in range(1, horizon if len(sight.known) else 1):
        now = sight.toward(regressors, rows, distance)
        low, high = np.minimum(low, now.min(axis=0)), np.maximum(high, now.max(axis=0))
    return low, high


def _candidates(x: Doubles, wanted: Doubles, of_inputs: npt.NDArray[np.bool_]) -> list[tuple[Doubles, float]]:
    """Regress with each ridge, with and without the table's inputs: weights and constant of each.

    The first is for where there is nothing to choose on.
    """
    width = x.shape[1]
    if len(wanted) < 2:
        return [(np.zeros(width), 0.0)]
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread <= 1e-9 * (1 + np.abs(mean))] = np.inf  # a constant column gets no weight
    scaled = (x - mean) / spread
    moments, products = scaled.T @ scaled / len(x), scaled.T @ (wanted - wanted.mean()) / len(x)
    found = []
    sets = [np.ones(width, dtype=bool)] + ([~of_inputs] if of_inputs.any() else [])
    for kept in sets:
        for ridge in sorted(RIDGES, key=lambda one: one != RIDGES[1]):
            system = moments[np.ix_(kept, kept)] + ridge * np.eye(int(kept.sum()))
            weights = np.zeros(width)
            weights[kept] = np.linalg.solve(system, products[kept])
            weights /= spread
            found.append((weights, float(wanted.mean() - weights @ mean)))
    return found
