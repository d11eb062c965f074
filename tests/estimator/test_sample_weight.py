"""Weights of rows: how much their errors count in what is learnt and chosen, and in a score."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor, evaluation
from varnn.data.preparation import Scaling, split_in_time
from varnn.errors import ConfigError, DataError
from varnn.model._linear_fit import fit_linear, refit_linear
from varnn.network.cell import Architecture
from varnn.network.training import TrainConfig, train, train_together

PANEL = random_panel([200], seed=5)
X, Y = PANEL.inputs, PANEL.target


def small(**changes: Any) -> VARNNRegressor:
    given = {"hidden_size": 8, "epochs": 2, "ensemble": 1, "intervals": False}
    return VARNNRegressor(**given | changes)


def weighing(panel: Panel, weights: Any) -> Panel:
    return replace(panel, weights=np.asarray(weights, np.float64))


# ---- the linear part


@pytest.mark.parametrize("weights", [[1, 2, 3], [0, 1, 4], [0.5, 0.5, 0.0]])
def test_a_whole_weight_in_the_ridge_is_a_row_so_many_times(weights: list[float]) -> None:
    """Of series, since a row cannot come twice in one: each comes as often as its weight says."""
    panel = random_panel([60, 60, 60], seed=3)
    found = refit_linear(fit_linear(panel, None), weighing(panel, np.repeat(weights, 60)))
    times = [int(2 * one) for one in weights]  # which is no matter: only shares count
    copies = [index for index, count in enumerate(times) for _ in range(count)]
    rows = np.concatenate([np.arange(60 * index, 60 * index + 60) for index in copies])
    repeated = Panel.from_arrays(
        panel.inputs[rows], panel.target[rows], series=np.repeat(np.arange(len(copies)), 60)
    )
    expected = refit_linear(fit_linear(panel, None), repeated)
    for name in ("of_last", "of_changes", "of_inputs", "constant"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)


def test_validation_rows_choose_by_weight() -> None:
    """An input that only helps in rows of no weight is not worth having."""
    generator = np.random.default_rng(0)
    inputs, noise = generator.normal(size=(1200, 1)), generator.normal(size=1200)
    helps = np.arange(1200) % 2 == 0
    panel = Panel.from_arrays(inputs, np.where(helps, 3 * inputs[:, 0], 0) + noise)
    training, validation = split_in_time(panel, 0.5, 0.5)
    with_all = fit_linear(training, validation)
    without = fit_linear(training, weighing(validation, ~helps[600:]))
    assert len(with_all.of_inputs) and not len(without.of_inputs)


# ---- the whole model


def fingerprint(model: VARNNRegressor) -> str:
    return model.fitted_.fingerprint


def test_weights_that_are_all_alike_are_none() -> None:
    plain = small(details=Details(engine="fused")).fit(X, Y)
    for weights in (np.ones(200), np.full(200, 7.5), [3] * 200):
        assert fingerprint(small().fit(X, Y, sample_weight=weights)) == fingerprint(plain)


@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize("loss_rows", [1, 4])
def test_a_series_of_no_weight_teaches_nothing(engine: str, loss_rows: int) -> None:
    """With scalings that do not go by the rows, the model is that of the other series alone."""
    panel = random_panel([150, 150], seed=7)
    details = Details(engine=engine, loss_rows=loss_rows)
    model = small(scale="none", adapt=None, details=details, calendar=None, linear=False, window=8)
    weighed = model.fit(panel, sample_weight=np.repeat([1.0, 0.0], 150)).fitted_
    alone = small(**model.get_params(deep=False)).fit(panel.between(0, 150)).fitted_
    for name, matrix in alone.weights.as_dict().items():
        np.testing.assert_allclose(weighed.weights.as_dict()[name], matrix, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"linear": False}, {"variant": "RM", "window": 5}, {"adapt": None}])
def test_what_counts_more_is_predicted_better(settings: dict[str, Any]) -> None:
    """Two laws, by turns of fifty rows: the model follows the one that counts."""
    generator = np.random.default_rng(2)
    inputs = generator.normal(size=(1200, 1))
    first = np.arange(1200) // 50 % 2 == 0
    labels = np.where(first, inputs[:, 0], -inputs[:, 0]) + 0.1 * generator.normal(size=1200)
    errors = []
    for weights in (np.where(first, 1.0, 0.02), np.where(first, 0.02, 1.0)):
        model = small(epochs=8, **settings).fit(inputs[:900], labels[:900], sample_weight=weights[:900])
        left = np.square(model.innovations(inputs[900:], labels[900:]))
        errors.append((left[first[900:]].mean(), left[~first[900:]].mean()))
    assert errors[0][0] < errors[1][0] and errors[1][1] < errors[0][1]


def test_trees_go_by_weight() -> None:
    pytest.importorskip("lightgbm")
    weights = np.linspace(0, 2, 200)
    plain = small(experts=("boosting",)).fit(X, Y)
    weighed = small(experts=("boosting",)).fit(X, Y, sample_weight=weights)
    assert plain.fitted_.experts is not None and weighed.fitted_.experts is not None
    trees = plain.fitted_.experts.trees, weighed.fitted_.experts.trees
    assert trees[0] is not None and trees[1] is not None
    assert trees[0].value.shape != trees[1].value.shape or not np.allclose(trees[0].value, trees[1].value)


def test_a_row_of_no_weight_still_feeds_the_memory() -> None:
    weights = np.ones(200)
    weights[::7] = 0
    assert fingerprint(small().fit(X, Y, sample_weight=weights)) != fingerprint(
        small().fit(X, np.where(weights > 0, Y, np.nan))
    )


def test_weights_follow_rows_into_series_and_panels() -> None:
    two = random_panel([100, 100], seed=9)
    order = np.arange(200).reshape(2, 100).T.ravel()
    series = np.repeat(["s0", "s1"], 100)
    weights = np.linspace(0.1, 3, 200)
    two = replace(two, time=np.tile(np.arange(100), 2))
    by_panel = small().fit(two, sample_weight=weights)
    mixed = small().fit(
        two.inputs[order],
        two.target[order],
        series=series[order],
        time=np.repeat(np.arange(100), 2),
        sample_weight=weights[order],
    )
    assert fingerprint(by_panel) == fingerprint(mixed)
    later = two.ranges(np.array([60, 160]), np.array([100, 200]))  # rows of a panel have its own numbers
    expected = r2_score(later.target, by_panel.predict(later), sample_weight=weights[:80])
    assert by_panel.score(later, sample_weight=weights[:80]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(199), r"shape \(200,\), one per row; it has \(199,\)"),
        (-np.ones(200), "none below zero"),
        (np.zeros(200), "not all of them zero"),
        (np.full(200, np.nan), "finite"),
        (["much"] * 200, "one number per row"),
        ((np.arange(200) >= 160) * 1.0, "above zero in some of the training rows; it is zero in all 160"),
        ((np.arange(200) < 160) * 1.0, "above zero in some of the validation rows; it is zero in all 40"),
    ],
)
def test_weights_that_cannot_be_used(weights: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        small().fit(X, Y, sample_weight=weights)


def test_rows_without_labels_do_not_count() -> None:
    labels = np.where(np.arange(200) % 2 == 0, Y, np.nan)
    with pytest.raises(DataError, match="some row with a label must have a weight above zero"):
        small().fit(X, labels, sample_weight=np.arange(200) % 2)


@pytest.mark.parametrize("engine", ["compiled", "unrolled", "cuda"])
def test_engines_that_cannot_say_so(engine: str) -> None:
    pytest.importorskip("numba")
    model = small(variant="RM", device="auto", details=Details(engine=engine, loss_rows=1))
    with pytest.raises(ConfigError, match="weights of rows"):
        model.fit(X, Y, sample_weight=np.ones(200))


def test_forecasts_of_several_rows_are_not_weighed() -> None:
    with pytest.raises(ConfigError, match="counts in a model of the next row; horizon is 3"):
        small(horizon=3).fit(X, Y, sample_weight=np.ones(200))


@pytest.mark.parametrize("loss_rows", [1, 4])
def test_members_of_one_batch_are_weighed_alike(loss_rows: int) -> None:
    """As a GPU trains what its kernel does not handle: all members in every step."""
    rows = Scaling.fit(PANEL, "standard").apply(PANEL)
    weights = np.linspace(0, 2, 200)
    parts = weighing(rows, weights).between(0, 150), weighing(rows, weights).between(150, 200)
    config = TrainConfig(window=8, loss_rows=loss_rows, epochs=3, engine="reference", device="cpu")
    cell = Architecture.of("ARM+AM", n_inputs=3, hidden_size=5)
    together = train_together(cell, *parts, config, [1, 2])
    for seed, one in zip((1, 2), together, strict=True):
        alone = train(cell, *parts, config, seed)
        for epoch, other in zip(one.history, alone.history, strict=True):
            assert epoch["loss"] == pytest.approx(other["loss"], rel=1e-4)
            assert epoch["validation_loss"] == pytest.approx(other["validation_loss"], rel=1e-4)


# ---- routing


def test_rows_are_routed_with_what_belongs_to_them() -> None:
    order = np.arange(200).reshape(2, 100).T.ravel()
    two = random_panel([100, 100], seed=9)
    inputs, labels = two.inputs[order], two.target[order]
    beside: dict[str, Any] = {
        "series": np.repeat(["u", "v"], 100)[order],
        "time": np.tile(np.datetime64("2026-01-01", "h") + np.arange(100), 2)[order],
        "sample_weight": np.linspace(0.1, 1, 200),
    }
    asked = dict.fromkeys(beside, True)
    folds = TimeSeriesSplit(2)
    expected = []
    for past, test in folds.split(inputs):
        model = small().fit(inputs[past], labels[past], **{name: one[past] for name, one in beside.items()})
        rows = {name: one[test] for name, one in beside.items()}
        expected.append(model.score(inputs[test], labels[test], **rows))
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_fit_request(**asked).set_score_request(**asked)
        found = cross_validate(model, inputs, labels, cv=folds, params=beside, error_score="raise")
        np.testing.assert_allclose(found["test_score"], expected)
        search = GridSearchCV(model, {"hidden_size": [8]}, cv=folds, error_score="raise")
        search.fit(inputs, labels, **beside)
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(expected))
        asking = small().set_fit_request(**asked).set_predict_request(series=True, time=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, asking).fit(inputs, labels, **beside)
        named = {"series": beside["series"], "time": beside["time"]}
        assert pipeline.predict(inputs, **named).shape == (200,)
        assert pipeline[-1].fitted_.training.series == 2
        scorer = evaluation.one_step_scorer("r2").set_score_request(**asked)
        by_scorer = cross_validate(
            small().set_fit_request(**asked), inputs, labels, cv=folds, params=beside, scoring=scorer
        )
    np.testing.assert_allclose(by_scorer["test_score"], expected)
