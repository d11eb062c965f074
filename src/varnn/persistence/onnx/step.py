"""Fitted -> one streamed step as an ONNX graph: what a stream does, for any language and runtime.

::

    x (n, D), y_previous (n,)[, time (n,)], states   ->   prediction (n,), next states

One call closes the step before it with its label, and opens the next one: ``y_previous`` is the label of
the x of the call before, NaN where it is missing (the memory is held) and at the first call. All states
begin at zero. n series run in step, each a row of every tensor, so that a series is started afresh by
zeros in its rows.

The parts are those of a stream, one module each, and named like those they follow. As there, the network
computes in float32 and what surrounds it in double precision. Between two calls a part carries what it needs
to take in a label.
"""

import json
from typing import TYPE_CHECKING

import numpy as np

from varnn._version import VERSION
from varnn.data.preparation import LIMIT
from varnn.errors import ConfigError
from varnn.model.fitted import Fitted
from varnn.persistence.onnx._calendar import calendar
from varnn.persistence.onnx._experts import LiveExperts
from varnn.persistence.onnx._floor import Floor
from varnn.persistence.onnx._graph import Graph
from varnn.persistence.onnx._linear import Linear
from varnn.persistence.onnx._network import Network
from varnn.persistence.onnx._outliers import plausible

if TYPE_CHECKING:
    import onnx


def step(model: Fitted, description: str = "") -> "onnx.ModelProto":
    """Give one streamed step of a model as ONNX; without intervals.

    Parameters
    ----------
    model : Fitted
        Any fitted model whose series do not see each other, and without trees.
    description : str, default=""
        Text to keep in the file.
    """
    pipeline, scaling = model.pipeline, model.pipeline.scaling
    if pipeline.peers:
        raise ConfigError(
            "a model whose series see each other (peers=True) has no step of its own for each series, and "
            "cannot be exported to ONNX. Fit one with peers=False, or stream it from Python."
        )
    if model.experts is not None and model.experts.trees is not None:
        raise ConfigError(
            "a model with trees (experts=('boosting',)) cannot be exported to ONNX. Fit one with experts=(), "
            "or stream it from Python."
        )
    graph = Graph()
    columns = [graph.input("x", [len(model.input_names)])] if model.input_names else []
    label = graph.input("y_previous")
    if not pipeline.use_inputs:
        columns = []
    if pipeline.calendar:
        columns.append(calendar(graph, pipeline.calendar))

    linear = None if pipeline.linear is None else Linear(graph, pipeline.linear)
    network = Network(graph, model)
    experts = None if model.experts is None else LiveExperts(graph, model.experts, scaling)

    doubt = None
    if pipeline.label_filter is not None:
        label, doubt = plausible(graph, pipeline.label_filter, label)
    floor = Floor(graph, label) if model.positive else None
    residual = label if linear is None else linear.observe(label)
    target = residual if linear is None else linear.within(residual)
    level = ((target - scaling.target_offset) / scaling.target_scale).clip(-LIMIT, LIMIT)
    missing = target.is_missing()
    network.observe(level, missing)
    if experts is not None:
        experts.learn(level, missing, residual)

    row = None if linear is None else linear.predict(columns)
    if row is not None:
        columns += row.added_inputs
    scaled = None
    if columns:
        scaled = (graph.join(*columns) - scaling.input_offset) / scaling.input_scale
        scaled = scaled.clip(-scaling.input_limit, scaling.input_limit).cast(np.float32)
    hidden, outputs = network.predict(scaled)
    if experts is not None:
        prediction = experts.predict(row, hidden, outputs)
    else:
        output = outputs.mean(axis=1) * scaling.target_scale + scaling.target_offset
        prediction = output * model.shrinkage
        prediction = prediction if row is None else prediction + row.prediction
    if doubt is not None:
        prediction = prediction + doubt
    graph.output("prediction", prediction if floor is None else floor(prediction))
    return graph.model(
        producer_version=VERSION,
        description=description,
        metadata={
            "library": f"varnn {VERSION}",
            "model": model.fingerprint,
            "inputs": json.dumps(model.input_names),
            "target": model.target_name,
            "states": json.dumps(graph.states),
            "initial_state": "zeros",
        },
    )
