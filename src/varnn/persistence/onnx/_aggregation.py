"""Weights of K experts for n series in step: see `varnn.model.aggregation` for symbols and reasons."""

import numpy as np

from varnn._types import DoubleArray
from varnn.model.aggregation import DISCOUNT, JUMP, LEAST, MOST, RATES, SHARED, TRACKED
from varnn.persistence.onnx._graph import Graph, Value


class Aggregator:
    """What `varnn.model.aggregation.Aggregator` does."""

    def __init__(self, graph: Graph, prior: DoubleArray, noise: float) -> None:
        self.graph, self.noise = graph, noise
        self.start = prior[:, None] * RATES  # (K, J)
        self.scores = graph.state("scores", self.start.shape, np.float64)  # u
        self.scale = graph.state("scale", [], np.float64)
        # It is never zero later: that is how a series begins.
        self.scale = self.scale.at_least(LEAST * noise).where(self.scale, noise)
        self.experts = graph.state("experts", [len(prior)], np.float64)  # what they said of the open step
        self.combined = graph.state("combined", [], np.float64)

    def learn(self, label: Value, missing: Value) -> None:
        """Take in the labels (n,) of the rows last combined, where they are not missing, (n,)."""
        error = label - self.combined
        apart = self.experts - self.experts[0].unsqueeze(1)
        apart = apart - (self._weights() * apart).sum(axis=1).unsqueeze(1)
        regrets = (error / self.scale * 2.0).unsqueeze(1) * apart
        largest = regrets.apply("Abs").largest(1)
        regrets = largest.at_least(MOST).where(regrets / (largest / MOST), regrets)
        steps = regrets.is_finite().where(regrets, 0.0).unsqueeze(2) * RATES
        scores = self.scores * DISCOUNT + (steps - steps * steps)
        scores = (scores.apply("Exp") * (1 - SHARED) + SHARED).apply("Log")
        square = self.graph.node("Min", error * error, self.scale * JUMP)
        scale = self.graph.node("Max", self.scale * TRACKED + square * (1 - TRACKED), LEAST * self.noise)
        self.scores = missing.unsqueeze(1, 2).where(self.scores, scores)
        self.scale = missing.where(self.scale, scale)

    def combine(self, experts: Value) -> Value:
        """Combine what the experts say of the next row: (n, K) -> (n,)."""
        combined: Value = (self._weights() * experts).sum(axis=1)
        values = {"scores": self.scores, "scale": self.scale, "experts": experts, "combined": combined}
        for name, value in values.items():
            self.graph.carry(name, value)
        return combined

    def _weights(self) -> Value:
        """Weights of the scores as they are: (n, K)."""
        scores = self.scores * DISCOUNT
        beliefs = ((scores - scores.largest(1, 2)).apply("Exp") * self.start).sum(axis=2)
        found: Value = beliefs / beliefs.sum(axis=1).unsqueeze(1)
        return found
