"""Interval methods by name, as settings and files call them: one line for each."""

from varnn.model.intervals.calibrator import Calibrator
from varnn.model.intervals.error_scale import ErrorScale
from varnn.model.intervals.horizon_bands import HorizonBands

METHODS: dict[str, type[Calibrator]] = {
    "error scale": ErrorScale,
    "horizon bands": HorizonBands,
}


def method_of(asked: bool | str, default: type[Calibrator]) -> type[Calibrator] | None:
    """Interval method that is asked for: by name, or the default one for True; None for False.

    Examples
    --------
    >>> method_of("horizon bands", ErrorScale).__name__, method_of(False, ErrorScale)
    ('HorizonBands', None)
    """
    if isinstance(asked, str):
        return METHODS[asked]
    return default if asked else None
