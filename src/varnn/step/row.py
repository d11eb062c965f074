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
from varnn.step.aggregation import combine, update_weights
from varnn.step.cell import advance_cell, remember
from varnn.step.experts import predict_experts
from varnn.step.floor import find_floor, note_negative
from varnn.step.inputs import fill_gaps, gather_columns, restore_target, scale_target
from varnn.step.intervals import expect_scale, track
from varnn.step.kernel import part
from varnn.step.label_filter import filter_labels, move_towards_pending
from varnn.step.layout import StepModel, StepState
from varnn.step.linear import add_linear_columns, observe_linear, predict_linear
from varnn.step.operations import copy, copy_rows, drop_beyond, larger, mark_known, standardize


@part
def predict_row(model: StepModel, state: StepState, x: DoubleArray, extra: DoubleArray) -> bool:
    """Predict the next row of each series; return False if an input cannot be used.

    Parameters
    ----------
    model, state : StepModel, StepState
        The model, and its series.
    x, extra : arrays of shape (n, D) and (n, C)
        Inputs as they were given, NaN where missing, and those of the calendar and of peers.
    """
    usable = fill_gaps(x, state.last_inputs, model.fill, state.inputs)
    if usable:
        gather_columns(model, state, extra)
        if model.has_linear:
            predict_linear(model, state)
            add_linear_columns(model, state, extra)
        standardize(state.columns, model.input_offset, model.input_scale, model.input_limit, state.columns)
        if len(model.readout) == 0:  # before the network is trained: the linear part alone
            copy(state.linear_prediction, state.prediction)
        else:
            _predict_network(model, state)
    return usable


@part
def _predict_network(model: StepModel, state: StepState) -> None:
    """Predict the row whose inputs and linear prediction are there."""
    advance_cell(model, state)
    if len(model.prior) > 0:
        correct(model, state)
        predict_experts(model, state)
        combine(state)
    else:
        offset, scale = model.target_offset, model.target_scale
        restore_target(state.network_output, offset, scale, model.shrinkage, state.combined)
    np.add(state.linear_prediction, state.combined, state.prediction)
    if state.waiting[0] > 0:
        move_towards_pending(state)
    if model.non_negative:
        find_floor(state.has_been_negative, state.floor)
        larger(state.prediction, state.floor, state.prediction)
    if len(model.quantiles) > 0:
        expect_scale(model, state)


@part
def observe_row(model: StepModel, state: StepState, labels: DoubleArray, teach: bool) -> None:
    """Close the row with its labels (n,), NaN where missing; without ``teach`` it is only looked back on."""
    if teach and len(model.quantiles) > 0:
        np.subtract(labels, state.prediction, state.errors)
        track(model, state, state.errors)
    if model.has_filter:
        filter_labels(model, state, labels)
    else:
        copy(labels, state.label)
    if model.non_negative:
        note_negative(state.label, state.has_been_negative, state.has_been_negative)
    np.subtract(state.label, state.linear_prediction, state.residual)
    copy(state.residual, state.target)
    if model.has_linear:
        observe_linear(model, state)
        drop_beyond(state.target, model.largest_change)
    scale_target(state.target, model.target_offset, model.target_scale, state.target)
    mark_known(state.target, state.target_known, state.target_clean)
    if len(model.readout) > 0:
        if teach and len(model.prior) > 0:
            learn(model, state)
            update_weights(model, state)
        remember(model, state)
    copy_rows(state.inputs, state.last_inputs)
    state.rows[0] += 1.0
