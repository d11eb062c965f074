"""Without labels a model is fed with itself: it stays near what it knows, and says what it does."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import varnn
from varnn import Panel, Stream, VARNNRegressor
from varnn.data.preparation import SCALES
from varnn.errors import ConfigError
from varnn.model.forecast import Forecaster
from varnn.persistence import model_file
from varnn.streaming.closed_loop import WIDENED

X = np.random.default_rng(0).normal(size=(200, 2))
Y = 20 + X[:, 0] + np.random.default_rng(1).normal(size=200).cumsum() / 5


def small(**changes: Any) -> VARNNRegressor:
    return VARNNRegressor(**{"ensemble": 1, "epochs": 2, "hidden_size": 4} | changes)


def running_away(model: VARNNRegressor, drift: float) -> VARNNRegressor:
    """Let each label be a little further away than the last."""
    linear = model.fitted_.pipeline.linear
    assert linear is not None
    pipeline = replace(model.fitted_.pipeline, linear=replace(linear, constant=linear.constant + drift))
    model.fitted_ = replace(model.fitted_, pipeline=pipeline)
    return model


@pytest.mark.parametrize("drift", [-0.8, 0.5, 1e9])
def test_a_loop_that_runs_away_is_kept_near_the_labels_known(drift: float) -> None:
    model = running_away(small().fit(X, Y), drift)
    low, high = Y.min(), Y.max()
    far = np.tile(X, (5, 1))
    ahead = model.forecast(X, Y, horizon=1000, inputs=far, method="iterate")
    for found in (model.predict(far), ahead.prediction[0]):
        assert found.min() >= low - WIDENED * (high - low) - 1e-9
        assert found.max() <= high + WIDENED * (high - low) + 1e-9
        assert found.std() > 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    walk=st.floats(0, 1),
    tail=st.sampled_from([0.6, 1.5, 30.0]),
    scale=st.sampled_from([1e-9, 1.0, 1e12]),
    beyond=st.sampled_from([0.0, 1.0, 1e6]),
    linear=st.booleans(),
)
def test_whatever_the_rows_the_loop_is_bounded(
    seed: int, walk: float, tail: float, scale: float, beyond: float, linear: bool
) -> None:
    """Walks and noise with wild labels, of any size, and inputs like none seen in training."""
    random = np.random.default_rng(seed)
    noise = random.standard_t(tail, size=80).clip(-1e4, 1e4)
    labels = scale * (walk * np.cumsum(noise) + (1 - walk) * noise)
    inputs = random.normal(size=(80, 2))
    model = small(epochs=1, linear=linear, intervals=False).fit(inputs, labels)
    coming = random.normal(size=(300, 2)) * (1 + beyond)
    coming[random.random(300) < 0.05] = np.nan
    low, high = labels.min(), labels.max()
    room = WIDENED * (high - low)
    for found in (
        model.predict(coming),
        model.forecast(horizon=300, inputs=np.nan_to_num(coming), method="iterate").prediction[0],
    ):
        assert np.isfinite(found).all()
        assert found.min() >= low - room * (1 + 1e-6) and found.max() <= high + room * (1 + 1e-6)


def test_a_slow_drift_comes_to_rest_at_the_edge() -> None:
    model = running_away(small(linear=True, adapt=None).fit(X, Y), -0.5)
    model.fitted_ = replace(model.fitted_, shrinkage=0.0)
    found = model.predict(np.tile(X.mean(axis=0), (1000, 1)))
    assert Y.min() - 3 < found[-1] < Y.min() and abs(found[-1] - found[-2]) < 1e-6


def test_rows_gone_on_from_widen_the_range() -> None:
    """Labels have moved on since training: a forecast goes on from where they are."""
    model = small().fit(X, Y)
    later = model.forecast(X, Y + 500, horizon=3, method="iterate").prediction[0]
    assert (later > 450).all()


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("scale", SCALES)
def test_files_know_the_range_of_labels_and_models_without_it_guess_it(
    tmp_path: Path, linear: bool, scale: Any
) -> None:
    model = small(linear=linear, scale=scale).fit(X, Y)
    assert model.fitted_.labels_known == (Y.min(), Y.max())
    path = tmp_path / "m.varnn"
    model.save(path)
    assert varnn.load(path).fitted_.labels_known == (Y.min(), Y.max())
    tensors, header = model_file.from_bytes(path.read_bytes(), "it")
    header["label_range"] = None
    path.write_bytes(model_file.to_bytes(tensors, header))
    low, high = varnn.load(path).fitted_.labels_known
    span = float(np.ptp(Y))
    assert Y.min() - span < low <= Y[-40:].min() and Y[-40:].max() <= high < Y.max() + span
    assert len(varnn.load(path).predict(X)) == 200


def test_predicting_without_labels_says_so_once_per_model(caplog: pytest.LogCaptureFixture) -> None:
    model = small().fit(X, Y)
    caplog.clear()
    model.predict(X, Y)
    assert "closed loop" not in caplog.text
    model.predict(X)
    model.predict(X)
    assert caplog.text.count("in closed loop") == 1
    assert caplog.records[-1].levelno == logging.WARNING


def test_a_panel_without_any_label_goes_on_after_training_too(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    names = ["heat", "wind"]
    model = small().fit(Panel.from_arrays(X[:150], Y[:150], input_names=names))
    later = pd.DataFrame(X[150:], columns=names)
    expected = model.predict(later)
    caplog.clear()
    for _ in range(2):
        unlabelled = Panel.from_arrays(X[150:, ::-1], None, input_names=names[::-1])
        np.testing.assert_array_equal(model.predict(unlabelled), expected)
    np.testing.assert_array_equal(model.predict(later, np.full(50, np.nan)), expected)
    np.testing.assert_array_equal(model.predict_frame(later)["prediction"], expected)
    assert "in closed loop" not in caplog.text  # it was said before
    caplog.clear()
    model.save(tmp_path / "m.varnn")
    varnn.load(tmp_path / "m.varnn").predict(unlabelled)
    assert caplog.text.count("in closed loop") == 1
    some = Y[150:].copy()
    some[1:] = np.nan
    found = model.predict(Panel.from_arrays(X[150:], some, input_names=names))
    one_step = model.predict(Panel.from_arrays(X[150:], Y[150:], input_names=names))
    np.testing.assert_array_equal(found[:2], one_step[:2])


def test_linked_series_do_not_go_on_one_by_one() -> None:
    model = small(peers=True).fit(None, Y, series=np.arange(200) % 2)
    unlabelled = Panel.from_arrays(None, np.full(8, np.nan), series=np.arange(8) % 2)
    with pytest.raises(ConfigError, match=r"peers=True predicts all series together.*horizon="):
        model.predict(unlabelled)
    with pytest.raises(ConfigError, match=r"peers=True predicts all series together.*horizon="):
        model.forecast(horizon=2, method="iterate")


@pytest.fixture(scope="module")
def weekly() -> tuple[Panel, VARNNRegressor]:
    """Hourly rows with a pattern of the week, and a model that looks back on it; some labels are missing."""
    generator = np.random.default_rng(3)
    hours = np.datetime64("2026-01-05T00", "h") + np.arange(1000)
    target = np.resize(generator.normal(size=168), 1000) + 0.1 * generator.normal(size=1000)
    target[generator.random(1000) < 0.1] = np.nan
    panel = Panel.from_arrays(generator.normal(size=(1000, 1)), target, time=hours)
    model = small(horizon=3, random_state=0).fit(panel)
    linear = model.fitted_.pipeline.linear
    assert linear is not None and 168 in linear.form.periods
    return panel, model


@pytest.mark.parametrize("gap", [0, 1, 2, 250])
@pytest.mark.parametrize("last", [800, 801, 1000])
def test_iterating_from_the_rows_it_reaches_back_on_is_streaming_through_all(
    weekly: tuple[Panel, VARNNRegressor], gap: int, last: int
) -> None:
    """With seasons, too; and if the label is missing where these rows begin, or in all of them."""
    panel, model = weekly
    target, begin = panel.target[:last].copy(), last - model.fitted_.reach
    target[begin - gap // 2 : begin + gap] = np.nan
    rows = replace(panel.between(0, last), target=target)
    steps, hours = 30, np.asarray(panel.time)[:last]
    live = Stream(replace(model.fitted_, experts=None))
    for x, y, hour in zip(rows.inputs, target, hours, strict=True):
        live.predict(x, time=hour)
        live.observe(y)
    found = []
    for step in range(1, steps + 1):
        found.append(live.predict(rows.inputs[-1], time=hours[-1] + step))
        live.observe(found[-1])
    ahead = model.forecast(rows, horizon=steps, method="iterate").prediction[0]
    low, high = model.fitted_.labels_known
    assert low < min(found) and max(found) < high  # so that the loop is not held back
    # While labels are missing, memory is held: it then takes longer to forget where it began.
    np.testing.assert_allclose(ahead, found, atol=1e-3 if gap > 200 else 1e-5)


def test_the_rows_kept_are_enough_for_both_models(
    weekly: tuple[Panel, VARNNRegressor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forecaster that looks back on few rows leaves the one-step model those that it needs."""
    panel, model = weekly
    expected = model.forecast(panel, horizon=20, method="iterate").prediction
    np.testing.assert_allclose(model.forecast(horizon=20, method="iterate").prediction, expected, atol=1e-5)
    monkeypatch.setattr(Forecaster, "rows_kept", property(lambda self: 5))
    kept = small(horizon=3, random_state=0).fit(panel).fitted_
    assert min(len(one.target) for one in kept.last_rows.values()) >= kept.reach > 168
