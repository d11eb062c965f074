"""Comparisons, diagnoses and fitted models -> figures and self-contained HTML pages.

Names are imported when they are first used: the service takes the files of a page from here, and no models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from varnn.report._fit_page import fit_page
    from varnn.report._forecast_page import forecast_page
    from varnn.report._monitor_page import monitor_page
    from varnn.report._predict_page import predict_page
    from varnn.report.comparison_page import page as compare_page
    from varnn.report.page import Report

__all__ = ["Report", "compare_page", "fit_page", "forecast_page", "monitor_page", "predict_page"]

_HOME = {"Report": ("page", "Report"), "compare_page": ("comparison_page", "page")}


if not TYPE_CHECKING:  # a type checker takes the imports above, and so sees a name that is not there

    def __getattr__(name: str) -> Any:
        if name in __all__:
            home, own = _HOME.get(name, (f"_{name}", name))
            return getattr(import_module(f"varnn.report.{home}"), own)
        raise AttributeError(f"module 'varnn.report' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
