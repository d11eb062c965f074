"""Constant-gain recursive least squares with leakage: a readout that goes on learning as labels arrive.

The network's output is linear in its last hidden layer, phi = [u 1]. Recursive least squares with a
forgetting factor l [1]_ would follow the labels with the gain P phi, where the covariance P settles, as rows
keep coming, around (1 - l) G^-1, G being the mean of phi phi'. Two things make it blow up: P is itself
followed, and grows without bound in directions that no recent row excites; and the readout has no reason
ever to come back. Here P is what it would settle at on the training rows, and stays there; and what was
learnt fades away slowly. With theta = trained readout + d ::

    c = d' phi                          correction of the output
    e = r - output - c                  error, bounded: one wild label must not throw the readout
    d <- leak d + s e / (1 + s q' phi) q     with q = G^-1 phi and s = 1 - l

so that no recursion can lose its symmetry, no direction can wind up, and a step never overshoots its
label. With the identity for G^-1 it would be normalised LMS with leakage [2]_; as it is, it is LMS-Newton
[3]_, too. A guard then asks whether this helps: the share g of the correction that is used is the one that
would have been best on recent rows, between none and all of it ::

    g = clip(sum of (r - output) c / (sum of c^2 + noise), 0, 1)      sums forget too, slowly

Whatever the forgetting factor, the corrected model then is hardly worse than the plain one. Such sums
notice late that a stream has gone back to what it was: so g is also at most what sums over the last few
dozen rows leave possible, two of their deviations above what they say ::

    g <= (sum of (r - output) c + 2 sqrt(sum of ((r - output) c)^2)) / sum of c^2      sums forget fast

Shapes: E members, n series in step, K hidden units.

References
----------
.. [1] L. Ljung and T. Soderstrom, "Theory and Practice of Recursive Identification", MIT Press, 1983.
.. [2] S. Haykin, "Adaptive Filter Theory", 4th edition, Prentice Hall, 2002.
.. [3] B. Widrow and S. D. Stearns, "Adaptive Signal Processing", Prentice Hall, 1985.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, IntArray

FORGETTING = (0.9999, 0.9997, 0.999)  # what "auto" chooses from
LEAST_FORGETTING = 0.9  # a memory of ten rows
_LEAK = 0.9998  # what was learnt from a row fades over five thousand
_GUARD = 0.9995  # and what the guard judges by, over two thousand
_SOON = 0.97  # and what may stop it, over thirty
_DOUBT = 2.0  # deviations that recent rows must speak against a correction
_BOUND = 5.0  # errors beyond so many standard deviations count as so many
_LARGEST_ERROR = 50.0  # and beyond so many where the guard weighs them
_ROWS_AT_ONCE = 32  # that are gone through together: fewer take longer, and more too
_RIDGE = 1e-3  # on the second moments, relative to their mean: some hidden units are hardly ever on


@dataclass(frozen=True, eq=False, kw_only=True)
class Adaptation:
    """Gain, forgetting factor and noise of a readout that adapts, as learnt.

    Parameters
    ----------
    forgetting : float
        Weight that a row keeps with each row after it.
    gain : array of shape (E, K + 1, K + 1)
        G^-1 of each member.
    noise : float
        Variance of the error that is left, in scaled units.
    doubt : float, default inf
        Deviations by which recent rows must speak against a correction; infinite in files from before they
        were asked.
    """

    forgetting: float
    gain: DoubleArray
    noise: float
    doubt: float = np.inf

    @classmethod
    def fit(cls, hidden: npt.NDArray[Any], errors: DoubleArray, forgetting: float) -> "Adaptation":
        """Learn the gain from hidden layers of training rows (E, N, K), and the noise from errors (N,)."""
        noise = float(np.mean(np.square(errors))) or 1.0
        return cls(forgetting=forgetting, gain=gain_of(hidden), noise=noise, doubt=_DOUBT)

    def numbers(self) -> tuple[float, ...]:
        """List what is no array: forgetting and noise, and what is doubted, if anything is."""
        return (self.forgetting, self.noise, *([self.doubt] if np.isfinite(self.doubt) else []))

    @property
    def largest_error(self) -> float:
        """Size of an error that larger ones count as where the guard weighs them."""
        return float(_LARGEST_ERROR * self.noise**0.5) if np.isfinite(self.doubt) else np.inf


def gain_of(hidden: npt.NDArray[Any]) -> DoubleArray:
    """Inverse second moments of each member's hidden layer and 1: (E, N, K) -> (E, K + 1, K + 1)."""
    members, rows, width = hidden.shape
    gain = np.empty((members, width + 1, width + 1))
    for member, layers in enumerate(hidden):
        features = np.column_stack([layers, np.ones(rows)])
        moments = features.T @ features / rows
        moments[np.diag_indices_from(moments)] += _RIDGE * np.trace(moments) / len(moments)
        inverse = np.linalg.inv(moments)
        gain[member] = (inverse + inverse.T) / 2
    return gain


class Adapter:
    """Readouts of n series in step, as they learn.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> u = generator.normal(size=(1, 5000, 3))
    >>> how = Adaptation.fit(u, generator.normal(size=5000), forgetting=0.99)
    >>> adapter, errors = Adapter(how, n_series=1), []
    >>> for row in range(5000):                        # the trained readout gives 0; u[0] is right
    ...     truth = u[0, row, :1] + generator.normal() / 10
    ...     errors.extend(truth - adapter.correct(u[:, row : row + 1], np.zeros((1, 1))))
    ...     adapter.learn(truth)
    >>> bool(np.mean(np.square(errors[2500:])) < 0.03)
    True
    """

    def __init__(self, adaptation: Adaptation, n_series: int) -> None:
        members, size, _ = adaptation.gain.shape
        self.adaptation = adaptation
        self.change = np.zeros((members, n_series, size))  # d
        self.sums = np.zeros((5, n_series))  # of the guard: two slow ones, and three fast ones
        self._memory = np.array([_GUARD, _GUARD, _SOON, _SOON, _SOON])[:, None]
        self._step = 1 - adaptation.forgetting
        self._bound, self._largest_error = _BOUND * adaptation.noise**0.5, adaptation.largest_error
        self._doubt = adaptation.doubt if np.isfinite(adaptation.doubt) else None
        self._members = members
        self._features = np.ones((members, n_series, size))
        self._products = np.empty((members, n_series, size))
        self._outputs = np.zeros((members, n_series))
        self._corrections = np.zeros((members, n_series))
        self._correction = np.zeros(n_series)  # their mean

    # A row takes as long as the calls to NumPy it makes: hence minimum, maximum and add.reduce, which are
    # several times quicker on a few numbers than clip, mean and sum, and give the same.
    def correct(self, hidden: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> DoubleArray:
        """Compute what to add to the mean output: hidden layers (E, n, K), outputs (E, n) -> (n,)."""
        self._features[:, :, :-1] = hidden
        self._outputs[...] = outputs
        np.multiply(self._features, self.change, out=self._products)
        np.add.reduce(self._products, axis=-1, out=self._corrections)
        np.divide(np.add.reduce(self._corrections, axis=0), self._members, out=self._correction)
        return np.asarray(self._share(self.sums) * self._correction)

    def learn(self, targets: npt.NDArray[Any]) -> None:
        """Learn from the targets (n,) of the rows last corrected; NaN teaches nothing."""
        missing = np.isnan(targets)
        step: Any = self._step
        leak: Any = _LEAK
        memory: Any = self._memory
        correction = self._correction
        if missing.any():
            if missing.all():
                return
            known = ~missing
            step, correction, targets = step * known, correction * known, np.where(known, targets, 0)
            leak, memory = np.where(known, leak, 1)[:, None], np.where(known, memory, 1)  # (5, n)
        errors = targets - self._outputs - self._corrections
        errors = np.minimum(np.maximum(errors, -self._bound), self._bound)
        directions = self._features @ self.adaptation.gain  # q
        sizes = np.add.reduce(np.multiply(directions, self._features, out=self._products), axis=-1)
        directions *= (step * errors / (1 + step * sizes))[:, :, None]
        self.change *= leak
        self.change += directions
        self.sums *= memory
        left = targets - np.add.reduce(self._outputs, axis=0) / self._members
        gain = np.minimum(np.maximum(left, -self._largest_error), self._largest_error) * correction
        self.sums[:4:2] += gain
        self.sums[1:4:2] += correction**2
        self.sums[4] += gain**2

    def follow(
        self,
        series: npt.NDArray[np.intp],
        hidden: npt.NDArray[Any],
        outputs: DoubleArray,
        targets: npt.NDArray[Any],
    ) -> DoubleArray:
        """Go through B rows of some series: hidden (E, n, B, K), outputs (E, n, B), targets (n, B) -> (n, B).

        Gives what :meth:`correct` and :meth:`learn` would, row after row. What row t adds to the correction
        of a later row is linear in its error, so that all errors together solve a triangular system ::

            e_t = r_t - output_t - leak^t d_0' phi_t - sum over j < t of leak^(t-1-j) s_j e_j q_j' phi_t
        """
        known = ~np.isnan(targets)
        labels = np.where(known, targets, 0.0)
        features = np.ones((*hidden.shape[:-1], hidden.shape[-1] + 1))
        features[..., :-1] = hidden
        directions = features @ self.adaptation.gain[:, None]  # q
        products = features @ directions.swapaxes(-1, -2)  # (E, n, B, B): phi_t' q_j
        steps = known * self._step / (1 + self._step * np.diagonal(products, axis1=-2, axis2=-1))
        kept, left = _fading(known, _LEAK)
        reach = left[:, :-1] * products * steps[:, :, None]
        change = self.change[:, series]
        start = kept[:, :-1] * _times(features, change)
        errors = self._bounded(reach, labels - outputs - start, known)
        news = _times(directions.swapaxes(-1, -2), left[:, -1] * steps * errors)
        self.change[:, series] = kept[:, -1:] * change + news
        correction = (start + _times(reach, errors)).mean(axis=0)
        error = np.clip(labels - outputs.mean(axis=0), -self._largest_error, self._largest_error)
        gain = error * correction
        gained = known * np.stack([gain, correction**2, gain**2])
        sums = np.empty((5, len(known), known.shape[1] + 1))  # (5, n, B + 1)
        for some, factor in ((slice(2), _GUARD), (slice(2, 5), _SOON)):
            kept, left = _fading(known, factor)
            sums[some] = kept * self.sums[some, series, None] + _times(left, gained[: len(sums[some])])
        self.sums[:, series] = sums[:, :, -1]
        return np.asarray(self._share(sums[:, :, :-1]) * correction, np.float64)

    def _share(self, sums: DoubleArray) -> DoubleArray:
        """Compute the share of corrections to use, g, from the sums before them: (5, any) -> (any)."""
        gained, size, lately, recent, spread = sums
        share = np.minimum(np.maximum(gained / (size + self.adaptation.noise), 0), 1)
        if self._doubt is not None:
            most = np.maximum(lately + self._doubt * np.sqrt(spread), 0)
            doubted = share * recent > most
            if doubted.any():
                np.divide(most, recent, out=share, where=doubted)
        return np.asarray(share)

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
        """Return a copy of all that later corrections depend on: (n, E (K + 1) + 5)."""
        members, series, size = self.change.shape
        return np.column_stack([self.change.swapaxes(0, 1).reshape(series, members * size), *self.sums])

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        members, series, size = self.change.shape
        change, sums = np.split(state, [members * size], axis=1)
        self.change[...] = change.reshape(series, members, size).swapaxes(0, 1)
        self.sums[:] = 0  # snapshots from before there were fast ones hold two
        self.sums[: sums.shape[1]] = sums.T


def corrections(
    adapter: Adapter,
    hidden: npt.NDArray[Any],
    outputs: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    starts: IntArray,
) -> DoubleArray:
    """Adapt through the series of a panel side by side.

    Parameters
    ----------
    adapter : Adapter
        Of as many series; it learns from the rows.
    hidden, outputs, targets : arrays of shape (E, N, K), (E, N) and (N,)
        Of all rows.
    starts : array of shape (S + 1,)
        Row at which each series begins, and the number of rows at the end.

    Returns
    -------
    array of shape (N,)
        What to add to each row's mean output.
    """
    added, lengths = np.empty(len(targets)), np.diff(starts)
    outputs = outputs.astype(np.float64)
    for first in range(0, lengths.max(initial=0), _ROWS_AT_ONCE):
        sizes = np.clip(lengths - first, 0, _ROWS_AT_ONCE)
        for size in np.unique(sizes[sizes > 0]):  # series that have as many rows left go together
            series = np.flatnonzero(sizes == size)
            rows = starts[series, None] + first + np.arange(size)  # (n, B)
            added[rows] = adapter.follow(series, hidden[:, rows], outputs[:, rows], targets[rows])
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
