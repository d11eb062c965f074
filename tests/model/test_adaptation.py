"""The readout that goes on learning: safe at any forgetting factor, the same in batch and stream."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Details, Panel, Stream, VARNNRegressor, load
from varnn._types import DoubleArray
from varnn.model.adaptation import Adaptation, Adapter, corrections, gain_of
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict

TINY: dict[str, Any] = {"hidden_size": 8, "epochs": 2, "ensemble": 2, "window": 4, "device": "cpu"}


def learnt(hidden: Any, errors: Any, forgetting: float) -> Adaptation:
    """How to adapt to hidden layers, whose readout leaves such errors."""
    return Adaptation(forgetting=(forgetting,), gain=gain_of(hidden), noise=float(np.mean(np.square(errors))))


def added_to(adapter: Adapter, hidden: Any, outputs: Any, targets: Any, starts: Any) -> DoubleArray:
    """What one forgetting factor adds to the outputs."""
    return corrections(adapter, lambda rows: hidden[:, rows], outputs, targets, starts)[0]


def readout_problem(rows: int, seed: int, drift: float) -> tuple[DoubleArray, DoubleArray]:
    """Give hidden layers, and targets whose best readout wanders at a given pace from zero."""
    generator = np.random.default_rng(seed)
    hidden = np.maximum(generator.normal(size=(1, rows, 6)), 0)
    truth = np.cumsum(drift * generator.normal(size=(rows, 6)), axis=0)
    return hidden, (hidden[0] * truth).sum(axis=1) + generator.normal(size=rows)


@pytest.mark.parametrize("forgetting", [0.99, 0.999, 0.9997, 0.9999])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_readout_that_was_right_is_made_worse_by_its_misadjustment_alone(
    forgetting: float, seed: int
) -> None:
    hidden, targets = readout_problem(8000, seed, drift=0.0)
    how = learnt(hidden, targets, forgetting)
    added = added_to(Adapter(how, 1), hidden, np.zeros((1, 8000)), targets, np.array([0, 8000]))
    excess = (1 - forgetting) * 7 / 2  # seven features: what theory says of small steps
    assert np.mean((targets - added) ** 2) < (1.005 + 1.5 * excess) * np.mean(targets**2)


@pytest.mark.parametrize("forgetting", [0.99, 0.999])
def test_a_readout_that_wanders_is_followed(forgetting: float) -> None:
    hidden, targets = readout_problem(8000, 3, drift=0.02)
    how = learnt(hidden, np.random.default_rng(0).normal(size=100), forgetting)
    added = added_to(Adapter(how, 1), hidden, np.zeros((1, 8000)), targets, np.array([0, 8000]))
    assert np.mean((targets - added) ** 2) < 0.7 * np.mean(targets**2)


def test_a_million_steps_with_few_directions_excited() -> None:
    """What plain exponential forgetting winds up on: long stretches of one direction, then all of them."""
    generator = np.random.default_rng(5)
    everywhere = np.maximum(generator.normal(size=(1, 4000, 5)), 0)
    how = learnt(everywhere, generator.normal(size=4000), 0.99)
    adapter = Adapter(how, n_series=1000)
    single = np.zeros((1, 1000, 5))
    single[:, :, 0] = 1.0
    largest = 0.0
    for step in range(1000):  # a million rows in all
        hidden = everywhere[:, step : step + 1].repeat(1000, axis=1) if step % 250 > 240 else single
        largest = max(largest, float(np.abs(adapter.correct(hidden, np.zeros((1, 1000)))).max()))
        adapter.learn(generator.standard_t(2, size=1000))
    assert np.isfinite(adapter.state()).all()
    assert largest < 3.0


def test_one_wild_label_is_bounded() -> None:
    hidden, targets = readout_problem(3000, 1, drift=0.0)
    how = learnt(hidden, targets, 0.999)
    wild = targets.copy()
    wild[1000] = 1e6
    one, other = (
        added_to(Adapter(how, 1), hidden, np.zeros((1, 3000)), labels, np.array([0, 3000]))
        for labels in (targets, wild)
    )
    assert np.abs(one - other).max() < 1.0


def test_series_adapt_apart_and_missing_labels_teach_nothing() -> None:
    hidden, targets = readout_problem(600, 2, drift=0.05)
    targets[50:80] = np.nan
    how = learnt(hidden, targets[~np.isnan(targets)], 0.99)
    outputs = np.zeros((1, 600))
    together = added_to(Adapter(how, 3), hidden, outputs, targets, np.array([0, 100, 350, 600]))
    for first, last in ((0, 100), (100, 350), (350, 600)):
        rows = slice(first, last)
        alone = added_to(
            Adapter(how, 1), hidden[:, rows], outputs[:, rows], targets[rows], np.array([0, last - first])
        )
        np.testing.assert_allclose(together[rows], alone, atol=1e-12)
    held = Adapter(how, 1)
    held.correct(hidden[:, :1], outputs[:, :1])
    held.learn(targets[:1])
    before = held.state()
    held.correct(hidden[:, 1:2], outputs[:, 1:2])
    held.learn(np.array([np.nan]))
    np.testing.assert_array_equal(held.state(), before)


def drifting_panel(lengths: list[int], seed: int) -> Panel:
    panel = random_panel(lengths, missing=0.1, seed=seed)
    return replace(panel, target=panel.target * np.linspace(1, 3, len(panel)))


def test_off_is_the_plain_model_to_the_last_bit() -> None:
    panel = drifting_panel([300], seed=1)
    plain, adaptive = (
        VARNNRegressor(adapt=how, linear=False, **TINY).fit(panel) for how in (None, "constant-gain")
    )
    np.testing.assert_array_equal(
        plain.predict(panel), predict(replace(adaptive.fitted_, experts=None), panel)
    )
    assert not np.array_equal(plain.predict(panel), adaptive.predict(panel))


@pytest.mark.parametrize("variant", ["RM", "ARM+AM"])
def test_a_stream_adapts_as_a_batch_does_through_snapshots(variant: Any, tmp_path: Any) -> None:
    panel = drifting_panel([400], seed=4)
    VARNNRegressor(variant, linear=False, details=Details(forgetting=0.99), **TINY).fit(panel).save(
        tmp_path / "m.varnn"
    )
    model = load(tmp_path / "m.varnn")
    live, predictions = model.stream(), []
    for row, (x, y) in enumerate(zip(panel.inputs, panel.target, strict=True)):
        predictions.append(live.predict(x))
        if row % 100 == 50:
            live = Stream.restore(model, live.snapshot())
        live.observe(y)
    np.testing.assert_allclose(predictions, model.predict(panel), rtol=1e-4, atol=1e-4)
    assert np.abs(model.predict(panel) - predict(replace(model.fitted_, experts=None), panel)).max() > 1e-3


def test_long_series_are_adapted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = drifting_panel([260, 40, 30, 90], seed=6)
    fitted: Fitted = VARNNRegressor(details=Details(forgetting=0.99), **TINY).fit(panel).fitted_
    whole = predict(fitted, panel)
    monkeypatch.setattr("varnn.model.prediction._HIDDEN_ROWS_AT_ONCE", 75)
    np.testing.assert_allclose(predict(fitted, panel), whole, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("tails", [3, 30], ids=["some errors beyond their bound", "none"])
def test_rows_together_are_rows_one_by_one(tails: int) -> None:
    generator = np.random.default_rng(tails)
    rows, starts = 400, np.array([0, 7, 7, 199, 400])
    hidden = np.maximum(generator.normal(size=(3, rows, 5)), 0).astype(np.float32)
    outputs = generator.normal(size=(3, rows)).astype(np.float32)
    targets = generator.standard_t(tails, size=rows)
    targets[generator.random(rows) < 0.2] = np.nan
    targets[250:320] = np.nan
    how = learnt(hidden, np.ones(1), 0.98)
    together, single = Adapter(how, 4), [Adapter(how, 1) for _ in range(4)]
    added = added_to(together, hidden, outputs, targets, starts)
    beyond = 0
    for series, adapter in enumerate(single):
        for row in range(starts[series], starts[series + 1]):
            one = slice(row, row + 1)
            expected = adapter.correct(hidden[:, one], outputs[:, one])[0]
            np.testing.assert_allclose(added[one], expected, rtol=1e-9, atol=1e-12)
            beyond += int((np.abs(targets[row] - outputs[:, row] - adapter._corrections[0, :, 0]) > 5).sum())
            adapter.learn(targets[one])
    np.testing.assert_allclose(together.state(), np.concatenate([one.state() for one in single]), rtol=1e-9)
    assert (beyond > 0) == (tails == 3)


def test_several_forgetting_factors_are_several_adapters() -> None:
    hidden, targets = readout_problem(500, 4, drift=0.05)
    factors, starts = (0.9, 0.99, 0.999), np.array([0, 500])
    gain, outputs = gain_of(hidden), np.zeros((1, 500))

    def features(rows: Any) -> Any:
        return hidden[:, rows]

    together = corrections(
        Adapter(Adaptation(forgetting=factors, gain=gain, noise=1.0), 1), features, outputs, targets, starts
    )
    for factor, found in zip(factors, together, strict=True):
        alone = Adaptation(forgetting=(factor,), gain=gain, noise=1.0)
        np.testing.assert_allclose(
            found, corrections(Adapter(alone, 1), features, outputs, targets, starts)[0], rtol=1e-12
        )
