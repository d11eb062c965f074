"""Trees as the step reads them: the numbers of LightGBM, and nothing that is not a tree."""

from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import pytest

from varnn._types import DoubleArray
from varnn.fitting._boosting import trees_of
from varnn.model.boosting import LEAVES, MOST_TREES, Trees
from varnn.step.operations import sum_trees

FEATURES = 7


def predicted(trees: Trees, rows: Any) -> DoubleArray:
    """Sum trees as the step does: features in single precision."""
    sums = np.empty(len(rows))
    splits = trees.feature.astype(np.int64), trees.threshold, trees.left
    sum_trees(np.ascontiguousarray(rows, np.float32), splits, trees.value, sums)
    return sums


def grown(leaves: int = LEAVES, rounds: int = 60, rows: int = 3000) -> tuple[Any, DoubleArray]:
    """Grow trees of features that are continuous, discrete and constant."""
    generator = np.random.default_rng(leaves)
    x = generator.normal(size=(rows, FEATURES))
    x[:, 1], x[:, 2] = np.round(x[:, 1] * 2) / 2, 3.0
    y = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 3]) + generator.normal(size=rows) / 5 + 40
    settings = {"num_leaves": leaves, "verbosity": -1, "num_threads": 1, "use_missing": False}
    return lightgbm.train(settings, lightgbm.Dataset(x, y), rounds), x


@pytest.mark.parametrize("leaves", [2, 5, LEAVES])
def test_predictions_are_those_of_lightgbm(leaves: int) -> None:
    booster, seen = grown(leaves)
    trees = trees_of(booster)
    assert trees.value.shape == (leaves, 60)
    assert trees.broken(FEATURES) is None
    others = np.random.default_rng(0).normal(size=(200, FEATURES)) * 3
    thresholds = trees.threshold[trees.threshold < 1e100]
    thresholds[np.abs(thresholds) < 1e-30] = 0  # LightGBM takes numbers up to 1e-35 as none
    on_thresholds = np.resize(thresholds, (200, FEATURES))
    for some in (seen[:200], others, on_thresholds):
        rows = some.astype(np.float32)  # as the step has them
        wanted = booster.predict(rows.astype(np.float64))
        np.testing.assert_allclose(predicted(trees, rows), wanted, rtol=0, atol=1e-9)


def test_some_of_the_trees_are_those_that_lightgbm_predicts_with() -> None:
    booster, seen = grown()
    trees = trees_of(booster, 7)
    assert len(trees) == 7
    rows = seen[:200].astype(np.float32)
    wanted = booster.predict(rows.astype(np.float64), num_iteration=7)
    np.testing.assert_allclose(predicted(trees, rows), wanted, rtol=0, atol=1e-9)


def test_trees_that_have_no_split_are_constants() -> None:
    x = np.zeros((50, FEATURES))
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(x, np.full(50, 5.0)), 3)
    trees = trees_of(booster)
    assert trees.broken(FEATURES) is None
    np.testing.assert_allclose(predicted(trees, x[:3]), 5.0, rtol=1e-9)


def test_a_row_alone_is_predicted_as_among_many() -> None:
    trees, rows = trees_of(grown()[0]), np.random.default_rng(1).normal(size=(50, FEATURES))
    alone = [predicted(trees, rows[row : row + 1]).item() for row in range(50)]
    np.testing.assert_array_equal(predicted(trees, rows), alone)


def test_arrays_are_all_that_trees_are() -> None:
    trees = trees_of(grown(5)[0])
    again, rows = Trees.from_arrays(trees.arrays()), np.random.default_rng(2).normal(size=(20, FEATURES))
    np.testing.assert_array_equal(predicted(again, rows), predicted(trees, rows))


def with_first(trees: Trees, values: list[int]) -> Trees:
    first = trees.first.copy()
    first[:, 0] = values
    return replace(trees, first=first)


def test_what_is_no_tree_is_told() -> None:
    trees = trees_of(grown(5)[0])
    for order in ([0, 0, 0, 0], [0, 1, 2, 3], [0, 1, 0, 3], [0, 1, 1, 0]):  # all are trees
        assert with_first(trees, order).broken(FEATURES) is None
    assert "overlap" in str(with_first(trees, [0, 0, 1, 0]).broken(FEATURES))
    assert "not to its left" in str(with_first(trees, [0, 2, 0, 0]).broken(FEATURES))
    assert "not to its left" in str(with_first(trees, [-1, 0, 0, 0]).broken(FEATURES))
    assert "none of 1" in str(trees.broken(1))
    assert "none of 0" in str(trees.broken(0))
    assert "with a leaf more than splits" in str(replace(trees, value=trees.value[:-1]).broken(FEATURES))
    many = {name: np.repeat(array[:, :1], MOST_TREES + 1, 1) for name, array in trees.arrays().items()}
    assert f"from 1 to {MOST_TREES}" in str(Trees.from_arrays(many).broken(FEATURES))
