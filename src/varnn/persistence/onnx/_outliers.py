"""Labels that are not plausible -> missing ones, and a doubt, as `varnn.model.outliers` says."""

import numpy as np

from varnn.model.outliers import AS_FAR, FARTHEST, HALVING, LATELY, PATIENCE, TIMES, LabelFilter
from varnn.persistence.onnx._graph import Graph, Value

_NUMBERS = 10  # of a series


def plausible(graph: Graph, rule: LabelFilter, label: Value) -> tuple[Value, Value]:
    """Do what `FilterStream` does.

    Returns
    -------
    labels, doubt
        The labels, those that are not plausible NaN, and how far the next prediction goes towards one that
        is in doubt: (n,) each.
    """
    packed = graph.state("labels", [_NUMBERS], np.float64)
    begun, level, waited, left, calm, grown, age, away, stayed, gone = (
        packed[column] for column in range(_NUMBERS)
    )
    calm, age = calm + 1.0, age + 1.0
    left = calm.at_least(LATELY + 1.0).where(0.0, left)
    way = label - level
    size = way.apply("Abs") / (waited + 1.0)
    faded = grown * graph.node("Pow", 2.0, (age / float(HALVING)).apply("Floor") * -1.0)
    bound = graph.node("Max", faded, rule.change)
    before, known = begun.cast(np.bool_), label.is_missing().opposite()
    within = label.at_least(rule.low).both((label * -1.0).at_least(-rule.high))
    fine = before.both(bound.at_least(size)).either(before.opposite().both(within))
    # How far off the label in doubt was: a label that is left out is never at the level, so that 0 is none.
    in_doubt = away.cast(np.bool_)
    as_far = (way * away.apply("Sign")).at_least(away.apply("Abs") * AS_FAR)
    again = before.both(left.at_least(1.0)).both(in_doubt.both(as_far))
    taken = known.both(fine.either(left.at_least(float(PATIENCE))).either(again))
    left_out, odd = known.both(taken.opposite()), taken.both(fine.opposite())
    shifted = odd.both(before)
    near = before.both((bound * FARTHEST).at_least(size))
    away = known.where(left_out.both(near).where(way, 0.0), away)
    stayed = stayed + known.both(again).both(fine.opposite()).cast(np.float64)
    gone = gone + known.both(fine).both(in_doubt).cast(np.float64)
    parts = (
        taken.where(1.0, begun),
        taken.where(label, level),
        taken.where(0.0, waited + 1.0),
        odd.where(0.0, left + left_out.cast(np.float64)),
        left_out.where(0.0, calm),
        shifted.where(size * TIMES, grown),
        shifted.where(0.0, age),
        away,
        stayed,
        gone,
    )
    graph.carry("labels", graph.join(*(one.unsqueeze(1) for one in parts)))
    doubt = away * (stayed + 1.0) / (stayed + gone + 2.0)
    return taken.where(label, np.float64(np.nan)), doubt
