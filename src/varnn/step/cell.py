"""The paper's cell at work on series, row after row; `varnn.network.cell` has its equations.

All that a step reads lies in one row of numbers for each member, series and window ::

    hidden layer   u = relu([1 h u_prev x] W_z)        output  y_hat = u W_o + b_o
    memory         h = rho([error 1 h_prev] W_e)

A window of w rows is w states begun one row apart: all of them advance with each row as rows of one product,
the oldest predicts, and a new one begins. The default carries one state through the whole series instead. A
cell that was trained on windows may be one whose state grows without end. So there is a limit, beyond
anything that the training rows gave rise to, at which a state begins again at zero.
"""

import numpy as np

from varnn.step.kernel import part
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import (
    activate,
    are_marked,
    clear_beyond,
    copy,
    copy_rows,
    copy_stack,
    row_products,
    stacked_products,
    transposed_product,
)

_RELU = 0  # place in `varnn.step.operations.ACTIVATIONS`
_SCALAR, _NONE = 1, 2  # places in `varnn.step.layout.RESIDUALS`


@part
def advance_cell(model: StepModel, state: StepState) -> None:
    """Compute hidden layers and outputs of all members and windows from their memories and the inputs."""
    n_series, width = state.columns.shape
    for window in range(model.windows):
        first, last = window * n_series, (window + 1) * n_series
        copy_stack(state.column_stack, state.seen[:, first:last, state.seen.shape[2] - width :])
    stacked_products(state.seen, model.to_hidden, state.hidden)
    activate(state.hidden, _RELU)
    row_products(state.hidden_rows, model.readout, state.output_rows)
    np.add(state.outputs, model.readout_bias, state.outputs)
    members = len(model.readout)
    copy_rows(state.outputs[:, :n_series], state.member_outputs[:members])
    transposed_product(state.member_outputs, model.member_shares, state.network_column)


@part
def remember(model: StepModel, state: StepState) -> None:
    """Turn the errors of outputs into memory; a missing target holds the memory."""
    n_series, rows = len(state.target), state.seen.shape[1]
    end = state.seen.shape[2] - state.columns.shape[1]
    memory = state.seen[:, :, 1 : 1 + state.news.shape[2]]
    activation = state.seen[:, :, 1 + state.news.shape[2] : end]
    news = state.news
    if model.residual != _NONE:
        copy(state.target_clean, state.target_single)
        for window in range(model.windows):
            first, last = window * n_series, (window + 1) * n_series
            np.subtract(state.target_single, state.outputs[:, first:last], state.told[:, first:last, 0])
        if model.residual == _SCALAR:
            copy_stack(state.told, news)
        else:
            if state.told.shape[2] > 2:
                copy_stack(memory, state.told[:, :, 2:])
            stacked_products(state.told, model.to_memory, news)
            activate(news, model.activation)
        if not are_marked(state.target_known):
            for series in range(n_series):
                if state.target_known[series] == 0:
                    for row in range(series, rows, n_series):
                        copy_rows(memory[:, row], news[:, row])
    if model.carried:
        copy_stack(news, memory)
        if activation.shape[2] > 0:  # which needs no label
            copy_stack(state.hidden, activation)
        clear_beyond(state.seen[:, :, 1:end], model.state_limit)
    else:  # every window grows older by a row; the newest begins with nothing
        older = rows - n_series
        if older > 0:
            copy_stack(news[:, n_series:], memory[:, :older])
            if activation.shape[2] > 0:
                copy_stack(state.hidden[:, n_series:], activation[:, :older])
        clear_beyond(state.seen[:, older:, 1:end], -1.0)
