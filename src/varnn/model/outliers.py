"""What labels are plausible, as learned from training rows; `varnn.step.label_filter` says how it is used."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from varnn._types import BoolArray, DoubleArray, IntArray
from varnn.data.chunks import ROWS_AT_ONCE
from varnn.data.panel import Panel
from varnn.model.rows import run_panel
from varnn.model.runtime import filter_model
from varnn.step.label_filter import CHANGE_FACTOR

MAX_RANGES = 10.0  # of the training labels: how far outside them a series may begin


class _Pairs(NamedTuple):
    """Labels, and how they changed from the ones before them: some rows at a time."""

    rows: IntArray  # that have a label
    labels: DoubleArray
    sizes: DoubleArray  # of changes, a row; NaN for the first label of a series


@dataclass(frozen=True, kw_only=True)
class LabelFilter:
    """Bounds of plausible labels, as learnt from training rows.

    Parameters
    ----------
    change : float
        Largest change a row from the label before, either way.
    low, high : float
        Range of the first label of a series.

    Examples
    --------
    >>> training = Panel.from_arrays(None, [1.0, 2.0, 1.0, 3.0])
    >>> plausible = LabelFilter.fit(training)
    >>> plausible(Panel.from_arrays(None, [2.0, 99.0, 3.0, 50.0, 51.0, 52.0, 53.0])).target.tolist()
    [2.0, nan, 3.0, nan, 51.0, 52.0, 53.0]
    """

    change: float
    low: float
    high: float

    @classmethod
    def fit(cls, *panels: Panel) -> "LabelFilter | None":
        """Learn from training rows, all of which are plausible; None where their labels never change."""
        change, low, high = 0.0, np.inf, -np.inf
        for panel in panels:
            for pairs in _pairs(panel):
                change = float(np.fmax.reduce(pairs.sizes, initial=change))
                low, high = min(low, float(pairs.labels.min())), max(high, float(pairs.labels.max()))
        if not 0 < change < np.inf:
            return None
        beyond = MAX_RANGES * (high - low)
        return cls(change=CHANGE_FACTOR * change, low=low - beyond, high=high + beyond)

    def __call__(self, panel: Panel) -> Panel:
        """Mark labels that are not plausible as missing; without any, return the panel itself."""
        rejected = self.rejected(panel)
        if not rejected.any():
            return panel
        target = panel.target.copy()
        target[rejected] = np.nan
        return replace(panel, target=target)

    def rejected(self, panel: Panel) -> BoolArray:
        """Return which labels of a panel are not plausible: (N,)."""
        rejected = np.zeros(len(panel), np.bool_)
        labels_alone = replace(panel, inputs=panel.inputs[:, :0], input_names=())
        for rows, taps in run_panel(filter_model(self), labels_alone, wanted=("label",)):
            rejected[rows] = np.isnan(taps.label) & ~np.isnan(panel.target[rows])
        return rejected


def _pairs(panel: Panel) -> Iterator[_Pairs]:
    """Go through the labels of a panel, some rows at a time."""
    latest, label = -1, np.nan
    for begin in range(0, len(panel), ROWS_AT_ONCE):
        values = panel.target[begin : begin + ROWS_AT_ONCE]
        places = np.flatnonzero(~np.isnan(values))
        if not len(places):
            continue
        rows, labels = begin + places, values[places].astype(np.float64)
        sizes = np.abs(np.diff(labels, prepend=label))
        sizes /= np.diff(rows, prepend=latest)
        series = panel.starts[np.searchsorted(panel.starts, rows, side="right") - 1]
        sizes[np.concatenate([[latest], rows[:-1]]) < series] = np.nan  # another series', or none
        yield _Pairs(rows, labels, sizes)
        latest, label = int(rows[-1]), float(labels[-1])
