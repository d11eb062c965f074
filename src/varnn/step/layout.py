"""The numbers of a step by name: what a model has learned, and what its series carry from row to row.

A state is that of n series in step: 1 for a stream or a batch, up to `BLOCK` of a fleet. Its numbers lie in
one block of memory, of which the fields are views. The first fields are carried to the next row: a copy of
their part of the block is a checkpoint, and its bytes are a snapshot. The others are left by `predict_row`
for `observe_row`.

Shapes: n series, D inputs as given, C extra inputs (calendar, peers), P inputs of the network, F regressors of
the linear part, B inputs that it sees, E members, K hidden units, M residual memory, U activation memory (K
or 0), A windows under way (1 if the state is carried), S features of the readout, R forgetting factors, X
experts, J learning rates of the aggregation, T quantiles.
"""

import math
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.step.kernel import record_of

Float32 = npt.NDArray[np.float32]
Vector = Annotated[DoubleArray, 1]
Matrix = Annotated[DoubleArray, 2]
Cube = Annotated[DoubleArray, 3]
Tensor = Annotated[DoubleArray, 4]
Whole = Annotated[npt.NDArray[np.int64], 1]
Vector32 = Annotated[Float32, 1]
Matrix32 = Annotated[Float32, 2]
Cube32 = Annotated[Float32, 3]

BLOCK = 128  # series of a fleet computed together: their numbers stay in a core's own cache
FILLS = ("forward", "zero", "none")  # what missing inputs are filled with
RESIDUALS = ("projected", "scalar", "none")  # the paper's memory, and its ablations
LEARNING_RATES = np.array([1 / 8, 1 / 32, 1 / 128])  # of the aggregation
RECENT_SIZES = 3  # running means of the size of errors
SMALLEST_SIZE = 0.05  # of the usual size of an error: smaller ones are all alike
RING_OVERLAP = 3  # first labels of the ring, repeated at its end so that a slice never wraps


class StepModel(NamedTuple):
    """What a model has learned, by name."""

    # Inputs
    inputs: int  # D
    fill: int  # place in FILLS
    initial_inputs: Vector  # (D,): stand in for missing inputs before the first known ones
    use_inputs: int
    peers: int
    input_limit: float
    input_offset: Vector  # (P,)
    input_scale: Vector  # (P,)
    target_offset: float
    target_scale: float
    # Label filter
    has_filter: int
    max_change: float
    first_low: float  # range of the first label of a series
    first_high: float
    # Linear part
    has_linear: int
    changes: int  # of the label, that it looks back on
    input_lags: int  # -1 if it does not see inputs
    periods: Whole  # of its seasons, in rows
    label_mean: float  # stands in for the last label before the first one
    label_low: float  # range of the training labels
    label_high: float
    largest_change: float
    constant: float
    linear_weights: Vector  # (F,)
    input_low: Vector  # (B,)
    input_high: Vector  # (B,)
    # Cell
    windows: int  # A: under way; 1 if the state is carried
    carried: int  # whether one state is carried through the series
    residual: int  # place in RESIDUALS
    tanh: int
    state_limit: float
    to_hidden: Cube32  # (E, 1 + M + U + P, K): from [1 h u x]
    readout: Matrix32  # (E, K)
    readout_bias: Matrix32  # (E, 1)
    to_memory: Cube32  # (E, 2 or 2 + M, M): from [error 1 h]
    shrinkage: float  # of the network's output, where nothing adapts
    # Adaptation
    center: Vector  # (F,)
    deviation: Vector  # (F,)
    unit: float  # size of a regressor of one deviation, compared with the hidden layer
    own_whitening: Cube  # (E, S, K)
    common_whitening: Matrix  # (S - K, S - K)
    readout_steps: Matrix  # (R, 1): one over one less the forgetting factors
    readout_bound: float  # larger errors count as so large
    linear_whitening: Matrix  # (F + 1, F + 1)
    linear_steps: Matrix  # (1, 1)
    linear_bound: float
    # Experts
    season: int  # regressor with the level a season ago, or -1
    prior: Vector  # (X,)
    mean_square: float  # of errors, at the start
    split_feature: Annotated[npt.NDArray[np.int64], 2]  # (splits, trees)
    split_threshold: Matrix  # (splits, trees)
    split_left: Annotated[npt.NDArray[np.int64], 2]  # (splits, trees): leaves below it to its left, as bits
    leaf_value: Matrix  # (splits + 1, trees)
    # Floor and intervals
    non_negative: int
    quantiles: Vector  # (T,): at the start; empty without intervals
    scale_weights: Vector  # (K + 4,)
    scale_unit: float
    largest_error: float


class StepState(NamedTuple):
    """What n series carry from row to row, and what an open row leaves for its label."""

    # Carried, in double precision
    rows: Vector  # (1,): observed so far
    last_inputs: Matrix  # (n, D)
    accepted: Vector  # (n,): the last label that the filter accepted
    waited: Vector  # (n,): rows since
    waiting: Vector  # (1,): series whose last label was missing or rejected
    n_rejected: Vector  # (n,): labels rejected recently
    rejected_at: Vector  # (n,): row of the last of them
    raised_bound: Vector  # (n,)
    raised_at: Vector  # (n,): row of the last confirmed shift
    pending: Vector  # (n,): a rejected label that may be the first of a shift; NaN if there is none
    n_shifts: Vector  # (n,)
    n_glitches: Vector  # (n,)
    last_label: Vector  # (n,)
    has_label: Vector  # (n,)
    last_change: Vector  # (n,)
    linear_residual: Vector  # (n,)
    label_changes: Matrix  # (n, changes): the latest first
    past_inputs: Matrix  # (n, lags B): the latest first
    past_labels: Matrix  # (n, longest period + 2 + RING_OVERLAP): a ring
    readout_change: Tensor  # (E, R, n, S)
    linear_change: Tensor  # (1, 1, n, F + 1)
    scores: Cube  # (n, X, J)
    mean_square: Vector  # (n,): of recent errors
    quantiles: Matrix  # (n, T)
    recent_sizes: Matrix  # (n, 3)
    inflation: Vector  # (n,)
    has_been_negative: Vector  # (n,)
    # Carried, in single precision
    seen: Cube32  # (E, A n, 1 + M + U + P): [1 h u x], the oldest window first
    # Left by an open row
    inputs: Matrix  # (n, D): gaps filled
    columns: Matrix  # (n, P): before scaling
    regressors: Matrix  # (n, F)
    bounded_inputs: Matrix  # (n, B)
    linear_prediction: Vector  # (n,)
    standard: Matrix  # (n, F): regressors in deviations from their means
    features: Cube  # (E, n, S)
    common: Cube  # (1, n, S - K)
    common_white: Cube  # (1, n, S - K)
    own_white: Cube  # (E, n, K)
    white: Cube  # (E, n, S)
    corrections: Cube  # (E, R, n)
    linear_features: Matrix  # (n, F + 1)
    linear_white: Cube  # (1, n, F + 1)
    linear_correction: Cube  # (1, 1, n)
    expert_predictions: Matrix  # (n, X): less the linear prediction
    weights: Matrix  # (n, X)
    combined: Vector  # (n,)
    network_output: Vector  # (n,): mean of the members, in scaled units
    prediction: Vector  # (n,)
    expected_scale: Vector  # (n,)
    powers: Cube  # (n, X, J)
    log_sizes: Matrix  # (n, K)
    label: Vector  # (n,): as the filter accepted it
    residual: Vector  # (n,): label less the linear prediction
    target: Vector  # (n,): of the network, in scaled units
    scaled: Cube32  # (1, n, P): columns after scaling
    hidden: Cube32  # (E, A n, K)
    outputs: Matrix32  # (E, A n)
    target_single: Vector32  # (n,): the target, 0 if it is missing
    told: Cube32  # (E, A n, 2 or 2 + M): [error 1 h]
    news: Cube32  # (E, A n, M)


CARRIED = StepState._fields[: StepState._fields.index("inputs")]
_SINGLE = {
    name for name, kind in get_type_hints(StepState, include_extras=True).items() if "32" in repr(kind)
}
_WORD = 8  # bytes; each field begins at a multiple of them

# Compiled code receives the addresses of arrays: to be passed a hundred arrays one by one would take it longer
# than to compute a row.
model_of = record_of(StepModel)
state_of = record_of(StepState)


class Block:
    """The state of n series in step, and the memory it lies in.

    Parameters
    ----------
    model : StepModel
        The model.
    n_series : int, default=1
        Series, n.
    """

    def __init__(self, model: StepModel, n_series: int = 1) -> None:
        shapes = _shapes(model, n_series)
        sizes = [math.prod(shape) * (4 if name in _SINGLE else 8) for name, shape in shapes.items()]
        ends = np.cumsum([-(-size // _WORD) * _WORD for size in sizes]).tolist()
        self.memory = np.zeros(ends[-1], np.uint8)
        self.carried = self.memory[: ends[len(CARRIED) - 1]]  # what later rows depend on
        views: dict[str, Any] = {}
        for name, size, begin in zip(shapes, sizes, [0, *ends[:-1]], strict=True):
            kind = np.float32 if name in _SINGLE else np.float64
            views[name] = self.memory[begin : begin + size].view(kind).reshape(shapes[name])
        self.state = state = StepState(**views)
        state.last_inputs[:] = model.initial_inputs
        state.accepted[:] = state.pending[:] = state.linear_residual[:] = np.nan
        state.last_label[:] = state.past_labels[:] = model.label_mean
        state.mean_square[:] = model.mean_square
        state.quantiles[:], state.recent_sizes[:], state.inflation[:] = (
            model.quantiles,
            1 / SMALLEST_SIZE,
            1.0,
        )
        state.seen[..., :1] = 1
        state.told[..., 1:2] = 1
        for ends_in_one in (state.features, state.common, state.linear_features):
            ends_in_one[..., -1:] = 1


def _shapes(model: StepModel, n: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each field of a state, in order."""
    members, row, hidden = model.to_hidden.shape
    told, memory = model.to_memory.shape[1:]
    columns, regressors, bounded = len(model.input_offset), len(model.linear_weights), len(model.input_low)
    features, common, linear = (
        model.own_whitening.shape[1],
        len(model.common_whitening),
        len(model.linear_whitening),
    )
    rates, experts, tracked = len(model.readout_steps), len(model.prior), len(model.quantiles)
    kept = int(model.periods.max(initial=-2)) + 2
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(StepState._fields, (n,))
    return shapes | {
        "rows": (1,),
        "waiting": (1,),
        "last_inputs": (n, model.inputs),
        "label_changes": (n, model.changes),
        "past_inputs": (n, max(model.input_lags, 0) * bounded),
        "past_labels": (n, kept + RING_OVERLAP if kept else 0),
        "readout_change": (members, rates, n, features),
        "linear_change": (1, 1, n, linear),
        "scores": (n, experts, len(LEARNING_RATES)),
        "quantiles": (n, tracked),
        "recent_sizes": (n, RECENT_SIZES),
        "seen": (members, model.windows * n, row),
        "inputs": (n, model.inputs),
        "columns": (n, columns),
        "regressors": (n, regressors),
        "standard": (n, regressors),
        "bounded_inputs": (n, bounded),
        "features": (members, n, features),
        "common": (1, n, common),
        "common_white": (1, n, common),
        "own_white": (members, n, features - common),
        "white": (members, n, features),
        "corrections": (members, rates, n),
        "linear_features": (n, linear),
        "linear_white": (1, n, linear),
        "linear_correction": (1, 1, n),
        "expert_predictions": (n, experts),
        "weights": (n, experts),
        "powers": (n, experts, len(LEARNING_RATES)),
        "log_sizes": (n, hidden),
        "scaled": (1, n, columns),
        "hidden": (members, model.windows * n, hidden),
        "outputs": (members, model.windows * n),
        "told": (members, model.windows * n, told),
        "news": (members, model.windows * n, memory),
    }
