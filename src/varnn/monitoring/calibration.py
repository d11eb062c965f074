"""Do intervals keep what they promise? Coverage by level and over time, and where labels fall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, IntArray
from varnn.errors import DataError

_MOST_SPANS = 20
_FEWEST_IN_SPAN = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """What intervals promised, and what they kept; made by :func:`calibrate`.

    Parameters
    ----------
    levels, coverage : array
        Nominal levels, rising, and the share of labels within the intervals of each.
    edges, density : array
        Probabilities that the bounds stand for, with 0 and 1 at the ends, and how often labels fall
        between neighbouring ones, in units of how often they should: the histogram of the probability
        integral transform. Flat is right; high ends mean intervals too narrow, a slope a bias.
    watched : float
        The level whose coverage is shown over time.
    spans, span_coverage : array of int, array
        Up to 20 spans of time, those of all series together: the first row of each, counted from the start
        of a series, and the coverage at the watched level within it.
    chance : float
        How far the coverage of a span may lie off its level by chance, 19 times in 20.
    width : array
        Mean width of the intervals of each level, in the target's units.
    """

    levels: DoubleArray
    coverage: DoubleArray
    edges: DoubleArray
    density: DoubleArray
    watched: float
    spans: IntArray
    span_coverage: DoubleArray
    chance: float
    width: DoubleArray


def calibrate(
    target: npt.NDArray[Any],
    lower: npt.NDArray[Any],
    upper: npt.NDArray[Any],
    levels: Sequence[float],
    *,
    watched: float = 0.9,
    position: npt.NDArray[Any] | None = None,
) -> Calibration:
    """Hold labels against the intervals predicted for them.

    Parameters
    ----------
    target : array
        Labels, (n_rows,), NaN where missing.
    lower, upper : array
        Bounds, (n_rows, n_levels).
    levels : sequence of float
        Nominal level of each column, rising.
    watched : float, default=0.9
        The level to follow over time, one of ``levels``.
    position : array or None, default=None
        Number of each row in its series; None for one series.

    Examples
    --------
    >>> from statistics import NormalDist
    >>> levels = [0.5, 0.9]
    >>> reach = np.array([NormalDist().inv_cdf((1 + level) / 2) for level in levels])
    >>> labels = np.random.default_rng(0).normal(size=5000)
    >>> calibrate(labels, np.tile(-reach, (5000, 1)), np.tile(reach, (5000, 1)), levels).coverage.round(2)
    array([0.5, 0.9])
    """
    promised = np.asarray(levels, dtype=np.float64)
    known = ~np.isnan(target)
    if not known.any() or watched not in levels or (np.diff(promised) <= 0).any():
        raise DataError(
            f"calibration needs rising levels, {watched:g} among them, and known labels; got levels "
            f"{list(levels)} and {int(known.sum())} known labels."
        )
    labels, low, high = target[known, None], lower[known], upper[known]
    inside = (low <= labels) & (labels <= high)
    edges = np.concatenate([[0.0], (1 - promised[::-1]) / 2, (1 + promised) / 2, [1.0]])
    # The number of bounds below a label is the number of the bin it falls into.
    bins = (low < labels).sum(axis=1) + (high < labels).sum(axis=1)
    shares = np.bincount(bins, minlength=len(edges) - 1) / len(labels)
    places = (np.arange(len(target)) if position is None else position)[known]
    in_time = np.argsort(places, kind="stable")
    hits = inside[in_time, list(levels).index(watched)].astype(np.float64)
    count = int(np.clip(len(labels) // _FEWEST_IN_SPAN, 1, _MOST_SPANS))
    cuts = np.linspace(0, len(labels), count + 1).astype(np.int64)
    sizes = np.diff(cuts)
    return Calibration(
        levels=promised,
        coverage=inside.mean(axis=0),
        edges=edges,
        density=shares / np.diff(edges),
        watched=watched,
        spans=places[in_time][cuts[:-1]],
        span_coverage=np.add.reduceat(hits, cuts[:-1]) / sizes,
        chance=float(1.96 * np.sqrt(watched * (1 - watched) / sizes.min())),
        width=(high - low).mean(axis=0),
    )
