"""Constant-gain recursive least squares with leakage: coefficients that go on learning as labels arrive.

A prediction that is linear in some features, phi = [features 1], can follow the labels. Recursive least
squares with a forgetting factor l [1]_ would do so with the gain P phi, where the covariance P settles, as
rows keep coming, around (1 - l) G^-1, G being the mean of phi phi'. Two things make it blow up: P is itself
followed, and grows without bound in directions that no recent row excites; and the coefficients have no
reason ever to come back. Here P is what it would settle at on the training rows, and stays there; and what
was learnt fades away slowly. With theta = trained coefficients + d ::

    c = d' phi                          correction of the output
    e = r - output - c                  error, bounded: one wild label must not throw the coefficients
    d <- leak d + s e / (1 + s q' phi) q     with q = G^-1 phi and s = 1 - l

so that no recursion can lose its symmetry, no direction can wind up, and a step never overshoots its
label. That is LMS-Newton [3]_. It is done in the coordinates in which G is the identity: with G^-1 = L L', L
being lower triangular, features are whitened to z = L' phi, and d = L c ::

    c' z = d' phi        z' z = q' phi        c <- leak c + s e / (1 + s z' z) z

which is normalised LMS with leakage [2]_ of z. Whitening is nearly all of the work, half of what products
with G^-1 would be, and the same for several forgetting factors that go on side by side. Features that members
have in common come last: as L is lower triangular, what they are whitened to depends on no others, and is
computed once. Which factor to believe, if any, is for `varnn.model.aggregation` to find out.

Shapes: E members, n series in step, F features and a constant, R forgetting factors.

References
----------
.. [1] L. Ljung and T. Soderstrom, "Theory and Practice of Recursive Identification", MIT Press, 1983.
.. [2] S. Haykin, "Adaptive Filter Theory", 4th edition, Prentice Hall, 2002.
.. [3] B. Widrow and S. D. Stearns, "Adaptive Signal Processing", Prentice Hall, 1985.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, IntArray

LEAST_FORGETTING = 0.9  # a memory of ten rows
LEAK = 0.9998  # what was learnt from a row fades over five thousand
_LEAK = np.array(LEAK)
BOUND = 5.0  # errors beyond so many standard deviations count as so many
_ROWS_AT_ONCE = 32  # that are gone through together: fewer take longer, and more too
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
    common : int, default=0
        Features, the last ones, that all members have in common, the constant being one of them.
    """

    forgetting: tuple[float, ...]
    gain: DoubleArray
    noise: float
    common: int = 0

    @cached_property
    def whitening(self) -> npt.NDArray[np.float32]:
        """L of each member, lower triangular, with G^-1 = L L': (E, F + 1, F + 1).

        In single precision: to read it is what a step takes longest for, and any other L does as well.
        """
        return np.linalg.cholesky(self.gain).astype(np.float32)

    @cached_property
    def own(self) -> int:
        """Features, the first ones, that each member whitens by itself; those after them, all do alike."""
        size = int(self.gain.shape[1])
        block = self.whitening[:, size - self.common :, size - self.common :]
        alike = np.allclose(block, block[:1], rtol=1e-6, atol=1e-9 * np.abs(block).max(initial=0.0))
        return size - self.common if alike else size  # files from before have a ridge of each member's own

    @cached_property
    def factor(self) -> DoubleArray:
        """L of each member as products want it, in double precision: once for all who adapt by it."""
        return self.whitening.astype(np.float64)

    @cached_property
    def whitened_apart(self) -> int:
        """Columns of L, the first ones, that differ between members: none where there is only one."""
        return self.own if len(self.gain) > 1 else 0

    @cached_property
    def own_factor(self) -> DoubleArray:
        """Those columns: (E, F + 1, own)."""
        return np.ascontiguousarray(self.factor[:, :, : self.whitened_apart])

    @cached_property
    def common_factor(self) -> DoubleArray:
        """The other columns, less the rows in which they are zero."""
        return np.ascontiguousarray(self.factor[0, self.whitened_apart :, self.whitened_apart :])

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


class Adapter:
    """Coefficients of n series in step, as they learn.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> u = generator.normal(size=(1, 5000, 3))
    >>> how = Adaptation(forgetting=(0.99,), gain=gain_of(u), noise=1.0)
    >>> adapter, errors = Adapter(how, n_series=1), []
    >>> for row in range(5000):                        # the trained coefficients give 0; u[0] is right
    ...     truth = u[0, row, :1] + generator.normal() / 10
    ...     errors.extend(truth - adapter.correct(u[:, row : row + 1], np.zeros((1, 1)))[0])
    ...     adapter.learn(truth)
    >>> bool(np.mean(np.square(errors[2500:])) < 0.03)
    True
    """

    def __init__(self, adaptation: Adaptation, n_series: int) -> None:
        members, size, _ = adaptation.gain.shape
        self.adaptation = adaptation
        rates = len(adaptation.forgetting)
        # c, and z after them: one product of all with z gives corrections and z' z.
        rows = np.zeros((rates + 1, members, n_series, size))
        self.change, self._white = rows[:rates], rows[rates:]  # (R, E, n, F + 1), (1, E, n, F + 1)
        self._steps = 1 - np.array(adaptation.forgetting)[:, None, None]  # s: (R, 1, 1)
        self._inverse = 1 / self._steps
        self._bound, self._lowest = np.array(adaptation.bound), np.array(-adaptation.bound)
        self._features = np.ones((members, n_series, size))
        self._outputs = np.zeros((1, members, n_series))
        products = np.zeros(rows.shape[:-1])
        self._corrections, self._sizes = products[:rates], products[rates:]  # (R, E, n), (1, E, n)
        self._shares = np.full(members, 1 / members)
        # Views of these, made once.
        own, white = adaptation.whitened_apart, self._white[0]
        self._seen_alike = self._features[0, :, own:]
        self._own_white, self._white_alike = white[:, :, :own], white[:, :, own:]
        self._rows, self._white_column = rows[..., None, :], white[..., None]
        self._products = products[..., None, None]

    # A row takes as long as the calls to NumPy it makes: hence views made in advance; products, on a
    # few numbers quicker than sums; arrays of no axes, quicker than numbers; and operands with as
    # many axes each, as NumPy takes twice as long to find a common shape.
    def correct(
        self, features: npt.NDArray[Any], outputs: npt.NDArray[Any], common: DoubleArray | None = None
    ) -> DoubleArray:
        """Compute what to add to the mean output.

        Parameters
        ----------
        features : array of shape (E, n, F)
            Without those that members have in common, if these are given.
        outputs : array of shape (E, n)
        common : array of shape (n, any) or None, default=None
            Features that all members have in common.

        Returns
        -------
        array of shape (R, n)
        """
        width = features.shape[2]
        self._features[:, :, :width] = features
        if common is not None:
            self._features[:, :, width:-1] = common
        self._outputs[...] = outputs
        self._whiten()
        np.matmul(self._rows, self._white_column, out=self._products)
        return np.asarray(self._shares.dot(self._corrections))

    def _whiten(self) -> None:
        """Compute z of the features."""
        how = self.adaptation
        if how.whitened_apart:
            np.matmul(self._features, how.own_factor, out=self._own_white)
        if how.whitened_apart < how.gain.shape[1]:
            self._white_alike[...] = self._seen_alike.dot(how.common_factor)

    def learn(self, targets: npt.NDArray[Any]) -> None:
        """Learn from the targets (n,) of the rows last corrected; NaN teaches nothing."""
        errors = targets[None, None] - self._outputs - self._corrections
        leak: Any = _LEAK
        unknown = np.isnan(targets)
        if np.count_nonzero(unknown):
            known = ~unknown
            if not known.any():
                return
            errors, leak = np.where(known, errors, 0.0), np.where(known, LEAK, 1.0)[:, None]
        np.minimum(np.maximum(errors, self._lowest, out=errors), self._bound, out=errors)
        rates = errors / (self._inverse + self._sizes)  # s e / (1 + s z' z)
        self.change *= leak
        self.change += rates[..., None] * self._white

    def follow(
        self,
        series: npt.NDArray[np.intp],
        features: npt.NDArray[Any],
        outputs: DoubleArray,
        targets: npt.NDArray[Any],
    ) -> DoubleArray:
        """Go through B rows of some series.

        Gives what :meth:`correct` and :meth:`learn` would, row after row. What row t adds to the correction
        of a later row is linear in its error, so that all errors together solve a triangular system ::

            e_t = r_t - output_t - leak^t c_0' z_t - sum over j < t of leak^(t-1-j) s_j e_j z_j' z_t

        Parameters
        ----------
        series : array of shape (n,)
            Which series.
        features, outputs, targets : arrays of shape (E, n, B, F), (E, n, B) and (n, B)

        Returns
        -------
        array of shape (R, n, B)
        """
        known = ~np.isnan(targets)
        labels = np.where(known, targets, 0.0)
        phi = np.ones((*features.shape[:-1], features.shape[-1] + 1))
        phi[..., :-1] = features
        white = phi @ self.adaptation.factor[:, None]  # z
        products = white @ white.swapaxes(-1, -2)  # (E, n, B, B): z_t' z_j
        sizes = np.diagonal(products, axis1=-2, axis2=-1)
        kept, left = _fading(known, LEAK)
        faded = left[:, :-1] * products
        corrections = np.empty((len(self._steps), *targets.shape))
        for index, step in enumerate(self._steps.ravel()):
            steps = known * step / (1 + step * sizes)
            reach = faded * steps[:, :, None]
            change = self.change[index][:, series]
            start = kept[:, :-1] * _times(white, change)
            errors = self._bounded(reach, labels - outputs - start, known)
            news = _times(white.swapaxes(-1, -2), left[:, -1] * steps * errors)
            self.change[index][:, series] = kept[:, -1:] * change + news
            corrections[index] = (start + _times(reach, errors)).mean(axis=0)
        return corrections

    def _bounded(self, reach: DoubleArray, wanted: DoubleArray, known: BoolArray) -> DoubleArray:
        """Solve for the errors (E, n, B): all at once, or where one is beyond its bound row after row."""
        rows = known.shape[1]
        errors = np.linalg.solve(reach + np.eye(rows), wanted[..., None])[..., 0]
        wild = (np.abs(errors) * known > self._bound).any(axis=(0, 2))
        if wild.any():
            some, slopes, rest = errors[:, wild], reach[:, wild], wanted[:, wild]
            for row in range(rows):
                left = rest[:, :, row] - (slopes[:, :, row, :row] * some[:, :, :row]).sum(axis=-1)
                some[:, :, row] = np.minimum(np.maximum(left, -self._bound), self._bound)
            errors[:, wild] = some
        return np.asarray(errors, np.float64)

    def state(self) -> DoubleArray:
        """Return a copy of all that later corrections depend on: (n, E R (F + 1))."""
        series = self.change.shape[2]
        return self.change.transpose(2, 1, 0, 3).reshape(series, -1).copy()

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        rates, members, series, size = self.change.shape
        self.change[...] = state.reshape(series, members, rates, size).transpose(2, 1, 0, 3)


def corrections(
    adapter: Adapter,
    features: Callable[[IntArray], npt.NDArray[Any]],
    outputs: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    starts: IntArray,
) -> DoubleArray:
    """Adapt through the series of a panel side by side.

    Parameters
    ----------
    adapter : Adapter
        Of as many series; it learns from the rows.
    features : callable
        Gives the features of some rows: (n, B) -> (E, n, B, F).
    outputs, targets : arrays of shape (E, N) and (N,)
        Of all rows.
    starts : array of shape (S + 1,)
        Row at which each series begins, and the number of rows at the end.

    Returns
    -------
    array of shape (R, N)
        What to add to each row's mean output.
    """
    lengths = np.diff(starts)
    added = np.empty((len(adapter.adaptation.forgetting), len(targets)))
    outputs = outputs.astype(np.float64)
    for first in range(0, lengths.max(initial=0), _ROWS_AT_ONCE):
        sizes = np.clip(lengths - first, 0, _ROWS_AT_ONCE)
        for size in np.unique(sizes[sizes > 0]):  # series that have as many rows left go together
            series = np.flatnonzero(sizes == size)
            rows = starts[series, None] + first + np.arange(size)  # (n, B)
            added[:, rows] = adapter.follow(series, features(rows), outputs[:, rows], targets[rows])
    return added


def _times(matrices: DoubleArray, vectors: DoubleArray) -> DoubleArray:
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _fading(known: BoolArray, factor: float) -> tuple[DoubleArray, DoubleArray]:
    """Compute what is left before each row: of what was before, (n, B + 1), and of row j, (n, B + 1, B).

    It fades by a factor with every row whose label is known.
    """
    faded = np.cumprod(np.where(known, factor, 1.0), axis=1)
    kept = np.concatenate([np.ones((len(known), 1)), faded], axis=1)
    return kept, np.tril(kept[:, :, None] / faded[:, None, :], -1)
