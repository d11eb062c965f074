"""Fitted model -> the numbers of its step (`varnn.step.layout.StepModel`)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from varnn.model.intervals.error_scale import ErrorScale
from varnn.step.adaptation import BOUND
from varnn.step.layout import FILLS, RESIDUALS, StepModel

if TYPE_CHECKING:  # both use this module
    from varnn.model.fitted import Fitted
    from varnn.model.pipeline import FeaturePipeline

_EMPTY = np.empty(0)


def step_model(model: "Fitted") -> StepModel:
    """Gather what a step of a model needs."""
    return StepModel(
        **_of_pipeline(model.pipeline, len(model.input_names)),
        **_of_cell(model),
        **_of_experts(model),
        non_negative=int(model.positive),
        **_of_intervals(model),
    )


def _of_pipeline(pipeline: "FeaturePipeline", n_inputs: int) -> dict[str, Any]:
    """Inputs, label filter and linear part."""
    scaling, linear, label_filter = pipeline.scaling, pipeline.linear, pipeline.label_filter
    numbers: dict[str, Any] = {
        "inputs": n_inputs,
        "fill": FILLS.index(pipeline.fill) if pipeline.fill in FILLS else FILLS.index("none"),
        "initial_inputs": _doubles(pipeline.initial_inputs),
        "use_inputs": int(pipeline.use_inputs),
        "peers": int(pipeline.peers),
        "input_limit": float(scaling.input_limit),
        "input_offset": _doubles(scaling.input_offset),
        "input_scale": _doubles(scaling.input_scale),
        "target_offset": float(scaling.target_offset),
        "target_scale": float(scaling.target_scale),
        "has_filter": int(label_filter is not None),
        "max_change": 0.0 if label_filter is None else float(label_filter.change),
        "first_low": 0.0 if label_filter is None else float(label_filter.low),
        "first_high": 0.0 if label_filter is None else float(label_filter.high),
        "has_linear": int(linear is not None),
    }
    if linear is None:
        return numbers | {
            "changes": 0, "input_lags": -1, "periods": np.empty(0, np.int64), "label_mean": 0.0,
            "label_low": 0.0, "label_high": 0.0, "largest_change": 0.0, "constant": 0.0,
            "linear_weights": _EMPTY, "input_low": _EMPTY, "input_high": _EMPTY,
        }  # fmt: skip
    form = linear.form
    sees_inputs = form.input_lags >= 0
    bounded = linear.input_low is not None and linear.input_high is not None and sees_inputs
    endless = np.full(form.n_inputs if sees_inputs else 0, np.inf)
    return numbers | {
        "changes": form.changes,
        "input_lags": form.input_lags,
        "periods": np.array(form.periods, np.int64),
        "label_mean": float(linear.mean),
        "label_low": float(linear.low),
        "label_high": float(linear.high),
        "largest_change": float(linear.largest_change),
        "constant": float(linear.constant),
        "linear_weights": _doubles(linear.weights),
        "input_low": _doubles(linear.input_low) if bounded else -endless,
        "input_high": _doubles(linear.input_high) if bounded else endless,
    }


def _of_cell(model: "Fitted") -> dict[str, Any]:
    """The network's matrices, put together for stepping."""
    cell, weights = model.architecture, model.weights
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
        "tanh": int(cell.memory_activation == "tanh"),
        "state_limit": float(model.state_limit),
        "to_hidden": _singles(np.concatenate([weights.fusion_bias, state, inputs], axis=1)),
        "readout": _singles(weights.readout[..., 0]),
        "readout_bias": _singles(weights.readout_bias[:, 0]),
        "to_memory": _singles(to_memory),
        "shrinkage": float(model.shrinkage),
    }


def _of_experts(model: "Fitted") -> dict[str, Any]:
    """What adapts, and initial weights."""
    experts, members, hidden = model.experts, model.n_members, model.architecture.hidden_size
    nothing: dict[str, Any] = {
        "center": _EMPTY, "deviation": _EMPTY, "unit": 0.0, "own_whitening": np.empty((members, 0, 0)),
        "common_whitening": np.empty((0, 0)), "readout_steps": np.empty((0, 1)), "readout_bound": 0.0,
        "linear_whitening": np.empty((0, 0)), "linear_steps": np.empty((0, 1)), "linear_bound": 0.0, "season": -1,
        "prior": _EMPTY, "mean_square": 1.0, "split_feature": np.empty((0, 0), np.int64),
        "split_threshold": np.empty((0, 0)), "split_left": np.empty((0, 0), np.int64), "leaf_value": np.empty((0, 0)),
    }  # fmt: skip
    if experts is None:
        return nothing
    whitening = experts.readout.whitening.astype(np.float64)
    found = nothing | {
        "center": _doubles(experts.centre),
        "deviation": _doubles(experts.deviation),
        "unit": float(experts.unit),
        "own_whitening": _doubles(whitening[:, :, :hidden]),
        "common_whitening": _doubles(whitening[0, hidden:, hidden:]),
        "readout_steps": 1 / (1 - np.array(experts.readout.forgetting)[:, None]),
        "readout_bound": experts.readout.bound,
        "season": -1 if experts.season is None else experts.season,
        "prior": _doubles(experts.prior),
        "mean_square": float(experts.noise),
    }
    if experts.linear is not None:
        found |= {
            "linear_whitening": _doubles(experts.linear.whitening[0]),
            "linear_steps": 1 / (1 - np.array(experts.linear.forgetting)[:, None]),
            "linear_bound": experts.linear.bound,
        }
    if experts.trees is not None:
        trees = experts.trees
        found |= {
            "split_feature": np.ascontiguousarray(trees.feature, np.int64),
            "split_threshold": _doubles(trees.threshold),
            "split_left": np.ascontiguousarray(trees._left),
            "leaf_value": _doubles(trees.value),
        }
    return found


def _of_intervals(model: "Fitted") -> dict[str, Any]:
    """The error scale; other interval methods run beside the step."""
    scale = model.calibrator
    if not isinstance(scale, ErrorScale):
        return {"quantiles": _EMPTY, "scale_weights": _EMPTY, "scale_unit": 1.0, "largest_error": np.inf}
    return {
        "quantiles": _doubles(scale.quantiles),
        "scale_weights": _doubles(scale.weights),
        "scale_unit": float(scale.unit),
        "largest_error": float(scale.largest),
    }


def _doubles(values: Any) -> Any:
    return np.ascontiguousarray(values, np.float64)


def _singles(values: Any) -> Any:
    return np.ascontiguousarray(values, np.float32)
