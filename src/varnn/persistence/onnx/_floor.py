"""Predictions of targets that cannot be negative stop at zero, as `varnn.model.floor` says."""

import numpy as np

from varnn.persistence.onnx._graph import Graph, Value


class Floor:
    """The floor of n series in step: a label below zero lifts it."""

    def __init__(self, graph: Graph, label: Value) -> None:
        """Take in labels (n,); those that are not plausible are missing."""
        self.graph = graph
        below = label.at_least(0.0).either(label.is_missing()).opposite()
        lifted = below.where(1.0, graph.state("lifted", [], np.float64))
        graph.carry("lifted", lifted)
        self.lifted = lifted.cast(np.bool_)

    def __call__(self, prediction: Value) -> Value:
        """Stop predictions (n,) at zero."""
        return self.lifted.where(prediction, self.graph.node("Max", prediction, 0.0))
