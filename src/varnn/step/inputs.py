"""Inputs of a row: gaps filled, then scaled and clipped for the network."""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import kernel
from varnn.step.layout import Float32, StepModel, StepState
from varnn.step.operations import copy_rows

LARGEST = 1e100  # size of an input or label: squares of it, and of what is computed from it, stay finite
TARGET_LIMIT = 1e6  # of a scaled label: in single precision, squares and recurrences cannot overflow
_FORWARD, _ZERO = 0, 1  # places in `varnn.step.layout.FILLS`


@kernel
def fill_gaps(x: DoubleArray, last: DoubleArray, fill: int, filled: DoubleArray) -> bool:
    """Fill missing inputs (n, D) with the last known ones or zero; return whether all can be used."""
    copy_rows(x, filled)
    flat = x.ravel()
    if np.dot(flat, flat) <= LARGEST * LARGEST:  # cheaper than to look at each, and nearly always true
        return True
    for series in range(x.shape[0]):
        for place in range(x.shape[1]):
            value = x[series, place]
            if value != value and fill == _FORWARD:
                filled[series, place] = last[series, place]
            elif value != value and fill == _ZERO:
                filled[series, place] = 0.0
            elif not abs(value) <= LARGEST:
                return False
    return True


@kernel
def gather_columns(model: StepModel, state: StepState, extra: DoubleArray) -> None:
    """Put inputs as given and those of the calendar and of peers side by side: the first of the columns."""
    given = model.inputs if model.use_inputs else 0
    n_extra = extra.shape[1] - model.peers
    if given > 0:
        copy_rows(state.inputs, state.columns[:, :given])
    if n_extra > 0:
        copy_rows(extra[:, :n_extra], state.columns[:, given : given + n_extra])


@kernel
def scale_inputs(
    columns: DoubleArray, offset: DoubleArray, scale: DoubleArray, limit: float, scaled: Float32
) -> None:
    """Scale inputs of the network (n, P) in place and clip them; write them in single precision, too."""
    np.subtract(columns, offset, columns)
    np.divide(columns, scale, columns)
    flat = columns.ravel()
    if not np.dot(flat, flat) <= limit * limit:  # the sum of squares shows that none is beyond the limit
        np.maximum(columns, -limit, columns)
        np.minimum(columns, limit, columns)
    copy_rows(columns, scaled)


@kernel
def scale_target(target: DoubleArray, offset: float, scale: float) -> None:
    """Scale and clip the network's target (n,) in place."""
    np.subtract(target, offset, target)
    np.divide(target, scale, target)
    np.maximum(target, -TARGET_LIMIT, target)
    np.minimum(target, TARGET_LIMIT, target)


@kernel
def restore_target(model: StepModel, scaled: DoubleArray, restored: DoubleArray) -> None:
    """Bring outputs of the network (n,) back to the units of its target."""
    np.multiply(scaled, model.target_scale, restored)
    np.add(restored, model.target_offset, restored)
