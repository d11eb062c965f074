"""data -> network -> model -> fitting -> streaming -> estimator -> evaluation -> report -> cli.

Regression on streams that answer back: predict y_t from x_t, see y_t, and let the error itself
become memory for the next prediction. Importing this package is cheap, and so is the estimator:
torch is imported when it first trains, scikit-learn when that asks it something.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from varnn._version import VERSION

if TYPE_CHECKING:
    from varnn import baselines, datasets, evaluation
    from varnn.adapters import mlflow
    from varnn.data.panel import Panel
    from varnn.estimator.details import Details
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.scale.loading import load
    from varnn.streaming.stream import Stream

__version__ = VERSION

__all__ = [
    "Details",
    "Panel",
    "Stream",
    "VARNNRegressor",
    "baselines",
    "datasets",
    "evaluation",
    "load",
    "mlflow",
]

_HOME = {
    "Details": "varnn.estimator.details",
    "Panel": "varnn.data.panel",
    "Stream": "varnn.streaming.stream",
    "VARNNRegressor": "varnn.estimator.regressor",
    "load": "varnn.scale.loading",
}
_ELSEWHERE = {"mlflow": "varnn.adapters.mlflow"}  # called as its library calls such modules


if not TYPE_CHECKING:  # a type checker takes the imports above, and so sees a name that is not there

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(import_module(_HOME[name]), name)
        if name in __all__:
            return import_module(_ELSEWHERE.get(name, f"varnn.{name}"))
        raise AttributeError(f"module 'varnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is there to be used; that this file imports things of others is nobody's concern."""
    return sorted({*__all__, *(one for one in globals() if one.startswith("__"))})
