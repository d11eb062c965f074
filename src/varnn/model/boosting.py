"""The boosting expert: regression trees, grown by LightGBM alongside the network, evaluated by the step.

A row is seen as the network's scaled inputs and the standardised regressors of the linear part, which look
back on labels, inputs and seasons. What is predicted is the network's own target: what the linear part
leaves, in scaled units.

Leaves of a tree are numbered from left to right, and so are its splits: split k lies between leaves k and
k + 1. So the leaves to the left below it are those from some leaf ``first`` to k, and that says where it is
in the tree. A row whose feature is above the threshold of a split cannot be in these; of all leaves that no
split rules out, it is in the first [1]_. All splits of all trees are looked at together, each for itself,
which in NumPy takes less time than going down level by level.

References
----------
.. [1] C. Lucchese et al., "QuickScorer: a fast algorithm to rank documents with additive ensembles of
   regression trees", SIGIR, 2015.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray

LEAVES = 31  # of a tree, at most
MOST_TREES = 2000
NEVER = 1e300  # threshold of a split that is none: trees with fewer are filled up
LARGEST = 1e9  # value of a leaf, in scaled units
_SPLITS_AT_ONCE = 1 << 19  # of all rows of a block: 4 MB


@dataclass(frozen=True, eq=False, kw_only=True)
class Trees:
    """Regression trees whose sum is the prediction: T trees of up to S splits.

    Parameters
    ----------
    feature : array of shape (S, T)
        Feature that each split looks at.
    threshold : array of shape (S, T)
        A row goes to the left where its feature is at most so much.
    first : array of shape (S, T)
        First leaf to the left below each split; the last one is the split's own number.
    value : array of shape (S + 1, T)
        What each leaf adds to the prediction.

    Examples
    --------
    >>> stump = Trees(
    ...     feature=np.array([[1]]), threshold=np.array([[0.5]]), first=np.array([[0]]),
    ...     value=np.array([[-1.0], [1.0]]))
    >>> stump.left.tolist()                            # leaf 0 is the first bit
    [[1]]
    """

    feature: npt.NDArray[np.int32]
    threshold: DoubleArray
    first: npt.NDArray[np.int32]
    value: DoubleArray

    def __len__(self) -> int:
        """Number of trees."""
        return int(self.value.shape[1])

    @cached_property
    def left(self) -> npt.NDArray[np.int64]:
        """Leaves to the left below each split, as bits: (S, T)."""
        last = np.arange(len(self.first), dtype=np.int64)[:, None]
        return (np.int64(2) << last) - (np.int64(1) << self.first.astype(np.int64))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All numbers by name, as arrays for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "Trees":
        """Undo :meth:`arrays`; KeyError where something is missing."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    def broken(self, features: int) -> str | None:
        """Say what keeps arrays, whose numbers are finite, from being trees of so many features, if anything.

        Leaves to the left below two splits lie within each other or apart: nothing else is a tree.
        """
        splits, trees = self.first.shape
        if len(self.value) != splits + 1 or splits >= LEAVES or not 1 <= trees <= MOST_TREES:
            return f"has not from 1 to {MOST_TREES} trees, with a leaf more than splits and at most {LEAVES}"
        if self.feature.min(initial=0) < 0 or self.feature.max(initial=0) >= features:
            return f"looks at features that are none of {features}"
        own = np.arange(splits)[:, None]
        if (self.first < 0).any() or (self.first > own).any():
            return "has a split whose first leaf is not to its left"
        for split in range(1, splits):
            reached = self.first[split] <= own[:split]
            if (reached & (self.first[:split] < self.first[split])).any():
                return "has splits whose leaves overlap"
        return None
