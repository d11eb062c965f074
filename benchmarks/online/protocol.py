"""Where the published tables cut, what a prediction may see, and how it is scored.

All channels of row t are predicted from the rows before t, and then the row is seen. Each channel is a panel
of its own, whose inputs are the other channels **one row late**: those of row t are not known at t.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from benchmarks.online.data import Recorded, load
from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.errors import ConfigError, nearest


@cache
def published() -> dict[str, Any]:
    """Figures that others published, and their cuts.

    Examples
    --------
    >>> published()["figures"][0]["method"], published()["tables"][0]["ends"]
    ('OnlineTCN', [2880, 3600, 14400])
    """
    found: dict[str, Any] = json.loads((files("benchmarks.online") / "published.json").read_text())
    return found


@dataclass(frozen=True)
class Table:
    """One column of a published table: a file, and the rows before which its three parts end."""

    name: str
    data: str
    protocol: str
    train: int
    validation: int
    test: int

    @classmethod
    def named(cls, name: str) -> "Table":
        """Find one by its name.

        Examples
        --------
        >>> wth = Table.named("WTH")
        >>> wth.test - wth.validation
        26298
        """
        for one in published()["tables"]:
            if one["name"] == name:
                return cls(name, one["data"], one["protocol"], *one["ends"])
        raise ConfigError(f"there is no table {name!r}. {nearest(name, names())}")


def names() -> tuple[str, ...]:
    """Names of all tables."""
    return tuple(one["name"] for one in published()["tables"])


@dataclass(frozen=True, eq=False)
class Task:
    """A table with its rows: standardised, and none after the test part."""

    table: Table
    rows: Recorded

    @classmethod
    def of(cls, table: Table, recorded: Recorded | None = None) -> "Task":
        """Load and standardise by mean and standard deviation of the training rows.

        Examples
        --------
        >>> rows = Recorded(np.array([[0.0], [2.0], [4.0], [9.0]]), ("a",), None)
        >>> Task.of(Table("made", "made", "", 2, 2, 3), rows).rows.values.ravel().tolist()
        [-1.0, 1.0, 3.0]
        """
        whole = load(table.data) if recorded is None else recorded
        train = whole.values[: table.train]
        values = (whole.values[: table.test] - train.mean(axis=0)) / train.std(axis=0)
        times = None if whole.times is None else whole.times[: table.test]
        return cls(table, Recorded(values, whole.channels, times))

    def panel(self, channel: str) -> Panel:
        """Make one channel a panel; its inputs at row t are the other channels of row t - 1."""
        values, channels = self.rows.values, self.rows.channels
        at = channels.index(channel)
        others = [other for other in range(len(channels)) if other != at]
        late = np.full((len(values), len(others)), np.nan)  # before the first row nothing is known
        late[1:] = values[:-1, others]
        return Panel.from_arrays(
            late,
            values[:, at],
            time=self.rows.times,
            input_names=[f"{channels[other]}, one row ago" for other in others],
            target_name=channel,
        )

    def errors(self, predictions: DoubleArray) -> DoubleArray:
        """Errors of (T, C) predictions on the test rows."""
        test = slice(self.table.validation, self.table.test)
        return np.asarray(predictions[test] - self.rows.values[test])


def scored(errors: DoubleArray) -> dict[str, float]:
    """Mean squared and mean absolute error.

    Examples
    --------
    >>> scored(np.array([[1.0, -3.0]]))
    {'mse': 5.0, 'mae': 2.0}
    """
    return {"mse": float(np.mean(errors**2)), "mae": float(np.mean(np.abs(errors)))}
