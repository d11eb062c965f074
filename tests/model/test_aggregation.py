"""Online aggregation: the guarantee holds whoever chooses the labels; rows together are rows one by one."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn._types import DoubleArray
from varnn.model.aggregation import DISCOUNT, RATES, SHARED, Aggregator

LARGEST = 4.0  # size of r_k: half of one over the largest rate


class Course(NamedTuple):
    """What a single aggregator was told and said: T rows, K experts."""

    experts: DoubleArray  # (T, K)
    labels: DoubleArray  # (T,)
    combined: DoubleArray  # (T,)
    weights: DoubleArray  # (T, K)
    scores: DoubleArray  # (T, K, J): after each row


Adversary = Callable[[int, DoubleArray, DoubleArray, np.random.Generator], tuple[DoubleArray, float]]


def random(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """Draw everything."""
    return draw.normal(size=len(weights)), draw.normal()


def heavy(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """Draw from a law without a variance."""
    return draw.standard_t(1.5, size=len(weights)), draw.standard_t(1.5)


def against_the_heaviest(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """Make whoever is believed most wrong, and all others right."""
    experts = np.full(len(weights), 1.0)
    experts[weights.argmax()] = -1.0
    return experts, 1.0


def alternating(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """Let the label jump to the side that the combination is not on."""
    experts = np.linspace(-1.0, 1.0, len(weights))
    return experts, -1.0 if weights @ experts > 0 else 1.0


def constant(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """All agree, and are right, but for the first."""
    experts = np.full(len(weights), 3.0)
    experts[0] = 3.1
    return experts, 3.0


def huge(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """Mix numbers of all sizes, up to those whose squares are nearly too large."""
    sizes = 10.0 ** draw.choice([-90, 0, 0, 0, 90], size=len(weights) + 1)
    drawn = draw.normal(size=len(weights) + 1) * sizes
    return drawn[1:], float(drawn[0])


def agreeing_far_off(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """All say the same, in all digits or nearly, and are wrong by more than their digits can tell."""
    said = 1e90 * draw.choice([1.0, 0.3, 0.7, 1 / 3])
    experts = np.full(len(weights), said)
    if row % 3 == 0:
        experts[-1] = np.nextafter(said, np.inf)
    return experts, said * draw.choice([-2.0, 0.0, 0.5, 3.0])


def rescaled(
    row: int, weights: DoubleArray, last: DoubleArray, draw: np.random.Generator
) -> tuple[DoubleArray, float]:
    """Change the scale by a million, up and down again."""
    scale = 1e6 if row // 60 % 2 else 1.0
    return scale * draw.normal(size=len(weights)), scale * draw.normal()


ADVERSARIES = (
    random,
    heavy,
    against_the_heaviest,
    alternating,
    constant,
    huge,
    agreeing_far_off,
    rescaled,
)


def play(
    adversary: Adversary, prior: DoubleArray, noise: float, rows: int, missing: float, seed: int
) -> Course:
    """Let an adversary, who sees the weights, choose what experts say and what is right."""
    draw = np.random.default_rng(seed)
    aggregator, last = Aggregator(prior, noise, 1), np.zeros(len(prior))
    course: list[tuple[DoubleArray, float, float, DoubleArray, DoubleArray]] = []
    for row in range(rows):
        weights = aggregator.weights[0].copy()
        last, label = adversary(row, weights, last, draw)
        label = np.nan if draw.random() < missing else label
        combined = aggregator.combine(last[None]).item()
        aggregator.learn(np.array([label]))
        course.append((last, label, combined, weights, aggregator.scores[0].copy()))
    return Course(*(np.array(column) for column in zip(*course, strict=True)))


def apart(course: Course, row: int) -> DoubleArray:
    """Recompute how far the combination is from each expert, pair by pair: p - x_k is 0 where all agree."""
    said, weights = course.experts[row], course.weights[row]
    return np.array([sum(weights * (said - one)) for one in said])


def importance(course: Course, noise: float) -> DoubleArray:
    """Recompute a_t of each row, by the words of the module: 0 where a label is missing."""
    found, scale = np.zeros(len(course.labels)), noise
    for row, (label, combined) in enumerate(zip(course.labels, course.combined, strict=True)):
        if np.isnan(label):
            continue
        error = abs(label - combined)
        most = 2 * error * np.abs(apart(course, row)).max()
        found[row] = min(1 / scale, LARGEST / most) if most else 1 / scale
        scale = max(0.998 * scale + 0.002 * min(error**2, 25 * scale), 1e-12 * noise)
    return found


def hold_to_account(course: Course, prior: DoubleArray, noise: float) -> None:
    """Check weights and scores against a plain second way, and the guarantee at every time."""
    assert (course.weights >= 0).all()
    np.testing.assert_allclose(course.weights.sum(axis=1), 1)
    low, high = course.experts.min(axis=1), course.experts.max(axis=1)
    slack = 1e-12 * np.maximum(np.abs(low), np.abs(high))
    assert (course.combined >= low - slack).all() and (course.combined <= high + slack).all()
    highest = np.log(len(RATES) / prior)[:, None]  # (K, 1)
    assert (course.scores <= highest + 1e-9).all()
    counts = importance(course, noise)
    begun: list[int] = []  # stretches of rows under way, and their sums
    sums = np.zeros((0, 3, len(prior)))  # excess, squares, rounding
    scores, weights, learnt = np.zeros((len(prior), len(RATES))), [], []
    known = np.flatnonzero(~np.isnan(course.labels)).tolist()
    for row in known:
        label, combined, said = course.labels[row], course.combined[row], course.experts[row]
        believed = prior * (RATES * np.exp(DISCOUNT * scores)).sum(axis=1)
        weights.append(believed / believed.sum())
        far = apart(course, row)
        regret = counts[row] * 2 * (combined - label) * far
        assert (np.abs(regret) <= LARGEST * (1 + 1e-9)).all()
        for index, rate in enumerate(RATES):
            learns = DISCOUNT * scores[:, index] + rate * regret - (rate * regret) ** 2
            scores[:, index] = np.log((1 - SHARED) * np.exp(learns) + SHARED)
        learnt.append(scores.copy())
        lost = counts[row] * far * ((combined - label) + (said - label))
        if len(learnt) % 40 == 1:
            begun.append(len(learnt) - 1)
            sums = np.concatenate([sums, np.zeros((1, 3, len(prior)))])
        sums = DISCOUNT * sums + np.array([lost, regret**2, np.abs(lost)])
        lasted = len(learnt) - np.array(begun)[:, None]  # rows of each stretch
        before = DISCOUNT**lasted * np.log(1 / SHARED) * (np.array(begun)[:, None] > 0)
        lent = -np.log1p(-SHARED) * (1 - DISCOUNT**lasted) / (1 - DISCOUNT)
        for rate in RATES:
            bound = (np.log(len(RATES) / prior) + before + lent) / rate + rate * sums[:, 1]
            assert (sums[:, 0] <= bound + 1e-9 * (1 + sums[:, 2])).all()
    np.testing.assert_allclose(course.weights[known], weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(course.scores[known], learnt, rtol=1e-6, atol=1e-9)


priors = st.lists(st.floats(-20, 0), min_size=2, max_size=7).map(
    lambda logarithms: np.exp(logarithms) / np.exp(logarithms).sum()
)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@settings(max_examples=10, deadline=None)
@given(
    prior=priors,
    noise=st.sampled_from([1.0, 1e-6, 1e6]),
    missing=st.sampled_from([0.0, 0.0, 0.3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_guarantee_holds_whoever_chooses(
    adversary: Adversary, prior: DoubleArray, noise: float, missing: float, seed: int
) -> None:
    hold_to_account(play(adversary, prior, noise, 200, missing, seed), prior, noise)


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_the_guarantee_holds_for_long(adversary: Adversary) -> None:
    prior = np.array([0.7, 0.2, 0.1])
    hold_to_account(play(adversary, prior, 1.0, 1500, 0.0, 1), prior, 1.0)


def several(lengths: list[int], seed: int) -> tuple[DoubleArray, DoubleArray, np.ndarray]:
    """Draw four experts of some series, labels with gaps, and where the series begin."""
    draw = np.random.default_rng(seed)
    labels = draw.standard_t(3, size=sum(lengths))
    experts = labels[:, None] + draw.normal(size=(len(labels), 4)) * [0.5, 1.0, 2.0, 4.0]
    labels[draw.random(len(labels)) < 0.2] = np.nan
    return experts, labels, np.cumsum([0, *lengths])


PRIOR = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("lengths", [[1], [40], [7, 0, 30, 30, 1, 55], [0, 3]])
def test_rows_together_are_rows_one_by_one(lengths: list[int]) -> None:
    experts, labels, starts = several(lengths, seed=len(lengths))
    together = Aggregator(PRIOR, 2.0, len(lengths))
    combined, weights = together.follow(experts, labels, starts)
    for series, (first, last) in enumerate(pairwise(starts)):
        alone = Aggregator(PRIOR, 2.0, 1)
        for row in range(first, last):
            np.testing.assert_allclose(weights[row], alone.weights[0], rtol=1e-12)
            np.testing.assert_allclose(combined[row], alone.combine(experts[row : row + 1])[0], rtol=1e-12)
            alone.learn(labels[row : row + 1])
        np.testing.assert_allclose(together.state()[series], alone.state()[0], rtol=1e-12, atol=1e-14)


def test_the_rows_of_a_series_may_come_in_parts_and_through_a_state() -> None:
    experts, labels, starts = several([60, 60], seed=3)
    whole, _ = Aggregator(PRIOR, 2.0, 2).follow(experts, labels, starts)
    live = Aggregator(PRIOR, 2.0, 2)
    for first, last in ((0, 11), (11, 40), (40, 60)):
        rows = np.concatenate([np.arange(first, last), 60 + np.arange(first, last)])
        part, _ = live.follow(experts[rows], labels[rows], np.array([0, last - first, 2 * (last - first)]))
        np.testing.assert_array_equal(part, whole[rows])
        other = Aggregator(PRIOR, 2.0, 2)
        other.restore(live.state())
        live = other


def test_a_state_is_a_copy() -> None:
    aggregator = Aggregator(PRIOR, 1.0, 1)
    kept = aggregator.state()
    before = kept.copy()
    aggregator.combine(np.array([[1.0, 2.0, 3.0, 4.0]]))
    aggregator.learn(np.array([1.0]))
    np.testing.assert_array_equal(kept, before)
    other = Aggregator(PRIOR, 1.0, 1)
    other.restore(kept)
    other.combine(np.array([[1.0, 2.0, 3.0, 4.0]]))
    other.learn(np.array([1.0]))
    np.testing.assert_array_equal(kept, before)
    np.testing.assert_array_equal(other.state(), aggregator.state())


def test_a_missing_label_teaches_nothing_to_its_series_alone() -> None:
    aggregator, alone = Aggregator(PRIOR, 1.0, 2), Aggregator(PRIOR, 1.0, 1)
    experts = np.array([[1.0, 2.0, 3.0, 4.0]])
    before = aggregator.state()
    aggregator.combine(experts.repeat(2, axis=0))
    aggregator.learn(np.array([np.nan, 2.0]))
    alone.combine(experts)
    alone.learn(np.array([2.0]))
    np.testing.assert_array_equal(aggregator.state()[0], before[0])
    np.testing.assert_array_equal(aggregator.state()[1], alone.state()[0])
    aggregator.learn(np.array([np.nan, np.nan]))
    np.testing.assert_array_equal(aggregator.state()[1], alone.state()[0])


def test_right_to_the_last_digit_is_no_warning() -> None:
    aggregator = Aggregator(PRIOR, 1.0, 1)
    assert aggregator.combine(np.full((1, 4), 7.0)).item() == pytest.approx(7.0)
    aggregator.learn(aggregator.combine(np.full((1, 4), 7.0)))
    np.testing.assert_allclose(aggregator.weights[0], PRIOR)


def test_a_million_steps_stay_finite_and_keep_their_promise() -> None:
    """Noise, spikes, gaps, scales that change and stretches in which all agree: 25 series of 40,000 rows."""
    draw = np.random.default_rng(11)
    aggregator, highest = Aggregator(PRIOR, 1.0, 25), np.log(len(RATES) / PRIOR)[:, None] + 1e-9
    for _ in range(40):
        scale = 10.0 ** draw.choice([-6, 0, 0, 6], size=(25, 1))
        labels = scale[:, 0] * draw.normal(size=(1000, 25))
        experts = labels[:, :, None] + scale * draw.normal(size=(1000, 25, 4))
        experts[900:] = 5.0
        labels[np.arange(1000), np.arange(1000) % 25] = draw.choice([np.nan, 1e90, -1e90, 0.0], size=1000)
        for said, label in zip(experts, labels, strict=True):
            aggregator.combine(said)
            aggregator.learn(label)
        assert np.isfinite(aggregator.state()).all()
        assert (aggregator.scores <= highest).all() and (aggregator.scale > 0).all()
        np.testing.assert_allclose(aggregator.weights.sum(axis=1), 1)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_who_is_right_takes_over_within_some_hundred_rows(scale: float) -> None:
    """First one expert is right for long, then another: errors of others are twice what nobody avoids."""
    draw = np.random.default_rng(4)
    aggregator, weights = Aggregator(np.array([0.98, 0.01, 0.01]), scale**2, 1), []
    for row in range(3000):
        truth = draw.normal()
        experts = truth + np.sqrt(3) * draw.normal(size=3)
        experts[0 if row < 2000 else 1] = truth
        aggregator.combine(scale * experts[None])
        aggregator.learn(scale * np.array([truth + draw.normal()]))
        weights.append(aggregator.weights[0].copy())
    assert weights[1999][0] > 0.9
    assert weights[2400][1] > 0.7 and np.mean(weights[2400:], axis=0)[1] > 0.8


def test_opposite_errors_cancel() -> None:
    """A convex combination beats each expert where one errs to the left and one to the right."""
    draw = np.random.default_rng(5)
    labels = draw.normal(size=4000)
    off = 1.0 + 0.3 * draw.normal(size=(4000, 2))
    experts = labels[:, None] + off * [1.0, -1.0]
    combined, weights = Aggregator(np.array([0.9, 0.1]), 1.0, 1).follow(experts, labels, np.array([0, 4000]))
    late = slice(1000, None)
    assert np.mean((combined - labels)[late] ** 2) < 0.1 * np.mean((experts - labels[:, None])[late] ** 2)
    assert 0.4 < weights[late].mean(axis=0)[0] < 0.6


def test_who_was_wrong_for_long_can_come_back() -> None:
    """An expert that was wrong for three thousand rows is believed again some hundred rows after."""
    draw = np.random.default_rng(6)
    aggregator, weights = Aggregator(np.array([0.5, 0.5]), 1.0, 1), []
    for row in range(4000):
        truth = draw.normal()
        experts = np.array([truth, truth + 3 * draw.normal()])
        aggregator.combine((experts if row < 3000 else experts[::-1])[None])
        aggregator.learn(np.array([truth + draw.normal()]))
        weights.append(aggregator.weights[0, 1])
    assert weights[2999] < 0.02 and weights[3100] > 0.9  # without a share it takes four times as long
