"""Seconds since 1970 -> calendar inputs, as `varnn.model.calendar` makes them."""

import numpy as np

from varnn.model.calendar import _MONDAY, _SECONDS, Cycle
from varnn.persistence.onnx._graph import Graph, Value

_SATURDAY = 5 * 86_400  # seconds after Monday


def calendar(graph: Graph, cycles: tuple[Cycle, ...]) -> Value:
    """Take seconds since 1970, and give what `calendar_inputs` does: (n, C)."""
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
