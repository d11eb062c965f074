"""Online aggregation of experts: a convex combination whose weights follow who was right, with a guarantee.

Bernstein online aggregation [1]_ with a discount and a fixed share [3]_, over a grid of learning rates [2]_.
With experts x_1 .. x_K of row t, weights w and p = sum of w_k x_k ::

    r_k = a_t 2 (p - y) (p - x_k)                what p lost to expert k, at least: the loss is convex
    u_kj <- ln[(1 - b) exp(c u_kj + h_j r_k - (h_j r_k)^2) + b]       for each rate h_j
    w_k  in proportion to  pi_k sum over j of h_j exp(c u_kj)

where pi are the weights at the start, c the discount, b the share that all get back with every row, and a_t
makes errors comparable: one over their mean square lately, and less where a row would otherwise move any r_k
beyond 1 / (2 h_1), h_1 being the largest rate. So no row can, however wild.

The guarantee holds for every sequence, whoever chose it, on every stretch of rows s < t <= T, for every
expert and rate ::

    sum of c^(T-t) a_t [(p_t - y_t)^2 - (x_k,t - y_t)^2]
        <=  [ln(J / pi_k) + c^(T-s) ln(1 / b) + ln(1 / (1 - b)) sum of c^(T-t)] / h_j
            + h_j sum of c^(T-t) r_k,t^2

and from the first row on, s = 0, without its second term. However wrong an expert was before the stretch, it
costs no more than ln(1 / b) to believe it again.

Proof: let W be the sum over k and j of pi_k / J exp(u_kj), which is 1 at the start. As x - x^2 <= ln(1 + x)
for x >= -1/2, exp(c u_kj + h_j r_k - (h_j r_k)^2) is at most exp(c u_kj) (1 + h_j r_k); the sum over k of
w_k r_k is zero, so that the sum of these is at most that of pi_k / J exp(c u_kj), which by Jensen is at most
W^c before the row. So W is at most (1 - b) W^c + b after it: W stays at most 1, and each u_kj at most
ln(J / pi_k). It is at least ln(b) after any row, 0 at the start, and at least ln(1 - b) + c u_kj + h_j r_k -
(h_j r_k)^2 after a row; these added up from s to T, with the upper bound at T, give the sum of r_k. The rest
is convexity.

References
----------
.. [1] O. Wintenberger, "Optimal learning with Bernstein online aggregation", Machine Learning 106, 2017.
.. [2] W. M. Koolen and T. van Erven, "Second-order quantile methods for experts and combinatorial games",
   COLT, 2015.
.. [3] M. Herbster and M. K. Warmuth, "Tracking the best expert", Machine Learning 32, 1998.
"""

import numpy as np

from varnn._types import DoubleArray, IntArray

DISCOUNT = 0.998  # a row counts for a third after five hundred rows
SHARED = 1e-4  # b: who was wrong for long can be believed again within a hundred rows
RATES = np.array([1 / 8, 1 / 32, 1 / 128])  # h
MOST = float(0.5 / RATES[0])  # size of r_k in a row
TRACKED = 0.998  # memory of the mean square of errors
JUMP = 25.0  # times that mean square: a larger square counts as so much
KEPT, BACK = float(np.log1p(-SHARED)), float(np.log(SHARED))  # logarithms of 1 - b and b
LEAST = 1e-12  # of the mean square at the start: errors never get smaller than nothing
_DISCOUNT, _TRACKED, _NEW = np.array(DISCOUNT), np.array(TRACKED), np.array(1 - TRACKED)
_JUMP, _HALF, _BACK = np.array(JUMP), np.array(0.5), np.array(BACK)
_UPDATE = np.array([*DISCOUNT * np.eye(len(RATES)), RATES, -(RATES**2), np.full(len(RATES), KEPT)])
_HIGH = np.array(500.0)  # a score whose power is finite


def scale_column(experts: int) -> int:
    """Column of a state that is the mean square of errors lately, of so many experts."""
    return experts * len(RATES)


class Aggregator:
    """Weights of K experts for each of n series in step.

    Parameters
    ----------
    prior : array of shape (K,)
        Weights at the start, positive, of sum 1.
    noise : float
        Mean square of errors to expect at the start, positive.
    n_series : int
        Series, n.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> aggregator = Aggregator(np.array([0.5, 0.5]), noise=1.0, n_series=1)
    >>> for row in range(500):                                   # the second expert is right
    ...     label = generator.normal(size=1)
    ...     _ = aggregator.combine(np.array([[0.0, 0.9 * label[0]]]))
    ...     aggregator.learn(label)
    >>> aggregator.weights.round(1).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, prior: DoubleArray, noise: float, n_series: int) -> None:
        self.prior = prior
        self.scores = np.zeros((n_series, len(prior), len(RATES)))  # u
        self.scale = np.full(n_series, noise)  # mean square of errors lately
        self.least = LEAST * noise
        self._prior, self._ones = prior[None], np.ones((len(prior), 1))
        self._from_first = np.eye(len(prior))
        self._from_first[0] -= 1  # what the others say, less what the first says
        # [u r r^2 1]: one product with it is c u + h r - (h r)^2 + ln(1 - b).
        self._told = np.ones((n_series, len(prior), len(_UPDATE)))
        self._told_scores = self._told[:, :, : len(RATES)]
        self._told_regrets, self._told_squares = self._told[:, :, -3], self._told[:, :, -2]
        self._experts = np.zeros((n_series, len(prior)))
        self._combined = np.zeros(n_series)
        self._weights: DoubleArray | None = None  # of the scores; made when asked for

    @property
    def weights(self) -> DoubleArray:
        """Weights of the next row: (n, K)."""
        if self._weights is None:
            scores = self.scores * _DISCOUNT
            if np.count_nonzero(scores < _HIGH) < scores.size:  # so that no power is infinite
                scores -= np.maximum.reduce(scores, axis=(1, 2), keepdims=True)
            found = np.exp(scores).dot(RATES) * self._prior
            self._weights = found / found.dot(self._ones)
        return self._weights

    def combine(self, experts: DoubleArray) -> DoubleArray:
        """Combine what the experts say of the next row: (n, K) -> (n,); may be asked any number of times."""
        self._experts[...] = experts
        self._combined = (self.weights * experts).dot(self._ones[:, 0])
        return self._combined

    # On a few numbers products are quicker than sums, and arrays of no axes than numbers.
    def learn(self, labels: DoubleArray) -> None:
        """Take in the labels (n,) of the rows last combined; NaN teaches nothing."""
        errors = labels - self._combined
        missing = None
        unknown = np.isnan(errors)
        if np.count_nonzero(unknown):
            if unknown.all():
                return
            missing, errors = unknown, np.where(unknown, 0.0, errors)
        # How far experts are from p, by way of one of them: those that say the same then are just as far, and
        # the weighted sum is nothing to the last digit, which the guarantee rests on.
        apart = self._experts.dot(self._from_first)
        apart -= (self.weights * apart).dot(self._ones)
        with np.errstate(over="ignore", invalid="ignore"):  # of errors beyond all bounds
            regrets = self._bounded((errors / (self.scale * _HALF))[:, None] * apart)
            squares = np.minimum(errors * errors, self.scale * _JUMP)
        self._told_scores[...], self._told_regrets[...] = self.scores, regrets
        np.multiply(regrets, regrets, out=self._told_squares)
        scores = np.logaddexp(self._told.dot(_UPDATE), _BACK)
        scale = np.maximum(self.scale * _TRACKED + squares * _NEW, self.least)
        if missing is not None:
            scores = np.where(missing[:, None, None], self.scores, scores)
            scale = np.where(missing, self.scale, scale)
        self.scores, self.scale, self._weights = scores, scale, None

    @staticmethod
    def _bounded(regrets: DoubleArray) -> DoubleArray:
        """Make regrets (n, K) of a row smaller where one would be beyond all that it may be."""
        flat = regrets.ravel()
        if flat.dot(flat) <= MOST * MOST:  # no one is, as nearly always in a single series
            return regrets
        largest = np.maximum.reduce(np.abs(regrets), axis=1, keepdims=True)
        regrets *= MOST / np.maximum(largest, MOST)
        return np.where(np.isfinite(regrets), regrets, 0.0)

    def follow(
        self, experts: DoubleArray, labels: DoubleArray, starts: IntArray
    ) -> tuple[DoubleArray, DoubleArray]:
        """Go through the series of a panel side by side.

        Parameters
        ----------
        experts, labels : arrays of shape (N, K) and (N,)
            Of all rows.
        starts : array of shape (S + 1,)
            Row at which each series begins, and the number of rows at the end.

        Returns
        -------
        combined, weights
            (N,) and (N, K), as :meth:`combine` and :meth:`learn` give them row after row.
        """
        combined, weights, lengths = np.empty(len(labels)), np.empty_like(experts), np.diff(starts)
        order = np.argsort(-lengths, kind="stable")  # those that go on are the first ones, at any row
        ends = np.unique(lengths[lengths > 0])  # between these as many series go on
        state, begun = self.state()[order], 0
        for end in ends:
            count = int(np.count_nonzero(lengths >= end))
            going = Aggregator(self.prior, 1.0, count)
            going.least = self.least
            going.restore(state[:count])
            for row in range(begun, end):
                rows = starts[order[:count]] + row
                weights[rows] = going.weights
                combined[rows] = going.combine(experts[rows])
                going.learn(labels[rows])
            state[:count], begun = going.state(), int(end)
        everything = np.empty_like(state)
        everything[order] = state
        self.restore(everything)
        return combined, weights

    def state(self) -> DoubleArray:
        """All that later weights depend on: (n, K J + 1)."""
        return np.column_stack([self.scores.reshape(len(self.scores), -1), self.scale])

    def restore(self, state: DoubleArray) -> None:
        """Take over what :meth:`state` gave."""
        self.scores = state[:, :-1].reshape(self.scores.shape).copy()
        self.scale, self._weights = state[:, -1].copy(), None
