"""Fitted model + panel -> how much each expert was believed, row by row."""

from typing import NamedTuple

import numpy as np

from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.errors import ConfigError, DataError
from varnn.model.experts import Experts
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict_chunks
from varnn.model.warm_start import begun


class ExpertWeights(NamedTuple):
    """How much each expert counts in the prediction of each row: N rows, K experts.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> X, y = np.random.default_rng(0).normal(size=(2, 200, 1))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(X, y[:, 0])
    >>> names, weights = model.expert_weights(X, y[:, 0])
    >>> names[0], weights.shape == (200, len(names)), weights.sum(axis=1).round(6).tolist() == [1.0] * 200
    ('persistence', True, True)
    """

    names: tuple[str, ...]  # K of them
    weights: DoubleArray  # (N, K): from 0 to 1, of sum 1 in each row


def expert_weights(fitted: Fitted, panel: Panel, *, resume: bool | None = None) -> ExpertWeights:
    """Weights that the rows of a panel are predicted with, in the panel's order; `resume` as `predict`."""
    experts = known_experts(fitted)
    if np.isnan(panel.target).all():
        raise DataError(
            "weights follow the labels before each row, so rows need labels; they have none. "
            "Give expert_weights(X, y)."
        )
    joined, own = begun(fitted, fitted.matched(panel), resume)
    weights = np.empty((len(joined), len(experts.prior)))
    for chunk in predict_chunks(fitted, joined, own=own):
        if chunk.followed is not None:
            weights[chunk.rows] = chunk.followed.weights
    return ExpertWeights(experts.names, weights[own])


def known_experts(fitted: Fitted) -> Experts:
    """Give a model's experts, or say that it has none."""
    if fitted.experts is None:
        raise ConfigError(
            "weights of experts are those of a model that goes on learning; this one does not. "
            "Fit with adapt='constant-gain', the default."
        )
    return fitted.experts
