"""The experts of n series in step, as `varnn.model.experts.LiveExperts` has them."""

import numpy as np

from varnn.data.preparation import Scaling
from varnn.model.experts import FARTHEST, Experts
from varnn.persistence.onnx._adaptation import Adapter
from varnn.persistence.onnx._aggregation import Aggregator
from varnn.persistence.onnx._graph import Graph, Value
from varnn.persistence.onnx._linear import LinearRow


class LiveExperts:
    """The experts of n series in step, as they learn and are believed."""

    def __init__(self, graph: Graph, experts: Experts, scaling: Scaling) -> None:
        self.graph, self.experts, self.scaling = graph, experts, scaling
        self.members = len(experts.readout.gain)
        self.readout = Adapter(graph, "readout", experts.readout)
        self.outputs = graph.state("outputs", [self.members], np.float64)  # of the open step
        self.linear = None if experts.linear is None else Adapter(graph, "linear_learning", experts.linear)
        self.aggregator = Aggregator(graph, experts.prior, experts.noise)

    def learn(self, target: Value, missing: Value, residual: Value) -> None:
        """Take in the network's targets (n,) of the rows last predicted, where they are not missing.

        And what the linear part left of the labels, (n,), NaN where these are missing.
        """
        self.readout.learn(target.unsqueeze(1) - self.outputs, missing)
        if self.linear is not None:
            # Less what the network says where it has nothing to add to the linear part.
            nothing = -self.scaling.target_offset / self.scaling.target_scale
            self.linear.learn((target - nothing).unsqueeze(1), missing)
        self.aggregator.learn(residual, residual.is_missing())

    def predict(self, linear: LinearRow | None, hidden: Value, outputs: Value) -> Value:
        """Predict one row of each series: hidden layers (n, E, K), outputs (n, E) -> (n,)."""
        said, features = [], hidden
        if linear is not None and self.linear is not None:
            standard = (linear.regressors - self.experts.centre) / self.experts.deviation
            standard = standard.clip(-FARTHEST, FARTHEST).unsqueeze(1)
            said += self._of_linear(linear, self.linear.correct(standard))
            if self.experts.unit:
                each = standard * np.full((self.members, 1), self.experts.unit)
                features = self.graph.join(hidden, each)
        learnt = self.readout.correct(features)
        mean = outputs.mean(axis=1).unsqueeze(1)
        said += [self._restored(mean), self._restored(learnt + mean)]
        self.graph.carry("outputs", outputs)
        combined = self.aggregator.combine(self.graph.join(*said))
        return combined if linear is None else linear.prediction + combined

    def _of_linear(self, linear: LinearRow, learnt: Value) -> list[Value]:
        """What experts without a network say, less the linear prediction: (n, 1) each."""
        last = (linear.last - linear.prediction).unsqueeze(1)
        seasonal = []
        if self.experts.season is not None:
            seasonal = [last + linear.regressors[self.experts.season].unsqueeze(1)]
        return [last, *seasonal, last * 0.0, learnt * self.scaling.target_scale]

    def _restored(self, scaled: Value) -> Value:
        return scaled * self.scaling.target_scale + self.scaling.target_offset
