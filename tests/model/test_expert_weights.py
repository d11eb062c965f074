"""Who is believed when: the same numbers in batch and stream, in the caller's order."""

from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError

TINY: dict[str, Any] = {"hidden_size": 8, "epochs": 1, "ensemble": 2, "window": 4}


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(**TINY).fit(random_panel([300, 200], missing=0.1, seed=3))


def test_weights_of_a_panel_are_those_of_a_stream(model: VARNNRegressor) -> None:
    panel = random_panel([120], missing=0.1, seed=4)
    names, weights = model.expert_weights(panel)
    assert weights.shape == (120, len(names))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    live = model.stream()
    for row, (x, y) in enumerate(zip(panel.inputs, panel.target, strict=True)):
        assert tuple(live.weights) == names
        np.testing.assert_allclose(list(live.weights.values()), weights[row], atol=1e-4)
        live.predict(x)
        live.observe(y)
    assert all(isinstance(one, float) for one in live.weights.values())
    assert np.abs(weights[-1] - weights[0]).max() > 0.01


def test_weights_of_rows_that_follow_are_those_of_a_warm_stream() -> None:
    """By time, or as told: what ``predict`` starts from is what the weights start from, too."""
    whole = random_panel([360], missing=0.1, seed=9)
    hours = np.datetime64("2026-01-01T00", "h") + np.arange(360)
    first, later = (
        Panel.from_arrays(whole.inputs[rows], whole.target[rows], time=hours[rows])
        for rows in (slice(0, 300), slice(300, 360))
    )
    model = VARNNRegressor(calendar=[], **TINY).fit(first)
    _, weights = model.expert_weights(later)
    live = model.stream(resume=True)
    for row, (x, y) in enumerate(zip(later.inputs, later.target, strict=True)):
        np.testing.assert_allclose(list(live.weights.values()), weights[row], atol=1e-4)
        live.predict(x)
        live.observe(y)
    np.testing.assert_array_equal(model.expert_weights(later, resume=True).weights, weights)
    assert np.abs(model.expert_weights(later, resume=False).weights - weights).max() > 1e-3


def test_weights_of_a_fleet_are_arrays_of_its_own(model: VARNNRegressor) -> None:
    panel = random_panel([50, 50], seed=5)
    _, weights = model.expert_weights(panel)
    fleet = model.stream(2)
    for row in range(49):
        fleet.predict(panel.inputs[[row, 50 + row]])
        fleet.observe(panel.target[[row, 50 + row]])
    found = np.column_stack(list(fleet.weights.values()))
    np.testing.assert_allclose(found, weights[[49, 99]], atol=1e-4)
    fleet.weights["persistence"][...] = 7.0
    np.testing.assert_array_equal(np.column_stack(list(fleet.weights.values())), found)


def test_rows_come_back_in_the_order_they_were_given_in(model: VARNNRegressor) -> None:
    panel = random_panel([60, 60], seed=6)
    mixed = np.stack([np.arange(60), 60 + np.arange(60)], axis=1).ravel()  # a row of each in turn
    series = np.repeat(["a", "b"], 60)
    _, ordered = model.expert_weights(panel)
    _, weights = model.expert_weights(panel.inputs[mixed], panel.target[mixed], series=series[mixed])
    np.testing.assert_allclose(weights, ordered[mixed], atol=1e-12)


def test_without_labels_or_experts_there_are_none() -> None:
    panel = random_panel([80], seed=7)
    fixed = VARNNRegressor(adapt=None, **TINY).fit(panel)
    with pytest.raises(ConfigError, match="goes on learning; this one does not"):
        fixed.expert_weights(panel)
    with pytest.raises(ConfigError, match="goes on learning; this one does not"):
        _ = fixed.stream().weights
    learning = VARNNRegressor(**TINY).fit(panel)
    unknown = Panel.from_arrays(panel.inputs, np.full(80, np.nan))
    with pytest.raises(DataError, match="rows need labels"):
        learning.expert_weights(unknown)
