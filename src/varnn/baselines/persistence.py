"""Persistence, the naive forecast: the next label is the last one."""

from dataclasses import dataclass, field

import numpy as np

from varnn._types import FloatArray
from varnn.baselines._history import Preparation, fitted
from varnn.baselines._lagged import last_labels
from varnn.data.panel import Panel


@dataclass(kw_only=True, eq=False)
class Persistence:
    """Persistence: the last known label of the series, and the training mean before there is one.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, [1.0, 3.0, None, 5.0])
    >>> Persistence().fit(panel).predict(panel)
    array([3., 1., 3., 3.])
    """

    preparation_: Preparation | None = field(default=None, init=False, repr=False)

    def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Persistence":
        """Measure the mean of the target, all there is to learn."""
        self.preparation_ = Preparation.of(panel, np.float64)
        return self

    def predict(self, panel: Panel) -> FloatArray:
        """Predict every row one step ahead, in panel order and the target's units."""
        preparation = fitted(self.preparation_, self)
        return preparation.restore(last_labels(preparation(panel)))
