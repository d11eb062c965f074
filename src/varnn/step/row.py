"""One row of n series: predict it, then learn from its label. The order of all parts, and nothing else.

::

    predict_row   inputs, gaps filled -> linear part -> network -> what adapts -> experts -> their combination
    observe_row   interval tracked -> label filtered -> linear part -> what adapts -> weights -> memory

`predict_row` may be called any number of times: it changes nothing that is carried. `observe_row` closes the
row with its label. Everything that predicts (streams, fleets, batches, late labels, calibration while
fitting) is a loop over these two functions (`varnn.step.loops`).
"""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.adaptation import correct, learn
from varnn.step.aggregation import combine, update_scores, weigh
from varnn.step.cell import advance_cell, average_members, remember
from varnn.step.experts import predict_experts
from varnn.step.floor import floor_at_zero, note_negative
from varnn.step.inputs import fill_gaps, gather_columns, restore_target, scale_inputs, scale_target
from varnn.step.intervals import expect_scale, track
from varnn.step.kernel import kernel
from varnn.step.label_filter import filter_labels, move_towards_pending
from varnn.step.layout import StepModel, StepState
from varnn.step.linear import add_linear_columns, observe_linear, predict_linear
from varnn.step.operations import copy, copy_rows, drop_beyond


@kernel
def predict_row(model: StepModel, state: StepState, x: DoubleArray, extra: DoubleArray) -> bool:
    """Predict the next row of each series; return False if an input cannot be used.

    Parameters
    ----------
    model, state : StepModel, StepState
        The model, and its series.
    x, extra : arrays of shape (n, D) and (n, C)
        Inputs as they were given, NaN where missing, and those of the calendar and of peers.
    """
    if not fill_gaps(x, state.last_inputs, model.fill, state.inputs):
        return False
    gather_columns(model, state, extra)
    if model.has_linear:
        predict_linear(model, state)
        add_linear_columns(model, state, extra)
    scale_inputs(state.columns, model.input_offset, model.input_scale, model.input_limit, state.scaled[0])
    if len(model.readout) == 0:  # before the network is trained: the linear part alone
        copy(state.linear_prediction, state.prediction)
        return True
    advance_cell(model, state)
    average_members(state)
    if len(model.prior) > 0:
        correct(model, state)
        predict_experts(model, state)
        weigh(state.scores, model.prior, state.powers, state.weights)
        combine(state.expert_predictions, state.weights, state.combined)
    else:
        restore_target(model, state.network_output, state.combined)
        np.multiply(state.combined, model.shrinkage, state.combined)
    np.add(state.linear_prediction, state.combined, state.prediction)
    if state.waiting[0] > 0:
        move_towards_pending(state)
    if model.non_negative:
        floor_at_zero(state.prediction, state.has_been_negative)
    if len(model.quantiles) > 0:
        expect_scale(model, state)
    return True


@kernel
def observe_row(model: StepModel, state: StepState, labels: DoubleArray, teach: bool) -> None:
    """Close the row with its labels (n,), NaN where missing; without ``teach`` it is only looked back on."""
    if teach and len(model.quantiles) > 0:
        track(model, state, labels - state.prediction)
    if model.has_filter:
        filter_labels(model, state, labels)
    else:
        copy(labels, state.label)
    if model.non_negative:
        note_negative(state.label, state.has_been_negative)
    np.subtract(state.label, state.linear_prediction, state.residual)
    copy(state.residual, state.target)
    if model.has_linear:
        observe_linear(model, state)
        drop_beyond(state.residual, model.largest_change, state.target)
    scale_target(state.target, model.target_offset, model.target_scale)
    if len(model.readout) > 0:
        if teach and len(model.prior) > 0:
            learn(model, state)
            errors = state.residual - state.combined
            experts, weights = state.expert_predictions, state.weights
            update_scores(errors, experts, weights, model.mean_square, state.scores, state.mean_square)
        remember(model, state)
    copy_rows(state.inputs, state.last_inputs)
    state.rows[0] += 1.0
