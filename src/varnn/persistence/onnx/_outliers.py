"""Labels that are not plausible -> missing ones, as `varnn.model.outliers` says."""

import numpy as np

from varnn.model.outliers import HALVING, LATELY, PATIENCE, TIMES, LabelFilter
from varnn.persistence.onnx._graph import Graph, Value


def plausible(graph: Graph, rule: LabelFilter, label: Value) -> Value:
    """Do what `FilterStream` does: labels (n,) that are not plausible become NaN."""
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
