"""Experts: rows together are rows one by one, files give back what they took, and nothing runs away."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from varnn import Panel
from varnn._types import DoubleArray
from varnn.data.preparation import LIMIT, Scaling
from varnn.model._linear_fit import fit_linear
from varnn.model.adaptation import Adaptation, gain_of
from varnn.model.experts import NEVER, Experts, LiveExperts, names_of
from varnn.model.linear import LinearPart, LinearRows, LinearStream

MEMBERS, HIDDEN, REGRESSORS = 3, 5, 4
NONE = np.zeros(0)
SCALING = Scaling(
    input_offset=NONE, input_scale=NONE, initial_inputs=NONE, target_offset=0.5, target_scale=2.0
)
SEASON = 2  # column of the regressors
NO_INPUTS = np.empty((0, 0))  # which trees alone look at


def experts_of(
    *,
    linear: bool = True,
    season: bool = True,
    joined: bool = True,
    forgetting: tuple[float, ...] = (0.99, 0.9),
) -> Experts:
    """Make experts with gains of made rows; the last regressor never changed."""
    draw = np.random.default_rng(0)
    hidden = np.maximum(draw.normal(size=(MEMBERS, 400, HIDDEN)), 0)
    standard = draw.normal(size=(400, REGRESSORS)) * [1.0, 1.0, 1.0, 0.0]
    unit = 0.7 if linear and joined else 0.0
    seen = hidden
    if unit:
        wide = np.broadcast_to(unit * standard, (MEMBERS, *standard.shape))
        seen = np.concatenate([hidden, wide], axis=-1)
    names = names_of(forgetting, linear=linear, season=linear and season)
    return Experts(
        readout=Adaptation(forgetting=forgetting, gain=gain_of(seen), noise=0.8),
        linear=Adaptation(forgetting=(0.999,), gain=gain_of(standard[None]), noise=0.8) if linear else None,
        centre=np.array([1.0, 0.0, -1.0, 3.0]) if linear else np.empty(0),
        deviation=np.array([1.0, 2.0, 3.0, NEVER]) if linear else np.empty(0),
        unit=unit,
        season=SEASON if linear and season else None,
        noise=1.5,
        prior=np.arange(1.0, len(names) + 1) / np.arange(1.0, len(names) + 1).sum(),
    )


def rows_of(lengths: list[int], *, linear: bool, seed: int) -> tuple[LinearRows, Any, Any, DoubleArray, Any]:
    """Draw what the linear part and the network say of some series, targets with gaps, and starts."""
    draw, rows = np.random.default_rng(seed), sum(lengths)
    regressors = draw.standard_t(2, size=(rows, REGRESSORS))
    nothing = np.zeros(rows)
    hidden = np.maximum(draw.normal(size=(MEMBERS, rows, HIDDEN)), 0).astype(np.float32)
    outputs = draw.normal(size=(MEMBERS, rows)).astype(np.float32)
    targets = 0.3 * regressors[:, 0].clip(-3, 3) + draw.standard_t(3, size=rows)
    targets[draw.random(rows) < 0.15] = np.nan
    left = SCALING.restore(targets)
    known = LinearRows(draw.normal(size=rows), draw.normal(size=rows), left, regressors)
    return (
        known if linear else LinearRows(nothing, nothing, left),
        hidden,
        outputs,
        targets,
        np.cumsum([0, *lengths]),
    )


def some(linear: LinearRows, rows: Any) -> LinearRows:
    """Take some rows."""
    regressors = None if linear.regressors is None else linear.regressors[rows]
    return LinearRows(linear.predictions[rows], linear.last[rows], linear.residuals[rows], regressors)


KINDS: list[dict[str, Any]] = [
    {},
    {"season": False},
    {"linear": False},
    {"joined": False, "forgetting": (0.99,)},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("lengths", [[90], [70, 0, 33, 70, 1]], ids=str)
def test_rows_together_are_rows_one_by_one(kind: dict[str, Any], lengths: list[int]) -> None:
    experts = experts_of(**kind)
    linear, hidden, outputs, targets, starts = rows_of(lengths, linear=kind.get("linear", True), seed=1)
    together = LiveExperts(experts, SCALING, len(lengths))
    followed = together.follow(linear, hidden, outputs, NO_INPUTS, targets, starts)
    assert followed.weights.shape == followed.experts.shape == (len(targets), len(experts.names))
    np.testing.assert_allclose(
        (followed.weights * followed.experts).sum(axis=1), followed.predictions, rtol=1e-9, atol=1e-9
    )
    for series, (first, last) in enumerate(pairwise(starts)):
        alone = LiveExperts(experts, SCALING, 1)
        for row in range(first, last):
            one = slice(row, row + 1)
            np.testing.assert_allclose(followed.weights[row], alone.aggregator.weights[0], atol=1e-9)
            predicted = alone.predict(some(linear, one), hidden[:, one], outputs[:, one], NO_INPUTS)
            np.testing.assert_allclose(followed.predictions[one], predicted, rtol=1e-9, atol=1e-9)
            alone.learn(targets[one], linear.residuals[one])
        np.testing.assert_allclose(together.state()[series], alone.state()[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_series_in_step_through_a_state(kind: dict[str, Any]) -> None:
    """Three series row by row, taken over by others in the middle, as one panel gives them."""
    experts = experts_of(**kind)
    linear, hidden, outputs, targets, starts = rows_of([50] * 3, linear=kind.get("linear", True), seed=2)
    followed = LiveExperts(experts, SCALING, 3).follow(linear, hidden, outputs, NO_INPUTS, targets, starts)
    live = LiveExperts(experts, SCALING, 3)
    for row in range(50):
        if row in (1, 20):
            other = LiveExperts(experts, SCALING, 3)
            other.restore(live.state())
            live = other
        rows = starts[:-1] + row
        for _ in range(1 + row % 2):  # asking again changes nothing
            predicted = live.predict(some(linear, rows), hidden[:, rows], outputs[:, rows], NO_INPUTS)
        np.testing.assert_allclose(predicted, followed.predictions[rows], rtol=1e-9, atol=1e-9)
        live.learn(targets[rows], linear.residuals[rows])


def test_what_each_expert_says() -> None:
    experts = experts_of()
    linear, hidden, outputs, targets, starts = rows_of([40], linear=True, seed=3)
    found = LiveExperts(experts, SCALING, 1).follow(linear, hidden, outputs, NO_INPUTS, targets, starts)
    said = dict(zip(experts.names, found.experts.T, strict=True))
    assert linear.regressors is not None
    np.testing.assert_allclose(said["persistence"], linear.last)
    np.testing.assert_allclose(said["seasonal persistence"], linear.last + linear.regressors[:, SEASON])
    np.testing.assert_allclose(said["linear part"], linear.predictions)
    network = linear.predictions + SCALING.restore(outputs.mean(axis=0, dtype=np.float64))
    np.testing.assert_allclose(said["network"], network)
    for learner, before in (
        ("linear part, learning", "linear part"),
        ("network, learning slowly", "network"),
        ("network, learning fast", "network"),
    ):
        assert said[learner][0] == pytest.approx(said[before][0])  # it has learnt nothing yet
        assert np.abs(said[learner] - said[before])[5:].max() > 1e-3
    np.testing.assert_allclose(found.weights[0], experts.prior)


def test_names_are_in_the_order_of_what_is_said() -> None:
    assert experts_of().names == (
        "persistence",
        "seasonal persistence",
        "linear part",
        "linear part, learning",
        "network",
        "network, learning slowly",
        "network, learning fast",
    )
    assert "seasonal persistence" not in experts_of(season=False).names
    assert experts_of(linear=False, forgetting=(0.9,)).names == ("network", "network, learning")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrays_and_back(kind: dict[str, Any]) -> None:
    experts = experts_of(**kind)
    again = Experts.from_arrays({name: one.copy() for name, one in experts.arrays().items()})
    assert again.names == experts.names
    assert (again.unit, again.season, again.noise) == (experts.unit, experts.season, experts.noise)
    rows = rows_of([60], linear=kind.get("linear", True), seed=4)
    linear, hidden, outputs, targets, starts = rows
    one, other = (
        LiveExperts(each, SCALING, 1).follow(linear, hidden, outputs, NO_INPUTS, targets, starts)
        for each in (experts, again)
    )
    for before, after in zip(one, other, strict=True):
        np.testing.assert_array_equal(before, after)
    for name in experts.arrays():
        if name not in ("linear.gain", "centre", "deviation"):
            with pytest.raises(KeyError, match=name):
                Experts.from_arrays({key: value for key, value in experts.arrays().items() if key != name})


def test_a_regressor_that_never_changed_and_one_far_off() -> None:
    experts = experts_of()
    found = experts.standardised(np.array([[1e90, -1e90, np.pi, 1e40]]))
    np.testing.assert_allclose(found, [[10.0, -10.0, (np.pi + 1) / 3, 0.0]], atol=1e-9)


def stream_of(rows: int, series: int, seed: int) -> DoubleArray:
    """Make hours with a day in them, an autoregressive level and noise: (rows, series)."""
    draw = np.random.default_rng(seed)
    level, labels = np.zeros(series), np.empty((rows, series))
    for row in range(rows):
        level = 0.9 * level + draw.normal(size=series)
        labels[row] = level + 3 * np.sin(2 * np.pi * row / 24) + 0.3 * draw.normal(size=series)
    return labels


def learning_part() -> tuple[LinearPart, Experts, Scaling]:
    """Fit a linear part to a made stream, and give what it learns on with."""
    labels = stream_of(3000, 1, seed=8)[:, 0]
    hours = np.datetime64("2026-01-01T00") + np.arange(len(labels))
    panel = Panel.from_arrays(None, labels, time=hours)
    part = fit_linear(panel.between(0, 2400), panel.between(2400, 3000))
    part = replace(part, largest_change=3 * float(np.abs(np.diff(labels)).max()))  # as the pipeline does
    _, known = part.split(panel, regressors=True)
    assert known.regressors is not None and part.season is not None
    centre, deviation = known.regressors.mean(axis=0), known.regressors.std(axis=0)
    left = labels - known.predictions
    scaling = replace(SCALING, target_offset=0.0, target_scale=float(left.std()))
    standard = (known.regressors - centre) / deviation
    names = names_of((0.999,), linear=True, season=True)
    experts = Experts(
        readout=Adaptation(forgetting=(0.999,), gain=gain_of(np.zeros((1, 10, 1))), noise=1.0),
        linear=Adaptation(forgetting=(0.999,), gain=gain_of(standard[None]), noise=1.0),
        centre=centre,
        deviation=deviation,
        unit=0.0,
        season=part.season,
        noise=float(np.mean(left**2)),
        prior=np.full(len(names), 1 / len(names)),
    )
    return part, experts, scaling


def test_a_million_steps_of_a_linear_part_that_learns_on() -> None:
    """Constants, spikes, gaps and other scales; then all is as it was, and persistence is not better."""
    part, experts, scaling = learning_part()
    series, rows, calm = 100, 10_000, 7000
    labels, draw = stream_of(rows, series, seed=9), np.random.default_rng(10)
    labels[1000:2000, :25] = 4.0
    labels[2000:4000, 25:50] *= 1e6
    labels[2000:4000, 50:75] *= 1e-6
    labels[4000:5000] = np.where(draw.random((1000, series)) < 0.3, np.nan, labels[4000:5000])
    spikes = draw.random((rows, series)) < 0.01
    spikes[5500:] = False
    wild = part.largest_change  # larger ones are never let in (`varnn.model.outliers`)
    labels[spikes] = draw.choice([wild, -wild, np.nan, 0.0], size=spikes.sum())
    stream, live = LinearStream(part, series), LiveExperts(experts, scaling, series)
    nothing, nowhere = np.empty((series, 0)), np.full(series, np.nan)
    sums, count = np.zeros((3, series)), 0
    for row, label in enumerate(labels):
        predictions = stream.predict(nothing)
        known = LinearRows(predictions, stream.last, nowhere, stream.regressors)
        outputs = np.zeros((1, series))
        combined = live.predict(known, np.zeros((1, series, 1)), outputs, NO_INPUTS)
        if row >= calm:
            learning = live.aggregator._experts[:, experts.names.index("linear part, learning")]
            for index, one in enumerate((combined, stream.last, predictions + learning)):
                sums[index] += (one - label) ** 2
            count += 1
        target = ((label - predictions) / scaling.target_scale).clip(-LIMIT, LIMIT)
        live.learn(target, label - predictions)
        stream.observe(label)
        if row % 1000 == 999:
            assert np.isfinite(combined).all() and np.isfinite(live.state()).all()
    together, persistence, alone = sums / count
    # Where errors were a million times as large, it takes long until small ones are told apart again.
    most = np.where((np.arange(series) >= 25) & (np.arange(series) < 50), 1.1, 1.03)
    assert (together < most * persistence).all()
    assert (alone < 1.03 * persistence).all()
