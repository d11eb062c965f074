"""Names of series, one for each row -> where each series begins, and its rows together."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import IntArray

RowNumbers = npt.NDArray[np.signedinteger[Any]]

_ROWS_AT_ONCE = 1 << 20


class Coded(NamedTuple):
    """Which series each row belongs to: names, numbered as they first appear, and a number for each row."""

    names: tuple[str, ...]
    codes: RowNumbers

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> "Coded":
        """Number the values.

        Examples
        --------
        >>> coded = Coded.of(np.array(["b", "a", "b"]))
        >>> coded.names, coded.codes.tolist()
        (('b', 'a'), [0, 1, 0])
        """
        unique, first, codes = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return cls(tuple(str(unique[index]) for index in order), np.argsort(order)[codes])

    def grouping(self) -> tuple[IntArray, RowNumbers]:
        """Place at which each series begins, (S + 1,), and the row at each place, (N,).

        Rows of a series stay in their order. They are gone through block by block: sorted all at once, ten
        million of them would take three times the memory.

        Examples
        --------
        >>> starts, rows = Coded(("b", "a"), np.array([0, 1, 0])).grouping()
        >>> starts.tolist(), rows.tolist()
        ([0, 2, 3], [0, 2, 1])
        """
        rows, size = row_numbers(len(self.codes)), len(self.names)
        blocks = [slice(begin, begin + _ROWS_AT_ONCE) for begin in range(0, len(rows), _ROWS_AT_ONCE)]
        counts = [np.bincount(self.codes[block], minlength=size) for block in blocks]
        starts = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0))])
        if np.any(self.codes[1:] < self.codes[:-1]):
            free = starts[:-1].copy()  # the first place of each series that is not taken yet
            for block, count in zip(blocks, counts, strict=True):
                within = np.argsort(self.codes[block], kind="stable")
                codes = self.codes[block][within]
                ranks = np.arange(len(codes)) - (np.cumsum(count) - count)[codes]
                rows[free[codes] + ranks] = block.start + within
                free += count
        return starts, rows


def row_numbers(count: int) -> RowNumbers:
    """Count rows from 0; in four bytes each where these do, as a long table feels it."""
    return np.arange(count, dtype=np.int32 if count <= np.iinfo(np.int32).max else np.int64)
