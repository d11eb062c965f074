"""Growing the boosting expert: trees of LightGBM, as many as are best on validation rows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, FloatArray
from varnn.data.context import preceded
from varnn.data.panel import Panel
from varnn.errors import require
from varnn.model.boosting import LEAVES, NEVER, Trees
from varnn.model.experts import Experts
from varnn.model.fitted import Fitted

LATEST, CHOSEN_ON = 400_000, 100_000  # training and validation rows that are looked at, the latest
MOST = 500  # trees
UNCHOSEN = 100  # trees without validation rows
PATIENCE = 50  # trees without a better validation error, after which no more are grown


class Examples(NamedTuple):
    """Rows to learn from: n of them, F features."""

    features: npt.NDArray[np.float32]  # (n, F)
    targets: npt.NDArray[np.float32]  # (n,): the network's own
    weights: FloatArray | None = None  # (n,): how much each counts


def grow(
    fitted: Fitted,
    experts: Experts,
    training: Panel,
    validation: Panel | None,
    *,
    seed: int,
    trees: int | None = None,
) -> Trees:
    """Grow trees of what the linear part leaves.

    Parameters
    ----------
    fitted : Fitted
        A model with a linear part, whose rows are prepared as its are.
    experts : Experts
        By which regressors are standardised.
    training, validation : Panel, Panel or None
        Rows to learn from, and rows that say how many trees are best.
    seed : int
        Of the features that each tree is grown from.
    trees : int or None, default=None
        How many, where that is known.
    """
    lightgbm = require("lightgbm", extra="baselines", purpose="experts=('boosting',)")
    rows = _examples(fitted, experts, training.latest(LATEST))
    if not len(rows.targets):  # the latest rows have no labels: then there is nothing to say
        return _together([([], [0.0])])
    data = lightgbm.Dataset(rows.features, rows.targets, weight=rows.weights)
    settings = {
        "objective": "regression",
        "metric": "l2",
        "learning_rate": 0.05,
        "num_leaves": LEAVES,
        "min_data_in_leaf": 20,
        "feature_fraction": 0.8,
        "use_missing": False,
        "seed": seed % 2**31,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    chosen_on = None
    if validation is not None and trees is None:
        joined, own = preceded(validation.latest(CHOSEN_ON), training, fitted.reach)
        chosen_on = _examples(fitted, experts, joined, own)
    if chosen_on is None or not len(chosen_on.targets):
        grown = lightgbm.train(settings, data, num_boost_round=trees or UNCHOSEN)
        return trees_of(grown)
    grown = lightgbm.train(
        settings,
        data,
        num_boost_round=MOST,
        valid_sets=[data.create_valid(chosen_on.features, chosen_on.targets, weight=chosen_on.weights)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return trees_of(grown, grown.best_iteration)


def _examples(fitted: Fitted, experts: Experts, panel: Panel, own: BoolArray | None = None) -> Examples:
    """Rows whose target is known, and that are a panel's own."""
    features, targets, weights = [], [], []
    for rows, taps in fitted.pipeline.run(panel, ("columns", "regressors", "target")):
        known = ~np.isnan(taps.target) & panel.counted[rows]
        if own is not None:
            known &= own[rows]
        seen = np.concatenate([taps.columns, experts.standardized(taps.regressors)], axis=1, dtype=np.float32)
        features.append(seen[known])
        targets.append(taps.target[known].astype(np.float32))
        if panel.weights is not None:
            weights.append(panel.weights[rows][known])
    counts = np.concatenate(weights) if weights else None
    return Examples(np.concatenate(features), np.concatenate(targets), counts)


def trees_of(booster: Any, count: int | None = None) -> Trees:
    """Take the first trees out of LightGBM's model, leaves and splits from left to right."""
    found = booster.dump_model(num_iteration=count)["tree_info"]
    return _together([_walked(one["tree_structure"], [], []) for one in found])


_Split = tuple[int, float, int]  # feature, threshold, first leaf to the left
_Tree = tuple[list[_Split], list[float]]  # its splits, and the values of its leaves


def _together(listed: list[_Tree]) -> Trees:
    """Put trees side by side; those with fewer splits get some that no row is ruled out by."""
    most, trees = max(len(splits) for splits, _ in listed), len(listed)
    feature, first = np.zeros((most, trees), np.int32), np.zeros((most, trees), np.int32)
    threshold, value = np.full((most, trees), NEVER), np.zeros((most + 1, trees))
    for index, (splits, leaves) in enumerate(listed):
        for place, split in enumerate(splits):
            feature[place, index], threshold[place, index], first[place, index] = split
        value[: len(leaves), index] = leaves
        first[len(splits) :, index] = np.arange(len(splits), most)
    return Trees(feature=feature, threshold=threshold, first=first, value=value)


def _walked(node: Mapping[str, Any], splits: list[_Split], leaves: list[float]) -> _Tree:
    """Go through a tree from left to right; add its splits and the values of its leaves."""
    if "split_feature" not in node:
        leaves.append(node["leaf_value"])
        return splits, leaves
    first = len(leaves)
    _walked(node["left_child"], splits, leaves)
    splits.append((node["split_feature"], node["threshold"], first))
    return _walked(node["right_child"], splits, leaves)
