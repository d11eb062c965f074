"""Messages to load a service with: 26 inputs by name, label and time, as prepared requests."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.cost.house import rows_like_appliances
from benchmarks.service.light_client import request

BATCH = 100  # rows of a request
_FIRST, _STEP = np.datetime64("2024-01-01T00:00", "s"), 600  # seconds between rows
_KINDS = 500  # different rows; then they come again


class Rows:
    """Rows of any number of series, one every ten minutes of each.

    Parameters
    ----------
    stream
        Name of the stream they are for.

    Examples
    --------
    >>> rows = Rows("house")
    >>> message = rows.message("north", whole=True)
    >>> sorted(message), len(message["x"]), rows.message("north", whole=True)["time"]
    (['series', 'time', 'x', 'y'], 26, '2024-01-01T00:10:00')
    """

    def __init__(self, stream: str) -> None:
        panel = rows_like_appliances(_KINDS)
        inputs = panel.inputs.astype(np.float64).round(3).tolist()
        self._x = [dict(zip(panel.input_names, row, strict=True)) for row in inputs]
        self._y = panel.target.astype(np.float64).tolist()
        self._path = f"/v1/streams/{stream}/step"
        self._next: dict[Any, int] = {}
        self._key = 0

    def message(self, series: Any, *, whole: bool) -> dict[str, Any]:
        """The next row of a series: with its own label, or with that of the row before."""
        row = self._next.get(series, 0)
        self._next[series] = row + 1
        made = {"series": series, "x": self._x[row % _KINDS], "time": str(_FIRST + _STEP * row)}
        if whole:
            return made | {"y": self._y[row % _KINDS]}
        return made | ({"last_y": self._y[(row - 1) % _KINDS]} if row else {})

    def batch(self, series: Sequence[Any], *, keys: bool = False) -> bytes:
        """A request with the next whole row of each of some series."""
        rows = [self.message(one, whole=True) for one in series]
        for row in rows if keys else ():
            self._key += 1
            row["key"] = f"k{self._key}"
        return request(self._path, rows)

    def batches(self, series: int) -> Iterator[bytes]:
        """Requests that go round all of some series, without end."""
        at = 0
        while True:
            yield self.batch([(at + place) % series for place in range(BATCH)])
            at += BATCH

    def steps(self, series: Any) -> Iterator[bytes]:
        """Requests of one step each, without end."""
        while True:
            yield request(self._path, self.message(series, whole=False))
