"""Fitted model -> the numbers of its step (`varnn.step.layout.StepModel`)."""

from typing import Any

import numpy as np

from varnn.network.handled import ANY, HandledCells
from varnn.step.layout import FILLS, RECENT_SIZES, RESIDUALS, SIGNALS, StepModel
from varnn.step.linear import SEASONAL
from varnn.step.operations import ACTIVATIONS

# Models and their parts are Any here, because the modules that define them import this one.
_EMPTY = np.empty(0)

# A cell with anything else is rejected: `varnn.step.cell` is an implementation of its own, not the cell's.
_CELLS = HandledCells(
    {
        "n_inputs": ANY,
        "hidden_size": ANY,
        "memory_size": ANY,
        "accumulate": (False, True),
        "activation_memory": (False, True),
        "residual": RESIDUALS,
        "memory_activation": ACTIVATIONS,
        "horizon": ANY,  # read from the hidden layer by those who forecast
    }
)


def step_model(model: Any) -> StepModel:
    """Gather what a step of a model needs."""
    return StepModel(
        **_of_pipeline(model.pipeline, len(model.input_names)),
        **_of_cell(model),
        **_of_experts(model),
        non_negative=int(model.positive),
        **_of_intervals(model),
    )


def pipeline_model(pipeline: Any, n_inputs: int) -> StepModel:
    """Gather what prepares rows for a network that is not trained yet: a model without members."""
    return StepModel(
        **_of_pipeline(pipeline, n_inputs),
        **_no_cell(len(pipeline.scaling.input_offset)),
        **_no_experts(0),
        non_negative=0,
        **_no_intervals(),
    )


def linear_model(linear: Any) -> StepModel:
    """Gather what a linear part alone needs."""
    columns = linear.form.n_inputs + 2
    return StepModel(
        **_no_pipeline(linear.form.n_inputs, columns) | _of_linear(linear),
        **_no_cell(columns),
        **_no_experts(0),
        non_negative=0,
        **_no_intervals(),
    )


def filter_model(label_filter: Any) -> StepModel:
    """Gather what a label filter alone needs."""
    return StepModel(
        **_no_pipeline(0, 0) | _of_filter(label_filter),
        **_no_cell(0),
        **_no_experts(0),
        non_negative=0,
        **_no_intervals(),
    )


def interval_model(numbers: dict[str, Any]) -> StepModel:
    """Gather what intervals alone need: their numbers, and a member whose hidden layer they are read from."""
    hidden = len(numbers["scale_weights"]) - RECENT_SIZES - 1
    cell = _no_cell(0) | {"to_hidden": np.zeros((1, 1, hidden), np.float32)}
    return StepModel(**_no_pipeline(0, 0), **cell, **_no_experts(0), non_negative=0, **numbers)


def _no_pipeline(n_inputs: int, columns: int) -> dict[str, Any]:
    """Inputs as they are, every label accepted, no linear part."""
    return {
        "inputs": n_inputs, "fill": FILLS.index("forward"), "initial_inputs": np.zeros(n_inputs),
        "use_inputs": 1, "peers": 0, "input_limit": np.inf, "input_offset": np.zeros(columns),
        "input_scale": np.ones(columns), "target_offset": 0.0, "target_scale": 1.0, "has_filter": 0,
        "max_change": 0.0, "first_low": 0.0, "first_high": 0.0, "has_linear": 0, "changes": 0,
        "input_lags": -1, "periods": np.empty(0, np.int64), "label_mean": 0.0, "label_low": 0.0,
        "label_high": 0.0, "largest_change": np.inf, "constant": 0.0, "linear_weights": _EMPTY,
        "regressor_low": _EMPTY, "regressor_high": _EMPTY, "seen_inputs": 0,
    }  # fmt: skip


def _of_filter(label_filter: Any) -> dict[str, Any]:
    return {
        "has_filter": 1,
        "max_change": float(label_filter.change),
        "first_low": float(label_filter.low),
        "first_high": float(label_filter.high),
    }


def _of_linear(linear: Any) -> dict[str, Any]:
    form = linear.form
    low, high = _regressor_range(linear)
    return {
        "has_linear": 1,
        "changes": form.changes,
        "input_lags": form.input_lags,
        "periods": np.array(form.periods, np.int64),
        "label_mean": float(linear.mean),
        "label_low": float(linear.low),
        "label_high": float(linear.high),
        "largest_change": float(linear.largest_change),
        "constant": float(linear.constant),
        "linear_weights": _doubles(linear.weights),
        "regressor_low": low,
        "regressor_high": high,
        "seen_inputs": form.n_inputs if form.input_lags >= 0 else 0,
    }


def _regressor_range(linear: Any) -> tuple[Any, Any]:
    """Return the range that each regressor of the linear part is clipped to: (F,) each.

    Differences of past inputs have none: they are computed from inputs that were clipped.
    """
    form, span = linear.form, linear.high - linear.low
    labels = [linear.largest_change] * form.changes + [span] * (SEASONAL * len(form.periods))
    low, high = [linear.low, *(-size for size in labels)], [linear.high, *labels]
    if form.input_lags >= 0:
        endless = np.full(form.n_inputs, np.inf)
        low.extend(-endless if linear.input_low is None else linear.input_low)
        high.extend(endless if linear.input_high is None else linear.input_high)
    rest = np.full(len(linear.weights) - len(low), np.inf)
    return np.concatenate([low, -rest]), np.concatenate([high, rest])


def _no_cell(columns: int) -> dict[str, Any]:
    """No members: rows are prepared for a network, and predicted by the linear part alone."""
    return {
        "windows": 1, "carried": 1, "residual": RESIDUALS.index("none"), "activation": 0,
        "state_limit": np.inf,
        "to_hidden": np.empty((0, 1 + columns, 0), np.float32), "readout": np.empty((0, 1, 0), np.float32),
        "readout_bias": np.empty((0, 1), np.float32), "to_memory": np.empty((0, 0, 0), np.float32),
        "shrinkage": 0.0,
    }  # fmt: skip


def _of_pipeline(pipeline: Any, n_inputs: int) -> dict[str, Any]:
    """Inputs, label filter and linear part."""
    scaling, columns = pipeline.scaling, len(pipeline.scaling.input_offset)
    numbers = _no_pipeline(n_inputs, columns) | {
        "fill": FILLS.index(pipeline.fill) if pipeline.fill in FILLS else FILLS.index("none"),
        "initial_inputs": _doubles(pipeline.initial_inputs),
        "use_inputs": int(pipeline.use_inputs),
        "peers": int(pipeline.peers),
        "input_limit": float(scaling.input_limit),
        "input_offset": _doubles(scaling.input_offset),
        "input_scale": _doubles(scaling.input_scale),
        "target_offset": float(scaling.target_offset),
        "target_scale": float(scaling.target_scale),
    }
    if pipeline.label_filter is not None:
        numbers |= _of_filter(pipeline.label_filter)
    if pipeline.linear is not None:
        numbers |= _of_linear(pipeline.linear)
    return numbers


def _of_cell(model: Any) -> dict[str, Any]:
    """The network's matrices, put together for stepping."""
    cell, weights = model.architecture, model.weights
    _CELLS.check(cell, by="the step of a prediction")
    inputs, state = np.split(weights.fusion, [cell.n_inputs], axis=1)
    to_memory = np.empty((model.n_members, 0, cell.memory_size), np.float32)
    if cell.residual == "projected":
        news = [weights.error, weights.error_bias, *([weights.carry] if cell.accumulate else [])]
        to_memory = np.concatenate(news, axis=1)
    elif cell.residual == "scalar":
        to_memory = np.ones((model.n_members, 1, 1), np.float32)
    return {
        "windows": 1 if model.carried else model.window,
        "carried": int(model.carried),
        "residual": RESIDUALS.index(cell.residual),
        "activation": ACTIVATIONS.index(cell.memory_activation),
        "state_limit": float(model.state_limit),
        "to_hidden": _singles(np.concatenate([weights.fusion_bias, state, inputs], axis=1)),
        "readout": _singles(weights.readout[..., 0][:, None]),
        "readout_bias": _singles(weights.readout_bias[:, 0]),
        "to_memory": _singles(to_memory),
        "shrinkage": float(model.shrinkage),
    }


def _of_experts(model: Any) -> dict[str, Any]:
    """What adapts, and initial weights."""
    experts, members, hidden = model.experts, model.n_members, model.architecture.hidden_size
    if experts is None:
        return _no_experts(members)
    scaling, trees = model.pipeline.scaling, experts.trees
    found = _no_experts(members) | {
        "center": _doubles(experts.centre),
        "deviation": _doubles(experts.deviation),
        **_adaptation(experts, members, hidden),
        "season": -1 if experts.season is None else experts.season,
        "mixing": _mixing(experts, members, float(scaling.target_scale)),
        "expert_offset": _expert_offset(experts, float(scaling.target_offset)),
        "prior": _doubles(experts.prior),
        "mean_square": float(experts.noise),
    }
    if trees is not None:
        found |= {
            "split_feature": np.ascontiguousarray(trees.feature, np.int64),
            "split_threshold": _doubles(trees.threshold),
            "split_left": np.ascontiguousarray(trees.left),
            "leaf_value": _doubles(trees.value),
        }
    return found


def _no_experts(members: int) -> dict[str, Any]:
    """Nothing adapts, and the network's output is the prediction."""
    return {
        "center": _EMPTY, "deviation": _EMPTY, "own_whitening": np.empty((members, 0, 0)),
        "common_whitening": np.empty((0, 0, 0)), "adaptation_steps": np.empty((members, 0, 1)),
        "adaptation_bounds": np.empty((members, 1, 1)), "season": -1,
        "member_shares": np.full((members, 1), 1 / max(members, 1)),
        "mixing": np.empty((SIGNALS + members, 0)), "expert_offset": _EMPTY, "prior": _EMPTY,
        "mean_square": 1.0, "split_feature": np.empty((0, 0), np.int64), "split_threshold": np.empty((0, 0)),
        "split_left": np.empty((0, 0), np.int64), "leaf_value": np.empty((0, 0)),
    }  # fmt: skip


def _adaptation(experts: Any, members: int, hidden: int) -> dict[str, Any]:
    """Whitening matrices of [hidden, regressors in deviations, 1], transposed, and how coefficients learn.

    The readout reads regressors times a unit, which goes into its matrix; without one it does not read them,
    and their part of its matrix is zero.
    """
    readout, linear, width = experts.readout, experts.linear, len(experts.centre) + 1
    whitening = readout.whitening.astype(np.float64)
    read = np.r_[
        np.arange(hidden),
        hidden + np.arange(width if experts.unit else 1) + (0 if experts.unit else width - 1),
    ]
    whole = np.zeros((members, hidden + width, hidden + width))
    whole[:, read[:, None], read] = whitening
    whole[:, hidden:-1] *= experts.unit
    sets = [readout] * members + ([linear] if linear is not None else [])
    steps = np.full((len(sets), len(readout.forgetting), 1), np.inf)  # infinity: learns nothing
    for own, adaptation in zip(steps, sets, strict=True):
        own[: len(adaptation.forgetting), 0] = 1 / (1 - np.array(adaptation.forgetting))
    common = [whole[0, hidden:, hidden:]]
    if linear is not None:
        common.append(linear.whitening[0].astype(np.float64))
    shares = np.zeros((len(sets), 1))
    shares[:members] = 1 / members
    return {
        "own_whitening": _doubles(whole[:, :, :hidden].swapaxes(1, 2)),
        "common_whitening": _doubles(np.stack(common).swapaxes(1, 2)),
        "adaptation_steps": steps,
        "adaptation_bounds": np.array([adaptation.bound for adaptation in sets])[:, None, None],
        "member_shares": shares,
    }


def _mixing(experts: Any, members: int, scale: float) -> Any:
    """Return the matrix from signals to predictions of experts (`varnn.step.experts`): (Q, X)."""
    rates, has_linear = len(experts.readout.forgetting), experts.linear is not None
    sets = members + has_linear
    outputs = slice(SIGNALS, SIGNALS + members)
    corrections = np.arange(sets * rates).reshape(sets, rates) + SIGNALS + sets
    columns = []

    def add(**parts: Any) -> None:
        column = np.zeros(SIGNALS + sets * (1 + rates) + (experts.trees is not None))
        for rows, value in parts.values():
            column[rows] = value
        columns.append(column)

    if has_linear:
        add(persistence=(0, 1.0))
        if experts.season is not None:
            add(seasonal=([0, 1], 1.0))
        add()  # the linear part itself
        add(adapted=(corrections[members, 0], scale))
    add(network=(outputs, scale / members))
    for rate in range(rates):
        add(network=(outputs, scale / members), adapted=(corrections[:members, rate], scale / members))
    if experts.trees is not None:
        add(trees=(-1, scale))
    return _doubles(np.stack(columns, axis=1))


def _expert_offset(experts: Any, offset: float) -> Any:
    """Return what is added to the predictions of experts: the network and trees predict a scaled target."""
    offsets = np.full(len(experts.prior), offset)
    if experts.linear is not None:
        offsets[: 3 + (experts.season is not None)] = 0.0
    return offsets


def _of_intervals(model: Any) -> dict[str, Any]:
    """The interval method, if the step computes it; others run outside the step."""
    numbers = None if model.calibrator is None else model.calibrator.step_numbers()
    return _no_intervals() if numbers is None else numbers


def _no_intervals() -> dict[str, Any]:
    return {"quantiles": _EMPTY, "scale_weights": _EMPTY, "scale_unit": 1.0, "largest_error": np.inf}


def _doubles(values: Any) -> Any:
    return np.ascontiguousarray(values, np.float64)


def _singles(values: Any) -> Any:
    return np.ascontiguousarray(values, np.float32)
