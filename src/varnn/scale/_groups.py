"""Rows of a file, batch by batch -> groups of whole series, as long as the rows of a series lie together."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from varnn.errors import DataError

GROUP_ROWS = 1 << 16  # of whole series that are predicted together
LONGEST = 1 << 19  # rows that are held at most: of one series, or of a file whose series are mixed


class Group(NamedTuple):
    """Some rows of a file."""

    table: Any  # a pyarrow table
    first: int  # number of its first row in the file
    piece: bool  # whether they are a part of one long series
    continues: bool  # whether they go on with the series of the group before


class MixedSeries(DataError):  # noqa: N818 - what is wrong with a file
    """The rows of a series do not lie together."""


def groups(
    batches: Iterable[Any], series: str | None, *, rows: int = GROUP_ROWS, longest: int = LONGEST
) -> Iterator[Group]:
    """Cut batches where a series ends; a series with more rows than ``longest`` comes in pieces.

    Raises :class:`MixedSeries` at the first row of a series that has ended before.

    Examples
    --------
    >>> import pyarrow
    >>> names = pyarrow.record_batch({"name": ["a", "a", "b", "c"]})
    >>> [one.table["name"].to_pylist() for one in groups([names, names.slice(3)], "name", rows=2)]
    [['a', 'a', 'b'], ['c', 'c']]
    """
    import pyarrow

    held: list[Any] = []  # batches
    first = begin = end = 0  # rows of the file: the first one held, that of the last series, the one after
    continues = False  # whether that series has come to a piece before
    name: Any = object()
    ended: set[Any] = set()

    def taken(last: int, *, piece: bool) -> Group:
        nonlocal held, first
        table = pyarrow.Table.from_batches(held)
        group = Group(table.slice(0, last - first), first, piece, continues)
        rest = table.slice(last - first)
        held, first = (rest.to_batches() if len(rest) else []), last
        return group

    for batch in batches:
        start, used = end, 0
        for row, here in _runs(batch, series):
            if here == name:
                continue
            ended.add(name)
            if here in ended:
                raise MixedSeries(
                    f"the rows of a series must lie together; those of {str(here)!r} go on at row "
                    f"{start + row:,}, after other series. varnn.scale.partition_files puts them together."
                )
            if continues:  # what is there before this row is the end of a long series
                held += [batch.slice(used, row - used)] if row > used else []
                if held:
                    yield taken(start + row, piece=True)
                used, continues = row, False
            name, begin = here, start + row
        held.append(batch.slice(used))
        end = start + len(batch)
        if end - first >= rows and begin > first:
            yield taken(begin, piece=False)
        if end - first >= longest:
            yield taken(end, piece=True)
            continues = True
    if end > first:
        yield taken(end, piece=continues)


def _runs(batch: Any, series: str | None) -> list[tuple[int, Any]]:
    """First row and name of each run of rows of one series."""
    if series is None or not len(batch):
        return [(0, None)] if len(batch) else []
    import pyarrow

    column = batch.column(series)
    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = coded.dictionary
    firsts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()]
    return [(row, None if codes[row] < 0 else names[int(codes[row])].as_py()) for row in firsts]
