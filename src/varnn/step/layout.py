"""The numbers of a step by name: what a model has learned, and what its series carry from row to row.

A state is that of n series in step: 1 for a stream or a batch, up to `BLOCK` of a fleet. Its numbers lie in
one block of memory, of which the fields are views. The first fields are carried to the next row: a copy of
their part of the block is a checkpoint, and its bytes are a snapshot. The others are left by `predict_row`
for `observe_row`.

Some fields are the same numbers as others in another shape, as products and broadcasting need them.

Shapes: n series, D inputs as given, C extra inputs (calendar, peers), P inputs of the network, F regressors
of the linear part, B inputs that it sees, E members, K hidden units, M residual memory, U activation memory
(K or 0), A windows under way (1 if the state is carried), G sets of coefficients that adapt (one for each
member, then one for the linear part), R forgetting factors, X experts, J learning rates of the aggregation, Q
signals that experts combine, T quantiles.
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
Tensor32 = Annotated[Float32, 4]

BLOCK = 128  # series of a fleet computed together: their numbers stay in a core's own cache
FILLS = ("forward", "zero", "none")  # what missing inputs are filled with
RESIDUALS = ("projected", "scalar", "none")  # the paper's memory, and its ablations
LEARNING_RATES = np.array([1 / 8, 1 / 32, 1 / 128])  # of the aggregation
RECENT_SIZES = 3  # running means of the size of errors
SMALLEST_SIZE = 0.05  # of the usual size of an error: smaller ones are all alike
SIGNALS = 2  # of experts, before the outputs of members: persistence, and what a season ago adds to it
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
    regressor_low: Vector  # (F,): range that regressors are clipped to
    regressor_high: Vector  # (F,)
    seen_inputs: int  # B
    # Cell
    windows: int  # A: under way; 1 if the state is carried
    carried: int  # whether one state is carried through the series
    residual: int  # place in RESIDUALS
    activation: int  # of the memory: place in `varnn.step.operations.ACTIVATIONS`
    state_limit: float
    to_hidden: Cube32  # (E, 1 + M + U + P, K): from [1 h u x]
    readout: Cube32  # (E, 1, K)
    readout_bias: Matrix32  # (E, 1)
    to_memory: Cube32  # (E, 2 or 2 + M, M): from [error 1 h]
    shrinkage: float  # of the network's output, where nothing adapts
    # Adaptation
    center: Vector  # (F,)
    deviation: Vector  # (F,)
    own_whitening: Cube  # (E, K, K + F + 1): of [hidden, regressors in deviations, 1]
    common_whitening: Cube  # (1 or 2, F + 1, F + 1): for members, for the linear part
    adaptation_steps: Cube  # (G, R, 1): one over one less the forgetting factors; infinity if there is none
    adaptation_bounds: Cube  # (G, 1, 1): larger errors count as so large
    member_shares: Matrix  # (G, 1): of the mean output
    # Experts
    season: int  # regressor with the level a season ago, or -1
    mixing: Matrix  # (Q, X): from signals to predictions of experts
    expert_offset: Vector  # (X,)
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
    changes: Tensor  # (G, R, n, K + F + 1): of adapted coefficients, in whitened coordinates
    scores: Cube  # (n, X, J)
    weights: Matrix  # (n, X): of experts, for the next row: computed when a label is observed
    mean_square: Vector  # (n,): of recent errors
    quantiles: Matrix  # (n, T)
    recent_sizes: Matrix  # (n, 3)
    inflation: Vector  # (n,)
    has_been_negative: Vector  # (n,)
    # Carried, in single precision
    seen: Cube32  # (E, A n, 1 + M + U + P): [1 h u x], the oldest window first
    # Left by an open row
    inputs: Matrix  # (n, D): gaps filled
    columns: Matrix  # (n, P): inputs of the network; scaled when the row is predicted
    regressors: Matrix  # (n, F)
    linear_prediction: Vector  # (n,)
    standard: Cube  # (1, n, F + 1): regressors in deviations from their means, and 1
    features: Cube  # (E, n, K + F + 1): hidden layers, and the same
    common_white: Cube  # (1 or 2, n, F + 1)
    own_white: Cube  # (E, n, K)
    white: Cube  # (G, n, K + F + 1): features, whitened
    white_sizes: Cube  # (G, 1, n): sums of their squares
    factors: Cube  # (G, R, n): of whitened features in what is learned
    signals: Matrix  # (Q, n): what experts combine; `varnn.step.experts` lists them
    tree_inputs: Matrix32  # (n, P + F, or 0 without trees)
    expert_predictions: Matrix  # (n, X): less the linear prediction
    combined: Vector  # (n,)
    network_output: Vector  # (n,): mean of the members, in scaled units
    floor: Vector  # (n,): zero, or below every prediction
    prediction: Vector  # (n,)
    log_sizes: Matrix  # (n, K + RECENT_SIZES)
    expected_scale: Vector  # (n,): before inflation
    label: Vector  # (n,): as the filter accepted it
    residual: Vector  # (n,): label less the linear prediction
    target: Vector  # (n,): of the network, in scaled units
    errors: Vector  # (n,): of predictions
    target_known: Vector  # (n,): 1 if the target is known, 0 if it is missing
    target_clean: Vector  # (n,): the target, 0 if it is missing
    known: Vector  # (n,): 1 if what is learned from is known, 0 if it is missing
    clean: Vector  # (n,): what is learned from, 0 if it is missing
    regrets: Matrix  # (n, X)
    sums: Vector  # (n,): over experts
    powers: Matrix  # (n X, J)
    updated_scores: Matrix  # (n, X J)
    hidden: Cube32  # (E, A n, K)
    outputs: Matrix32  # (E, A n)
    target_single: Vector32  # (n,): the same in single precision
    told: Cube32  # (E, A n, 2 or 2 + M): [error 1 h]
    news: Cube32  # (E, A n, M)
    # The same numbers in other shapes
    member_outputs: (
        Matrix  # (G, n): of signals; for the linear part, what is left if the network adds nothing
    )
    outputs_of_sets: Cube  # (G, 1, n)
    corrections: Cube  # (G, R, n): of signals
    tree_sums: Vector  # (n,): of signals
    white_rows: Tensor  # (G, 1, n, K + F + 1)
    score_rows: Matrix  # (n, X J)
    scores_of_experts: Matrix  # (n X, J)
    updated_of_experts: Matrix  # (n X, J)
    weight_column: Vector  # (n X,)
    regret_column: Matrix  # (n X, 1)
    sum_column: Matrix  # (n, 1)
    known_column: Matrix  # (n, 1)
    clean_column: Matrix  # (n, 1)
    mean_square_column: Matrix  # (n, 1)
    inflation_column: Matrix  # (n, 1)
    scale_column: Matrix  # (n, 1)
    prediction_column: Matrix  # (n, 1)
    floor_column: Matrix  # (n, 1)
    network_column: Matrix  # (n, 1)
    column_stack: Cube  # (1, n, P)
    hidden_rows: Tensor32  # (E, A n, 1, K)
    output_rows: Cube32  # (E, A n, 1)


CARRIED = StepState._fields[: StepState._fields.index("inputs")]
_SAME = {  # fields that are other fields in another shape
    "member_outputs": "signals",
    "outputs_of_sets": "signals",
    "corrections": "signals",
    "tree_sums": "signals",
    "white_rows": "white",
    "score_rows": "scores",
    "scores_of_experts": "scores",
    "updated_of_experts": "updated_scores",
    "weight_column": "weights",
    "regret_column": "regrets",
    "sum_column": "sums",
    "known_column": "known",
    "clean_column": "clean",
    "mean_square_column": "mean_square",
    "inflation_column": "inflation",
    "scale_column": "expected_scale",
    "prediction_column": "prediction",
    "floor_column": "floor",
    "network_column": "network_output",
    "column_stack": "columns",
    "hidden_rows": "hidden",
    "output_rows": "outputs",
}
_SINGLE = {
    name for name, kind in get_type_hints(StepState, include_extras=True).items() if "32" in repr(kind)
}
_WORD = 8  # bytes; each field begins at a multiple of them

# Compiled code receives the addresses of arrays: to be passed a hundred arrays one by one would take it
# longer than to compute a row.
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
        sizes = {
            name: math.prod(shape) * (4 if name in _SINGLE else 8)
            for name, shape in shapes.items()
            if name not in _SAME
        }
        ends = np.cumsum([-(-size // _WORD) * _WORD for size in sizes.values()]).tolist()
        self.memory = np.zeros(ends[-1], np.uint8)
        self.carried = self.memory[: ends[len(CARRIED) - 1]]  # what later rows depend on
        views: dict[str, Any] = {}
        for (name, size), begin in zip(sizes.items(), [0, *ends[:-1]], strict=True):
            kind = np.float32 if name in _SINGLE else np.float64
            views[name] = self.memory[begin : begin + size].view(kind).reshape(shapes[name])
        for name, source in _SAME.items():
            first = _first_signal(model, name) * n_series
            views[name] = views[source].ravel()[first : first + math.prod(shapes[name])].reshape(shapes[name])
        self.state = state = StepState(**views)
        state.last_inputs[:] = model.initial_inputs
        state.accepted[:] = state.pending[:] = state.linear_residual[:] = np.nan
        state.last_label[:] = state.past_labels[:] = model.label_mean
        state.weights[:], state.mean_square[:] = (
            model.prior / max(model.prior.sum(), 1e-300),
            model.mean_square,
        )
        state.quantiles[:], state.recent_sizes[:], state.inflation[:] = (
            model.quantiles,
            1 / SMALLEST_SIZE,
            1.0,
        )
        state.seen[..., :1] = 1
        state.told[..., 1:2] = 1
        state.standard[..., -1:] = 1
        # The linear part learns what is left of the target if the network adds nothing to it.
        state.member_outputs[len(model.to_hidden) :] = -model.target_offset / model.target_scale


def _first_signal(model: StepModel, field: str) -> int:
    """Return the first row of a field within the signals; 0 for fields that are all of another one."""
    sets, rates, _ = model.adaptation_steps.shape
    corrections = SIGNALS + sets
    firsts: dict[str, int] = {
        "member_outputs": SIGNALS,
        "outputs_of_sets": SIGNALS,
        "corrections": corrections,
        "tree_sums": corrections + sets * rates,
    }
    return firsts.get(field, 0)


def _shapes(model: StepModel, n: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each field of a state, in order."""
    members, row, hidden = model.to_hidden.shape
    told, memory = model.to_memory.shape[1:]
    columns, regressors = len(model.input_offset), len(model.linear_weights)
    features, (whitened, common, _) = model.own_whitening.shape[2], model.common_whitening.shape
    sets, rates, _ = model.adaptation_steps.shape
    experts, tracked, trees = len(model.prior), len(model.quantiles), model.leaf_value.size > 0
    periods, all_rows, rate_count = (
        int(model.periods.max(initial=-2)) + 2,
        model.windows * n,
        len(LEARNING_RATES),
    )
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(StepState._fields, (n,))
    shapes |= {name: (n, 1) for name in _SAME if name.endswith("_column")}
    return shapes | {
        "rows": (1,),
        "waiting": (1,),
        "last_inputs": (n, model.inputs),
        "label_changes": (n, model.changes),
        "past_inputs": (n, max(model.input_lags, 0) * model.seen_inputs),
        "past_labels": (n, periods + RING_OVERLAP if periods else 0),
        "changes": (sets, rates, n, features),
        "scores": (n, experts, rate_count),
        "weights": (n, experts),
        "quantiles": (n, tracked),
        "recent_sizes": (n, RECENT_SIZES),
        "seen": (members, all_rows, row),
        "inputs": (n, model.inputs),
        "columns": (n, columns),
        "regressors": (n, regressors),
        "standard": (1, n, common),
        "features": (members, n, features),
        "common_white": (whitened, n, common),
        "own_white": (members, n, features - common),
        "white": (sets, n, features),
        "white_sizes": (sets, 1, n),
        "factors": (sets, rates, n),
        "signals": (SIGNALS + sets * (1 + rates) + trees, n),
        "tree_inputs": (n, (columns + len(model.center)) * trees),
        "expert_predictions": (n, experts),
        "log_sizes": (n, hidden + RECENT_SIZES),
        "regrets": (n, experts),
        "powers": (n * experts, rate_count),
        "updated_scores": (n, experts * rate_count),
        "hidden": (members, all_rows, hidden),
        "outputs": (members, all_rows),
        "told": (members, all_rows, told),
        "news": (members, all_rows, memory),
        "member_outputs": (sets, n),
        "outputs_of_sets": (sets, 1, n),
        "corrections": (sets, rates, n),
        "tree_sums": (n * trees,),
        "white_rows": (sets, 1, n, features),
        "score_rows": (n, experts * rate_count),
        "scores_of_experts": (n * experts, rate_count),
        "updated_of_experts": (n * experts, rate_count),
        "weight_column": (n * experts,),
        "regret_column": (n * experts, 1),
        "column_stack": (1, n, columns),
        "hidden_rows": (members, all_rows, 1, hidden),
        "output_rows": (members, all_rows, 1),
    }
