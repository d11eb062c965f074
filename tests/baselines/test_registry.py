"""One contract for every baseline, by name: what holds whatever the model."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from varnn import Panel, baselines
from varnn._types import FloatArray
from varnn.baselines import NAMES, Baseline
from varnn.data.preparation import split_by_series, split_in_time
from varnn.errors import ConfigError, DataError

# Small enough for a second each; the contract does not depend on size.
QUICK: dict[str, dict[str, Any]] = {
    "rf": {"trees": 5, "n_jobs": 1},
    "narx-rf": {"trees": 5, "n_jobs": 1},
    "narx-gbm": {"rounds": 20, "n_jobs": 1},
    "seasonal-gbm": {"rounds": 20, "n_jobs": 1},
    **{name: {"epochs": 2, "hidden_size": 8} for name in ("mlp", "narx-mlp", "rnn", "lstm", "gru")},
}
LAGGED = ("arx-lr", "narx-rf", "narx-mlp", "narx-gbm", "rls-arx")
RECURRENT = ("rnn", "lstm", "gru")
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    *((name, {"lags": "as-published"}) for name in LAGGED),
    *((name, {"fair": True}) for name in RECURRENT),
]
every_case = pytest.mark.parametrize(
    ("name", "extra"),
    CASES,
    ids=lambda part: part if isinstance(part, str) else "-".join(map(str, part.values())),
)


def stream(rows: int = 90, *, seed: int = 0, n_series: int = 2) -> Panel:
    """Series of unequal length, whose level drifts and follows two inputs."""
    generator = np.random.default_rng(seed)
    total = rows * n_series
    X = generator.normal(size=(total, 2))
    y = 50 + 10 * X[:, 0] + np.cumsum(generator.normal(size=total))
    series = np.repeat(np.arange(n_series), rows)
    series[: rows // 3] = 0
    return Panel.from_arrays(X, y, series=series.astype(str))


def with_gaps(panel: Panel, *, seed: int = 1) -> Panel:
    generator = np.random.default_rng(seed)
    inputs, target = panel.inputs.copy(), panel.target.copy()
    inputs[generator.random(inputs.shape) < 0.1] = np.nan
    target[generator.random(target.shape) < 0.1] = np.nan
    first = panel.starts[:-1]
    inputs[first] = np.nan  # nothing before to repeat, neither input ...
    target[first] = target[first + 1] = np.nan  # ... nor label
    return replace(panel, inputs=inputs, target=target)


def make(name: str, extra: dict[str, Any]) -> Baseline:
    return baselines.make(name, **QUICK.get(name, {}), **extra)


@cache
def _fitted(name: str, extra: tuple[tuple[str, Any], ...]) -> Baseline:
    training, validation = split_in_time(stream(seed=3), 0.75, 0.25)
    return make(name, dict(extra)).fit(with_gaps(training), validation=validation)


def fitted(name: str, extra: dict[str, Any]) -> Baseline:
    return _fitted(name, tuple(extra.items()))


@every_case
def test_every_row_gets_a_finite_prediction(name: str, extra: dict[str, Any]) -> None:
    for panel in (stream(), with_gaps(stream()), stream(rows=2), Panel.from_arrays([[1.0, 2.0]], None)):
        predictions = fitted(name, extra).predict(panel)
        assert predictions.shape == (len(panel),)
        assert predictions.dtype == np.float64
        assert np.isfinite(predictions).all()


@every_case
def test_predictions_follow_the_units_of_the_target(name: str, extra: dict[str, Any]) -> None:
    """A power of two is exact in floating point, so nothing at all may change but the unit."""
    panel = with_gaps(stream())
    larger = replace(panel, target=panel.target * 1024)
    one, other = (make(name, extra).fit(some).predict(some) for some in (panel, larger))
    assert np.array_equal(one * 1024, other)


@every_case
@settings(max_examples=15, deadline=None)
@given(row=st.integers(0, 100), seed=st.integers(0, 5))
def test_no_prediction_looks_ahead(name: str, extra: dict[str, Any], row: int, seed: int) -> None:
    panel = with_gaps(stream(rows=51, seed=4), seed=seed)
    generator = np.random.default_rng(seed)
    inputs, target = panel.inputs.copy(), panel.target.copy()
    inputs[row + 1 :] = generator.normal(0, 3, inputs[row + 1 :].shape)
    target[row:] = generator.normal(50, 30, target[row:].shape)  # the row's own label, too
    target[row:][generator.random(len(target) - row) < 0.2] = np.nan
    changed = replace(panel, inputs=inputs, target=target)
    model = fitted(name, extra)
    assert np.array_equal(model.predict(panel)[: row + 1], model.predict(changed)[: row + 1])


@every_case
def test_series_are_predicted_apart(name: str, extra: dict[str, Any]) -> None:
    panel, model = with_gaps(stream()), fitted(name, extra)
    alone = [model.predict(one) for one in split_by_series(panel, *([series] for series in panel.ids))]
    np.testing.assert_allclose(model.predict(panel), np.concatenate(alone), rtol=1e-5)


@every_case
def test_one_seed_gives_one_result(name: str, extra: dict[str, Any]) -> None:
    training, validation = split_in_time(stream(seed=3), 0.75, 0.25)
    again = make(name, extra)
    again.fit(stream(seed=9))  # fitting anew must leave no trace of this
    again.fit(with_gaps(training), validation=validation)
    assert np.array_equal(again.predict(stream()), fitted(name, extra).predict(stream()))


@pytest.mark.parametrize("name", ["rf", "mlp", "narx-rf", "narx-mlp", *RECURRENT])
def test_another_seed_gives_another_result(name: str) -> None:
    one, other = (make(name, {"random_state": seed}).fit(stream()).predict(stream()) for seed in (1, 2))
    assert not np.allclose(one, other)


@every_case
def test_predicting_changes_neither_panel_nor_model(name: str, extra: dict[str, Any]) -> None:
    panel, model = with_gaps(stream()), fitted(name, extra)
    inputs, target = panel.inputs.copy(), panel.target.copy()
    first = model.predict(panel)
    assert np.array_equal(first, model.predict(panel))
    assert np.array_equal(panel.inputs, inputs, equal_nan=True)
    assert np.array_equal(panel.target, target, equal_nan=True)


@every_case
def test_fitting_changes_no_panel(name: str, extra: dict[str, Any]) -> None:
    panel = stream()
    inputs, target = panel.inputs.copy(), panel.target.copy()
    make(name, extra).fit(panel)
    assert np.array_equal(panel.inputs, inputs)
    assert np.array_equal(panel.target, target)


@every_case
def test_a_row_without_label_teaches_nothing(name: str, extra: dict[str, Any]) -> None:
    """The last rows, unlabelled, are no one's past: with them or without, the model is the same."""
    full = stream(n_series=1)
    labelled = full.ranges(np.array([0]), np.array([60]))
    # The inputs of the unlabelled rows repeat others, so that the scaling is the same.
    extended = replace(
        full,
        inputs=np.concatenate([labelled.inputs, labelled.inputs[:30]]),
        target=np.concatenate([labelled.target, np.full(30, np.nan)]),
    )
    one, other = make(name, extra).fit(labelled), make(name, extra).fit(extended)
    # An optimiser of the likelihood may stop an iteration sooner or later.
    tolerance = 1e-4 if name == "armax" else 1e-7
    np.testing.assert_allclose(one.predict(full), other.predict(full), rtol=tolerance)


def _moved_by_label(name: str, extra: dict[str, Any], lag: int) -> bool:
    panel, row = stream(n_series=1), 60
    target = panel.target.copy()
    target[row - lag] += 40
    changed = replace(panel, target=target)
    model = fitted(name, extra)
    return bool(model.predict(panel)[row] != model.predict(changed)[row])


@pytest.mark.parametrize("name", [one for one in LAGGED if one != "rls-arx"])
def test_as_published_leaves_out_the_last_label_only(name: str) -> None:
    sensitive = {"narx-rf": {"trees": 40}, "narx-gbm": {"rounds": 60}}.get(name, {})
    seen: dict[str, FloatArray] = {}
    for lags in ("correct", "as-published"):
        model = baselines.make(name, **{**QUICK.get(name, {}), **sensitive}, lags=lags).fit(stream(200))
        panel = stream(200, seed=5, n_series=1)
        moved = []
        for lag in (1, 2, 3, 4, 5):
            target = panel.target.copy()
            target[100:][::6] += 30  # one row in six, so that no window holds two
            rows = np.arange(100 + lag, 194, 6)
            difference = model.predict(panel) - model.predict(replace(panel, target=target))
            moved.append(bool(np.abs(difference[rows]).max() > 1e-6))
        seen[lags] = np.array(moved)
    assert seen["correct"].tolist() == [True, True, True, True, False]
    assert seen["as-published"].tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_models_see_labels_only_when_fair(name: str) -> None:
    assert [_moved_by_label(name, {}, lag) for lag in (1, 4)] == [False, False]
    assert [_moved_by_label(name, {"fair": True}, lag) for lag in (1, 4, 5)] == [True, True, False]


@pytest.mark.parametrize("name", [*LAGGED, "persistence"])
def test_until_its_window_is_full_a_lagged_model_repeats_the_last_label(name: str) -> None:
    model = fitted(name, {})
    panel = replace(stream(n_series=1), target=np.array([3.0, np.nan, 8.0, *stream(n_series=1).target[3:]]))
    predictions = model.predict(panel)
    assert predictions[1:4].tolist() == pytest.approx([3.0, 3.0, 8.0])
    training, _ = split_in_time(stream(seed=3), 0.75, 0.25)
    assert predictions[0] == pytest.approx(np.nanmean(with_gaps(training).target))


@pytest.mark.parametrize("name", [one for one in NAMES if one not in ("lr", "rf", "mlp", *RECURRENT)])
def test_a_stream_without_inputs_is_enough_for_models_of_labels(name: str) -> None:
    panel = Panel.from_arrays(None, np.sin(np.arange(120) / 5))
    assert np.isfinite(make(name, {}).fit(panel).predict(panel)).all()


@pytest.mark.parametrize("name", ["lr", "rf", "mlp", *RECURRENT])
def test_models_of_inputs_refuse_a_stream_without_any(name: str) -> None:
    with pytest.raises(DataError, match="panel has none"):
        make(name, {}).fit(Panel.from_arrays(None, np.arange(50.0)))


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_target_is_no_trouble(name: str) -> None:
    panel = replace(stream(), target=np.full(180, 7.0))
    assert make(name, {}).fit(panel).predict(panel) == pytest.approx(np.full(180, 7.0), abs=2.0)


@pytest.mark.parametrize("name", NAMES)
def test_rare_labels_are_enough(name: str) -> None:
    """Every third label: no row has all its lags, and still each model can be fitted."""
    panel = stream()
    rare = replace(panel, target=np.where(np.arange(180) % 3 == 0, panel.target, np.nan))
    assert np.isfinite(make(name, {}).fit(rare).predict(rare)).all()


@pytest.mark.parametrize("name", LAGGED)
def test_series_too_short_for_any_window_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="Lower `window`"):
        make(name, {"window": 30}).fit(stream(rows=10))


def test_unknown_names_and_options_come_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'narx-gbm'"):
        baselines.make("narx-gmb")
    with pytest.raises(ConfigError, match=r"no option 'tress'\. Did you mean 'trees'"):
        baselines.make("rf", tress=3)
    with pytest.raises(ConfigError, match="lags must be one of"):
        baselines.make("lr", lags="wrong")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigError, match="no baseline"):
        baselines.options("x")


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("arx-lr", {"window": 1}),
        ("narx-rf", {"window": 2, "lags": "as-published"}),
        ("lstm", {"window": 1}),
        ("mlp", {"epochs": 0}),
        ("mlp", {"learning_rate": -1.0}),
        ("rls-arx", {"forgetting": 1.5}),
        ("rls-arx", {"ridge": 0.0}),
        ("armax", {"order": (0, 0)}),
        ("armax", {"rows": 10}),
        ("narx-gbm", {"library": "xgboost"}),
    ],
)
def test_bad_settings_are_refused(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        baselines.make(name, **bad).fit(stream())


@pytest.mark.parametrize("name", NAMES)
def test_predicting_before_fitting_is_refused(name: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make(name, {}).predict(stream())


@pytest.mark.parametrize("name", NAMES)
def test_other_inputs_than_fitted_on_are_refused(name: str) -> None:
    renamed = replace(stream(), input_names=("x1", "x0"))
    with pytest.raises(DataError, match="must be those the model was fitted on"):
        fitted(name, {}).predict(renamed)
