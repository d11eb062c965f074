"""What scikit-learn knows about the estimator, and what it can do with it."""

import pickle
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import sklearn.exceptions
from scipy.sparse import csr_array
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, validate_data

from tests.cases import random_panel
from varnn import VARNNRegressor
from varnn.errors import DataError, NotFittedError, VarnnError
from varnn.estimator._checks import checked_inputs, checked_labels
from varnn.estimator.r_squared import r_squared

SMALL: dict[str, Any] = {"hidden_size": 8, "epochs": 1, "ensemble": 1, "adapt": None, "intervals": False}


def test_the_tags_say_what_it_is() -> None:
    tags = get_tags(VARNNRegressor())
    assert is_regressor(VARNNRegressor())
    assert tags.input_tags.allow_nan and tags.target_tags.required
    assert not tags.target_tags.multi_output and not tags.non_deterministic


def test_a_clone_has_the_settings_and_nothing_that_was_learnt() -> None:
    panel = random_panel([60])
    model = VARNNRegressor("RM+AM", window=3, calendar=["day"], **SMALL)
    model.calendar = None
    fresh = clone(model.fit(panel))
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "fitted_")
    np.testing.assert_array_equal(fresh.fit(panel).predict(panel), model.predict(panel))


def test_a_pipeline_is_searched_in_time_order() -> None:
    panel = random_panel([160], seed=8)
    steps = Pipeline([("scale", StandardScaler()), ("varnn", VARNNRegressor(**SMALL))])
    choices = {"varnn__variant": ["RM", "ARM+AM"], "varnn__window": [2, 4]}
    search = GridSearchCV(steps, choices, cv=TimeSeriesSplit(3), error_score="raise")
    search.fit(panel.inputs, panel.target)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 4 and np.isfinite(scores).all()
    assert search.best_estimator_["varnn"].fitted_.window in (2, 4)
    # Without labels, folds are predicted in closed loop, after the rows they were trained on.
    folds = KFold(2)  # not in time order: every row needs a prediction here
    predicted = cross_val_predict(steps, panel.inputs, panel.target, cv=folds)
    assert type(predicted) is np.ndarray and predicted.shape == (160,)


def test_series_are_routed_to_fit_and_score(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = random_panel([80, 80], seed=9)
    order = np.arange(160).reshape(2, 80).T.ravel()  # interleaved: a fold in time order has rows of both
    X, y, series = panel.inputs[order], panel.target[order], np.repeat(["u", "v"], 80)[order]
    seen: list[tuple[str, tuple[str, ...]]] = []
    for name in ("fit", "score"):
        original = getattr(VARNNRegressor, name)

        @wraps(original)  # what can be routed is read off the signature
        def spied(self: Any, *args: Any, _name: str = name, _original: Any = original, **kwargs: Any) -> Any:
            seen.append((_name, tuple(sorted(set(kwargs.get("series", ()))))))
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(VARNNRegressor, name, spied)
    with sklearn.config_context(enable_metadata_routing=True):
        model = VARNNRegressor(**SMALL).set_fit_request(series=True).set_score_request(series=True)
        assert get_routing_for_object(model).consumes("fit", ["series", "absent"]) == {"series"}
        search = GridSearchCV(model, {"window": [2, 3]}, cv=TimeSeriesSplit(2), error_score="raise")
        search.fit(X, y, series=series)
    assert set(seen) == {("fit", ("u", "v")), ("score", ("u", "v"))}
    assert search.best_estimator_.fitted_.training.series == 2


def test_what_can_be_routed_is_said_and_nothing_else() -> None:
    model = VARNNRegressor()
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        model.set_fit_request(series=True)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(
            TypeError, match=r"predict\(\) takes no 'colour' to be routed; it takes \['series'"
        ):
            model.set_predict_request(colour=True)
        asked = clone(model.set_score_request(sample_weight=True, series="meter"))
        routing = get_routing_for_object(asked)
    assert routing.score.requests["sample_weight"] is True and routing.score.requests["series"] == "meter"
    assert routing.fit.requests["series"] is None and "X" not in routing.fit.requests


def test_parts_of_scikit_learn_hold_it_as_one_of_their_own() -> None:
    panel = random_panel([120], seed=3)
    model = VARNNRegressor(**SMALL)
    votes = VotingRegressor([("varnn", model), ("mean", DummyRegressor())])
    assert votes.fit(panel.inputs, panel.target).predict(panel.inputs).shape == (120,)
    moved = TransformedTargetRegressor(model, func=np.arcsinh, inverse_func=np.sinh)
    assert moved.fit(panel.inputs, panel.target).predict(panel.inputs).shape == (120,)
    found = cross_validate(model, panel.inputs, panel.target, cv=TimeSeriesSplit(2), return_estimator=True)
    assert np.isfinite(found["test_score"]).all()
    steps = make_pipeline(StandardScaler(), model).fit(panel.inputs, panel.target)
    assert "VARNNRegressor" in steps._repr_html_() and "VARNNRegressor(hidden_size=8" in repr(steps)


def test_it_is_pickled_as_joblib_and_processes_do(tmp_path: Path) -> None:
    panel = random_panel([60])
    model = VARNNRegressor(**SMALL).fit(panel)
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (joblib.load(tmp_path / "model.joblib"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(panel), model.predict(panel))


def test_one_that_is_not_fitted_says_so_in_both_libraries_words() -> None:
    model = VARNNRegressor()
    with pytest.raises(sklearn.exceptions.NotFittedError, match="not fitted yet") as said:
        model.predict(random_panel([5]))
    assert isinstance(said.value, NotFittedError | VarnnError) and isinstance(said.value, AttributeError)
    again = pickle.loads(pickle.dumps(said.value))
    assert isinstance(again, NotFittedError) and str(again) == str(said.value)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(model)


def test_a_score_is_scikit_learns_r2() -> None:
    random = np.random.default_rng(2)
    truth, prediction, weights = random.normal(size=(3, 50))
    for by in (None, np.abs(weights)):
        expected = r2_score(truth, prediction, sample_weight=by)
        assert r_squared(truth, prediction, by) == pytest.approx(expected)
    same = np.ones(4)
    assert [r_squared(same, same), r_squared(same, 2 * same)] == [1.0, 0.0]


TABLES: list[Any] = [
    pd.DataFrame({"a": [1, 2, 3], "b": [1.5, None, 2]}),
    pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="Int64"), "b": pd.array([1.5, 2, None], dtype="Float32")}
    ),
    pd.DataFrame({"a": [True, False, True], "b": [Decimal("1.5"), 2, None]}),
    pd.DataFrame(np.ones((3, 2), dtype=np.float32), columns=["a", "b"]),
    pd.DataFrame(np.ones((3, 2)), columns=[0, 1]),
    polars.DataFrame({"a": [1, None, 3], "b": [1.5, None, 2.0]}),
    pa.table({"a": [1, 2, 3], "b": [1.5, None, 2.0]}),
    [[1, 2], [3, None], [4, 5]],
    np.asfortranarray(np.arange(6).reshape(3, 2)),
    np.array([["1.5", "2"], ["3", "4"]]),
    [["a", "b"]],
    [[{"a": 1}, 2]],
    np.ones((2, 2)) * 1j,
    np.ones(3),
    np.float64(3),
    np.ones((2, 2, 2)),
    np.ones((0, 2)),
    np.ones((2, 0)),
    csr_array(np.ones((2, 2))),
    pd.Series([1.0, 2.0], name="a"),
    pd.DataFrame({"a": [1.0], 1: [2.0]}),
]


@pytest.mark.parametrize("X", TABLES, ids=lambda one: f"{type(one).__module__}-{np.shape(one)}")
def test_inputs_are_read_as_scikit_learn_reads_them(X: Any) -> None:
    theirs, ours = DummyRegressor(), VARNNRegressor()
    try:
        expected = validate_data(theirs, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    except (ValueError, TypeError) as error:
        with pytest.raises(type(error)) as said:
            checked_inputs(ours, X, fitting=True)
        assert isinstance(said.value, VarnnError)
        return
    found = checked_inputs(ours, X, fitting=True)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype and ours.n_features_in_ == theirs.n_features_in_ == 2
    assert list(getattr(ours, "feature_names_in_", ())) == list(getattr(theirs, "feature_names_in_", ()))


def test_names_of_inputs_must_be_those_of_the_fit() -> None:
    frame = pd.DataFrame(np.ones((4, 3)), columns=["a", "b", "c"])
    model, other = VARNNRegressor(), DummyRegressor()
    checked_inputs(model, frame, fitting=True)
    validate_data(other, frame)
    for wrong in (
        frame[["c", "b", "a"]],
        frame[["a", "b"]],
        frame.assign(d=1.0),
        frame.rename(columns={"a": "z"}),
    ):
        with pytest.raises(ValueError) as expected:
            validate_data(other, wrong, reset=False)
        with pytest.raises(DataError) as found:
            checked_inputs(model, wrong, fitting=False)
        assert str(found.value) == str(expected.value)
    with pytest.warns(
        UserWarning, match="X does not have valid feature names, but VARNNRegressor was fitted"
    ):
        checked_inputs(model, np.ones((4, 3)), fitting=False)
    checked_inputs(model, np.ones((4, 2)), fitting=True)
    with pytest.warns(UserWarning, match="X has feature names, but VARNNRegressor was fitted without"):
        checked_inputs(model, frame[["a", "b"]], fitting=False)


def test_labels_are_read_as_scikit_learn_reads_them() -> None:
    for y in ([1, 2], np.array([1.0, np.nan]), pd.Series([1, None], dtype="Int64"), polars.Series([1, None])):
        expected = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan")
        np.testing.assert_array_equal(checked_labels(y), expected)
    with pytest.warns(sklearn.exceptions.DataConversionWarning, match="column-vector y"):
        assert checked_labels([[1.0], [2.0]]).tolist() == [1.0, 2.0]
    for wrong in (
        [],
        [np.inf],
        [[1, 2], [3, 4]],
        ["a"],
        [1j],
        [np.datetime64("2026-01-01")],
        csr_array([[1.0]]),
    ):
        with pytest.raises(DataError, match="y "):
            checked_labels(wrong)


def test_a_score_by_series_is_that_of_the_panel() -> None:
    panel = random_panel([50, 50], seed=10)
    model = VARNNRegressor(**SMALL).fit(panel)
    order = np.arange(100).reshape(2, 50).T.ravel()
    X, y, series = panel.inputs[order], panel.target[order], np.repeat(["u", "v"], 50)[order]
    assert model.score(X, y, series=series) == pytest.approx(model.score(panel))
    assert model.score(X, y) != pytest.approx(model.score(panel), rel=1e-6)
