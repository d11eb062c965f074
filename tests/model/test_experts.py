"""Experts: what each says, names and files, and that nothing runs away."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.compiled import WAYS
from tests.streaming.kinds import fitted, later
from varnn import Panel
from varnn._types import DoubleArray
from varnn.data.preparation import Scaling
from varnn.model._linear_fit import fit_linear
from varnn.model.adaptation import Adaptation, gain_of
from varnn.model.experts import NEVER, Experts, names_of
from varnn.model.fitted import Fitted
from varnn.model.linear import LinearPart, last_labels
from varnn.model.pipeline import FeaturePipeline
from varnn.model.prediction import predict_chunks
from varnn.model.rows import run_panel
from varnn.model.runtime import linear_model
from varnn.network.cell import Architecture, Weights
from varnn.step.series import SeriesStep

MEMBERS, HIDDEN, REGRESSORS = 3, 5, 4
SEASON = 2  # column of the regressors
TAPS = ("linear", "output", "experts", "weights", "regressors")


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


KINDS: list[dict[str, Any]] = [
    {},
    {"season": False},
    {"linear": False},
    {"joined": False, "forgetting": (0.99,)},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["seasonal", "default", "one factor", "no linear part", "few joined", "RM"])
def test_what_each_expert_says(kind: str, way: Any) -> None:
    model, rows = fitted(kind), later(kind, 120, trouble=False)
    panel = Panel.from_arrays(rows.x[:, 0], rows.y[:, 0], time=rows.times, input_names=model.input_names)
    experts, pipeline = model.experts, model.pipeline
    assert experts is not None
    with way():
        (chunk,) = predict_chunks(model, panel, wanted=TAPS)
    taps = chunk.taps
    said = dict(zip(experts.names, (taps.linear[:, None] + taps.experts).T, strict=True))
    network = taps.linear + pipeline.scaling.restore(taps.output)
    np.testing.assert_allclose(said["network"], network, rtol=1e-9)
    if pipeline.linear is not None:
        last, _, _ = last_labels(pipeline.plausible(panel), pipeline.linear.mean)
        np.testing.assert_allclose(said["persistence"], last, rtol=1e-9)
        np.testing.assert_array_equal(said["linear part"], taps.linear)
    assert (experts.season is not None) == ("seasonal persistence" in said) == (kind == "seasonal")
    if experts.season is not None:
        a_season_ago = said["persistence"] + taps.regressors[:, experts.season]
        np.testing.assert_allclose(said["seasonal persistence"], a_season_ago, rtol=1e-9)
        np.testing.assert_allclose(said["seasonal persistence"][60:], panel.target[12:72], rtol=1e-9)
    learners = [name for name in said if "learning" in name]
    assert len(learners) == len(experts.readout.forgetting) + (pipeline.linear is not None)
    for learner in learners:
        before = said[learner.partition(",")[0]]
        assert said[learner][0] == pytest.approx(before[0])  # it has learned nothing yet
        assert np.abs(said[learner] - before)[5:].max() > 1e-4
    np.testing.assert_allclose(taps.weights[0], experts.prior)
    np.testing.assert_allclose(taps.weights.sum(axis=1), 1.0)
    combined = taps.linear + (taps.weights * taps.experts).sum(axis=1)
    np.testing.assert_allclose(chunk.prediction, combined, rtol=1e-9)


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
    assert again.readout.forgetting == experts.readout.forgetting
    assert (again.linear is None) == (experts.linear is None)
    assert list(again.arrays()) == list(experts.arrays())
    for name, array in experts.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    for name in experts.arrays():
        if name not in ("linear.gain", "centre", "deviation"):
            with pytest.raises(KeyError, match=name):
                Experts.from_arrays({key: value for key, value in experts.arrays().items() if key != name})


def test_a_regressor_that_never_changed_and_one_far_off() -> None:
    experts = experts_of()
    found = experts.standardized(np.array([[1e90, -1e90, np.pi, 1e40]]))
    np.testing.assert_allclose(found, [[10.0, -10.0, (np.pi + 1) / 3, 0.0]], atol=1e-9)


def stream_of(rows: int, series: int, seed: int) -> DoubleArray:
    """Make hours with a day in them, an autoregressive level and noise: (rows, series)."""
    draw = np.random.default_rng(seed)
    level, labels = np.zeros(series), np.empty((rows, series))
    for row in range(rows):
        level = 0.9 * level + draw.normal(size=series)
        labels[row] = level + 3 * np.sin(2 * np.pi * row / 24) + 0.3 * draw.normal(size=series)
    return labels


def learning_part() -> Fitted:
    """Fit a linear part to a made stream; a model of it that keeps learning, whose network says nothing."""
    labels = stream_of(3000, 1, seed=8)[:, 0]
    hours = np.datetime64("2026-01-01T00") + np.arange(len(labels))
    panel = Panel.from_arrays(None, labels, time=hours)
    part = fit_linear(panel.between(0, 2400), panel.between(2400, 3000))
    part = replace(part, largest_change=3 * float(np.abs(np.diff(labels)).max()))  # as the pipeline does
    assert part.season is not None
    regressors, left = regressors_of(part, panel)
    center, deviation = regressors.mean(axis=0), regressors.std(axis=0)
    standard = (regressors - center) / deviation
    names = names_of((0.999,), linear=True, season=True)
    scaling = Scaling(
        input_offset=np.zeros(2),
        input_scale=np.ones(2),
        initial_inputs=np.zeros(2),
        target_offset=0.0,
        target_scale=float(left.std()),
    )
    cell = Architecture.of("RM", n_inputs=2, hidden_size=1, memory_size=1)
    weights = Weights(**{name: np.zeros((1, *shape), np.float32) for name, shape in cell.shapes.items()})
    experts = Experts(
        readout=Adaptation(forgetting=(0.999,), gain=gain_of(np.zeros((1, 10, 1))), noise=1.0),
        linear=Adaptation(forgetting=(0.999,), gain=gain_of(standard[None]), noise=1.0),
        centre=center,
        deviation=deviation,
        unit=0.0,
        season=part.season,
        noise=float(np.mean(left**2)),
        prior=np.full(len(names), 1 / len(names)),
    )
    return Fitted(
        architecture=cell,
        weights=weights,
        pipeline=FeaturePipeline(scaling=scaling, fill="forward", initial_inputs=np.empty(0), linear=part),
        window=2,
        input_names=(),
        target_name="y",
        context="series",
        experts=experts,
    )


def regressors_of(part: LinearPart, panel: Panel) -> tuple[DoubleArray, DoubleArray]:
    """Regressors of a linear part, and what it leaves of the labels."""
    ((_, taps),) = run_panel(linear_model(part), panel, wanted=("regressors",))
    return taps.regressors, panel.target - taps.prediction[:, 0]


@pytest.mark.parametrize("way", WAYS)
def test_a_million_steps_of_a_linear_part_that_keeps_learning(way: Any) -> None:
    """Constants, spikes, gaps and other scales; then all is as it was, and persistence is not better."""
    model = learning_part()
    part, experts = model.pipeline.linear, model.experts
    assert part is not None and experts is not None
    series, rows, calm = 100, 10_000, 7000
    labels, draw = stream_of(rows, series, seed=9), np.random.default_rng(10)
    labels[1000:2000, :25] = 4.0
    labels[2000:4000, 25:50] *= 1e6
    labels[2000:4000, 50:75] *= 1e-6
    labels[4000:5000] = np.where(draw.random((1000, series)) < 0.3, np.nan, labels[4000:5000])
    spikes = draw.random((rows, series)) < 0.01
    spikes[5500:] = False
    wild = part.largest_change  # larger ones are never accepted (`varnn.step.label_filter`)
    labels[spikes] = draw.choice([wild, -wild, np.nan, 0.0], size=spikes.sum())
    with way():
        step = SeriesStep(model.step, series)
    learning, persistence_place = (
        experts.names.index(name) for name in ("linear part, learning", "persistence")
    )
    sums, count = np.zeros((3, series)), 0
    for row, label in enumerate(labels):
        assert step.predict()
        if row >= calm:
            said = step.field("linear_prediction")[:, None] + step.field("expert_predictions")
            for index, one in enumerate((step.prediction, said[:, persistence_place], said[:, learning])):
                sums[index] += (one - label) ** 2
            count += 1
        step.labels[:] = label
        step.observe()
        if row % 1000 == 999:
            assert np.isfinite(step.prediction).all()
            assert np.isfinite(step.blocks[0].state.changes).all()
            assert np.isfinite(step.blocks[0].state.scores).all()
    together, persistence, alone = sums / count
    # Where errors were a million times as large, it takes long until small ones are told apart again.
    most = np.where((np.arange(series) >= 25) & (np.arange(series) < 50), 1.1, 1.03)
    assert (together < most * persistence).all()
    assert (alone < 1.03 * persistence).all()
