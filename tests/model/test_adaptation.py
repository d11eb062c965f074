"""The readout that goes on learning: safe at any forgetting factor, the same in batch and stream."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Details, Panel, Stream, VARNNRegressor, load
from varnn._types import DoubleArray
from varnn.model.adaptation import Adaptation, Adapter, corrections
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict

TINY: dict[str, Any] = {"hidden_size": 8, "epochs": 2, "ensemble": 2, "window": 4, "device": "cpu"}


def readout_problem(rows: int, seed: int, drift: float) -> tuple[DoubleArray, DoubleArray]:
    """Give hidden layers, and targets whose best readout wanders at a given pace from zero."""
    generator = np.random.default_rng(seed)
    hidden = np.maximum(generator.normal(size=(1, rows, 6)), 0)
    truth = np.cumsum(drift * generator.normal(size=(rows, 6)), axis=0)
    return hidden, (hidden[0] * truth).sum(axis=1) + generator.normal(size=rows)


@pytest.mark.parametrize("forgetting", [0.9, 0.99, 0.999, 0.9997, 0.9999])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_readout_that_was_right_is_not_made_worse(forgetting: float, seed: int) -> None:
    hidden, targets = readout_problem(8000, seed, drift=0.0)
    how = Adaptation.fit(hidden, targets, forgetting)
    added = corrections(Adapter(how, 1), hidden, np.zeros((1, 8000)), targets, np.array([0, 8000]))
    assert np.mean((targets - added) ** 2) < 1.02 * np.mean(targets**2)


@pytest.mark.parametrize("forgetting", [0.99, 0.999])
def test_a_readout_that_wanders_is_followed(forgetting: float) -> None:
    hidden, targets = readout_problem(8000, 3, drift=0.02)
    how = Adaptation.fit(hidden, np.random.default_rng(0).normal(size=100), forgetting)
    added = corrections(Adapter(how, 1), hidden, np.zeros((1, 8000)), targets, np.array([0, 8000]))
    assert np.mean((targets - added) ** 2) < 0.7 * np.mean(targets**2)


def test_a_million_steps_with_few_directions_excited() -> None:
    """What plain exponential forgetting winds up on: long stretches of one direction, then all of them."""
    generator = np.random.default_rng(5)
    everywhere = np.maximum(generator.normal(size=(1, 4000, 5)), 0)
    how = Adaptation.fit(everywhere, generator.normal(size=4000), 0.99)
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
    how = Adaptation.fit(hidden, targets, 0.999)
    wild = targets.copy()
    wild[1000] = 1e6
    one, other = (
        corrections(Adapter(how, 1), hidden, np.zeros((1, 3000)), labels, np.array([0, 3000]))
        for labels in (targets, wild)
    )
    assert np.abs(one - other).max() < 1.0


def test_series_adapt_apart_and_missing_labels_teach_nothing() -> None:
    hidden, targets = readout_problem(600, 2, drift=0.05)
    targets[50:80] = np.nan
    how = Adaptation.fit(hidden, targets[~np.isnan(targets)], 0.99)
    outputs = np.zeros((1, 600))
    together = corrections(Adapter(how, 3), hidden, outputs, targets, np.array([0, 100, 350, 600]))
    for first, last in ((0, 100), (100, 350), (350, 600)):
        rows = slice(first, last)
        alone = corrections(
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
        plain.predict(panel), predict(replace(adaptive.fitted_, adaptation=None), panel)
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
    assert np.abs(model.predict(panel) - predict(replace(model.fitted_, adaptation=None), panel)).max() > 1e-3


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
    how = Adaptation.fit(hidden, np.ones(1), 0.98)
    together, single = Adapter(how, 4), [Adapter(how, 1) for _ in range(4)]
    added = corrections(together, hidden, outputs, targets, starts)
    beyond = 0
    for series, adapter in enumerate(single):
        for row in range(starts[series], starts[series + 1]):
            one = slice(row, row + 1)
            expected = adapter.correct(hidden[:, one], outputs[:, one])
            np.testing.assert_allclose(added[one], expected, rtol=1e-9, atol=1e-12)
            beyond += int((np.abs(targets[row] - outputs[:, row] - adapter._corrections[:, 0]) > 5).sum())
            adapter.learn(targets[one])
    np.testing.assert_allclose(together.state(), np.concatenate([one.state() for one in single]), rtol=1e-9)
    assert (beyond > 0) == (tails == 3)


def test_what_was_learnt_elsewhere_is_soon_no_longer_used() -> None:
    """A readout that followed another law must not be trusted long once the trained one is back."""
    generator = np.random.default_rng(3)
    hidden = generator.normal(size=(1, 3000, 3))
    noise = 0.3 * generator.normal(size=3000)
    how = Adaptation.fit(hidden, noise, forgetting=0.999)
    law = np.where((np.arange(3000) >= 500) & (np.arange(3000) < 2500), hidden[0, :, 0], 0.0)
    adapter, added = Adapter(how, 1), np.empty(3000)
    for row in range(3000):
        added[row] = adapter.correct(hidden[:, row : row + 1], np.zeros((1, 1))).item()
        adapter.learn(law[row : row + 1] + noise[row])
    assert np.mean(np.square(law - added)[2000:2500]) < 0.1  # it had followed; not adapting it is 1
    assert np.mean(np.square(added)[2560:2700]) < 0.05  # with the slow sums alone it is 0.41


def test_a_state_from_before_there_were_fast_sums_is_taken_over() -> None:
    generator = np.random.default_rng(0)
    adapter = Adapter(Adaptation.fit(generator.normal(size=(1, 50, 3)), np.ones(50), 0.99), 2)
    adapter.correct(generator.normal(size=(1, 2, 3)), np.zeros((1, 2)))
    adapter.learn(np.array([1.0, 2.0]))
    old, other = adapter.state()[:, :-3], Adapter(adapter.adaptation, 2)
    other.restore(old)
    assert np.array_equal(other.change, adapter.change) and np.array_equal(other.sums[:2], adapter.sums[:2])
    assert not other.sums[2:].any()
