"""The loop over rows that everything stands on: streams, fleets, batches and fitting."""

from typing import NamedTuple

import numpy as np

from varnn._types import BoolArray, DoubleArray
from varnn.step.intervals import bounds
from varnn.step.kernel import kernel, part, record_of
from varnn.step.layout import Cube, Cube32, Matrix, StepModel, StepState, Vector, model_of, state_of
from varnn.step.operations import copy, copy_rows, larger
from varnn.step.row import observe_row, predict_row


class Taps(NamedTuple):
    """What a loop over N rows of n series writes; arrays with no rows are left alone.

    Those from ``linear`` on are of the first series. All are from before the label is observed, except for
    ``label``, ``residual`` and ``target``.
    """

    prediction: Matrix  # (N, n)
    lower: Cube  # (N, n, L)
    upper: Cube  # (N, n, L)
    linear: Vector  # (N,): prediction of the linear part
    output: Vector  # (N,): mean output of the network, in scaled units
    experts: Matrix  # (N, X): prediction of each expert, less that of the linear part
    weights: Matrix  # (N, X)
    regressors: Matrix  # (N, F): of the linear part
    label: Vector  # (N,): as the filter accepted it
    residual: Vector  # (N,): label less the prediction of the linear part
    columns: Matrix  # (N, P): scaled inputs of the network, in double precision
    target: Vector  # (N,): its scaled target
    hidden: Cube32  # (members wanted, N, K)
    memory: Cube32  # (members wanted, N, M): residual memory


taps_of = record_of(Taps)


@kernel
def run(
    model: StepModel,
    state: StepState,
    taps: Taps,
    x: DoubleArray,
    extra: DoubleArray,
    labels: DoubleArray,
    teach: BoolArray,
    levels: DoubleArray,
    predict: bool,
    observe: bool,
) -> int:
    """Predict rows, observe their labels, or both by turns; return how many rows could be used.

    Parameters
    ----------
    model, state, taps : StepModel, StepState, Taps
        What to compute with, and what to write.
    x, extra : arrays of shape (N, n, D) and (N, n, C)
        Inputs, as `predict_row` reads them.
    labels, teach : arrays of shape (N, n) and (N,)
        Labels, and which rows teach, as `observe_row` reads them.
    levels : array of shape (T, 2 L)
        Levels of intervals, as `varnn.step.intervals.level_weights` returns them; none if L is 0.
    predict, observe : bool
        What to do with each row.
    """
    m, s, out = model_of(model), state_of(state), taps_of(taps)
    for row in range(len(x)):
        if predict:
            if not predict_row(m, s, x[row], extra[row]):
                return row
            copy(s.prediction, out.prediction[row])
            if levels.shape[1] > 0:
                bounds(s, levels, out.lower[row], out.upper[row])
                add_prediction(m, s, out.lower[row], out.upper[row])
            tap_prediction(s, out, row)
        if observe:
            observe_row(m, s, labels[row], teach[row])
            tap_label(s, out, row)
    return len(x)


@part
def add_prediction(model: StepModel, state: StepState, lower: DoubleArray, upper: DoubleArray) -> None:
    """Turn how far intervals reach into bounds: (n, L)."""
    np.add(lower, state.prediction_column, lower)
    np.add(upper, state.prediction_column, upper)
    if model.non_negative:
        larger(lower, state.floor_column, lower)


@part
def tap_prediction(state: StepState, out: Taps, row: int) -> None:
    """Write what is wanted of a row that was predicted."""
    if len(out.linear) > 0:
        out.linear[row] = state.linear_prediction[0]
    if len(out.output) > 0:
        out.output[row] = state.network_output[0]
    if len(out.experts) > 0:
        copy(state.expert_predictions[0], out.experts[row])
        copy(state.weights[0], out.weights[row])
    if len(out.regressors) > 0:
        copy(state.regressors[0], out.regressors[row])
    if len(out.columns) > 0:
        copy(state.columns[0], out.columns[row])  # which `scale_inputs` scales in place
    members = len(out.hidden)
    if members > 0:
        copy_rows(state.hidden[:members, 0], out.hidden[:, row])
    members = len(out.memory)
    if members > 0:
        copy_rows(state.seen[:members, 0, 1 : 1 + out.memory.shape[2]], out.memory[:, row])


@part
def tap_label(state: StepState, out: Taps, row: int) -> None:
    """Write what is wanted of a row whose label was observed."""
    if len(out.label) > 0:
        out.label[row] = state.label[0]
    if len(out.residual) > 0:
        out.residual[row] = state.residual[0]
    if len(out.target) > 0:
        out.target[row] = state.target[0]
