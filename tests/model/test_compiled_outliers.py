"""The filter of labels in compiled code: what `FilterStream` takes and leaves out, and all it keeps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.model.compiled_outliers import doubt_of, judged
from varnn.model.outliers import HALVING, LATELY, FilterStream, LabelFilter

RULE = LabelFilter(change=2.0, low=-50.0, high=50.0)
_LEFT, _OUT = 2, 4


def known(state: DoubleArray) -> DoubleArray:
    """A state, but for labels left out so long ago that they count no more: each forgets them in its time."""
    one = state.copy()
    if one[_OUT] > LATELY:
        one[_LEFT] = 0.0
    return one


def compare(labels: DoubleArray, rule: LabelFilter = RULE) -> tuple[list[float], list[float]]:
    """Judge the labels of one series both ways; hold state and doubt at every row against each other."""
    stream = FilterStream(rule, 1)
    state, found, doubts = stream.state()[0], [], []
    for label in labels.tolist():
        expected = stream(np.array([label])).item()
        found.append(judged(label, rule.change, rule.low, rule.high, state))
        np.testing.assert_array_equal(found[-1], expected)
        np.testing.assert_array_equal(known(state), known(stream.state()[0]))
        doubts.append(doubt_of(state))
        assert doubts[-1] == np.broadcast_to(stream.doubt, 1).item()
    return found, doubts


@st.composite
def walks(draw: Any) -> DoubleArray:
    """Random walks with glitches, shifts, gaps and a wild beginning."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows = draw(st.integers(1, 90))
    labels = np.cumsum(generator.uniform(-1.9, 1.9, rows)) * draw(st.sampled_from([0.1, 1.0, 1.3]))
    for _ in range(draw(st.integers(0, 6))):
        row, size = int(generator.integers(rows)), float(generator.choice([3.0, 6.0, 15.0, 40.0, 1e4, 1e60]))
        length = int(generator.integers(1, 5))
        if generator.random() < 0.4:  # a shift
            labels[row:] += generator.choice([-1, 1]) * size
        else:
            labels[row : row + length] += (
                generator.choice([-1, 1], size=len(labels[row : row + length])) * size
            )
    labels[generator.random(rows) < draw(st.sampled_from([0.0, 0.1, 0.5]))] = np.nan
    if draw(st.booleans()):
        labels[0] = draw(st.sampled_from([49.0, 51.0, 1e7, -1e90]))
    return np.asarray(labels, np.float64)


@settings(max_examples=300, deadline=None)
@given(walks())
def test_labels_are_judged_as_on_numpy(labels: DoubleArray) -> None:
    taken, _ = compare(labels)
    panel = RULE(Panel.from_arrays(None, labels)) if not np.isnan(labels).all() else None
    if panel is not None:  # and as in a batch
        np.testing.assert_array_equal(taken, panel.target)


def test_what_is_tested_above_happens() -> None:
    """A glitch is left out and doubted; a shift is taken a row late; a third in a row is taken."""
    taken, doubts = compare(np.array([0.0, 1.0, 9.0, 1.0, 9.0, 9.5, 9.0, np.nan, 9.0]))
    np.testing.assert_array_equal(taken, [0.0, 1.0, np.nan, 1.0, np.nan, 9.5, 9.0, np.nan, 9.0])
    assert doubts == [0.0, 0.0, 4.0, 0.0, pytest.approx(8 / 3), 0.0, 0.0, 0.0, 0.0]


def test_a_raised_bound_halves_and_is_forgotten() -> None:
    """A shift by 90 is taken three rows late, so the bound is 60; a jump by 25 is fine until it is 15."""
    for rows, fine in ((10, True), (HALVING - 10, True), (HALVING + 10, True), (2 * HALVING + 10, False)):
        labels = np.concatenate([[0.0, 90.0, 90.0], np.full(rows, 90.0), [115.0]])
        taken, _ = compare(labels)
        assert np.isnan(taken[1:3]).all() and taken[3] == 90.0 and (taken[-1] == 115.0) == fine


def test_a_state_may_come_from_either() -> None:
    labels = np.array([0.0, 9.0, 1.0, 30.0, 30.5, 90.0, np.nan, 31.0, 30.0, -9.0, 30.0, 31.0])
    for cut in range(1, len(labels)):
        stream = FilterStream(RULE, 1)
        for label in labels[:cut]:
            stream(np.array([label]))
        state, other = stream.state()[0], FilterStream(RULE, 1)
        other.restore(state[None].copy())
        for label in labels[cut:]:
            np.testing.assert_array_equal(judged(label, 2.0, -50.0, 50.0, state), other(np.array([label]))[0])
        restored = FilterStream(RULE, 1)
        restored.restore(state[None])
        np.testing.assert_array_equal(known(restored.state()[0]), known(other.state()[0]))
