"""What each expert predicts of the open row, less the linear prediction; `varnn.model.experts` names them."""

import numpy as np

from varnn.step.kernel import kernel
from varnn.step.layout import StepModel, StepState


@kernel
def predict_experts(model: StepModel, state: StepState) -> None:
    """Fill in the predictions of all experts: (n, X)."""
    experts, place = state.expert_predictions, 0
    if model.has_linear:
        np.subtract(state.last_label, state.linear_prediction, experts[:, 0])  # persistence
        place = 1
        if model.season >= 0:
            np.add(experts[:, 0], state.regressors[:, model.season], experts[:, 1])
            place = 2
        np.multiply(state.linear_prediction, 0.0, experts[:, place])  # the linear part itself
        np.multiply(state.linear_correction[0, 0], model.target_scale, experts[:, place + 1])
        place += 2
    network = experts[:, place]
    np.multiply(state.network_output, model.target_scale, network)
    np.add(network, model.target_offset, network)
    members = len(model.readout)
    for rate in range(len(model.readout_steps)):
        adapted = experts[:, place + 1 + rate]
        np.multiply(state.corrections[0, rate], model.target_scale / members, adapted)
        for member in range(1, members):
            np.add(adapted, state.corrections[member, rate] * (model.target_scale / members), adapted)
        np.add(adapted, network, adapted)
    if len(model.leaf_value) > 0:
        place += 1 + len(model.readout_steps)
        for series in range(len(network)):
            trees = _predict_trees(model, state, series)
            experts[series, place] = trees * model.target_scale + model.target_offset


@kernel
def _predict_trees(model: StepModel, state: StepState, series: int) -> float:
    """Sum what all trees predict for one series, in scaled units.

    Leaves are numbered from left to right, and a row whose feature is above the threshold of a split cannot be
    in the leaves to its left. Of all leaves that no split rules out, it is in the first (QuickScorer; see
    `varnn.model.boosting`).
    """
    width = len(model.input_offset)
    splits, trees = model.split_threshold.shape
    total = 0.0
    for tree in range(trees):
        leaves = 0
        for split in range(splits):
            feature = model.split_feature[split, tree]
            if feature < width:
                value = state.scaled[0, series, feature]
            else:
                value = np.float32(state.standard[series, feature - width])
            if value > model.split_threshold[split, tree]:
                leaves |= model.split_left[split, tree]
        leaf = 0
        while leaves & (1 << leaf):
            leaf += 1
        total += model.leaf_value[leaf, tree]
    return total
