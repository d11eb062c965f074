"""The paper's cell at work on series, row after row; `varnn.network.cell` has its equations.

All that a step reads lies in one row of numbers for each member, series and window ::

    hidden layer   u = relu([1 h u_prev x] W_z)        output  y_hat = u W_o + b_o
    memory         h = rho([error 1 h_prev] W_e)

A window of w rows is w states begun one row apart: all of them advance with each row as rows of one product,
the oldest predicts, and a new one begins. The default carries one state through the whole series instead. A
cell that was trained on windows may be one whose state grows without end, so there is a limit, beyond anything
that the training rows gave rise to, at which a state begins again at zero.
"""

import numpy as np

from varnn.step.kernel import kernel
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import copy, copy_rows, fill_missing, spread

_SCALAR, _NONE = 1, 2  # places in `varnn.step.layout.RESIDUALS`
_NOTHING = np.float32(0)
_FINITE = 1e15  # a limit whose square is finite in single precision


@kernel
def advance_cell(model: StepModel, state: StepState) -> None:
    """Compute hidden layers and outputs of all members and windows from their memories and the inputs."""
    spread(state.scaled, state.seen[:, :, state.seen.shape[2] - state.scaled.shape[2] :])
    for member in range(len(model.readout)):
        np.dot(state.seen[member], model.to_hidden[member], state.hidden[member])
    np.maximum(state.hidden, _NOTHING, state.hidden)
    for member in range(len(model.readout)):
        np.dot(state.hidden[member], model.readout[member], state.outputs[member])
    np.add(state.outputs, model.readout_bias, state.outputs)


@kernel
def average_members(state: StepState) -> None:
    """Average the outputs of the members, in double precision."""
    members, n_series = state.outputs.shape[0], len(state.network_output)
    mean = state.network_output
    copy(state.outputs[0, :n_series], mean)
    for member in range(1, members):
        np.add(mean, state.outputs[member, :n_series], mean)
    np.divide(mean, members, mean)


@kernel
def remember(model: StepModel, state: StepState) -> None:
    """Turn the errors of outputs into memory; a missing target holds the memory."""
    n_series, rows = len(state.target), state.seen.shape[1]
    memory = state.seen[:, :, 1 : 1 + state.news.shape[2]]
    activation = state.seen[:, :, 1 + state.news.shape[2] : state.seen.shape[2] - state.scaled.shape[2]]
    news = state.news
    if model.residual != _NONE:
        fill_missing(state.target, 0.0, state.target_single)
        for window in range(model.windows):
            first, last = window * n_series, (window + 1) * n_series
            errors = state.told[:, first:last, 0]
            np.subtract(state.target_single, state.outputs[:, first:last], errors)
        if model.residual == _SCALAR:
            spread(state.told, news)
        else:
            if state.told.shape[2] > 2:
                spread(memory, state.told[:, :, 2:])
            for member in range(len(model.to_memory)):
                np.dot(state.told[member], model.to_memory[member], news[member])
            if model.tanh:
                np.tanh(news, news)
            else:
                np.maximum(news, _NOTHING, news)
        for series in range(n_series):
            if state.target[series] != state.target[series]:
                for window in range(model.windows):
                    row = window * n_series + series
                    copy_rows(memory[:, row], news[:, row])
    if model.carried:
        spread(news, memory)
        if activation.shape[2] > 0:  # which needs no label
            spread(state.hidden, activation)
        _limit(state, model.state_limit)
    else:  # every window grows older by a row; the newest begins with nothing
        older = rows - n_series
        if older > 0:
            spread(news[:, n_series:], memory[:, :older])
            if activation.shape[2] > 0:
                spread(state.hidden[:, n_series:], activation[:, :older])
        for part in (memory[:, older:], activation[:, older:]):
            np.multiply(part, _NOTHING, part)


@kernel
def _limit(state: StepState, limit: float) -> None:
    """Begin states again that have grown beyond the limit."""
    flat = state.seen.ravel()
    if limit < _FINITE and np.dot(flat, flat) <= limit * limit:  # cheap, and nearly always true
        return
    end = state.seen.shape[2] - state.scaled.shape[2]
    for member in range(state.seen.shape[0]):
        for row in range(state.seen.shape[1]):
            largest = np.float32(0)
            is_finite = True
            for place in range(1, end):
                size = abs(state.seen[member, row, place])
                largest = max(largest, size)
                is_finite = is_finite and size == size
            if not (is_finite and largest <= limit):
                for place in range(1, end):
                    state.seen[member, row, place] = 0
