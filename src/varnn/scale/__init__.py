"""Many models, many rows, many machines: what outgrows one fit and one process."""

from varnn.scale.partitioning import partition_files
from varnn.scale.scoring import Scored, ScoredFile, score_files

__all__ = ["Scored", "ScoredFile", "partition_files", "score_files"]
