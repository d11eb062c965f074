"""What scikit-learn knows about the estimator, and what it can do with it."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

from tests.cases import random_panel
from varnn import VARNNRegressor

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


def test_a_score_by_series_is_that_of_the_panel() -> None:
    panel = random_panel([50, 50], seed=10)
    model = VARNNRegressor(**SMALL).fit(panel)
    order = np.arange(100).reshape(2, 50).T.ravel()
    X, y, series = panel.inputs[order], panel.target[order], np.repeat(["u", "v"], 50)[order]
    assert model.score(X, y, series=series) == pytest.approx(model.score(panel))
    assert model.score(X, y) != pytest.approx(model.score(panel), rel=1e-6)
