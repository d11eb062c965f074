"""A model to time predictions with; speed does not depend on what was learnt."""

import numpy as np

from varnn.data.preparation import Scaling
from varnn.model.fitted import Fitted
from varnn.model.pipeline import FeaturePipeline
from varnn.network.cell import Architecture, Variant, Weights, initial_weights


def untrained(variant: Variant, n_inputs: int, hidden_size: int, window: int) -> Fitted:
    """A model with drawn weights and no scaling.

    Examples
    --------
    >>> untrained("RM", n_inputs=2, hidden_size=4, window=3).weights.fusion.shape
    (1, 4, 4)
    """
    architecture = Architecture.of(variant, n_inputs=n_inputs, hidden_size=hidden_size)
    weights = initial_weights(architecture, seed=0).as_dict()
    return Fitted(
        architecture=architecture,
        weights=Weights(**{name: matrix[None] for name, matrix in weights.items()}),
        pipeline=FeaturePipeline(
            scaling=Scaling(
                input_offset=np.zeros(n_inputs),
                input_scale=np.ones(n_inputs),
                initial_inputs=np.zeros(n_inputs),
                target_offset=0.0,
                target_scale=1.0,
            ),
            fill="forward",
            initial_inputs=np.zeros(n_inputs),
        ),
        window=window,
        input_names=tuple(f"x{index}" for index in range(n_inputs)),
        target_name="y",
    )
