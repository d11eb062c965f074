"""Tracked quantiles in compiled code: those of `ScaleTracker`, in a batch and row by row."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.compiled import n_forms
from varnn._types import DoubleArray
from varnn.model.intervals import CalibrationRows, Tracker
from varnn.model.intervals.compiled_error_scale import (
    expected_scale,
    follow_compiled,
    told_by,
    track,
    tracked_rows,
)
from varnn.model.intervals.error_scale import ErrorScale, ScaleTracker

LEVELS = np.array([0.5, 0.9, 0.99])


def error_scale(width: int, seed: int, *, largest: float | None = None) -> ErrorScale:
    """Learn from errors that go with the first hidden unit."""
    draw = np.random.default_rng(seed)
    hidden = np.maximum(draw.normal(size=(400, width)), 0).astype(np.float32)
    errors = draw.normal(size=400) * (1 + hidden[:, 0])
    found = ErrorScale.fit(CalibrationRows(hidden, errors, np.array([0, 400])))
    weights = found.weights + 0.1 * draw.normal(size=found.weights.shape)  # no term is tested at zero
    return ErrorScale(
        weights=weights,
        unit=found.unit,
        quantiles=found.quantiles,
        largest=found.largest if largest is None else largest,
    )


def rows_of(
    lengths: list[int], width: int, missing: float, wild: float | None, seed: int
) -> tuple[Any, Any, Any]:
    draw = np.random.default_rng(seed)
    hidden = np.maximum(draw.normal(size=(sum(lengths), width)), 0).astype(np.float32)
    errors = draw.standard_t(3, size=len(hidden))
    if wild is not None:
        errors[draw.integers(len(errors), size=3)] = wild
    errors[draw.random(len(errors)) < missing] = np.nan
    return hidden, errors, np.cumsum([0, *lengths])


def alike(ours: Any, theirs: Any, tolerance: float = 1e-6) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=4).filter(any),
    width=st.integers(1, 9),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    wild=st.sampled_from([None, 1e5, -1e60, 0.0]),
    largest=st.sampled_from([None, 2.0, np.inf]),
    seed=st.integers(0, 1000),
)
def test_rows_are_those_of_a_tracker(
    lengths: list[int], width: int, missing: float, wild: float | None, largest: float | None, seed: int
) -> None:
    how, rows = error_scale(width, seed, largest=largest), rows_of(lengths, width, missing, wild, seed)
    found = []
    for follow in (follow_compiled, ScaleTracker.follow, Tracker.follow):  # the last one row after row
        tracker: Any = how.tracker(len(lengths))
        found.append((*follow(tracker, *rows, LEVELS), tracker.state()))
    alike(found[0], found[2])
    alike(found[1], found[2])


@settings(max_examples=30, deadline=None)
@given(width=st.integers(1, 9), missing=st.sampled_from([0.0, 0.3]), seed=st.integers(0, 1000))
def test_one_row_after_the_other(width: int, missing: float, seed: int) -> None:
    how, (hidden, errors, _) = error_scale(width, seed), rows_of([40], width, missing, 30.0, seed)
    tracker = how.tracker(1)
    state = tracker.state()[0]
    for layer, error in zip(hidden, errors, strict=True):
        tracker.expect(layer[None])
        expected = expected_scale(told_by(layer, how.weights), state, how.weights, how.unit)
        np.testing.assert_allclose(expected, tracker._expected[0], rtol=1e-6)
        track(error, expected, how.unit, how.largest, state)
        tracker.observe(np.array([error]))
        np.testing.assert_allclose(state, tracker.state()[0], rtol=1e-6, atol=1e-12)


def test_a_missing_error_changes_nothing() -> None:
    how, (hidden, errors, starts) = error_scale(3, 1), rows_of([30], 3, 1.0, None, 1)
    tracker = how.tracker(1)
    before = tracker.state()
    follow_compiled(tracker, hidden, errors, starts, LEVELS)
    np.testing.assert_array_equal(tracker.state(), before)


def test_rows_in_parts_go_on_where_they_were_in_any_layout_and_compile_nothing_anew() -> None:
    how, (hidden, errors, starts) = error_scale(4, 2), rows_of([50, 50], 4, 0.2, 30.0, 2)
    tracker = how.tracker(2)
    weights = how.weights.copy()
    weights.flags.writeable = False
    read_only = ErrorScale(weights=weights, unit=how.unit, quantiles=how.quantiles, largest=how.largest)
    live = read_only.tracker(2)
    whole = follow_compiled(tracker, hidden, errors, starts, LEVELS)
    forms = n_forms(tracked_rows)
    for first, last in pairwise([0, 1, 1, 20, 50]):
        rows = np.concatenate([np.arange(first, last), 50 + np.arange(first, last)])
        layers = np.asfortranarray(hidden[rows])
        part = follow_compiled(live, layers, errors[rows], np.array([0, 1, 2]) * (last - first), LEVELS)
        for one, other in zip(part, whole, strict=True):
            np.testing.assert_array_equal(one, other[rows])
    np.testing.assert_array_equal(live.state(), tracker.state())
    assert n_forms(tracked_rows) == forms == 1


def test_bounds_cover_as_promised() -> None:
    draw = np.random.default_rng(3)
    hidden, errors = np.ones((6000, 2), np.float32), draw.standard_t(4, size=6000)
    errors[3000:] *= 5
    how = ErrorScale.fit(CalibrationRows(hidden[:1000], errors[:1000], np.array([0, 1000])))
    below, above = follow_compiled(how.tracker(1), hidden, errors, np.array([0, 6000]), LEVELS)
    covered: DoubleArray = ((below <= errors[:, None]) & (errors[:, None] <= above)).mean(axis=0)
    np.testing.assert_allclose(covered, LEVELS, atol=0.01)
