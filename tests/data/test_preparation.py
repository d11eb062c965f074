"""Splits, filling and scaling, against scikit-learn and pandas."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tests.cases import random_panel
from varnn import Panel
from varnn.data.preparation import LIMIT, Scaling, fill_gaps, split_by_series, split_in_time
from varnn.data.windows import rows_of, training_ends, window_ends
from varnn.errors import ConfigError, DataError

some_gaps = arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(1, 3)),
    elements=st.sampled_from([1.0, 2.0, 5.0, np.nan]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.floats(0.0, 1.0))
def test_a_split_in_time_keeps_every_row_once_and_in_order(lengths: list[int], share: float) -> None:
    panel = random_panel(lengths)
    early, late = split_in_time(panel, share, 1 - share)
    assert sorted([*early.rows, *late.rows]) == list(range(len(panel)))
    for part in (early, late):
        for name, first, last in zip(part.ids, part.starts[:-1], part.starts[1:], strict=True):
            rows = part.rows[first:last]
            assert (np.diff(rows) == 1).all()
            source = panel.ids.index(name)
            assert panel.starts[source] <= rows[0] <= rows[-1] < panel.starts[source + 1]
            np.testing.assert_array_equal(part.target[first:last], panel.target[rows])
    for name in set(early.ids) & set(late.ids):
        early_rows = early.rows[early.starts[early.ids.index(name)]]
        assert early_rows < late.rows[late.starts[late.ids.index(name)]]


def test_cumulated_shares_cut_where_their_sum_does() -> None:
    panel = random_panel([19735])
    assert len(split_in_time(panel, 0.64, 0.16, 0.2)[2]) == len(split_in_time(panel, 0.8, 0.2)[1]) == 3947


def test_bad_splits_are_refused() -> None:
    panel = random_panel([5, 5])
    with pytest.raises(ConfigError, match="must be positive and make 1"):
        split_in_time(panel, 0.5, 0.2)
    with pytest.raises(DataError, match="Did you mean 's1'"):
        split_by_series(panel, ["s0"], ["s11"])
    with pytest.raises(DataError, match="one part only"):
        split_by_series(panel, ["s0"], ["s0"])


@settings(max_examples=60, deadline=None)
@given(some_gaps, st.integers(1, 11))
def test_filling_equals_pandas(values: npt.NDArray[np.float64], cut: int) -> None:
    series = np.arange(len(values)) >= cut
    panel = Panel.from_arrays(values, None, series=series)
    frame = pd.DataFrame(values).groupby(series)
    lead = np.arange(values.shape[1]) + 100.0
    forward = frame.ffill().fillna(dict(enumerate(lead)))
    np.testing.assert_array_equal(fill_gaps(panel, "forward", lead).inputs, forward)
    lines = frame.transform(lambda column: column.interpolate(limit_direction="both")).fillna(
        dict(enumerate(lead))
    )
    np.testing.assert_allclose(fill_gaps(panel, "interpolate", lead).inputs, lines, rtol=1e-12)
    np.testing.assert_array_equal(fill_gaps(panel, "zero").inputs, np.nan_to_num(values))
    np.testing.assert_array_equal(panel.inputs, values)


def test_labels_are_filled_only_when_asked() -> None:
    panel = Panel.from_arrays(None, [1.0, np.nan, 3.0])
    assert np.isnan(fill_gaps(panel, "interpolate").target[1])
    assert fill_gaps(panel, "interpolate", target=True).target.tolist() == [1.0, 2.0, 3.0]


def test_no_filling_means_no_gaps() -> None:
    panel = Panel.from_arrays([[1.0, 2.0], [3.0, np.nan]], None)
    with pytest.raises(DataError, match="'x1' is missing in row 1"):
        fill_gaps(panel, "none")


@pytest.mark.parametrize(("how", "peer"), [("minmax", MinMaxScaler()), ("standard", StandardScaler())])
def test_scaling_equals_scikit_learn_and_ignores_gaps(how: str, peer: MinMaxScaler | StandardScaler) -> None:
    panel = random_panel([50], 4, missing=0.2)
    panel.inputs[3, 1] = np.nan
    panel.inputs[:, 2] = 7.0  # constant
    scaling = Scaling.fit(panel, how)  # type: ignore[arg-type]  # a name from a list
    expected = peer.fit_transform(panel.inputs)
    np.testing.assert_allclose(scaling.apply(panel).inputs, expected, rtol=1e-5, atol=1e-6)
    target = peer.fit_transform(panel.target[:, None])[:, 0]
    np.testing.assert_allclose(scaling.apply(panel).target, target, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        scaling.restore(scaling.apply(panel).target), panel.target, rtol=1e-5, atol=1e-5
    )


def test_values_far_outside_training_cannot_overflow() -> None:
    scaling = Scaling.fit(Panel.from_arrays([[0.0], [1e-30]], [0.0, 1.0]), "minmax")
    assert scaling.inputs(np.array([[1e100], [-1e100]])).tolist() == [[LIMIT], [-LIMIT]]


def test_a_column_without_a_value_is_refused() -> None:
    with pytest.raises(DataError, match=r"\['x1'\] have none"):
        Scaling.fit(Panel.from_arrays([[1.0, np.nan], [2.0, np.nan]], [1.0, 2.0]), "minmax")
    with pytest.raises(DataError, match="nothing to learn from"):
        Scaling.fit(Panel.from_arrays([[1.0]], [np.nan]), "minmax")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.4]),
)
def test_windows_equal_brute_force(lengths: list[int], length: int, stride: int, missing: float) -> None:
    panel = random_panel(lengths, missing=missing)
    expected = [
        first + begin + length - 1
        for first, rows in zip(panel.starts[:-1], panel.lengths, strict=True)
        for begin in range(0, rows - length + 1, stride)
        if not np.isnan(panel.target[first + begin + length - 1])
    ]
    ends = window_ends(panel, length, stride=stride)
    assert ends.tolist() == expected
    assert ends.dtype == np.int32
    rows = rows_of(ends, length)
    assert (panel.first_rows[rows] == panel.first_rows[ends][:, None]).all()


def test_short_series_are_named() -> None:
    with pytest.raises(DataError, match=r"too short: 's1' \(3\).*Lower `window`"):
        training_ends(random_panel([9, 3, 8]), 5)
    with pytest.raises(ConfigError, match="window must be at least 1; got 0"):
        window_ends(random_panel([9]), 0)


@pytest.mark.parametrize("how", ["standard", "minmax"])
def test_numbers_whose_squares_are_infinite_are_measured_without_a_warning(how: Any) -> None:
    """A panel refuses them, but what the linear part leaves of its rows may be as large."""
    usual = Panel.from_arrays(None, np.arange(4.0))
    scaling = Scaling.fit(replace(usual, target=np.array([1e200, np.nan, 0.0, -1e200])), how)
    assert np.isfinite(scaling.target_offset) and np.isfinite(scaling.target_scale)
