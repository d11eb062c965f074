"""Fitted model + panel -> how much each expert was believed, row by row."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.display import Table, counted, drawn, html_card, text_table
from varnn.data.panel import Panel
from varnn.errors import ConfigError, DataError
from varnn.model.experts import Experts
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict_chunks
from varnn.model.warm_start import begun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    def plot(self, time: npt.NDArray[Any] | None = None) -> "Figure":
        """Draw how much each counts over time, or row by row without times; needs matplotlib."""
        return drawn("expert_weights", self, time)

    def __repr__(self) -> str:
        shown = self._table()
        return f"<{self._title()}>\n{text_table(shown.columns, shown.rows)}"

    def _repr_html_(self) -> str:
        return html_card(self._title(), None, [self._table()])

    def _title(self) -> str:
        return f"ExpertWeights: {counted(len(self.names), 'expert')} in {counted(len(self.weights), 'row')}"

    def _table(self) -> Table:
        means = self.weights.mean(axis=0) if len(self.weights) else np.full(len(self.names), np.nan)
        last = self.weights[-1] if len(self.weights) else means
        rows = [
            [name, f"{mean:.0%}", f"{now:.0%}"]
            for name, mean, now in zip(self.names, means, last, strict=True)
        ]
        return Table("", ["expert", "on average", "in the last row"], rows)


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
    for chunk in predict_chunks(fitted, joined, wanted=("experts", "weights"), teach=own):
        weights[chunk.rows] = chunk.taps.weights
    return ExpertWeights(experts.names, weights[own])


def known_experts(fitted: Fitted) -> Experts:
    """Give a model's experts, or say that it has none."""
    if fitted.experts is None:
        raise ConfigError(
            "weights of experts are those of a model that goes on learning; this one does not. "
            "Fit with adapt='constant-gain', the default."
        )
    return fitted.experts
