"""Many models, many rows, many machines: what outgrows one fit and one process.

Names are imported when they are first used: a worker, and `varnn.load`, need few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOME = {
    "KeyedService": "varnn.scale.keyed",
    "Models": "varnn.scale.models",
    "Scored": "varnn.scale.scoring",
    "ScoredFile": "varnn.scale.scoring",
    "SeriesDone": "varnn.scale.many",
    "VARNNTuner": "varnn.scale.tuning.tuner",
    "fit_many": "varnn.scale.many",
    "partition_files": "varnn.scale.partitioning",
    "score_files": "varnn.scale.scoring",
}


if not TYPE_CHECKING:  # a type checker takes the imports above, and so sees a name that is not there

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(import_module(_HOME[name]), name)
        raise AttributeError(f"module 'varnn.scale' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
