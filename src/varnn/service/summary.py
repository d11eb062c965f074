"""What a list of series shows of each: its last row, how well it goes, and how much it is in trouble."""

import json
import math
import struct
from typing import Any, Self

from varnn.service.score import Score

_RECENT = 1000  # rows in which alarms count
_MOST_ALARMS = 20  # that are kept in mind
_CALM = "[[], null]"
_FEWEST = 50  # labels before coverage or skill say something
_LAST = struct.Struct("<7d")  # row, at, y, its row, prediction, lower, upper


class Summary:
    """One series as of now.

    Parameters
    ----------
    name : str
        Name of the series as JSON.

    Examples
    --------
    >>> one = Summary('"north"')
    >>> one.open(0, 1.7e9, 2.0, 1.0, 3.0)
    >>> one.label(0, 2.5)
    >>> one.told(0.9)["y"], one.told(0.9)["series"], one.trouble(0.9)
    (2.5, 'north', 0.0)
    """

    __slots__ = (
        "alarms",
        "at",
        "event",
        "lower",
        "name",
        "prediction",
        "row",
        "score",
        "series",
        "upper",
        "y",
        "y_row",
    )

    def __init__(self, name: str) -> None:
        self.name, self.series, self.score = name, json.loads(name), Score()
        self.row, self.at = -1, math.nan  # of the row opened last
        self.y, self.y_row = math.nan, -1  # the label of the latest row that has one
        self.prediction = self.lower = self.upper = math.nan
        self.alarms: list[int] = []  # rows at which something was noticed, the latest ones
        self.event: dict[str, Any] | None = None  # the last of them

    def open(
        self, row: int, at: float, prediction: float | None, lower: float | None, upper: float | None
    ) -> None:
        """Hear of a row that was predicted."""
        self.row, self.at = row, at
        self.prediction, self.lower, self.upper = map(_number, (prediction, lower, upper))

    def go_back(self, rows: int, last: tuple[Any, ...] | None, labelled: tuple[int, float] | None) -> None:
        """Go on after so many rows: the last one as history has it, if it does, and the last label."""
        self.open(rows - 1, *(last or (math.nan, None, None, None)))
        self.y_row, self.y = labelled or (-1, math.nan)
        self.alarms = [row for row in self.alarms if row < rows]
        self.score.last_row, self.score.last_y = -2.0, math.nan  # no row before the next one is known to it

    def label(self, row: int, y: float) -> None:
        """Hear of a label."""
        if row >= self.y_row:
            self.y, self.y_row = y, row

    def alarm(self, event: dict[str, Any]) -> None:
        """Hear of an event of the monitor."""
        self.alarms = [*self.alarms, int(event["row"])][-_MOST_ALARMS:]
        self.event = event

    @property
    def recent_alarms(self) -> int:
        """Events in the last thousand rows."""
        return sum(row > self.row - _RECENT for row in self.alarms)

    def trouble(self, level: float | None) -> float:
        """How much it asks to be looked at, from 0: alarms, lost coverage, worse than persistence."""
        score, total = self.score, min(self.recent_alarms, 5) * 0.5
        if score.rows >= _FEWEST:
            total += min(1.0, max(0.0, -(score.skill or 0.0)))
            if level is not None and score.coverage is not None:
                total += min(1.0, 5 * max(0.0, level - 0.02 - score.coverage))
        return total

    def told(self, level: float | None) -> dict[str, Any]:
        """As it is sent."""
        return {
            "series": self.series,
            "rows": self.row + 1,
            "at": _or_none(self.at),
            "y": _or_none(self.y),
            "prediction": _or_none(self.prediction),
            "lower": _or_none(self.lower),
            "upper": _or_none(self.upper),
            "score": self.score.told(),
            "alarms": self.recent_alarms,
            "last_event": self.event,
            "trouble": round(self.trouble(level), 3),
        }

    def packed(self) -> tuple[bytes, str]:
        """All of it but the name, for a database."""
        last = (self.row, self.at, self.y, self.y_row, self.prediction, self.lower, self.upper)
        calm = not self.alarms and self.event is None  # as nearly all are
        return _LAST.pack(*last) + self.score.packed(), _CALM if calm else json.dumps(
            [self.alarms, self.event]
        )

    @classmethod
    def unpacked(cls, name: str, numbers: bytes, alarms: str) -> Self:
        """Undo :meth:`packed`."""
        one = cls(name)
        row, one.at, one.y, y_row, one.prediction, one.lower, one.upper = _LAST.unpack(numbers[: _LAST.size])
        one.row, one.y_row = int(row), int(y_row)
        one.score = Score.unpacked(numbers[_LAST.size :])
        one.alarms, one.event = json.loads(alarms)
        return one


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
