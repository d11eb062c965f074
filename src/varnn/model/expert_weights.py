"""Fitted model + panel -> how much each expert was believed, row by row."""

from typing import NamedTuple

import numpy as np

from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.errors import ConfigError, DataError
from varnn.model.experts import Experts
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict_chunks


class ExpertWeights(NamedTuple):
    """How much each expert counts in the prediction of each row: N rows, K experts."""

    names: tuple[str, ...]  # K of them
    weights: DoubleArray  # (N, K): from 0 to 1, of sum 1 in each row


def expert_weights(fitted: Fitted, panel: Panel) -> ExpertWeights:
    """Weights that the rows of a panel are predicted with, in the panel's order."""
    experts = known_experts(fitted)
    if np.isnan(panel.target).all():
        raise DataError(
            "weights follow the labels before each row, so rows need labels; they have none. "
            "Give expert_weights(X, y)."
        )
    weights = np.empty((len(panel), len(experts.prior)))
    for chunk in predict_chunks(fitted, panel):
        if chunk.followed is not None:
            weights[chunk.rows] = chunk.followed.weights
    return ExpertWeights(experts.names, weights)


def known_experts(fitted: Fitted) -> Experts:
    """Give a model's experts, or say that it has none."""
    if fitted.experts is None:
        raise ConfigError(
            "weights of experts are those of a model that goes on learning; this one does not. "
            "Fit with adapt='constant-gain', the default."
        )
    return fitted.experts
