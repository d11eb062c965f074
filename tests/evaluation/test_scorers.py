"""scikit-learn's scorers measure one step ahead, or refuse with the reason; never the closed loop unasked."""

import json
import pickle
from typing import Any, cast

import numpy as np
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    PredictionErrorDisplay,
    get_scorer,
    get_scorer_names,
    make_scorer,
    mean_absolute_error,
    mean_pinball_loss,
    r2_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from varnn import VARNNRegressor, evaluation
from varnn.errors import ConfigError, DataError

X = np.random.default_rng(0).normal(size=(200, 2))
Y = 20 + X[:, 0] + np.random.default_rng(1).normal(size=200).cumsum() / 5
FOLDS = TimeSeriesSplit(n_splits=2)
OF_REGRESSORS = [
    "r2",
    "neg_max_error",
    "explained_variance",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_percentage_error",
    "neg_median_absolute_error",
    "neg_mean_gamma_deviance",
]


def small(**changes: Any) -> VARNNRegressor:
    return VARNNRegressor(**{"ensemble": 1, "epochs": 2, "hidden_size": 4, "intervals": False} | changes)


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return small().fit(X[:150], Y[:150])


class Answers(LinearRegression):  # type: ignore[misc]  # scikit-learn ships no types
    """A regressor of scikit-learn's own that predicts what it is given."""

    def predict(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize("name", OF_REGRESSORS)
def test_every_name_is_refused_and_every_name_measures_one_step(model: VARNNRegressor, name: str) -> None:
    if name not in get_scorer_names():
        pytest.skip(f"this scikit-learn has no {name}")
    test = slice(150, None)
    with pytest.raises(ConfigError, match=r"without them.*one_step_scorer\('neg_mean_squared_error'\)"):
        get_scorer(name)(model, X[test], Y[test])
    expected = get_scorer(name)(Answers(), model.predict(X[test], Y[test]), Y[test])
    assert evaluation.one_step_scorer(name)(model, X[test], Y[test]) == expected


def test_cross_validation_says_why_and_gives_no_figure() -> None:
    with pytest.warns(UserWarning, match=r"one_step_scorer"):
        scores = cross_val_score(small(), X, Y, cv=FOLDS, scoring="neg_mean_squared_error")
    assert np.isnan(scores).all()
    with pytest.raises(ConfigError, match="one_step_scorer"):
        cross_val_score(small(), X, Y, cv=FOLDS, scoring="r2", error_score="raise")


def wrapped() -> list[Any]:
    """Give what scikit-learn puts around a regressor."""
    return [
        make_pipeline(StandardScaler(), small()),
        TransformedTargetRegressor(small(), transformer=StandardScaler()),
        GridSearchCV(small(), {"hidden_size": [4]}, cv=FOLDS),
        make_pipeline(
            StandardScaler(), TransformedTargetRegressor(small(), func=np.log, inverse_func=np.exp)
        ),
    ]


@pytest.mark.parametrize("which", range(4))
def test_within_others_it_is_refused_and_measured_alike(which: int) -> None:
    around = wrapped()[which].fit(X[:150], Y[:150])
    test = slice(150, None)
    with pytest.raises(ConfigError, match="one_step_scorer"):
        get_scorer("neg_mean_squared_error")(around, X[test], Y[test])
    found = evaluation.one_step_scorer("neg_root_mean_squared_error")(around, X[test], Y[test])
    plain = small().fit(X[:150], Y[:150])
    alone = evaluation.one_step_scorer("neg_root_mean_squared_error")(plain, X[test], Y[test])
    assert found == pytest.approx(alone, rel=0.25)  # scaled labels, or their logarithm, are nearly the same


def test_their_own_scores_do_not_measure_the_closed_loop() -> None:
    """`TransformedTargetRegressor.score` is R² of predict(X); a pipeline hands the labels to ours."""
    _, around, _, _ = wrapped()
    with pytest.raises(ConfigError, match=r"score\(X, y\) is R²"):
        around.fit(X[:150], Y[:150]).score(X[150:], Y[150:])
    pipeline = wrapped()[0].fit(X[:150], Y[:150])
    scaled = pipeline[0].transform(X[150:])
    assert pipeline.score(X[150:], Y[150:]) == pipeline[-1].score(scaled, Y[150:])


def test_other_measures_are_refused_too(model: VARNNRegressor) -> None:
    with pytest.raises(ConfigError, match="one_step_scorer"):
        permutation_importance(model, X[150:], Y[150:], scoring="r2", n_repeats=1)
    found = permutation_importance(
        model, X[150:], Y[150:], scoring=evaluation.one_step_scorer("r2"), n_repeats=2, random_state=0
    )
    assert found.importances_mean[0] > found.importances_mean[1]
    with pytest.raises(ConfigError, match="one_step_scorer"):
        PredictionErrorDisplay.from_estimator(model, X[150:], Y[150:])
    with pytest.raises(ConfigError, match="one_step_scorer"):
        cross_validate(small(), X, Y, cv=FOLDS, scoring=["r2", "neg_max_error"], error_score="raise")


def test_whoever_asks_himself_is_answered(model: VARNNRegressor) -> None:
    """Predictions without labels stay possible, and to measure them is one function away."""

    def closed_loop(model: Any, X: Any, y: Any) -> float:
        return -float(mean_absolute_error(y, model.predict(X)))

    assert closed_loop(model, X[150:], Y[150:]) < 0
    for scoring in (closed_loop, {"loop": closed_loop, "step": evaluation.one_step_scorer()}):
        scored = cross_validate(small(), X, Y, cv=FOLDS, scoring=scoring, error_score="raise")
        assert all(np.isfinite(one).all() for one in scored.values())
    assert cross_val_score(small(), X, Y, cv=FOLDS, scoring=closed_loop, error_score="raise").shape == (2,)
    assert cross_val_predict(small(), X, Y, cv=2).shape == (200,)
    assert make_pipeline(StandardScaler(), small()).fit(X, Y).predict(X).shape == (200,)


def test_figures_are_those_of_one_step_predictions() -> None:
    ours = cross_val_score(small(), X, Y, cv=FOLDS, scoring=evaluation.one_step_scorer(), error_score="raise")
    by_name = cross_val_score(
        small(), X, Y, cv=FOLDS, scoring=evaluation.one_step_scorer("neg_mean_squared_error")
    )
    np.testing.assert_allclose(ours, by_name)
    own = cross_val_score(small(), X, Y, cv=FOLDS)
    for (train, test), one, score in zip(FOLDS.split(X), ours, own, strict=True):
        fitted = small().fit(X[train], Y[train])
        predicted = fitted.predict(X[test], Y[test])
        assert one == pytest.approx(-np.mean((predicted - Y[test]) ** 2))
        assert score == pytest.approx(r2_score(Y[test], predicted))


def test_metrics_functions_and_scorers(model: VARNNRegressor) -> None:
    rows = (model, X[150:], Y[150:])
    predicted = model.predict(X[150:], Y[150:])
    pinball = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=0.9)
    assert evaluation.one_step_scorer(pinball)(*rows) == -mean_pinball_loss(Y[150:], predicted, alpha=0.9)
    assert evaluation.one_step_scorer(r2_score, greater_is_better=True)(*rows) == r2_score(Y[150:], predicted)
    weights = np.linspace(0, 1, 50)
    for scorer in (
        evaluation.one_step_scorer(mean_absolute_error),
        evaluation.one_step_scorer("neg_mean_absolute_error"),
    ):
        found = scorer(*rows, sample_weight=weights)
        assert found == -mean_absolute_error(Y[150:], predicted, sample_weight=weights)
    missing = Y[150:].copy()
    missing[7] = np.nan
    known = ~np.isnan(missing)
    expected = -mean_absolute_error(missing[known], model.predict(X[150:], missing)[known])
    assert evaluation.one_step_scorer(mean_absolute_error)(model, X[150:], missing) == expected


def test_models_that_take_no_labels_are_compared_by_the_same_scorer() -> None:
    plain = LinearRegression().fit(X[:150], Y[:150])
    found = evaluation.one_step_scorer("r2")(plain, X[150:], Y[150:])
    assert found == plain.score(X[150:], Y[150:])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: evaluation.one_step_scorer("rmse"), "'rmse' is not a valid scoring value"),
        (lambda: evaluation.one_step_scorer(cast(Any, 3)), "a name, a scorer or a function; got int"),
        (lambda: evaluation.one_step_scorer("r2", greater_is_better=True), "knows whether greater is better"),
    ],
)
def test_what_is_no_metric(call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call()


def test_what_cannot_be_scored(model: VARNNRegressor) -> None:
    with pytest.raises(DataError, match="no row has one"):
        evaluation.one_step_scorer()(model, X, np.full(200, np.nan))
    with pytest.raises(ConfigError, match="takes no sample_weight"):
        evaluation.one_step_scorer()(model, X, Y, sample_weight=np.ones(200))


def test_the_scorer_goes_with_pipelines_searches_and_missing_labels() -> None:
    labels = Y.copy()
    labels[150] = np.nan
    scorer = pickle.loads(pickle.dumps(evaluation.one_step_scorer("r2")))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), small()),
        {"varnnregressor__hidden_size": [2, 4]},
        cv=FOLDS,
        scoring=scorer,
        error_score="raise",
    )
    search.fit(X, labels)
    assert 0 < search.best_score_ < 1
    assert json.dumps(search.best_params_)


def test_series_and_time_are_routed_to_the_scorer() -> None:
    order = np.arange(200).reshape(2, 100).T.ravel()  # two series, interleaved
    labels = np.concatenate([Y[:100], 5 - Y[100:]])[order]
    series = np.repeat(["u", "v"], 100)[order]
    time = np.tile(np.datetime64("2026-01-01T00", "h") + np.arange(100), 2)[order]
    beside = {"series": series, "time": time}
    with sklearn.config_context(enable_metadata_routing=True):
        asking = small().set_fit_request(series=True, time=True)
        scorer = evaluation.one_step_scorer("neg_mean_squared_error").set_score_request(
            series=True, time=True
        )
        for one in (asking, make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)):
            scored = cross_validate(
                one, X[order], labels, cv=FOLDS, scoring=scorer, params=beside, error_score="raise"
            )["test_score"]
        with pytest.raises(TypeError, match="takes no 'colour'"):
            evaluation.one_step_scorer().set_score_request(colour=True)
    for (train, test), found in zip(FOLDS.split(labels), scored, strict=True):
        scaler = StandardScaler().fit(X[order][train])
        inputs = scaler.transform(X[order])
        fitted = small().fit(inputs[train], labels[train], series=series[train], time=time[train])
        predicted = fitted.predict(inputs[test], labels[test], series=series[test], time=time[test])
        assert found == pytest.approx(-np.mean((predicted - labels[test]) ** 2))
