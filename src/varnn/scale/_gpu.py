"""Whether the GPU of this machine trains the members of many fits, and how it is asked to."""

from collections.abc import Iterable

from varnn.estimator.regressor import VARNNRegressor
from varnn.scale._trainings import Trainings

AT_ONCE = 8  # fits under way in a worker, so that the GPU has some while it prepares others


def trainings(regressors: Iterable[VARNNRegressor]) -> Trainings | None:
    """Trainings on the GPU, where there is one that these settings may use; else None."""
    return None
