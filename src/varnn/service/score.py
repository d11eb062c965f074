"""How well a model does on a series, by its last some hundred labels."""

import math
import struct
from typing import Any, Self

MEMORY = 500  # labels over which errors are forgotten
_FIELDS = (
    "rows",
    "weight",
    "square",
    "absolute",
    "paired",
    "paired_square",
    "persistence_square",
    "held_weight",
    "held",
    "width",
    "last_row",
    "last_y",
)
_PACKED = struct.Struct(f"<{len(_FIELDS)}d")


class Score:
    """Exponentially weighted errors of one model on one series, beside those of persistence.

    Persistence predicts the label of the row before. It is compared on rows where that label was known by
    then, and so is the model: ``skill`` is of the same rows for both.

    Examples
    --------
    >>> score = Score()
    >>> for row, (y, prediction) in enumerate([(1.0, 1.5), (2.0, 2.5), (4.0, 4.5)]):
    ...     score.add(row, y, prediction, lower=prediction - 1, upper=prediction + 1)
    >>> told = score.told()
    >>> round(told["rmse"], 3), round(told["skill"], 3), told["coverage"]
    (0.5, 0.9, 1.0)
    >>> Score.unpacked(score.packed()).told() == told
    True
    """

    __slots__ = _FIELDS
    rows: float
    weight: float
    square: float
    absolute: float
    paired: float
    paired_square: float
    persistence_square: float
    held_weight: float
    held: float
    width: float
    last_row: float
    last_y: float

    def __init__(self) -> None:
        for name in _FIELDS:
            setattr(self, name, 0.0)
        self.cut_off()

    def add(self, row: int, y: float, prediction: float, lower: float | None, upper: float | None) -> None:
        """Take in a label, and what was said before it came."""
        keep, error = 1 - 1 / MEMORY, y - prediction
        self.rows += 1
        self.weight = keep * self.weight + 1
        self.square = keep * self.square + error * error
        self.absolute = keep * self.absolute + abs(error)
        if self.last_row == row - 1:
            change = y - self.last_y
            self.paired = keep * self.paired + 1
            self.paired_square = keep * self.paired_square + error * error
            self.persistence_square = keep * self.persistence_square + change * change
        if lower is not None and upper is not None:
            self.held_weight = keep * self.held_weight + 1
            self.held = keep * self.held + (lower <= y <= upper)
            self.width = keep * self.width + (upper - lower)
        if row > self.last_row:
            self.last_row, self.last_y = float(row), y

    def cut_off(self) -> None:
        """Let the next label be one that none came before."""
        self.last_row, self.last_y = -2.0, math.nan

    def told(self) -> dict[str, Any]:
        """Figures, with None for those that are not known yet."""
        return {
            "rows": int(self.rows),
            "rmse": _root(self.square, self.weight),
            "mae": _ratio(self.absolute, self.weight),
            "persistence_rmse": _root(self.persistence_square, self.paired),
            "skill": self.skill,
            "coverage": self.coverage,
            "innovation_scale": _root(self.square, self.weight),
            "width": _ratio(self.width, self.held_weight),
        }

    @property
    def skill(self) -> float | None:
        """One less the ratio of squared errors to those of persistence; None while there are none."""
        ratio = _ratio(self.paired_square, self.persistence_square)
        return None if ratio is None else 1 - ratio

    @property
    def coverage(self) -> float | None:
        """Share of labels within their intervals; None without intervals."""
        return _ratio(self.held, self.held_weight)

    def packed(self) -> bytes:
        """All of it as bytes."""
        return _PACKED.pack(*(getattr(self, name) for name in _FIELDS))

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """Undo :meth:`packed`."""
        score = cls()
        for name, value in zip(_FIELDS, _PACKED.unpack(data), strict=True):
            setattr(score, name, value)
        return score


def over_all(scores: list[Score]) -> dict[str, Any]:
    """Figures over several series: each label counts alike, in its series' own units.

    Examples
    --------
    >>> over_all([])["rmse"] is None
    True
    """
    total = Score()
    for name in _FIELDS:
        if not name.startswith("last"):
            setattr(total, name, sum(getattr(one, name) for one in scores))
    told = total.told()
    # Skills are ratios, so that series of other units can be put together; the middle one says most.
    skills = sorted(skill for one in scores if (skill := one.skill) is not None)
    told["skill"] = skills[len(skills) // 2] if skills else None
    return told


def _ratio(total: float, weight: float) -> float | None:
    if not weight > 0:
        return None
    ratio = total / weight
    return ratio if math.isfinite(ratio) else None


def _root(total: float, weight: float) -> float | None:
    ratio = _ratio(total, weight)
    return None if ratio is None else math.sqrt(ratio)
