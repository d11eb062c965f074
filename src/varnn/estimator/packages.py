"""Packages that a fit needs, asked for before its first row is looked at."""

from typing import Any

from varnn.errors import require


def check_packages(estimator: Any) -> None:
    """Say what a fit with an estimator's settings needs and is not installed, if anything.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> check_packages(VARNNRegressor())
    """
    for package in ("torch", "scipy"):
        require(package, extra="train", purpose="training")
    if estimator.experts:
        require("lightgbm", extra="baselines", purpose="experts=('boosting',)")
