"""Rows that came before are put before those that follow them, and taken away again."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from varnn import Panel
from varnn.data.context import own_rows, preceded
from varnn.data.preparation import split_in_time

NEW_YEAR = np.datetime64("2026-01-01T00:00:00")


def panel_of(lengths: dict[str, int], *, first: int = 0, timed: bool = True, seed: int = 0) -> Panel:
    """Make series with hourly times from a row on; labels and inputs tell series and row."""
    rows = [np.arange(first, first + length) for length in lengths.values()]
    number = np.repeat(np.arange(len(lengths)), list(lengths.values()))
    every = np.concatenate(rows)
    target = 1000.0 * np.array([ord(name) for name in lengths])[number] + every
    return Panel.from_arrays(
        np.column_stack([every, -target]),
        target,
        time=NEW_YEAR + every.astype("timedelta64[h]") if timed else None,
        series=np.array(list(lengths))[number],
    )


def as_dict(panel: Panel) -> dict[str, list[float]]:
    """Labels by series."""
    return {
        name: panel.target[first:last].tolist()
        for name, (first, last) in zip(panel.ids, pairwise(panel.starts), strict=True)
    }


def check_joined(joined: Panel, own: np.ndarray, panel: Panel) -> None:
    """Own rows are the panel's, in their order, and taking the others away gives it back."""
    assert len(joined) == len(own) == joined.starts[-1]
    assert joined.ids == panel.ids and joined.input_names == panel.input_names
    np.testing.assert_array_equal(joined.target[own], panel.target)
    np.testing.assert_array_equal(joined.inputs[own], panel.inputs)
    np.testing.assert_array_equal(joined.inputs[:, 1], -joined.target)  # each row is whole
    again = own_rows(joined, own)
    assert as_dict(again) == as_dict(panel)
    np.testing.assert_array_equal(again.inputs, panel.inputs)
    if panel.time is not None:
        np.testing.assert_array_equal(again.time, panel.time)


@pytest.mark.parametrize("rows", [1, 3, 5, 99])
def test_several_series_of_one_table(rows: int) -> None:
    whole = panel_of({"a": 12, "b": 6, "c": 20}, timed=False)
    training, test = split_in_time(whole, 0.5, 0.5)
    joined, own = preceded(test, training, rows)
    check_joined(joined, own, test)
    for name, labels in as_dict(joined).items():
        before, after = as_dict(training)[name], as_dict(test)[name]
        assert labels == before[-rows:] + after


def test_no_rows_are_none() -> None:
    training, test = split_in_time(panel_of({"a": 12}), 0.5, 0.5)
    joined, own = preceded(test, training, 0)
    assert joined is test and own.all() and own_rows(joined, own) is test


def test_series_are_found_by_name_and_not_by_place() -> None:
    earlier = panel_of({"a": 4, "b": 5, "c": 6})
    later = replace(panel_of({"a": 2, "c": 2}, first=6), ids=("c", "a"))  # in another order
    later = replace(later, target=later.target + np.array([2000, 2000, -2000, -2000]))
    later = replace(later, inputs=np.column_stack([later.inputs[:, 0], -later.target]))
    joined, own = preceded(later, earlier, 2)
    check_joined(joined, own, later)
    assert as_dict(joined) == {
        "c": [99_004, 99_005, 99_006, 99_007],
        "a": [97_006, 97_007],  # its last row was three hours before
    }
    told, _ = preceded(later, earlier, 2, told=True)
    assert as_dict(told)["a"] == [97_002, 97_003, 97_006, 97_007]


@pytest.mark.parametrize(("first", "follows"), [(9, False), (10, True), (11, False), (40, False), (3, False)])
def test_times_tell_whether_rows_follow(first: int, follows: bool) -> None:
    """The last row before is the ninth: a step after it is the tenth, and the same or earlier is none."""
    joined, own = preceded(panel_of({"a": 3}, first=first), panel_of({"a": 10}), 4)
    assert len(joined) == 3 + 4 * follows and own.sum() == 3
    told, _ = preceded(panel_of({"a": 3}, first=first), panel_of({"a": 10}), 4, told=True)
    assert len(told) == 7


def test_a_step_and_a_half_is_still_the_next_row() -> None:
    earlier, later = panel_of({"a": 10}), panel_of({"a": 3}, first=10)
    assert later.time is not None
    late = replace(later, time=later.time + np.timedelta64(29, "m"))
    too_late = replace(later, time=later.time + np.timedelta64(31, "m"))
    assert len(preceded(late, earlier, 4)[0]) == 7 and len(preceded(too_late, earlier, 4)[0]) == 3


def test_without_times_only_rows_of_one_table_follow_unless_told() -> None:
    earlier, other = panel_of({"a": 10}, timed=False), panel_of({"a": 3}, timed=False)
    assert len(preceded(other, earlier, 4)[0]) == 3
    joined, own = preceded(other, earlier, 4, told=True)
    check_joined(joined, own, other)
    assert len(joined) == 7
    continued = replace(other, rows=other.rows + 10)
    assert len(preceded(continued, earlier, 4)[0]) == 7


def test_unknown_series_have_nothing_before_them() -> None:
    joined, own = preceded(panel_of({"a": 3, "z": 2}, first=10), panel_of({"a": 10, "b": 10}), 2)
    assert [len(one) for one in as_dict(joined).values()] == [5, 2]
    assert own.tolist() == [False, False, True, True, True, True, True]
    alone, own = preceded(panel_of({"z": 2}, first=10), panel_of({"a": 10}), 2, told=True)
    assert len(alone) == 2 and own.all()


def test_rows_with_times_are_not_put_after_rows_without() -> None:
    later = panel_of({"a": 3}, first=10)
    joined, own = preceded(later, panel_of({"a": 10}, timed=False), 4, told=True)
    assert joined is later and own.all()
    timeless = panel_of({"a": 3}, timed=False)
    joined, own = preceded(timeless, panel_of({"a": 10}), 4, told=True)
    assert len(joined) == 7 and joined.time is None


def test_numbers_are_as_good_as_times() -> None:
    earlier, later = panel_of({"a": 10}, timed=False), panel_of({"a": 3}, timed=False)
    earlier = replace(earlier, time=5.0 * np.arange(10))
    for first, count in ((50.0, 7), (45.0, 3), (60.0, 3)):
        assert len(preceded(replace(later, time=first + 5.0 * np.arange(3)), earlier, 4)[0]) == count
