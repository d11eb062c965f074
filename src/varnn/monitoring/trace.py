"""What a model did, row by row: predictions, bounds and memory beside the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict, predict_intervals, residual_memory
from varnn.monitoring.calibration import Calibration, calibrate

WATCHED = 0.9
LEVELS = (0.2, 0.4, 0.6, 0.8, WATCHED, 0.95)


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionTrace:
    """A model's way over the rows of a panel.

    Parameters
    ----------
    panel, prediction : Panel, array
        The rows, and the prediction of each: (n_rows,), NaN where there is none.
    lower, upper : array or None, default=None
        Bounds at :data:`LEVELS`, (n_rows, n_levels); None without intervals.
    memory : array or None, default=None
        Memory each row was predicted with, (n_rows, n_units), or None.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, [1.0, 2.0, 4.0])
    >>> PredictionTrace(panel=panel, prediction=np.array([1.0, 1.0, 2.0])).innovations
    array([0., 1., 2.])
    """

    panel: Panel
    prediction: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    memory: npt.NDArray[Any] | None = None

    @classmethod
    def of(
        cls, model: Fitted, panel: Panel, *, memory: bool = True, resume: bool | None = None
    ) -> PredictionTrace:
        """Follow a fitted model over a panel, as it predicts; of many rows the memory is large."""
        kept = residual_memory(model, panel, resume=resume) if memory else None
        if model.calibrator is None:
            return cls(panel=panel, prediction=predict(model, panel, resume=resume), memory=kept)
        found = predict_intervals(model, panel, np.array(LEVELS), resume=resume)
        return cls(
            panel=panel, prediction=found.prediction, lower=found.lower, upper=found.upper, memory=kept
        )

    def part(self, panel: Panel) -> PredictionTrace:
        """Keep the rows of a panel that was cut from this one."""
        kept = np.isin(self.panel.rows, panel.rows)
        taken = {
            name: values[kept]
            for name in ("prediction", "lower", "upper", "memory")
            if (values := getattr(self, name)) is not None
        }
        return replace(self, panel=panel, **taken)

    @property
    def innovations(self) -> FloatArray:
        """Label less prediction, NaN where one is missing."""
        return np.asarray(self.panel.target - self.prediction)

    def band(self, level: float = WATCHED) -> tuple[FloatArray, FloatArray] | None:
        """Lower and upper bounds of one level, or None."""
        if self.lower is None or self.upper is None:
            return None
        column = LEVELS.index(level)
        return self.lower[:, column], self.upper[:, column]

    @property
    def covered(self) -> FloatArray | None:
        """Whether each label lies within its 90 % interval, NaN where it is missing."""
        band = self.band()
        if band is None:
            return None
        inside = (band[0] <= self.panel.target) & (self.panel.target <= band[1])
        return np.where(np.isnan(self.innovations), np.nan, inside)

    @property
    def calibration(self) -> Calibration | None:
        """How well all intervals are calibrated, or None without any."""
        if self.lower is None or self.upper is None:
            return None
        labels = np.where(np.isnan(self.innovations), np.nan, self.panel.target)
        position = np.arange(len(labels)) - self.panel.first_rows
        return calibrate(labels, self.lower, self.upper, LEVELS, watched=WATCHED, position=position)
