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

The regressors are the level, the changes, four of each season, the inputs now, and how past inputs differ
from these; so the coefficients of inputs now are the sums of the c above.
"""

import numpy as np

from varnn._types import DoubleArray
from varnn.step.kernel import elementwise, part
from varnn.step.layout import RING_OVERLAP, StepModel, StepState
from varnn.step.operations import clip_columns, copy, copy_rows, larger, mark_known, products, shift_right

SEASONAL = 4  # regressors of a season
THEN = 3  # which of them is the level then, less the last one


@part
def predict_linear(model: StepModel, state: StepState) -> None:
    """Gather the regressors of the row from its inputs and from what came before, and predict it."""
    regressors, last, rows = state.regressors, state.last_label, int(state.rows[0])
    copy(last, regressors[:, 0])
    column = 1 + model.changes
    if model.changes > 0:
        copy_rows(state.label_changes, regressors[:, 1:column])
    kept = state.past_labels.shape[1] - RING_OVERLAP
    for period in model.periods:
        if rows >= period + 2:
            first = (rows - period - 2) % kept  # two rows before the row a season ago
            past = state.past_labels
            before, then, after = past[:, first + 1], past[:, first + 2], past[:, first + 3]
            np.subtract(then, before, regressors[:, column])
            np.subtract(before, past[:, first], regressors[:, column + 1])
            np.subtract(after, then, regressors[:, column + 2])
            np.subtract(then, last, regressors[:, column + THEN])
        column += SEASONAL
    width = model.seen_inputs
    if width > 0:
        copy_rows(state.columns[:, :width], regressors[:, column : column + width])
    clip_columns(regressors, model.regressor_low, model.regressor_high)
    if width > 0 and rows > 0:  # before that, the first row of the series stands in for earlier ones
        inputs = regressors[:, column : column + width]
        for lag in range(model.input_lags):
            column += width
            np.subtract(
                state.past_inputs[:, lag * width : (lag + 1) * width],
                inputs,
                regressors[:, column : column + width],
            )
    prediction = state.linear_prediction
    products(regressors, model.linear_weights, prediction)
    np.add(prediction, last, prediction)
    np.add(prediction, model.constant, prediction)


@part
def add_linear_columns(model: StepModel, state: StepState, extra: DoubleArray) -> None:
    """Let the network see the last label, the step from it to the linear prediction, and what peers left."""
    first = state.columns.shape[1] - 2 - model.peers
    copy(state.last_label, state.columns[:, first])
    np.subtract(state.linear_prediction, state.last_label, state.columns[:, first + 1])
    if model.peers:
        copy(extra[:, extra.shape[1] - 1], state.columns[:, first + 2])


@elementwise
def _change_of(
    label: DoubleArray, last: DoubleArray, known: DoubleArray, has_last: DoubleArray
) -> DoubleArray:
    """Return how much a label differs from the last one; 0 if one of them is missing."""
    return (label - last) * (known * has_last)


@elementwise
def _latest(label: DoubleArray, last: DoubleArray, known: DoubleArray) -> DoubleArray:
    """Return the label if it is known, and otherwise the last one."""
    return label * known + last * (1.0 - known)


@part
def observe_linear(model: StepModel, state: StepState) -> None:
    """Update what later rows look back on with the labels that were accepted."""
    last, known, rows = state.last_label, state.known, int(state.rows[0])
    mark_known(state.label, known, state.clean)
    _change_of(state.clean, last, known, state.has_label, state.last_change)
    _latest(state.clean, last, known, last)
    larger(state.has_label, known, state.has_label)
    copy(state.residual, state.linear_residual)
    if model.changes > 0:
        shift_right(state.label_changes, 1)
        copy(state.last_change, state.label_changes[:, 0])
    width = model.seen_inputs
    if model.input_lags > 0 and width > 0:
        first = 1 + model.changes + SEASONAL * len(model.periods)
        inputs = state.regressors[:, first : first + width]
        if rows > 0:
            shift_right(state.past_inputs, width)
        for lag in range(1 if rows > 0 else model.input_lags):
            copy_rows(inputs, state.past_inputs[:, lag * width : (lag + 1) * width])
    kept = state.past_labels.shape[1] - RING_OVERLAP
    if kept > 0:
        place = rows % kept
        copy(last, state.past_labels[:, place])
        if place < RING_OVERLAP:
            copy(last, state.past_labels[:, place + kept])
