"""Inputs that determine the target: named, and nothing else is."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn._types import DoubleArray, FloatArray
from varnn.data import leaks
from varnn.data.leaks import exact_leak, tell_leaks
from varnn.data.panel import Panel


def table(rows: int = 400, columns: int = 5, seed: int = 0) -> DoubleArray:
    return np.random.default_rng(seed).normal(10, 3, size=(rows, columns))


def panel(inputs: FloatArray, target: FloatArray) -> Panel:
    names = ["casual", "registered", "wind", "heat", "rain"][: inputs.shape[1]]
    return Panel.from_arrays(inputs, target, input_names=names, target_name="cnt")


@pytest.mark.parametrize(
    ("weights", "constant", "said"),
    [
        ([1, 1, 0, 0, 0], 0, "cnt is the exact sum of casual and registered"),
        ([1, 1, 1, 0, 0], 4, "cnt is the exact sum of casual, registered and wind plus 4"),
        ([0, -1, 0, 1, 0], 0, "cnt is the exact difference of heat and registered"),
        ([1, 1, 0, 0, -1], 0, "cnt is the exact sum of casual and registered, less rain"),
        ([-1, -1, 0, 0, 0], 0, "cnt is exactly -1 times the sum of casual and registered"),
        ([0.5, 0.5, 0, 0, 0], 0, "cnt is exactly 0.5 times the sum of casual and registered"),
        ([2, 0, -2, 0, 0], -1, "cnt is exactly 2 times the difference of casual and wind minus 1"),
        ([0, 0, 0, 0, 1], 0, "cnt is input rain itself"),
        ([0, 0, 0, 0, 1], -2, "cnt is input rain minus 2"),
        ([0, 0, 2.5, 0, 0], 3, "cnt is input wind times 2.5 plus 3"),
        ([3, 0, 0, 0, 7], 0, "cnt is exactly a linear combination of casual and rain"),
        ([1e-3, 0, 5e4, 0, 7], 0, "cnt is exactly a linear combination of wind and rain"),  # to a millionth
    ],
)
def test_relations_are_named(weights: list[float], constant: float, said: str) -> None:
    inputs = table()
    assert exact_leak(panel(inputs, inputs @ np.array(weights, float) + constant)) == said


def test_counts_of_a_bike_rental() -> None:
    generator = np.random.default_rng(1)
    casual, registered = generator.poisson([[3.0], [40.0]], (2, 5000)).astype(float)
    inputs = np.column_stack([casual, registered, generator.normal(size=5000)])
    said = exact_leak(panel(inputs, casual + registered))
    assert said == "cnt is the exact sum of casual and registered"


def test_single_precision_is_exact_enough() -> None:
    inputs = table().astype(np.float32)
    assert exact_leak(panel(inputs, inputs[:, 0] + inputs[:, 1])) == (
        "cnt is the exact sum of casual and registered"
    )


def test_a_difference_of_columns_nearly_alike_is_found() -> None:
    inputs = table()
    inputs[:, 1] = inputs[:, 0] + 1e-3 * inputs[:, 1]
    assert exact_leak(panel(inputs, inputs[:, 0] - inputs[:, 1])) == (
        "cnt is the exact difference of casual and registered"
    )


def test_gaps_are_passed_over() -> None:
    inputs = table()
    target = inputs[:, 0] + inputs[:, 1]
    target[::7] = np.nan
    inputs[3::11, 0] = np.nan
    inputs[10:, 4] = np.nan  # a column of gaps does not hide the others
    assert exact_leak(panel(inputs, target)) == "cnt is the exact sum of casual and registered"


def test_an_input_that_varies_in_rare_rows_only_is_found_in_many() -> None:
    inputs = table(30_000, 3)
    inputs[:, 1] = 0
    inputs[[5, 600, 7000, 20_000, 25_000], 1] = [9, 8, 7, 5, 6]
    assert exact_leak(panel(inputs, inputs[:, 0] + inputs[:, 1])) == (
        "cnt is the exact sum of casual and registered"
    )


def test_near_is_not_exact() -> None:
    inputs = table()
    noise = np.random.default_rng(1).normal(size=400)
    total = inputs[:, 0] + inputs[:, 1]
    assert exact_leak(panel(inputs, total + 1e-4 * noise)) is None
    assert exact_leak(panel(inputs, total + 1e-8 * noise)) is not None
    total[200] += 0.01  # one row in which it does not hold
    assert exact_leak(panel(inputs, total)) is None


@pytest.mark.parametrize("rows", [10, 29])
def test_few_rows_say_nothing(rows: int) -> None:
    inputs = table(rows, 2)
    assert exact_leak(panel(inputs, inputs.sum(axis=1))) is None


def test_as_many_inputs_as_rows_say_nothing() -> None:
    inputs = table(100, 40)
    target = np.random.default_rng(1).normal(size=100)
    assert exact_leak(Panel.from_arrays(inputs, target)) is None
    assert exact_leak(Panel.from_arrays(inputs, inputs[:, 0])) is None  # 5 rows for each would be 205
    wide = table(5000, leaks.MOST_INPUTS + 1)
    assert exact_leak(Panel.from_arrays(wide, wide[:, 0])) is None


def test_no_inputs_no_labels_and_a_constant_are_no_leak() -> None:
    inputs = table()
    assert exact_leak(Panel.from_arrays(None, inputs[:, 0])) is None
    assert exact_leak(panel(inputs, np.full(400, np.nan))) is None
    assert exact_leak(panel(np.ones((400, 2)), inputs[:, 0])) is None
    assert exact_leak(panel(inputs, np.full(400, 1e6))) is None
    hardly = np.zeros(400)
    hardly[7] = 1
    assert exact_leak(panel(np.column_stack([hardly, inputs[:, 0]]), hardly)) is None


def test_means_of_categories_are_no_leak() -> None:
    day = np.random.default_rng(0).integers(0, 5, 400)
    one_hot = np.eye(5)[day]
    assert exact_leak(panel(one_hot, np.array([3.0, 1.0, 4.0, 1.5, 9.0])[day])) is None
    assert exact_leak(panel(one_hot[:, :1], one_hot[:, 0] * 3)) is None


def test_lags_are_no_leak_but_what_goes_with_them_may_be() -> None:
    wave = np.sin(np.arange(400) / 5)
    lags = np.column_stack([np.roll(wave, 1), np.roll(wave, 2)])[2:]
    assert exact_leak(panel(lags, wave[2:])) is None
    walk = table(401, 1)[:, 0].cumsum()
    change = np.column_stack([walk[:-1], np.diff(walk)])
    assert exact_leak(panel(change, walk[1:])) == "cnt is the exact sum of casual and registered"


def test_a_large_table_is_quick_to_look_at() -> None:
    """Of a million rows a part is looked at: no more than that is copied."""
    inputs = table(300_000, 4)
    assert (
        exact_leak(panel(inputs, inputs @ [1.0, 1, 0, 0])) == "cnt is the exact sum of casual and registered"
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**16),
    st.lists(st.sampled_from([-3.0, -1.0, 0.5, 1.0, 20.0]), min_size=1, max_size=4),
    st.floats(-1e3, 1e3),
    st.floats(-3, 3),
)
def test_any_relation_is_found_whatever_the_units(
    seed: int, weights: list[float], constant: float, power: float
) -> None:
    inputs = np.random.default_rng(seed).normal(5, 2, size=(200, 6)) * 10.0**power
    used = inputs[:, : len(weights)]
    said = exact_leak(Panel.from_arrays(inputs, used @ weights + constant))
    assert said is not None
    assert [f"x{one}" in said for one in range(6)] == [one < len(weights) for one in range(6)]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**16), st.integers(1, 8), st.sampled_from([0.0, 0.01, 1.0]))
def test_noise_is_never_a_leak(seed: int, columns: int, share: float) -> None:
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(300, columns))
    target = share * inputs.sum(axis=1) + generator.normal(size=300)
    assert exact_leak(Panel.from_arrays(inputs, target)) is None


def test_it_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    inputs = table()
    leaking = panel(inputs, inputs[:, 0] + inputs[:, 1])
    with caplog.at_level(logging.WARNING):
        tell_leaks([leaking, panel(inputs, inputs[:, 0] + inputs[:, 1]), panel(inputs, inputs[::-1, 0])])
        tell_leaks([leaking])
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("cnt is the exact sum of casual and registered in the training rows")
    assert "--inputs" in caplog.messages[0]
