"""Many models, many rows, many machines: what outgrows one fit and one process."""

from varnn.scale.many import SeriesDone, fit_many
from varnn.scale.models import Models
from varnn.scale.tuning.tuner import VARNNTuner

__all__ = ["Models", "SeriesDone", "VARNNTuner", "fit_many"]
