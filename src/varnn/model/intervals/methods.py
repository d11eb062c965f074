"""Interval methods by the names that files call them: one line for each that a file may hold."""

from varnn.model.intervals.calibrator import Calibrator
from varnn.model.intervals.error_scale import ErrorScale
from varnn.model.intervals.horizon_bands import HorizonBands

METHODS: dict[str, type[Calibrator]] = {
    "error scale": ErrorScale,
    "horizon bands": HorizonBands,
}
