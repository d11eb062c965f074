"""Many models, many rows, many machines: what outgrows one fit and one process."""

from varnn.scale.keyed import KeyedService
from varnn.scale.many import SeriesDone, fit_many
from varnn.scale.models import Models
from varnn.scale.partitioning import partition_files
from varnn.scale.scoring import Scored, ScoredFile, score_files
from varnn.scale.tuning.tuner import VARNNTuner

__all__ = [
    "KeyedService",
    "Models",
    "Scored",
    "ScoredFile",
    "SeriesDone",
    "VARNNTuner",
    "fit_many",
    "partition_files",
    "score_files",
]
