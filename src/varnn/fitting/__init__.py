"""Panel + settings -> a fitted model: choose on validation rows, train, and train again on all rows.

``one_step`` makes the model that predicts one row ahead, ``judging`` says how much of it to use, ``again``
trains it on all rows once everything is chosen; ``ahead`` makes the one that forecasts several rows;
``stages`` does one after the other. They share ``settings`` and ``candidates``.
"""

from varnn.fitting.again import refit
from varnn.fitting.ahead import fit_forecaster
from varnn.fitting.one_step import fit
from varnn.fitting.settings import Settings
from varnn.fitting.stages import fit_in_stages

__all__ = ["Settings", "fit", "fit_forecaster", "fit_in_stages", "refit"]
