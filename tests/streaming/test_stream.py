"""A stream gives what batch prediction gives, step by step, whatever happens in between."""

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import CASES, Case, random_panel, random_weights
from varnn import Panel, Stream, VARNNRegressor
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.model.fitted import Fitted
from varnn.model.pipeline import FeaturePipeline
from varnn.model.prediction import predict
from varnn.network.cell import Weights
from varnn.step import series


def fitted(case: Case, window: int, members: int = 1, n_inputs: int = 3, seed: int = 0) -> Fitted:
    """Give a model with drawn weights: equality must not depend on what was learnt."""
    architecture = case.architecture(n_inputs=n_inputs)
    drawn = [random_weights(architecture, seed + one, np.float32).as_dict() for one in range(members)]
    panel = random_panel([50], n_inputs, seed=seed)
    return Fitted(
        architecture=architecture,
        weights=Weights(**{name: np.stack([one[name] for one in drawn]) for name in drawn[0]}),
        pipeline=FeaturePipeline.fit(panel, None, scale="minmax", fill="forward"),
        window=window,
        input_names=panel.input_names,
        target_name="y",
    )


def stepped(live: Stream, X: Any, y: Any) -> Any:
    predictions = []
    for x, label in zip(X, y, strict=True):
        predictions.append(live.predict(x))
        live.observe(label)
    return np.array(predictions)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=20, deadline=None)
@given(
    window=st.integers(1, 7),
    rows=st.integers(1, 25),
    n_inputs=st.integers(0, 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 100),
)
def test_a_stream_equals_batch_prediction(
    case: Case, members: int, window: int, rows: int, n_inputs: int, missing: float, seed: int
) -> None:
    model = fitted(case, window, members, n_inputs, seed)
    panel = random_panel([rows], n_inputs, missing=missing, seed=seed)
    ours = stepped(Stream(model), panel.inputs, panel.target)
    np.testing.assert_array_equal(ours, predict(model, panel))


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fleet_equals_its_series_one_by_one(case: Case, members: int) -> None:
    model = fitted(case, 5, members)
    panel = random_panel([20] * 4, missing=0.2, seed=3)
    X, y = panel.inputs.reshape(4, 20, 3), panel.target.reshape(4, 20)
    together = stepped(Stream(model, n_series=4), X.swapaxes(0, 1), y.T)
    np.testing.assert_allclose(together.T.ravel(), predict(model, panel), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fleet_in_blocks_equals_one_in_one(
    case: Case, members: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted(case, window, members)
    panel = random_panel([15] * 7, missing=0.3, seed=4)
    X, y = panel.inputs.reshape(7, 15, 3).swapaxes(0, 1), panel.target.reshape(7, 15).T.copy()
    y[5] = np.nan  # a step at which no series has a label
    whole = Stream(model, n_series=7)
    monkeypatch.setattr(series, "BLOCK", 3)  # two full blocks, and one of a single series
    cut = Stream(model, n_series=7)
    np.testing.assert_allclose(stepped(cut, X[:9], y[:9]), stepped(whole, X[:9], y[:9]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(stepped(cut, X[9:], y[9:]), stepped(whole, X[9:], y[9:]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_series", [None, 2])
@pytest.mark.parametrize("how", ["minmax", "standard"])
def test_units_far_from_zero_lose_nothing(how: Any, n_series: int | None) -> None:
    """Inputs and labels of 1e7 +- 1 are told apart, and one far outlier is bounded as in a batch."""
    generator = np.random.default_rng(0)
    X, y = 1e7 + generator.normal(size=(40, 3)), -1e7 + generator.normal(size=40)
    X[20, 1], y[25] = 1e90, -1e90
    panel, train = Panel.from_arrays(X, y), Panel.from_arrays(X[:20], y[:20])
    pipeline = FeaturePipeline.fit(train, None, scale=how, fill="forward")
    model = dataclasses.replace(fitted(Case("ARM+AM"), 5), pipeline=pipeline)
    if n_series is None:
        ours = stepped(Stream(model), X, y)
    else:
        fleet = Stream(model, n_series)
        ours = stepped(
            fleet, np.repeat(X[:, None], n_series, axis=1), np.repeat(y[:, None], n_series, axis=1)
        )
        ours = ours[:, -1]
    np.testing.assert_allclose(ours + 1e7, predict(model, panel) + 1e7, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_series", [None, 3])
def test_a_copy_goes_its_own_way(n_series: int | None) -> None:
    generator = np.random.default_rng(0)
    shape = () if n_series is None else (n_series,)
    X, y = generator.normal(size=(12, *shape, 3)), generator.normal(size=(12, *shape))
    live = Stream(fitted(Case("ARM+AM"), 4), n_series)
    stepped(live, X[:6], y[:6])
    copies = [copy.deepcopy(live), copy.copy(live), pickle.loads(pickle.dumps(live))]
    stepped(copy.copy(live), -X, -y)
    expected = stepped(live, X[6:], y[6:])
    for one in copies:
        np.testing.assert_array_equal(stepped(one, X[6:], y[6:]), expected)


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("n_series", [None, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_snapshot_goes_on_where_it_was_taken(case: Case, n_series: int | None, pending: bool) -> None:
    model = fitted(case, 4, members=2)
    generator = np.random.default_rng(0)
    shape = () if n_series is None else (n_series,)
    X, y = generator.normal(size=(12, *shape, 3)), generator.normal(size=(12, *shape))
    live = Stream(model, n_series)
    stepped(live, X[:7], y[:7])
    if pending:
        live.predict(X[7])
    other = Stream.restore(model, live.snapshot())
    if pending:
        np.testing.assert_array_equal(other.observe(y[7]), live.observe(y[7]))
    np.testing.assert_array_equal(stepped(other, X[8:], y[8:]), stepped(live, X[8:], y[8:]))


def test_a_snapshot_belongs_to_its_model() -> None:
    blob = Stream(fitted(CASES[0], 4)).snapshot()
    with pytest.raises(ModelFileError, match="belongs to another"):
        Stream.restore(fitted(CASES[0], 4, seed=9), blob)
    with pytest.raises(ModelFileError, match="not a file of this library"):
        Stream.restore(fitted(CASES[0], 4), b"something else")
    with pytest.raises(ModelFileError):
        Stream.restore(fitted(CASES[0], 4), blob[:-3])


def test_predicting_is_pure_and_observing_gives_the_innovation() -> None:
    live = Stream(fitted(CASES[2], 4))
    first = live.predict([0.1, 0.2, 0.3])
    live.predict([9.0, 9.0, 9.0])
    assert live.predict([0.1, 0.2, 0.3]) == first
    assert live.predict({"x2": 0.3, "x0": 0.1, "x1": 0.2}) == first
    assert live.observe(5.0) == 5.0 - first
    live.predict([0.0, 0.0, 0.0])
    assert np.isnan(live.observe(None))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0.1, 0.2], "3 numbers .x0, x1, x2.; got 2"),
        ([0.1, np.inf, 0.2], r"must be finite and at most 1e\+100 in size; position \[1\] is not"),
        ([np.nan, np.inf, 0.2], "must be finite"),
        (["a", 0.1, 0.2], "numbers only"),
        ({"x0": 0.1, "x2": 0.2}, r"lacks \['x1'\]"),
    ],
)
def test_a_bad_x_is_refused_and_changes_nothing(x: Any, message: str) -> None:
    live, other = Stream(fitted(CASES[6], 4)), Stream(fitted(CASES[6], 4))
    for one in (live, other):
        stepped(one, np.ones((3, 3)), [1.0, 2.0, 3.0])
        one.predict([0.5, 0.5, 0.5])
    before = live.snapshot()
    with pytest.raises(DataError, match=message):
        live.predict(x)
    assert live.snapshot() == before
    assert live.observe(1.0) == other.observe(1.0)


def test_a_bad_label_is_refused_and_changes_nothing() -> None:
    live = Stream(fitted(CASES[6], 4))
    with pytest.raises(DataError, match="Call predict"):
        live.observe(1.0)
    live.predict([0.5, 0.5, 0.5])
    before = live.snapshot()
    for label in (np.inf, "high", [1.0, 2.0]):
        with pytest.raises(DataError, match="y must be"):
            live.observe(label)
    assert live.snapshot() == before
    fleet = Stream(fitted(CASES[6], 4), n_series=2)
    fleet.predict(np.zeros((2, 3)))
    for labels in ([1.0], [np.inf, 0.0], ["a", 0.0]):
        with pytest.raises(DataError, match="y must"):
            fleet.observe(labels)
    with pytest.raises(ConfigError, match="n_series must be a whole number, at least 1"):
        Stream(fitted(CASES[0], 4), n_series=0)


def test_what_a_fleet_returns_is_the_callers_own() -> None:
    fleet = Stream(fitted(CASES[0], 4), n_series=2)
    predictions = fleet.predict(np.zeros((2, 3)))
    expected = np.ones(2) - predictions
    predictions[:] = 99.0
    np.testing.assert_array_equal(fleet.observe(np.ones(2)), expected)


def test_a_long_stream_stays_finite_and_bounded() -> None:
    model = fitted(Case("ARM+AM"), 12)
    live = Stream(model)
    size = len(live.snapshot())
    generator = np.random.default_rng(0)
    predictions = stepped(live, generator.normal(size=(5000, 3)) * 100, generator.normal(size=5000) * 100)
    assert np.isfinite(predictions).all()
    assert abs(len(live.snapshot()) - size) < 64
    panel = Panel.from_arrays(generator.normal(size=(30, 3)), generator.normal(size=30))
    stepped(live, panel.inputs, panel.target)
    again = stepped(Stream(model), panel.inputs, panel.target)
    assert live.predict([0.0, 0.0, 0.0]) == pytest.approx(
        predict(
            model,
            Panel.from_arrays(np.vstack([panel.inputs, np.zeros((1, 3))]), np.append(panel.target, 0.0)),
        )[-1],
        rel=1e-4,
    )
    assert len(again) == 30


def test_a_row_of_a_frame_is_read_by_name_and_a_mask_is_a_gap() -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0])
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(Panel.from_frame(frame, target="y"))
    expected = model.stream().predict({"a": 0.0, "b": 5.0})
    assert model.stream().predict(pd.Series({"b": 5.0, "a": 0.0})) == expected
    masked = np.ma.array([1.0, 5.0], mask=[False, True])
    assert model.stream().predict(masked) == model.stream().predict([1.0, np.nan])


def test_a_snapshot_of_labels_of_any_size_goes_on() -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(80, 1)), 1e18 * generator.normal(size=80).cumsum()
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, random_state=0).fit(X, y)
    live = model.stream()
    stepped(live, X[:6], [0.0, 0.0, 1e21, 1e21, 1e21, 1e21])  # a shift, which raises the bound of changes
    other = Stream.restore(model, live.snapshot())
    np.testing.assert_array_equal(stepped(other, X[:9], y[:9]), stepped(live, X[:9], y[:9]))


def test_restore_rejects_what_is_not_bytes() -> None:
    with pytest.raises(ModelFileError, match="must be bytes"):
        Stream.restore(None, "abc")  # type: ignore[arg-type]  # on purpose
