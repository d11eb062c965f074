"""The linear part, row by row: a seasonal ridge ARX whose predictions the network corrects.

With f_t the last label known before row t, and the changes d_t = f_t - f_t-1, the prediction of row t is ::

    linear_t = f_t + a f_t + b_1 d_t + b_2 d_t-1 + ... + c_0 x_t + c_1 x_t-1 + ... + constant
                   + for each season of p rows:  s_1 (g_t-p - g_t-p-1) + s_2 (g_t-p-1 - g_t-p-2)
                                               + s_3 (g_t-p+1 - g_t-p) + s_4 (g_t-p - f_t)

where g_t is the last label known up to row t: how the label changed a season ago, just before and just after,
and where it was then. Regressing the change y_t - f_t, and not the level, makes ridge shrink towards
persistence. If a series leaves the range it was trained in, the term a f_t stays at what it is at the edge of
that range. An input that is further outside the range it was seen in than half of that range is taken as just
that far. `varnn.model.linear` fits the coefficients.

The regressors are the level, the changes, four of each season, the inputs now, and how past inputs differ from
these; so the coefficients of inputs now are the sums of the c above.
"""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import kernel
from varnn.step.layout import RING_OVERLAP, StepModel, StepState
from varnn.step.operations import copy, copy_known, copy_rows, fill_missing, shift_right

SEASONAL = 4  # regressors of a season
THEN = 3  # which of them is the level then, less the last one


@kernel
def predict_linear(model: StepModel, state: StepState) -> None:
    """Gather the regressors of the row from its inputs and from what came before, and predict it."""
    regressors, last, rows = state.regressors, state.last_label, int(state.rows[0])
    np.maximum(last, model.label_low, regressors[:, 0])
    np.minimum(regressors[:, 0], model.label_high, regressors[:, 0])
    column = 1 + model.changes
    copy_rows(state.label_changes, regressors[:, 1:column])
    span = model.label_high - model.label_low
    kept = state.past_labels.shape[1] - RING_OVERLAP
    for period in model.periods:
        if rows >= period + 2:
            first = (rows - period - 2) % kept
            past = state.past_labels[
                :, first : first + RING_OVERLAP + 1
            ]  # from two rows before it to one after
            season = regressors[:, column : column + SEASONAL]
            np.subtract(past[:, 2], past[:, 1], season[:, 0])
            np.subtract(past[:, 1], past[:, 0], season[:, 1])
            np.subtract(past[:, 3], past[:, 2], season[:, 2])
            np.subtract(past[:, 2], last, season[:, THEN])
            np.maximum(season, -span, season)
            np.minimum(season, span, season)
        column += SEASONAL
    width = len(model.input_low)
    if model.input_lags >= 0 and width > 0:
        bounded = state.bounded_inputs
        np.maximum(state.columns[:, :width], model.input_low, bounded)
        np.minimum(bounded, model.input_high, bounded)
        copy_rows(bounded, regressors[:, column : column + width])
        if rows > 0:  # before that, the first row of the series stands in for earlier ones
            for lag in range(model.input_lags):
                past = state.past_inputs[:, lag * width : (lag + 1) * width]
                column += width
                np.subtract(past, bounded, regressors[:, column : column + width])
    prediction = state.linear_prediction
    np.dot(regressors, model.linear_weights, prediction)
    np.add(prediction, last, prediction)
    np.add(prediction, model.constant, prediction)


@kernel
def add_linear_columns(model: StepModel, state: StepState, extra: DoubleArray) -> None:
    """Let the network see the last label, the step from it to the linear prediction, and what peers left."""
    first = state.columns.shape[1] - 2 - model.peers
    copy(state.last_label, state.columns[:, first])
    np.subtract(state.linear_prediction, state.last_label, state.columns[:, first + 1])
    if model.peers:
        copy(extra[:, extra.shape[1] - 1], state.columns[:, first + 2])


@kernel
def observe_linear(model: StepModel, state: StepState) -> None:
    """Update what later rows look back on with the labels that were accepted."""
    labels, last, change = state.label, state.last_label, state.last_change
    rows = int(state.rows[0])
    np.subtract(labels, last, change)
    fill_missing(change, 0.0, change)
    np.multiply(change, state.has_label, change)
    copy_known(labels, last)
    np.maximum(state.has_label, labels == labels, state.has_label)
    if model.changes > 0:
        shift_right(state.label_changes, 1)
        newest = state.label_changes[:, 0]
        np.maximum(change, -model.largest_change, newest)
        np.minimum(newest, model.largest_change, newest)
    width = len(model.input_low)
    if model.input_lags > 0:
        if rows > 0:
            shift_right(state.past_inputs, width)
        for lag in range(1 if rows > 0 else model.input_lags):
            copy_rows(state.bounded_inputs, state.past_inputs[:, lag * width : (lag + 1) * width])
    copy(state.residual, state.linear_residual)
    kept = state.past_labels.shape[1] - RING_OVERLAP
    if kept > 0:
        place = rows % kept
        copy(last, state.past_labels[:, place])
        if place < RING_OVERLAP:
            copy(last, state.past_labels[:, place + kept])
