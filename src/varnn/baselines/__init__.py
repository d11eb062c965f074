"""A name -> a model to compare with, by the contract of VARNN: ``fit(panel)``, then ``predict(panel)``."""

from varnn.baselines.registry import NAMES, Baseline, make, options

__all__ = ["NAMES", "Baseline", "make", "options"]
