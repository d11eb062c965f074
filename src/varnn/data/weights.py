"""How much the error of each row counts in a fit -> weights of a panel, and means that go by them.

What is learnt and what is chosen goes by weighted errors: the ridge of the linear part, the network's loss,
its epochs, trees, shrinkage and the first weights of experts. A row of weight 0 is still a row of its series,
whose label feeds the memory; only its own error counts for nothing. Scalings, intervals and what is learnt
after the fit are of all rows alike.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.odd_input import unmasked
from varnn.data.panel import Panel
from varnn.data.rules import shown
from varnn.errors import DataError


def row_weights(values: Any, n_rows: int) -> DoubleArray | None:
    """Read weights of rows: one for each, none below zero, not all of them zero.

    Examples
    --------
    >>> row_weights([1, 2], 2).tolist()
    [1.0, 2.0]
    """
    if values is None:
        return None
    try:
        weights = np.asarray(unmasked(values), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"sample_weight must hold one number per row; got {shown(values)}.") from None
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},), one per row; it has {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise DataError("sample_weight must hold finite numbers, none below zero and not all of them zero.")
    return weights


def in_panel_order(X: Any, panel: Panel, sample_weight: Any) -> DoubleArray | None:
    """Weights of a panel's rows: those of a panel come in its own order, others in that of X."""
    weights = row_weights(sample_weight, len(panel))
    return weights if weights is None or isinstance(X, Panel) else weights[panel.rows]


def weighted(X: Any, panel: Panel, sample_weight: Any) -> Panel:
    """Give a panel weights, whose mean over the rows that count is 1: their size means nothing.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, [1.0, 2.0, None, 4.0])
    >>> weighted(panel, panel, [2, 0, 5, 6]).weights.tolist()
    [0.5, 0.0, 1.25, 1.5]
    """
    weights = in_panel_order(X, panel, sample_weight)
    if weights is None:
        return panel
    counting = replace(panel, weights=weights).counted
    if not counting.any():
        raise DataError(
            "some row with a label must have a weight above zero; sample_weight is zero in all of them."
        )
    return replace(panel, weights=weights / weights[counting].mean())


def refuse_uncounted(panel: Panel, rows: str) -> None:
    """Refuse rows none of which counts: nothing can be learnt from them, or chosen on them."""
    if panel.weights is not None and not panel.counted.any():
        raise DataError(
            f"sample_weight must be above zero in some of {rows}; it is zero in all {len(panel):,} of them. "
            "Give them weights, or other rows as `validation`."
        )


def mean_by_weight(values: npt.NDArray[Any], weights: npt.NDArray[Any] | None) -> float:
    """Mean of what is known, by weight if there are any.

    Examples
    --------
    >>> mean_by_weight(np.array([1.0, np.nan, 4.0]), np.array([2.0, 9.0, 1.0]))
    2.0
    """
    if weights is None:
        return float(np.nanmean(values))
    known = ~np.isnan(values)
    return float(np.average(values[known], weights=weights[known]))
