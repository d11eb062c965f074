"""Packages that a fit needs, asked for before its first row is looked at."""

from typing import Any

from varnn.errors import Need, require_all


def check_packages(estimator: Any) -> None:
    """Say what a fit with an estimator's settings needs and is not installed, if anything.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> check_packages(VARNNRegressor())
    """
    needs = [Need(package, "train", "training") for package in ("torch", "scipy")]
    if estimator.experts:
        needs.append(Need("lightgbm", "baselines", "experts=('boosting',)"))
    require_all(needs)
