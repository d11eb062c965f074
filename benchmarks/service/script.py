"""Messages of a series, one after the other: every way to bring rows and labels, with keys."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

LATE = 6  # rows that labels come late at most; a service may allow more
_FIRST = np.datetime64("2024-01-01T00:00", "s")


class Sent(NamedTuple):
    """A message, and the route it goes to."""

    verb: str
    message: dict[str, Any]
    is_good: bool = True

    @property
    def line(self) -> bytes:
        """The message as JSON."""
        return json.dumps(self.message).encode()


class Script(Iterator[Sent]):
    """What is said of one series, without end; the same for the same seed.

    Parameters
    ----------
    series
        Its name.
    n_inputs
        Inputs of a row.
    seed
        Of what is drawn.
    timed
        Whether rows have times.

    Attributes
    ----------
    labels
        Labels said so far by row; None for one that is missing.
    times
        Times by row.

    Examples
    --------
    >>> script = Script("north", 2)
    >>> first = next(script)
    >>> first.verb, sorted(first.message)
    ('step', ['interval', 'key', 'series', 'time', 'x'])
    """

    def __init__(self, series: str, n_inputs: int, seed: int = 0, *, timed: bool = True) -> None:
        self.series, self._n_inputs, self._timed = series, n_inputs, timed
        self._random = np.random.default_rng([seed, *series.encode()])
        self.labels: dict[int, float | None] = {}
        self.times: list[str | None] = []
        self._walk = 0.0
        self._number = self._taken = 0  # messages made, and those of them that are good
        self._open: int | None = None
        self._opened_by: dict[int, tuple[str, int]] = {}  # key and number of the message that opened a row
        self._waiting: list[int] = []

    def __next__(self) -> Sent:
        """Make the next message."""
        random = self._random
        self._waiting = [row for row in self._waiting if row > len(self.times) - LATE]
        draw = random.random()
        if draw < 0.04:
            return self._bad()
        if self._waiting and draw < 0.2:
            return self._label_late(self._waiting.pop(int(random.integers(len(self._waiting)))))
        if self._open is not None and draw < 0.5:
            return self._label_open()
        return self._row()

    def _row(self) -> Sent:
        random, row = self._random, len(self.times)
        message: dict[str, Any] = {"x": self._x()}
        if self._timed:
            message["time"] = str(_FIRST + row * np.timedelta64(600, "s"))
        if random.random() < 0.2:
            message["interval"] = [0.5, 0.8] if random.random() < 0.5 else 0.8
        whole = random.random() < 0.4
        if self._open is not None:
            if not whole and random.random() < 0.6:
                message["last_y"] = self._label(self._open)
            else:
                self._waiting.append(self._open)
        self.times.append(message.get("time"))
        self._open = row
        if whole:
            message["y"] = self._label(row)
            self._open = None
        sent = self._sent("step", message)
        self._opened_by[row] = sent.message["key"], self._taken
        return sent

    def _label_open(self) -> Sent:
        row, self._open = int(self._open or 0), None
        return self._sent("observe", {"y": self._label(row)})

    def _label_late(self, row: int) -> Sent:
        key, number = self._opened_by[row]
        of = key if self._random.random() < 0.5 else number
        return self._sent("observe", {"y": self._label(row), "for": of})

    def _bad(self) -> Sent:
        """Say something that is refused, and must change nothing."""
        self._number += 1
        bad: dict[str, Any] = {"x": [1.0], "y": 2.0}
        if self._timed and len(self.times) > LATE and self._random.random() < 0.5:
            bad = {"x": self._x(), "time": self.times[0]}
        return Sent("step", {"series": self.series, **bad, "key": f"bad{self._number}"}, False)

    def _sent(self, verb: str, message: dict[str, Any]) -> Sent:
        self._number += 1
        self._taken += 1
        return Sent(verb, {"series": self.series, **message, "key": f"k{self._number}"})

    def _x(self) -> list[float | None]:
        x: list[float | None] = self._random.normal(size=self._n_inputs).round(6).tolist()
        if self._random.random() < 0.05:
            x[int(self._random.integers(self._n_inputs))] = None
        return x

    def _label(self, row: int) -> float | None:
        """Draw a label: a walk that jumps once in a while, so that there are events; or none."""
        random = self._random
        self._walk += float(random.normal()) / 5 + (
            float(random.normal()) * 20 if random.random() < 0.01 else 0
        )
        found = None if random.random() < 0.1 else round(self._walk, 6)
        self.labels[row] = found
        return found
