"""Many models, many rows, many machines: what outgrows one fit and one process."""

from varnn.scale.tuning.tuner import VARNNTuner

__all__ = ["VARNNTuner"]
