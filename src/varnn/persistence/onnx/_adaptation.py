"""Coefficients of n series in step, as they learn: see `varnn.model.adaptation` for symbols and reasons."""

import numpy as np

from varnn.model.adaptation import LEAK, Adaptation
from varnn.persistence.onnx._graph import Graph, Value


class Adapter:
    """What `varnn.model.adaptation.Adapter` does; E members, F features, R forgetting factors."""

    def __init__(self, graph: Graph, name: str, adaptation: Adaptation) -> None:
        self.graph, self.name, self.adaptation = graph, name, adaptation
        members, size, _ = adaptation.gain.shape
        rates = len(adaptation.forgetting)
        self.change = graph.state(name, [rates, members, size], np.float64)  # c
        self.white = graph.state(f"{name}_features", [members, size], np.float64)  # z of the open step

    def learn(self, left: Value, missing: Value) -> None:
        """Learn from what the outputs left of the targets, (n, E), where these are not missing, (n,)."""
        steps = 1 - np.array(self.adaptation.forgetting)[:, None]  # s: (R, 1)
        bound = self.adaptation.bound
        errors = (left.unsqueeze(1) - self._corrections()).clip(-bound, bound)
        sizes = (self.white * self.white).sum(axis=2).unsqueeze(1)
        gains = errors * steps / (sizes * steps + 1.0)  # (n, R, E)
        changed = self.change * LEAK + gains.unsqueeze(3) * self.white.unsqueeze(1)
        self.change = missing.unsqueeze(1, 2, 3).where(self.change, changed)

    def correct(self, features: Value) -> Value:
        """Compute what to add to the mean output: features (n, E, F) -> (n, R)."""
        # The constant feature comes with padding, which adds zeros: [u 0] + [0 1].
        constant = np.zeros(self.adaptation.gain.shape[1])
        constant[-1] = 1
        phi = features.padded(axis=2, axes=3) + constant
        # Whitened member by member: (n, E, 1, F + 1) with (E, F + 1, F + 1).
        self.white = (phi.unsqueeze(2) @ self.adaptation.whitening.astype(np.float64)).sum(axis=2)
        self.graph.carry(self.name, self.change)
        self.graph.carry(f"{self.name}_features", self.white)
        return self._corrections().mean(axis=2)

    def _corrections(self) -> Value:
        """What each member's output is corrected by: (n, R, E)."""
        return (self.change * self.white.unsqueeze(1)).sum(axis=3)
