"""What a stream reads of one step: inputs by name, and times in their order."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from varnn.data.timestamps import timestamp
from varnn.errors import DataError
from varnn.streaming._values import inputs_of, later_than


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("b", "a", "c")])
def test_inputs_by_name_come_in_the_order_of_the_model(names: tuple[str, ...]) -> None:
    x: dict[str, Any] = {"c": 3, "other": "text", "a": 1.5, "b": None}
    found = inputs_of(x, names, (len(names),))
    np.testing.assert_array_equal(found, [{"a": 1.5, "b": np.nan, "c": 3.0}[name] for name in names])
    found[:] = 0  # an array of its own


@pytest.mark.parametrize("kind", [dict, defaultdict])
def test_inputs_that_are_not_there_are_named(kind: type[dict[str, Any]]) -> None:
    x = defaultdict(float, a=1.0) if kind is defaultdict else {"a": 1.0}
    with pytest.raises(DataError, match=r"it lacks \['b', 'c'\]"):
        inputs_of(x, ("a", "b", "c"), (3,))
    assert list(x) == ["a"]


@pytest.mark.parametrize(
    ("last", "time", "wrong"),
    [
        ("2026-01-01T10:00", "2026-01-01T10:00:00.000001", None),
        ("2026-01-01T10:00", "2026-01-01T11:00+01:00", "must be after"),
        ("2026-01-01T10:00", "2026-01-01T10:00:00.000000001", None),
        ("2026-01-01T10:00:00.000000001", "2026-01-01T10:00", "must be after"),
        ("2026-01-01T10:00:00.000000001", "2026-01-01T10:00:00.000000002", None),
        ("2026-01-01T10:00", "2036-01-02T10:00", None),  # 3,653 days
        ("2026-01-01T10:00", "2036-01-02T10:00:00.000001", "within ten years"),
        ("2026-01-01T10:00:00.000000001", "2036-01-02T10:00:00.000000002", "within ten years"),
        ("0001-01-01", np.datetime64("-0001-01-01T00:00:00"), "must be after"),
        ("9999-12-31", np.datetime64("10000-01-01T00:00:00"), None),
    ],
)
def test_times_of_all_units_must_be_later_and_near(last: Any, time: Any, wrong: str | None) -> None:
    if wrong is None:
        assert later_than(timestamp(last), time) == timestamp(time)
    else:
        with pytest.raises(DataError, match=wrong):
            later_than(timestamp(last), time)


def test_a_whole_number_beyond_any_float_is_refused_in_words() -> None:
    with pytest.raises(DataError, match="at most 1e"):
        inputs_of([1.0, 10**400], ["a", "b"], (2,))
