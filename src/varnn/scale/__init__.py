"""Many models, many rows, many machines: what outgrows one fit and one process."""

from varnn.scale.many import SeriesDone, fit_many
from varnn.scale.models import Models

__all__ = ["Models", "SeriesDone", "fit_many"]
