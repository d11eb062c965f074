"""The network's windows under way, one row at a time, as `varnn.streaming._cell` goes through them."""

import numpy as np

from varnn.errors import ConfigError
from varnn.model.fitted import Fitted
from varnn.network.handled import ANY, HandledCells
from varnn.persistence.onnx._graph import Graph, Value

# A cell with anything else is refused: this is an implementation of its own, not the cell's.
_CELLS = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False, True),
        "activation_memory": (False, True),
        "residual": ("projected", "scalar", "none"),
        "memory_activation": ("relu", "tanh"),
        "horizon": ANY,  # one step is what the graph makes
    }
)


class Network:
    """The windows under way of n series in step, (n, E, windows, any), the oldest first.

    Carried are those that will still be under way after the label: all but the oldest.
    """

    def __init__(self, graph: Graph, model: Fitted) -> None:
        _CELLS.check(model.architecture, by="an ONNX step")
        self.graph, self.cell = graph, model.architecture
        self.weights = model.weights
        cell, members, carried = model.architecture, model.n_members, model.window - 1
        self.remembers = cell.residual != "none" and carried > 0
        self.recalls = cell.activation_memory and carried > 0
        self.window = model.window if self.remembers or self.recalls else 1
        if self.remembers:
            self.memory = graph.state("memory", [members, carried, cell.memory_size], np.float32)
            self.expected = graph.state("expected", [members, carried, 1], np.float32)
        if self.recalls:
            self.activation = graph.state("activation", [members, carried, cell.hidden_size], np.float32)

    def observe(self, level: Value, missing: Value) -> None:
        """Take in labels in scaled units (n,), and begin a window."""
        if self.remembers:
            error = level.cast(np.float32).unsqueeze(1, 2, 3) - self.expected
            held = missing.unsqueeze(1, 2, 3).where(self.memory, self._remembered(error))
            self.memory = held.padded(axis=2, axes=4)
        if self.recalls:  # needs no label
            self.activation = self.activation.padded(axis=2, axes=4)

    def _remembered(self, error: Value) -> Value:
        if self.cell.residual == "scalar":
            return error
        memory: Value = error * self.weights.error + self.weights.error_bias
        if self.cell.accumulate:
            memory = memory + self.memory @ self.weights.carry
        return memory.apply("Relu" if self.cell.memory_activation == "relu" else "Tanh")

    def predict(self, x: Value | None) -> tuple[Value, Value]:
        """Advance all windows; give hidden layer (n, E, K) and output (n, E) of the oldest, as doubles."""
        inputs, memory = self.cell.n_inputs, self.cell.n_inputs + self.cell.memory_size
        fusion = self.weights.fusion
        terms = []
        if x is not None:
            terms.append(x.unsqueeze(1, 2) @ fusion[:, :inputs])
        if self.remembers:
            terms.append(self.memory @ fusion[:, inputs:memory])
        if self.recalls:
            terms.append(self.activation @ fusion[:, memory:])
        if not terms:
            raise ConfigError(
                "this model sees neither inputs nor labels: it predicts a constant, so there is no step."
            )
        total, *others = terms
        for term in others:
            total = total + term
        hidden = (total + self.weights.fusion_bias).apply("Relu")
        expected = hidden @ self.weights.readout + self.weights.readout_bias
        if self.remembers:
            self.graph.carry("memory", self.memory.between(1, self.window, axis=2))
            self.graph.carry("expected", expected.between(1, self.window, axis=2))
        if self.recalls:
            self.graph.carry("activation", hidden.between(1, self.window, axis=2))
        oldest = [one.between(0, 1, axis=2).sum(axis=2).cast(np.float64) for one in (hidden, expected)]
        return oldest[0], oldest[1].sum(axis=2)
