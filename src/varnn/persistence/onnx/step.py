"""Fitted -> one streamed step as an ONNX graph: what a stream does, for any language and runtime.

::

    x (n, D), y_previous (n,)[, time (n,)], states   ->   prediction (n,), next states

One call closes the step before it with its label, and opens the next one: ``y_previous`` is the label of
the x of the call before, NaN where it is missing (the memory is held) and at the first call. All states
begin at zero. n series run in step, each a row of every tensor, so that a series is started afresh by
zeros in its rows.

The parts below are those of a stream, and named like them: the network's windows under way
(`varnn.streaming._cell`), the linear part (`varnn.model.linear`) and the readout that goes on learning
(`varnn.model.adaptation`). As there, the network computes in float32 and what surrounds it in double
precision. Between two calls a part carries what it needs to take in a label.
"""

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from varnn._types import DoubleArray
from varnn.data.preparation import LIMIT
from varnn.errors import ConfigError
from varnn.model.adaptation import _BOUND, _LEAK, Adaptation
from varnn.model.calendar import _MONDAY, _SECONDS, Cycle
from varnn.model.fitted import Fitted
from varnn.model.linear import LinearPart
from varnn.model.outliers import HALVING, LATELY, PATIENCE, TIMES, LabelFilter
from varnn.network.handled import ANY, HandledCells
from varnn.persistence.onnx._graph import Graph, Value

if TYPE_CHECKING:
    import onnx


_SATURDAY = 5 * 86_400  # seconds after Monday


def step(model: Fitted, description: str = "") -> "onnx.ModelProto":
    """Give one streamed step of a model as ONNX; without intervals.

    Parameters
    ----------
    model : Fitted
        Any fitted model whose series do not see each other.
    description : str, default=""
        Text to keep in the file.
    """
    pipeline, scaling = model.pipeline, model.pipeline.scaling
    if pipeline.peers:
        raise ConfigError(
            "a model whose series see each other (peers=True) has no step of its own for each series, and "
            "cannot be exported to ONNX. Fit one with peers=False, or stream it from Python."
        )
    graph = Graph()
    columns = [graph.input("x", [len(model.input_names)])] if model.input_names else []
    label = graph.input("y_previous")
    if not pipeline.use_inputs:
        columns = []
    if pipeline.calendar:
        columns.append(_calendar(graph, pipeline.calendar))

    linear = None if pipeline.linear is None else _Linear(graph, pipeline.linear)
    network = _Network(graph, model)
    readout = None

    if pipeline.label_filter is not None:
        label = _plausible(graph, pipeline.label_filter, label)
    target = label if linear is None else linear.observe(label)
    level = ((target - scaling.target_offset) / scaling.target_scale).clip(-LIMIT, LIMIT)
    missing = label.is_missing()
    network.observe(level, missing)
    if readout is not None:
        readout.learn(level, missing)

    if linear is not None:
        columns += linear.predict(columns)
    scaled = None
    if columns:
        scaled = (graph.join(*columns) - scaling.input_offset) / scaling.input_scale
        scaled = scaled.clip(-scaling.input_limit, scaling.input_limit).cast(np.float32)
    hidden, outputs = network.predict(scaled)
    output = outputs.mean(axis=1)
    if readout is not None:
        output = output + readout.correct(hidden, outputs)
    prediction = (output * scaling.target_scale + scaling.target_offset) * model.shrinkage
    graph.output("prediction", prediction if linear is None else prediction + linear.prediction)
    return graph.model(
        producer_version=version("varnn"),
        description=description,
        metadata={
            "library": f"varnn {version('varnn')}",
            "model": model.fingerprint,
            "inputs": json.dumps(model.input_names),
            "target": model.target_name,
            "states": json.dumps(graph.states),
            "initial_state": "zeros",
        },
    )


def _calendar(graph: Graph, cycles: tuple[Cycle, ...]) -> Value:
    """Take seconds since 1970, and give what `varnn.model.calendar.calendar_inputs` does: (n, C)."""
    time = graph.input("time", dtype=np.int64)
    columns = []
    for cycle in cycles:
        passed = (time + np.int64(_MONDAY)) % np.int64(_SECONDS[cycle])
        angle = passed.cast(np.float64) * (2 * np.pi / _SECONDS[cycle])
        columns += [angle.apply("Sin"), angle.apply("Cos")]
        if cycle == "day":
            twice = angle * 2.0
            columns += [twice.apply("Sin"), twice.apply("Cos")]
        else:
            columns.append(passed.at_least(np.int64(_SATURDAY)).cast(np.float64))
    return graph.join(*(one.unsqueeze(1) for one in columns))


def _plausible(graph: Graph, rule: LabelFilter, label: Value) -> Value:
    """Do what `varnn.model.outliers.FilterStream` does: labels that are not plausible become NaN."""
    packed = graph.state("labels", [7], np.float64)
    begun, level, waited, left, calm, grown, age = (packed[column] for column in range(7))
    calm, age = calm + 1.0, age + 1.0
    left = calm.at_least(LATELY + 1.0).where(0.0, left)
    size = (label - level).apply("Abs") / (waited + 1.0)
    faded = grown * graph.node("Pow", 2.0, (age / float(HALVING)).apply("Floor") * -1.0)
    before = begun.cast(np.bool_)
    within = label.at_least(rule.low).both((label * -1.0).at_least(-rule.high))
    near = graph.node("Max", faded, rule.change).at_least(size)
    fine = before.both(near).either(before.opposite().both(within))
    known = label.is_missing().opposite()
    taken = known.both(fine.either(left.at_least(float(PATIENCE))))
    left_out, odd = known.both(taken.opposite()), taken.both(fine.opposite())
    shifted = odd.both(before)
    parts = (
        taken.where(1.0, begun),
        taken.where(label, level),
        taken.where(0.0, waited + 1.0),
        odd.where(0.0, left + left_out.cast(np.float64)),
        left_out.where(0.0, calm),
        shifted.where(size * TIMES, grown),
        shifted.where(0.0, age),
    )
    graph.carry("labels", graph.join(*(one.unsqueeze(1) for one in parts)))
    return taken.where(label, np.float64(np.nan))


class _Linear:
    """The linear part of n series in step.

    What a row of inputs adds to its own prediction and to those of coming rows is one product. The first row
    of a series also stands in for those before it, so that its own product has sums in place of terms.
    """

    def __init__(self, graph: Graph, part: LinearPart) -> None:
        self.part = part
        self.graph = graph
        lags = max(len(part.of_changes), len(part.of_inputs) - 1)
        self.of_changes: DoubleArray = np.zeros(lags + 1)  # on what is ahead; nothing on the last of it
        self.of_changes[: len(part.of_changes)] = part.of_changes
        self.of_inputs: DoubleArray = np.zeros((part.of_inputs.shape[1], lags + 1))
        self.of_inputs[:, : len(part.of_inputs)] = part.of_inputs.T
        packed = graph.state("linear", [lags + 5], np.float64)
        self.begun, self.known, self.last, self.prediction = (packed[column] for column in range(4))
        self.ahead = packed.between(4, lags + 5, axis=1)

    def observe(self, label: Value) -> Value:
        """Take in labels (n,); give what the linear predictions left of them."""
        residual, missing = label - self.prediction, label.is_missing()
        change = missing.where(0.0, label - self.last) * self.known
        self.ahead = self.ahead + change.unsqueeze(1) * self.of_changes
        self.last = missing.where(self.last, label)
        self.known = missing.where(self.known, 1.0)
        return residual

    def predict(self, columns: list[Value]) -> list[Value]:
        """Anchor rows with these inputs; give the inputs that the network sees besides: last label, step."""
        part = self.part
        if len(part.of_inputs):
            inputs = self.graph.join(*columns)
            if part.input_low is not None and part.input_high is not None:
                inputs = self.graph.node("Max", inputs, part.input_low)
                inputs = self.graph.node("Min", inputs, part.input_high)
            sums = self.of_inputs[:, ::-1].cumsum(axis=1)[:, ::-1]
            begun = self.begun.unsqueeze(1).cast(np.bool_)
            self.ahead = self.ahead + begun.where(inputs @ self.of_inputs, inputs @ sums)
        last = self.known.cast(np.bool_).where(self.last, part.mean)
        pull = last.clip(part.low, part.high) * part.of_last
        self.prediction = last + pull + part.constant + self.ahead[0]
        later = self.ahead.between(1, self.of_changes.size, axis=1).padded(axis=1, axes=2)
        begun = self.known * 0.0 + 1.0  # as many ones as there are series
        packed = [one.unsqueeze(1) for one in (begun, self.known, self.last, self.prediction)]
        self.graph.carry("linear", self.graph.join(*packed, later))
        return [last.unsqueeze(1), (self.prediction - last).unsqueeze(1)]


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


class _Network:
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


class _Readout:
    """The readouts of n series in step, as they learn; see `varnn.model.adaptation` for the symbols."""

    def __init__(self, graph: Graph, adaptation: Adaptation) -> None:
        self.graph, self.adaptation = graph, adaptation
        members, size, _ = adaptation.gain.shape
        self.change = graph.state("readout", [members, size], np.float64)  # d
        self.features = graph.state("features", [members, size], np.float64)  # phi, of the open step
        self.outputs = graph.state("outputs", [members], np.float64)
        self.sums = graph.state("guard", [5], np.float64)

    def learn(self, target: Value, missing: Value) -> None:
        """Learn from targets (n,)."""
        how, alone = self.adaptation, missing.unsqueeze(1)
        step, bound = 1 - how.forgetting, _BOUND * how.noise**0.5
        corrections = (self.change * self.features).sum(axis=2)
        errors = (target.unsqueeze(1) - self.outputs - corrections).clip(-bound, bound)
        # Products of a row with the gain, member by member: (n, E, 1, K + 1) with (E, K + 1, K + 1).
        directions = (self.features.unsqueeze(2) @ how.gain).sum(axis=2)  # q
        gain = errors * step / ((directions * self.features).sum(axis=2) * step + 1.0)
        changed = self.change * _LEAK + directions * gain.unsqueeze(2)
        self.change = alone.unsqueeze(2).where(self.change, changed)
        correction = corrections.mean(axis=1)
        error = (target - self.outputs.mean(axis=1)).clip(-how.largest_error, how.largest_error)
        gain = error * correction
        news = [one.unsqueeze(1) for one in (gain, correction * correction, gain * gain)]
        memory = np.array([_GUARD, _GUARD, _SOON, _SOON, _SOON])
        self.sums = alone.where(self.sums, self.sums * memory + self.graph.join(*news[:2], *news))

    def correct(self, hidden: Value, outputs: Value) -> Value:
        """What to add to the mean output (n,)."""
        # The constant feature comes with padding, which adds zeros: [u 0] + [0 1].
        constant = np.zeros(self.adaptation.gain.shape[1])
        constant[-1] = 1
        features = hidden.padded(axis=2, axes=3) + constant
        gained, size, lately, recent, spread = (self.sums[column] for column in range(5))
        share = (gained / (size + self.adaptation.noise)).clip(0, 1)
        if np.isfinite(self.adaptation.doubt):
            most = self.graph.node("Max", lately + spread.apply("Sqrt") * self.adaptation.doubt, 0.0)
            doubted = most.at_least(share * recent).opposite()
            share = doubted.where(most / recent, share)
        values = {"readout": self.change, "features": features, "outputs": outputs, "guard": self.sums}
        for name, value in values.items():
            self.graph.carry(name, value)
        return share * (self.change * features).sum(axis=2).mean(axis=1)
