"""What each expert predicts of the open row, less the linear prediction; `varnn.model.experts` names them.

Each prediction is a linear combination of signals, by the matrix ``mixing`` (`varnn.model.runtime`) ::

    the last label less the linear prediction       outputs of members, in scaled units
    the level a season ago less the last label      what adapted coefficients add to each of them
    what trees predict, in scaled units             and to the linear part
"""

import numpy as np

from varnn.step.kernel import part
from varnn.step.layout import StepModel, StepState
from varnn.step.operations import copy, copy_rows, sum_trees, transposed_product


@part
def predict_experts(model: StepModel, state: StepState) -> None:
    """Fill in the predictions of all experts: (n, X)."""
    if model.has_linear:
        np.subtract(state.last_label, state.linear_prediction, state.signals[0])
    if model.season >= 0:
        copy(state.regressors[:, model.season], state.signals[1])
    if len(model.leaf_value) > 0:
        columns = state.columns.shape[1]
        copy_rows(state.columns, state.tree_inputs[:, :columns])
        copy_rows(state.standard[0, :, : len(model.center)], state.tree_inputs[:, columns:])
        splits = model.split_feature, model.split_threshold, model.split_left
        sum_trees(state.tree_inputs, splits, model.leaf_value, state.tree_sums)
    transposed_product(state.signals, model.mixing, state.expert_predictions)
    np.add(state.expert_predictions, model.expert_offset, state.expert_predictions)
