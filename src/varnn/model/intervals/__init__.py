"""Errors of a model on rows it was not trained on -> intervals around its predictions and forecasts.

`calibrator` is the contract; `error_scale` is the method of one-step predictions, `horizon_bands` that of
forecasts. Another method is one more file beside them.
"""

from varnn.model.intervals.calibrator import CalibrationRows, Calibrator, Tracker, follow, known_calibrator
from varnn.model.intervals.error_scale import ErrorScale
from varnn.model.intervals.horizon_bands import HorizonBands
from varnn.model.intervals.levels import TAUS, Interval, bound_name, check_levels

__all__ = [
    "TAUS",
    "CalibrationRows",
    "Calibrator",
    "ErrorScale",
    "HorizonBands",
    "Interval",
    "Tracker",
    "bound_name",
    "check_levels",
    "follow",
    "known_calibrator",
]
