"""How a training went: what people ask of it afterwards, kept with the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

_ON_DISK = {"refitted_on": "refitted on", "candidates": "inputs"}  # names in files that are other ones here


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """How a training went; nothing is decided from it.

    Parameters
    ----------
    rows, series : int or None
        Rows that were learnt from while choosing, and their series; None in files that do not know.
    epochs, best_epoch : list of int
        Epochs that each member trained, and the one it was kept at.
    history : list of dict
        One line per epoch and member.
    candidates : dict
        Validation error of each set of inputs that was tried, by what the network saw; empty where there
        was nothing to choose.
    validation : dict
        Mean squared errors on validation rows: of the model, of persistence, of the linear part alone.
    refitted_on : int or None
        Rows of the last training, on all rows; None if there was none.
    interrupted : str or None
        Where training was cut short, in words; None if it was not.
    period : list of str or None
        First and last time of the rows given.
    reading : dict
        How the table of these rows was read, as far as it was not the usual way.
    backend : str or None
        Kind of table that these rows came in, such as "polars"; None if they came in none.
    leak : str or None
        Which inputs determine the target of their own row, in words; None if none do.
    few_errors : str or None
        How far ahead validation rows tell little about errors of forecasts, in words; None if nowhere.

    Examples
    --------
    >>> TrainingRecord.from_dict({"rows": 80, "series": 1, "refitted on": 100}).trained_on
    100
    """

    rows: int | None = None
    series: int | None = None
    epochs: list[int] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    candidates: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    refitted_on: int | None = None
    interrupted: str | None = None
    period: list[str] | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    backend: str | None = None
    leak: str | None = None
    few_errors: str | None = None

    @property
    def trained_on(self) -> int | None:
        """Rows of the last training."""
        return self.rows if self.refitted_on is None else self.refitted_on

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a file; what is not known is left out."""
        values = {_ON_DISK.get(one.name, one.name): getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value != {}}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> "TrainingRecord":
        """Undo :meth:`as_dict`; files may be older than a field, or newer."""
        named = {one.name: _ON_DISK.get(one.name, one.name) for one in fields(cls)}
        return cls(**{name: facts[there] for name, there in named.items() if there in facts})
