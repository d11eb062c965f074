"""What was said of rows that may still be labelled: in memory those of late, else on disk."""

import sqlite3
from typing import Any

Bounds = tuple[Any, ...]  # prediction, lower and upper bound, and what else a query gives


class Said:
    """Predictions of each series' last rows, to be compared with labels when they come.

    Parameters
    ----------
    query : str
        SQL for what is on disk: ``prediction, lower, upper`` of a series and a row, in this order.
    rows : int
        Rows kept in memory, behind the last one.

    Examples
    --------
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE rows (series, row, prediction, lower, upper)")
    >>> said = Said("SELECT prediction, lower, upper FROM rows WHERE series = ? AND row = ?", 2)
    >>> said.database = database
    >>> said.keep(1, 0, (2.0, 1.0, 3.0))
    >>> said.of(1, 0), said.of(1, 7)
    ((2.0, 1.0, 3.0), None)
    """

    def __init__(self, query: str, rows: int) -> None:
        self._query, self._rows = query, rows
        self._kept: dict[int, dict[int, Bounds]] = {}
        self.database: sqlite3.Connection | None = None

    def keep(self, series: int, row: int, bounds: Bounds) -> None:
        """Keep in mind what was said of a row."""
        rows = self._kept.setdefault(series, {})
        rows[row] = bounds
        if len(rows) > self._rows + 1:
            del rows[next(iter(rows))]  # they come in order

    def of(self, series: int, row: int) -> Bounds | None:
        """What was said of a row; None where that is not kept."""
        found = self._kept.get(series, {}).get(row)
        if found is None and self.database is not None:
            found = self.database.execute(self._query, (series, row)).fetchone()
        return None if found is None or found[0] is None else found

    def left(self, series: int) -> None:
        """Forget a series, which left memory."""
        self._kept.pop(series, None)
