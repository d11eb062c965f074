"""What somebody without varnn would lay out first: a table of lags for trees, and windows for networks."""

import numpy as np

from benchmarks.cost.house import DAY, WEEK
from varnn._types import DoubleArray
from varnn.data.panel import Panel

LABEL_LAGS = (1, 2, 3, 4, 5, 6, DAY, WEEK)
WINDOW = 24  # rows, as of the default


def clock(panel: Panel) -> DoubleArray:
    """Hour of the day and day of the week, (N, 2)."""
    seconds = np.asarray(panel.time).astype("datetime64[s]").astype(np.int64)
    return np.column_stack([seconds // 3600 % 24, seconds // 86_400 % 7]).astype(np.float64)


def lag_table(panel: Panel) -> DoubleArray:
    """Inputs of each row, labels before it, and the clock: (N, D + lags + 2); NaN where there is none yet.

    Examples
    --------
    >>> from benchmarks.cost.house import rows_like_appliances
    >>> panel = rows_like_appliances(50)
    >>> table = lag_table(panel)
    >>> table.shape, bool(table[9, 26] == panel.target[8]), bool(np.isnan(table[0, 26]))
    ((50, 36), True, True)
    """
    labels = np.full((len(panel), len(LABEL_LAGS)), np.nan)
    for column, lag in enumerate(LABEL_LAGS):
        labels[lag:, column] = panel.target[: max(0, len(panel) - lag)]
    return np.column_stack([panel.inputs, labels, clock(panel)])


def steps(panel: Panel) -> DoubleArray:
    """Inputs, the label before and the clock, of each row: (N, D + 3), of which windows are cut."""
    before = np.concatenate([panel.target[:1], panel.target[:-1]])
    return np.column_stack([panel.inputs, before, clock(panel)])
