"""What experts had learnt when a snapshot of before was taken -> the same in the coordinates of today.

Such a snapshot calls it "experts", and holds the changes of coefficients as they are, d, rates before
members. Today it is "learning", and holds c of d = L c, members before rates (`varnn.model.adaptation`).

Shapes: n series, R forgetting factors, E members, F features and a constant.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.model.adaptation import Adaptation
from varnn.model.aggregation import scale_column
from varnn.model.fitted import Fitted


def as_of_today(tensors: Mapping[str, npt.NDArray[Any]], fitted: Fitted) -> dict[str, npt.NDArray[Any]]:
    """Give the arrays of a snapshot their names and meanings of today; numbers that are none stay so."""
    found, experts = dict(tensors), fitted.experts
    # Models that carry their state came together with "learning": they have no snapshots of before.
    if experts is None or fitted.carried or "experts" not in found or "learning" in found:
        return found
    old = found.pop("experts")
    parts = [experts.readout] if experts.linear is None else [experts.readout, experts.linear]
    ends = np.cumsum([scale_column(len(experts.prior)) + 1, *(_width(one) for one in parts)])
    if old.ndim == 2 and old.shape[1] == ends[-1] and old.dtype == np.float64:
        weights, *changes = np.split(old, ends[:-1], axis=1)
        with np.errstate(all="ignore"):
            old = np.column_stack([weights, *map(_whitened, changes, parts)])
    return found | {"learning": old}  # of another shape it is refused where all arrays are looked at


def _width(adaptation: Adaptation) -> int:
    members, size, _ = adaptation.gain.shape
    return len(adaptation.forgetting) * int(members) * int(size)


def _whitened(change: DoubleArray, adaptation: Adaptation) -> DoubleArray:
    """Turn d (n, R E (F + 1)) into c (n, E R (F + 1))."""
    series, rates, (members, size, _) = len(change), len(adaptation.forgetting), adaptation.gain.shape
    columns = change.reshape(series, rates, members, size).transpose(2, 3, 0, 1)
    found = np.linalg.solve(adaptation.whitening, columns.reshape(members, size, -1))
    ordered = found.reshape(members, size, series, rates).transpose(2, 0, 3, 1)
    return np.asarray(ordered.reshape(series, -1), np.float64)
