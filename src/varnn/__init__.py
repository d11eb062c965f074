"""panel -> preparation -> windows -> cell -> engine -> training -> regressor -> stream -> report.

Regression on streams that answer back: predict y_t from x_t, see y_t, and let the error itself
become memory for the next prediction. Importing this package is cheap: scikit-learn is imported
when the estimator is first used, torch when it first trains.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varnn import baselines, datasets, evaluation
    from varnn.panel import Panel
    from varnn.regressor import VARNNRegressor, load
    from varnn.stream import Stream

__version__ = "0.1.0"

__all__ = ["Panel", "Stream", "VARNNRegressor", "baselines", "datasets", "evaluation", "load"]

_HOME = {
    "Panel": "varnn.panel",
    "Stream": "varnn.stream",
    "VARNNRegressor": "varnn.regressor",
    "load": "varnn.regressor",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        return import_module(f"varnn.{name}")
    raise AttributeError(f"module 'varnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
