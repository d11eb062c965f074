"""The network, one row at a time: its windows under way, as `varnn.streaming._cell` goes through them.

Or the one state that is carried through a series, as `varnn.network.carried` has it: a window without end.
"""

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

    Handed on are those that will still be under way after the label: all but the oldest, or the one that is
    without end.
    """

    def __init__(self, graph: Graph, model: Fitted) -> None:
        _CELLS.check(model.architecture, by="an ONNX step")
        self.graph, self.cell = graph, model.architecture
        self.weights = model.weights
        self.carried, self.limit = model.carried, model.state_limit
        cell, members, windows = model.architecture, model.n_members, 1 if self.carried else model.window - 1
        self.remembers = cell.residual != "none" and windows > 0
        self.recalls = cell.activation_memory and windows > 0
        self.window = model.window if self.remembers or self.recalls else 1
        if self.remembers:
            self.memory = graph.state("memory", [members, windows, cell.memory_size], np.float32)
            self.expected = graph.state("expected", [members, windows, 1], np.float32)
        if self.recalls:
            self.activation = graph.state("activation", [members, windows, cell.hidden_size], np.float32)

    def observe(self, level: Value, missing: Value) -> None:
        """Take in labels in scaled units (n,), and begin a window, or anew where a state is too large."""
        if self.remembers:
            error = level.cast(np.float32).unsqueeze(1, 2, 3) - self.expected
            self.memory = missing.unsqueeze(1, 2, 3).where(self.memory, self._remembered(error))
        begun = self._begun_anew if self.carried else _with_a_window_more
        if self.remembers and self.recalls:
            self.memory, self.activation = begun(self.memory, self.activation)
        elif self.remembers:
            (self.memory,) = begun(self.memory)
        elif self.recalls:  # needs no label
            (self.activation,) = begun(self.activation)

    def _begun_anew(self, *state: Value) -> list[Value]:
        """Put zeros in the place of states of which a number is beyond the limit, or is none."""
        within = (self.graph.join(*state).apply("Abs") * -1.0).at_least(-self.limit)
        # Of truth values, as the largest of numbers and NaN is another one in each runtime.
        beyond = within.opposite().cast(np.float32).largest(3).cast(np.bool_)
        return [beyond.where(0.0, one) for one in state]

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
            self.graph.carry("memory", self._going_on(self.memory))
            self.graph.carry("expected", self._going_on(expected))
        if self.recalls:
            self.graph.carry("activation", self._going_on(hidden))
        oldest = [one.between(0, 1, axis=2).sum(axis=2).cast(np.float64) for one in (hidden, expected)]
        return oldest[0], oldest[1].sum(axis=2)

    def _going_on(self, windows: Value) -> Value:
        """Take those that are still under way after the label."""
        return windows if self.carried else windows.between(1, self.window, axis=2)


def _with_a_window_more(*state: Value) -> list[Value]:
    return [one.padded(axis=2, axes=4) for one in state]
