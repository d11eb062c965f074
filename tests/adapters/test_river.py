"""The adapter for river, by river's own checks, evaluations and pipelines."""

import math
import pickle
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from varnn import Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError

pytest.importorskip("river", reason="the adapter for river needs varnn[river]")

from river import checks, compose, evaluate, metrics, preprocessing

from varnn.adapters.river import OnlineVARNN

Rows = list[tuple[dict[str, Any], float]]


def small(**settings: Any) -> VARNNRegressor:
    return VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, **settings)


def rows(count: int = 200) -> Rows:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(count, 2))
    y = X[:, 0] + np.cumsum(generator.normal(size=count)) / 5
    return [({"b": float(one[1]), "a": float(one[0])}, float(label)) for one, label in zip(X, y, strict=True)]


def arrays(given: Rows) -> tuple[Any, Any]:
    return np.array([[x["a"], x["b"]] for x, _ in given]), np.array([y for _, y in given])


@pytest.fixture(scope="module")
def fitted() -> VARNNRegressor:
    X, y = arrays(rows())
    return small().fit(Panel.from_arrays(X, y, input_names=["a", "b"]))


UNFITTED = OnlineVARNN(**next(OnlineVARNN._unit_test_params()))


@pytest.mark.parametrize("check", list(checks.yield_checks(UNFITTED)), ids=lambda one: str(one.__name__))
def test_rivers_checks_of_one_that_fits_itself(check: Callable[[Any], None]) -> None:
    """No check is left out."""
    assert UNFITTED._unit_test_skips() == set()
    random.seed(0)
    check(UNFITTED.clone())


def test_rivers_checks_of_a_fitted_model(fitted: VARNNRegressor) -> None:
    random.seed(0)
    checks.check_estimator(OnlineVARNN(fitted))


def test_a_fitted_model_predicts_as_in_a_batch(fitted: VARNNRegressor) -> None:
    later = rows(300)[200:]
    model, predictions = OnlineVARNN(fitted, resume=True), []
    for x, y in later:
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    X, y = arrays(later)
    batch = fitted.predict(Panel.from_arrays(X, y, input_names=["a", "b"]), resume=True)
    np.testing.assert_allclose(predictions, batch, atol=1e-6)


def test_one_that_fits_itself_goes_on_after_its_rows() -> None:
    given = rows(300)
    model = OnlineVARNN(small(), fit_after=200)
    for x, y in given[:200]:
        model.learn_one(x, y)
    X, y = arrays(given)
    batch = small().fit(Panel.from_arrays(X[:200], y[:200], input_names=["a", "b"]))
    live = batch.stream(resume=True)
    for x, label in given[200:]:
        assert model.predict_one(x) == pytest.approx(live.predict(x), abs=1e-9)
        live.observe(label)
        model.learn_one(x, label)
    assert model.model is not None and not hasattr(model.model, "fitted_")


def test_until_it_is_fitted_it_predicts_the_last_label() -> None:
    model = OnlineVARNN(small(), fit_after=50)
    assert model.predict_one({"a": 1.0}) == 0.0
    model.learn_one({"a": 1.0}, 3.5)
    model.learn_one({"a": 1.0}, None)
    assert model.predict_one({"a": 2.0}) == 3.5
    assert math.isinf(model.predict_one({"a": 2.0}, with_interval=True).upper)


def test_gaps_and_strange_keys(fitted: VARNNRegressor) -> None:
    model, live = OnlineVARNN(fitted), fitted.stream()
    for x in ({"a": 1.0, "b": 2.0}, {"a": 0.5, "c": 7.0}, {"b": None}, {}):
        full = {name: x.get(name) for name in ("a", "b")}
        assert model.predict_one(x) == live.predict(full)
        model.learn_one(x, math.nan)
        live.observe(None)


def test_predicting_changes_nothing(fitted: VARNNRegressor) -> None:
    one, other = OnlineVARNN(fitted), OnlineVARNN(fitted)
    for x, y in rows(20):
        for _ in range(3):
            one.predict_one({"a": 99.0, "b": 99.0})
        assert one.predict_one(x) == other.predict_one(x)
        one.learn_one(x, y)
        other.learn_one(x, y)


def test_intervals_are_those_of_river_and_hold_what_they_say(fitted: VARNNRegressor) -> None:
    model, held = OnlineVARNN(fitted, resume=True, confidence_level=0.8), []
    for x, y in rows(600)[200:]:
        interval = model.predict_one(x, with_interval=True)
        assert interval.lower <= model.predict_one(x) <= interval.upper
        held.append(y in interval)
        model.learn_one(x, y)
    assert 0.7 < np.mean(held) < 0.9


def test_time_and_texts() -> None:
    start, given = datetime(2026, 1, 1), []
    for hour in range(24 * 20):
        sky = "sun" if hour % 5 < 3 else "rain"
        x = {"when": start + timedelta(hours=hour), "sky": sky, "windy": hour % 2 == 0}
        given.append((x, math.sin(hour / 24 * 2 * math.pi) * 5 + (sky == "sun")))
    model = OnlineVARNN(small(calendar=["day"]), fit_after=400, time="when")
    errors = []
    for x, y in given:
        errors.append(abs(model.predict_one(x) - y))
        model.learn_one(x, y)
    assert model._stream is not None
    assert {"sky=sun", "windy"} <= set(model._stream.model.input_names)
    assert np.mean(errors[410:]) < np.mean(errors[10:400]) / 2
    with pytest.raises(DataError, match=r"'when' of x is a time. Say so: OnlineVARNN\(time='when'\)"):
        OnlineVARNN(small()).learn_one(given[0][0], 1.0)


def test_in_a_pipeline_it_beats_the_last_label_under_rivers_evaluation() -> None:
    def score(model: Any) -> float:
        return float(evaluate.progressive_val_score(rows(600), model, metrics.MAE()).get())

    ours = score(preprocessing.StandardScaler() | OnlineVARNN(small(), fit_after=100))
    blind = score(compose.Discard("a") | OnlineVARNN(small(), fit_after=100))
    assert ours < blind / 2 < score(LastLabel()) / 2


class LastLabel(OnlineVARNN):
    """One that is never fitted."""

    def __init__(self) -> None:
        super().__init__(fit_after=10**9)


def test_pickled_it_goes_on(fitted: VARNNRegressor) -> None:
    model = OnlineVARNN(fitted)
    for x, y in rows(30):
        model.learn_one(x, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_one({"a": 1.0, "b": 0.0}) == model.predict_one({"a": 1.0, "b": 0.0})


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match="fit_after must be a whole number, at least 20; got 3"):
        OnlineVARNN(fit_after=3)
