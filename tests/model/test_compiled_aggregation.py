"""Weights of experts in compiled code: those of `Aggregator`, and the guarantee, whoever chooses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.compiled import n_forms
from tests.model.test_aggregation import (
    ADVERSARIES,
    PRIOR,
    Adversary,
    Course,
    hold_to_account,
    priors,
    several,
)
from varnn._types import DoubleArray, IntArray
from varnn.model.aggregation import LEAST, RATES, Aggregator
from varnn.model.compiled_aggregation import aggregated_rows, believe, combine, follow_compiled, weigh


def play(
    adversary: Adversary, prior: DoubleArray, noise: float, rows: int, missing: float, seed: int
) -> Course:
    """Let an adversary, who sees the weights, choose what experts say and what is right."""
    draw = np.random.default_rng(seed)
    scores, scale = np.zeros((len(prior), len(RATES))), np.array([noise])
    weights, last = np.empty(len(prior)), np.zeros(len(prior))
    course: list[tuple[DoubleArray, float, float, DoubleArray, DoubleArray]] = []
    for row in range(rows):
        weigh(scores, prior, weights)
        last, label = adversary(row, weights.copy(), last, draw)
        label = np.nan if draw.random() < missing else label
        combined = combine(last, weights)
        believe(label - combined, last, weights, LEAST * noise, scores, scale)
        course.append((last, label, combined, weights.copy(), scores.copy()))
    return Course(*(np.array(column) for column in zip(*course, strict=True)))


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


def followed(
    follow: Any, experts: DoubleArray, labels: DoubleArray, starts: IntArray, noise: float = 2.0
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    aggregator = Aggregator(PRIOR, noise, len(starts) - 1)
    return *follow(aggregator, experts, labels, starts), aggregator.state()


def alike(
    experts: DoubleArray, labels: DoubleArray, starts: IntArray, noise: float = 2.0, tolerance: float = 1e-9
) -> None:
    plain = followed(Aggregator.follow, experts, labels, starts, noise)
    ours = followed(follow_compiled, experts, labels, starts, noise)
    size = np.abs(experts).max(axis=1, initial=0.0)
    assert (np.abs(ours[0] - plain[0]) <= 1e-9 * size).all()
    np.testing.assert_allclose(ours[1], plain[1], rtol=tolerance, atol=1e-3 * tolerance)
    np.testing.assert_allclose(ours[2], plain[2], rtol=tolerance, atol=tolerance)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=5).filter(any),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    offset=st.sampled_from([0.0, 1e3, 1e12]),
    wild=st.sampled_from([None, 1e30, 1e90, -1e100]),
    noise=st.sampled_from([1e-6, 2.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_rows_are_those_of_an_aggregator(
    lengths: list[int], missing: float, offset: float, wild: float | None, noise: float, seed: int
) -> None:
    experts, labels, starts = several(lengths, seed)
    draw = np.random.default_rng(seed)
    labels[draw.random(len(labels)) < missing] = np.nan
    if wild is not None:
        labels[draw.integers(len(labels), size=3)] = wild
    # Of large numbers, errors have few digits left, which both ways round as they please.
    alike(experts + offset, labels + offset, starts, noise, 1e-9 if offset < 1e9 else 0.02)


@pytest.mark.parametrize("said", [0.0, 3.0, 1 / 3, 1e90, -1e100])
def test_experts_that_agree_are_believed_as_at_the_start(said: float) -> None:
    """To the last digit: however wrong they all are, none of them is more so than another."""
    experts = np.full((50, 4), said)
    labels = np.random.default_rng(0).choice([np.nan, 0.0, 1e90, -5.0, said], size=50)
    _, weights, _ = followed(follow_compiled, experts, labels, np.array([0, 50]))
    for row in weights:
        np.testing.assert_allclose(row, PRIOR, rtol=1e-14)
    alike(experts, labels, np.array([0, 50]))


def test_a_missing_label_teaches_nothing() -> None:
    experts, labels, starts = several([40], seed=1)
    labels[20:] = np.nan
    _, weights, state = followed(follow_compiled, experts, labels, starts)
    _, _, before = followed(follow_compiled, experts[:20], labels[:20], np.array([0, 20]))
    np.testing.assert_array_equal(state, before)
    assert (weights[20:] == weights[20]).all()


def test_rows_in_parts_go_on_where_they_were_and_compile_nothing_anew() -> None:
    experts, labels, starts = several([60, 60], seed=3)
    whole, _, after = followed(follow_compiled, experts, labels, starts)
    forms, live = n_forms(aggregated_rows), Aggregator(PRIOR, 2.0, 2)
    for first, last in ((0, 11), (11, 12), (12, 60)):
        rows = np.concatenate([np.arange(first, last), 60 + np.arange(first, last)])
        part, _ = follow_compiled(
            live, experts[rows], labels[rows], np.array([0, last - first, 2 * (last - first)])
        )
        np.testing.assert_array_equal(part, whole[rows])
        other = Aggregator(PRIOR, 2.0, 2)
        other.restore(live.state())
        live = other
    np.testing.assert_array_equal(live.state(), after)
    assert n_forms(aggregated_rows) == forms == 1


def test_no_rows_leave_all_as_it_was() -> None:
    aggregator = Aggregator(PRIOR, 2.0, 2)
    aggregator.scores += 0.3
    before = aggregator.state()
    nothing = np.empty((0, 4)), np.empty(0), np.zeros(3, np.int64)
    aggregated_rows(
        *nothing, PRIOR, 1e-9, aggregator.scores, np.full((2, 1), 2.0), np.empty(0), np.empty((0, 4))
    )
    np.testing.assert_array_equal(aggregator.state(), before)


def test_weights_asked_for_after_rows_are_those_after_the_last() -> None:
    experts, labels, starts = several([60, 60], seed=5)
    plain, ours = Aggregator(PRIOR, 2.0, 2), Aggregator(PRIOR, 2.0, 2)
    assert (ours.weights == plain.weights).all()  # made once, and not again before the rows
    plain.follow(experts, labels, starts)
    follow_compiled(ours, experts, labels, starts)
    np.testing.assert_allclose(ours.weights, plain.weights, rtol=1e-9)
    for one in (plain, ours):  # and what it learns one by one from there on
        one.combine(experts[:2])
        one.learn(labels[:2])
    np.testing.assert_allclose(ours.state(), plain.state(), rtol=1e-9)


def test_prior_weights_that_must_not_be_written_to_compile_nothing_anew() -> None:
    """Those of a model that joblib hands to another process are."""
    experts, labels, starts = several([30], seed=5)
    prior = PRIOR.copy()
    prior.flags.writeable = False
    expected, _, _ = followed(follow_compiled, experts, labels, starts)
    forms = n_forms(aggregated_rows)
    found, _ = follow_compiled(Aggregator(prior, 2.0, 1), experts, labels, starts)
    np.testing.assert_array_equal(found, expected)
    assert n_forms(aggregated_rows) == forms
