"""Targets that cannot be negative: nothing predicted of them is below zero, until a label is."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from varnn import Details, Panel, Stream, VARNNRegressor, load
from varnn._types import DoubleArray
from varnn.cli.app import app
from varnn.model import prediction
from varnn.model.floor import is_never_negative
from varnn.model.intervals import Interval
from varnn.persistence import model_file

SMALL: Any = {"hidden_size": 6, "epochs": 2, "ensemble": 1, "window": 5, "device": "cpu", "random_state": 0}
TRAINING, ROWS = 400, 600
LIFTED_AT = TRAINING + 60


def made(seed: int = 0) -> tuple[DoubleArray, DoubleArray]:
    """Make a load that is off much of the time: a linear model of it says less than nothing."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(ROWS, 2))
    wanted = 2 * inputs[:, 0] + 0.5 * generator.normal(size=ROWS) - 1
    return inputs, np.maximum(wanted, 0.0)


def later(names: str = "a", *, below: str = "") -> Panel:
    """Give the rows after training, of series by name; some of them have a label below zero."""
    parts = [made(ord(name)) for name in names]
    labels = [own[TRAINING:].copy() for _, own in parts]
    for name, own in zip(names, labels, strict=True):
        if name in below:
            own[LIFTED_AT - TRAINING] = -0.5
    return Panel.from_arrays(
        np.concatenate([inputs[TRAINING:] for inputs, _ in parts]),
        np.concatenate(labels),
        series=np.repeat(list(names), ROWS - TRAINING),
    )


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    inputs, labels = made(ord("a"))
    return VARNNRegressor(horizon=4, **SMALL).fit(inputs[:TRAINING], labels[:TRAINING])


@pytest.mark.parametrize(
    ("labels", "never"),
    [
        (np.random.default_rng(0).poisson(40, 500) + 10.0, True),  # counts, none of them small
        (np.random.default_rng(0).poisson(2, 500).astype(float), True),
        (np.random.default_rng(0).exponential(3, 500), True),  # loads: many small, a few large
        (np.random.default_rng(0).normal(15, 3, 500), False),  # temperatures that never froze
        (np.random.default_rng(0).normal(0, 3, 500), False),
        (np.append(np.random.default_rng(0).poisson(2, 500), -1.0), False),
        (np.array([0.5, np.nan, 0.0]), True),
        (np.array([np.nan, np.nan]), False),
    ],
)
def test_the_labels_tell_whether_a_target_can_be_negative(labels: DoubleArray, never: bool) -> None:
    assert is_never_negative(labels) is never


def test_the_setting_overrules_the_labels(model: VARNNRegressor) -> None:
    inputs, labels = made(ord("a"))
    assert model.fitted_.positive and model.forecaster_ and model.forecaster_.network.positive
    wanted: Any
    for wanted in (True, False, np.True_):
        told = VARNNRegressor(details=Details(positive=wanted), horizon=2, **SMALL)
        told.fit(inputs[:100], labels[:100] - (3 if wanted else 0))
        assert told.fitted_.positive is bool(wanted)
        assert told.forecaster_ is not None and told.forecaster_.network.positive is bool(wanted)
    assert VARNNRegressor.paper("RM", epochs=1, hidden_size=4).fit(inputs, labels).fitted_.positive is False


def test_no_prediction_and_no_bound_is_below_zero(model: VARNNRegressor) -> None:
    rows = later()
    found = model.predict(rows, interval=[0.5, 0.95])
    free = prediction.predict_intervals(replace(model.fitted_, positive=False), rows, [0.5, 0.95])
    assert free.prediction.min() < -0.1  # it would be
    assert found.prediction.min() == found.lower.min() == 0 <= found.upper.min()
    assert (found.prediction == np.maximum(free.prediction, 0)).all()


@pytest.mark.parametrize("below", ["", "a", "ab"])
@pytest.mark.parametrize("chunk", [1 << 13, 17, LIFTED_AT - TRAINING + 1])
def test_batch_stream_and_fleet_have_one_floor(
    model: VARNNRegressor, below: str, chunk: int, tmp_path: Path
) -> None:
    rows = later("abc", below=below)
    model.save(tmp_path / "kept.varnn")
    whole = model.predict(rows, interval=0.9)
    kept = load(tmp_path / "kept.varnn").fitted_
    pieces = [found for _, found in prediction.predict_rows(kept, rows, np.array([0.9]), max_rows=chunk)]
    batch = Interval(*(np.concatenate(parts).ravel() for parts in zip(*pieces, strict=True)))
    for one, other in zip(whole, batch, strict=True):
        np.testing.assert_array_equal(one, other)
    inputs, labels = rows.inputs.reshape(3, -1, 2), rows.target.reshape(3, -1)
    fleet, alone = model.stream(3), [model.stream() for _ in range(3)]
    found = []
    for row in range(labels.shape[1]):
        together = fleet.predict(inputs[:, row], interval=0.9)
        for series, live in enumerate(alone):
            each = live.predict(inputs[series, row], interval=0.9)
            np.testing.assert_allclose([one[series] for one in together], each, rtol=1e-5, atol=1e-5)
            live.observe(labels[series, row])
        fleet.observe(labels[:, row])
        found.append(together)
        if row % 23 == 0:
            fleet = Stream.restore(model, fleet.snapshot())
            alone = [Stream.restore(model, live.snapshot()) for live in alone]
    for one, other in zip(batch, zip(*found, strict=True), strict=True):
        np.testing.assert_allclose(np.array(other).T.ravel(), one, rtol=1e-5, atol=1e-5)
    for series, name in enumerate("abc"):
        own = batch.prediction.reshape(3, -1)[series]
        lower = batch.lower.reshape(3, -1)[series]
        up_to = LIFTED_AT - TRAINING + 1
        assert own[:up_to].min() == 0 == lower[:up_to].min()
        assert (own[up_to:].min() < 0) == (lower[up_to:].min() < 0) == (name in below)


def test_no_forecast_is_below_zero(model: VARNNRegressor) -> None:
    ahead = model.forecaster_
    assert ahead is not None
    rows, levels = later("ab"), np.array([0.5, 0.95])
    free = replace(ahead, network=replace(ahead.network, positive=False))
    lower = [one.historical_intervals(rows, levels)[1] for one in (ahead, free)]
    assert lower[0].min() == 0 and lower[1].min() < -0.1
    assert ahead.historical_forecasts(rows).min() >= 0
    found = model.forecast(rows, interval=0.95)
    assert found.lower is not None and found.lower.min() >= 0 and found.prediction.min() >= 0


@pytest.fixture(scope="module")
def low(model: VARNNRegressor) -> VARNNRegressor:
    """Give a model that predicts and forecasts far below zero now and then, wherever it may."""
    low = VARNNRegressor(**model.get_params(deep=False))
    low.__dict__ |= model.__dict__
    ahead = model.forecaster_
    assert ahead is not None
    low.fitted_ = replace(model.fitted_, experts=None, shrinkage=-50.0)
    low.forecaster_ = replace(ahead, shrinkage=np.full(4, -50.0))
    return low


@pytest.mark.parametrize("method", ["direct", "iterate"])
def test_a_label_of_long_ago_lifts_the_floor_of_forecasts(low: VARNNRegressor, method: Any) -> None:
    """Also if it is no longer among the rows that a forecast is made from."""
    signs = []
    for last in range(ROWS - 4, ROWS):
        (first, labels), (second, others) = made(ord("a")), made(ord("b"))
        labels[2] = -0.01
        rows = Panel.from_arrays(
            np.concatenate([first[:last], second[:last]]),
            np.concatenate([labels[:last], others[:last]]),
            series=np.repeat(["a", "b"], last),
        )
        found = low.forecast(rows, method=method, horizon=4).prediction
        signs.append(np.sign(found))
    lifted, kept = np.array(signs).transpose(1, 0, 2)
    assert (lifted < 0).any() and (kept >= 0).all() and (kept == 0).any()


@pytest.mark.parametrize("below", ["", "a"])
def test_a_stream_forecasts_what_the_model_does(low: VARNNRegressor, below: str) -> None:
    rows = later("ab", below=below)
    fleet = low.stream(2)
    inputs, labels = rows.inputs.reshape(2, -1, 2), rows.target.reshape(2, -1)
    lowest = []
    for row in range(130):
        fleet.predict(inputs[:, row])
        fleet.observe(labels[:, row])
        if row > 100:
            fleet = Stream.restore(low, fleet.snapshot())
            ends = np.array([row + 1, len(labels[0]) + row + 1])
            batch = low.forecast(rows.ranges(ends - row - 1, ends), interval=0.9)
            found = fleet.forecast(interval=0.9)
            for name in ("prediction", "lower", "upper"):
                np.testing.assert_allclose(getattr(found, name), getattr(batch, name), rtol=1e-4, atol=1e-4)
            lowest.append(np.asarray(batch.lower).min(axis=1))
    lowest = np.min(lowest, axis=0)
    assert (lowest < 0).tolist() == [below == "a", False]


def test_the_card_and_the_command_say_so(model: VARNNRegressor, tmp_path: Path) -> None:
    inputs, labels = made()
    model.save(tmp_path / "load.varnn")
    VARNNRegressor(**SMALL).fit(inputs, labels - 5).save(tmp_path / "other.varnn")
    for name, said in (("load", True), ("other", False)):
        path = tmp_path / f"{name}.varnn"
        assert ("never below zero" in str(model_file.read_card(path))) == said
        shown = CliRunner().invoke(app, ["inspect", str(path), "--json"])
        assert json.loads(shown.output)["never below zero"] == ("yes" if said else "no")


def test_a_label_that_is_not_plausible_lifts_nothing(model: VARNNRegressor) -> None:
    """A broken sensor's -9999 is no proof that the target can be negative."""
    panel = later()
    panel.target[60] = -9999.0
    batch = model.predict(panel, interval=0.9, resume=False)
    assert min(batch.prediction.min(), batch.lower.min()) >= 0
    live = model.stream()
    streamed = []
    for x, label in zip(panel.inputs, panel.target, strict=True):
        streamed.append(live.predict(x))
        live.observe(label)
    np.testing.assert_allclose(streamed, batch.prediction, atol=1e-4)
    assert model.forecast(panel).prediction.min() >= 0
