"""Inputs of a row: gaps filled, then scaled and clipped for the network."""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import elementwise, part
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import are_within, copy_rows

LARGEST = 1e100  # size of an input or label: squares of it, and of what is computed from it, stay finite
TARGET_LIMIT = 1e6  # of a scaled label: in single precision, squares and recurrences cannot overflow
_FORWARD, _ZERO = 0, 1  # places in `varnn.step.layout.FILLS`


@part
def fill_gaps(x: DoubleArray, last: DoubleArray, fill: int, filled: DoubleArray) -> bool:
    """Fill missing inputs (n, D) with the last known ones or zero; return whether all can be used."""
    copy_rows(x, filled)
    usable = True
    if not are_within(x, LARGEST):
        for series in range(x.shape[0]):
            for place in range(x.shape[1]):
                value = x[series, place]
                if value != value and fill == _FORWARD:
                    filled[series, place] = last[series, place]
                elif value != value and fill == _ZERO:
                    filled[series, place] = 0.0
                elif not abs(value) <= LARGEST:
                    usable = False
    return usable


@part
def gather_columns(model: StepModel, state: StepState, extra: DoubleArray) -> None:
    """Put inputs as given and those of the calendar and of peers side by side: the first of the columns."""
    given = model.inputs if model.use_inputs else 0
    n_extra = extra.shape[1] - model.peers
    if given > 0:
        copy_rows(state.inputs, state.columns[:, :given])
    if n_extra > 0:
        copy_rows(extra[:, :n_extra], state.columns[:, given : given + n_extra])


@elementwise
def scale_target(value: DoubleArray, offset: float, scale: float) -> DoubleArray:
    """Scale and clip a target of the network."""
    return np.minimum(np.maximum((value - offset) / scale, -TARGET_LIMIT), TARGET_LIMIT)


@elementwise
def restore_target(scaled: DoubleArray, offset: float, scale: float, shrinkage: float) -> DoubleArray:
    """Bring an output of the network back to the units of its target, and shrink it."""
    return (scaled * scale + offset) * shrinkage
