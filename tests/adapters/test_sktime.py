"""The forecaster for sktime, by sktime's own checks and in its own evaluations."""

from typing import Any

import numpy as np
import pytest

from varnn import Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError

pytest.importorskip("sktime", reason="the forecaster needs varnn[sktime]; make adapters has it")

import pandas as pd
from sktime.forecasting.compose import TransformedTargetForecaster
from sktime.forecasting.model_evaluation import evaluate
from sktime.performance_metrics.forecasting import MeanAbsoluteError
from sktime.split import ExpandingWindowSplitter
from sktime.transformations.series.difference import Differencer
from sktime.utils.estimator_checks import check_estimator, parametrize_with_checks

from varnn.adapters.sktime import VARNNForecaster

pytestmark = pytest.mark.filterwarnings("ignore")  # sktime's own, and those its checks provoke


def small(**settings: Any) -> VARNNRegressor:
    return VARNNRegressor(hidden_size=8, ensemble=1, **settings)


def waves(rows: int = 300, index: str = "datetime") -> Any:
    made: dict[str, Any] = {
        "datetime": pd.date_range("2026-01-01", periods=rows, freq="h"),
        "period": pd.period_range("2026-01-01", periods=rows, freq="h"),
        "range": pd.RangeIndex(rows),
    }
    noise = np.random.default_rng(0).normal(size=rows) / 20
    return pd.Series(np.sin(np.arange(rows) * 2 * np.pi / 24) + noise, index=made[index], name="load")


@parametrize_with_checks(VARNNForecaster)  # type: ignore[untyped-decorator]  # sktime ships no types
def test_sktimes_checks(obj: Any, test_name: str) -> None:
    """All of them, with none excluded."""
    check_estimator(obj, tests_to_run=test_name, raise_exceptions=True, verbose=False)


@pytest.mark.parametrize("index", ["datetime", "period", "range"])
def test_it_forecasts_what_the_model_forecasts(index: str) -> None:
    load = waves(index=index)
    forecaster = VARNNForecaster(small(epochs=2)).fit(load[:250], fh=[1, 2, 6])
    found, bounds = forecaster.predict(), forecaster.predict_interval(coverage=[0.5, 0.9])
    time = (
        None
        if index == "range"
        else np.datetime64("2026-01-01T00", "ns") + np.arange(250) * np.timedelta64(1, "h")
    )
    panel = Panel.from_arrays(None, load[:250].to_numpy(), time=time)
    model = small(epochs=2, horizon=6).fit(panel)
    expected = model.forecast(interval=[0.5, 0.9])
    assert expected.lower is not None
    steps = np.array([0, 1, 5])
    np.testing.assert_allclose(found, expected.prediction[0][steps], rtol=1e-5)
    np.testing.assert_allclose(bounds["load", 0.9, "lower"], expected.lower[0][steps, 1], rtol=1e-5)
    assert (found.index == load.index[250 + steps]).all() and found.name == "load"


def test_the_next_row_and_those_in_the_sample_are_one_step_predictions() -> None:
    load = waves(index="range")
    forecaster = VARNNForecaster(small(epochs=2)).fit(load[:250], fh=[-1, 0, 1])
    panel = Panel.from_arrays(None, np.append(load[:250], np.nan))
    expected = forecaster.model_.predict(panel, interval=0.8, resume=False)
    found, bounds = forecaster.predict(), forecaster.predict_interval(coverage=0.8)
    np.testing.assert_array_equal(found, expected.prediction[-3:])
    np.testing.assert_array_equal(bounds["load", 0.8, "upper"], expected.upper[-3:])
    live = forecaster.model_.stream()
    for label in load[:250]:
        live.predict([])
        live.observe(label)
    assert found.iloc[-1] == pytest.approx(live.predict([]), abs=1e-6)
    median = forecaster.predict_quantiles(alpha=[0.5])
    np.testing.assert_array_equal(median.iloc[:, 0], found)


def test_inputs_known_in_the_future_help() -> None:
    generator = np.random.default_rng(0)
    index = pd.date_range("2026-01-01", periods=500, freq="h")
    X = pd.DataFrame({"heat": generator.normal(size=500), "wind": generator.normal(size=500)}, index=index)
    y = X["heat"] * 3 + generator.normal(size=500) / 10
    forecaster = VARNNForecaster(small()).fit(y[:450], X[:450], fh=[1, 2, 3, 4])
    found = forecaster.predict(X=X[450:454])
    assert np.abs(found - y[450:454]).max() < 1
    with pytest.raises(DataError, match=r"needs \['heat', 'wind'\] of rows to come"):
        forecaster.predict()


def test_updates_are_taken_in_and_learnt_from() -> None:
    load = waves()
    forecaster = VARNNForecaster(small(epochs=2)).fit(load[:200], fh=[1, 2, 3])
    before = forecaster.model_.fitted_.fingerprint
    forecaster.update(load[200:280])
    assert forecaster.model_.fitted_.fingerprint == before  # nothing is trained again
    expected = forecaster.model_.forecast(forecaster._panel(), horizon=3)
    assert len(forecaster._panel()) == 280
    np.testing.assert_array_equal(forecaster.predict(), expected.prediction[0])
    forecaster.update(load[270:290] + 5)  # rows sent again are the latter ones
    assert len(forecaster._panel()) == 290 and forecaster._panel().target[275] > 3


def test_a_panel_gets_a_model_for_each_series() -> None:
    both = pd.concat(
        {name: waves(120).to_frame() * scale for name, scale in (("a", 1), ("b", 10))}, names=["m", "t"]
    )
    found = VARNNForecaster(small(epochs=1)).fit(both, fh=[1, 2]).predict()
    assert found.shape == (4, 1) and found.index.get_level_values(0).tolist() == ["a", "a", "b", "b"]


def test_in_sktimes_pipelines_and_evaluations() -> None:
    load = waves()
    pipeline = TransformedTargetForecaster(
        [("difference", Differencer()), ("varnn", VARNNForecaster(small(epochs=1)))]
    )
    cv = ExpandingWindowSplitter(fh=[1, 2], initial_window=250, step_length=20)
    for one, strategy in ((pipeline, "refit"), (VARNNForecaster(small()), "no-update_params")):
        scores = evaluate(one, cv, load, strategy=strategy, scoring=MeanAbsoluteError())
        assert scores["test_MeanAbsoluteError"].mean() < 0.4


def test_the_model_given_is_left_as_it_is() -> None:
    model = small(epochs=1)
    forecaster = VARNNForecaster(model).fit(waves(100), fh=3)
    assert not hasattr(model, "fitted_") and model.horizon == 1 and forecaster.model_.horizon == 3
    forecaster.set_params(model__epochs=2, horizon=4)
    assert forecaster.fit(waves(100)).model_.horizon == 4 and forecaster.model_.epochs == 2


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="horizon must be a whole number, at least 1"):
        VARNNForecaster(horizon=0).fit(waves(100))
    one_step = VARNNForecaster(small(epochs=1)).fit(waves(100))
    assert len(one_step.predict(fh=[1, 2, 3])) == 3  # step by step
    with pytest.raises(ConfigError, match="gives no intervals"):
        one_step.predict_interval(fh=[1, 2, 3])
    with pytest.raises(DataError, match="rows in the sample reach back to step -99; got -150"):
        one_step.predict(fh=[-150])
