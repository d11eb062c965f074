"""From a frame to forecasts without a panel: what people write first, and what they get."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import get_scorer

from tests.estimator.test_every_frame import HOUSE, LONG, ROWS, WHEN, small
from varnn import Panel, VARNNRegressor, evaluation
from varnn.errors import ConfigError, DataError
from varnn.scale import fit_many
from varnn.scale.tuning.tuner import VARNNTuner

LAST = LONG["ds"].iloc[ROWS - 25]
EARLY, LATE = LONG[LONG["ds"] <= LAST], LONG[LONG["ds"] > LAST]


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    return VARNNRegressor(ensemble=1, epochs=1, hidden_size=4, horizon=3).fit(EARLY)


def test_forecasts_come_under_the_names_of_the_frame(model: VARNNRegressor) -> None:
    ahead = model.forecast(EARLY, horizon=2, interval=0.9).to_frame()
    assert isinstance(ahead, pd.DataFrame)
    names = ["unique_id", "ds", "ahead", "prediction", "lower_90", "upper_90"]
    assert ahead.columns.tolist() == names
    assert ahead["ds"].tolist() == [LAST + pd.Timedelta(hours=step) for step in (1, 2)] * 2
    by_polars = model.forecast(pl.from_pandas(EARLY), horizon=2).to_frame()
    assert isinstance(by_polars, pl.DataFrame) and by_polars.columns == names[:4]
    assert Panel.from_frame(pl.from_pandas(EARLY)).backend == "polars"
    # To go on with: the rows so far and those forecast are one long frame.
    joined = pd.concat([EARLY, ahead.rename(columns={"prediction": "y"})])
    assert len(Panel.from_frame(joined, inputs=[])) == len(EARLY) + 4


def test_a_number_is_the_horizon(model: VARNNRegressor) -> None:
    expected = model.forecast(horizon=2).prediction
    np.testing.assert_array_equal(model.forecast(2).prediction, expected)
    np.testing.assert_array_equal(model.forecast(np.int64(2)).prediction, expected)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_coming_inputs_may_be_a_table(kind: Any) -> None:
    plan = LATE[["unique_id", "ds", "price"]].iloc[::-1].sort_values("ds", kind="stable")
    as_panel = Panel.from_frame(plan, target=None)
    knowing = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4, horizon=3, known_inputs=["price"]).fit(
        EARLY
    )
    expected = knowing.forecast(horizon=3, inputs=as_panel).prediction
    np.testing.assert_array_equal(knowing.forecast(3, inputs=kind(plan)).prediction, expected)
    iterated = small().fit(EARLY).forecast(3, inputs=kind(plan), method="iterate").prediction
    by_panel = small().fit(EARLY).forecast(3, inputs=as_panel, method="iterate").prediction
    np.testing.assert_array_equal(iterated, by_panel)
    with pytest.raises(DataError, match="'price' is not in the table"):
        knowing.forecast(3, inputs=kind(plan.drop(columns="price")))


def test_validation_rows_may_be_a_table() -> None:
    parts = Panel.from_frame(EARLY), Panel.from_frame(LATE)
    expected = small().fit(parts[0], validation=parts[1])
    found = small().fit(EARLY, validation=pl.from_pandas(LATE))
    assert found.fitted_.fingerprint == expected.fitted_.fingerprint
    cut = len(WHEN) - 30
    named = small().fit(WHEN[:cut], "load", time="when", validation=WHEN[cut:])
    assert named.history_[0]["validation_loss"] > 0
    with pytest.raises(DataError, match="go with names of columns, and y holds one value per row"):
        small().fit(HOUSE[["heat"]][:cut], HOUSE["load"][:cut], validation=HOUSE[cut:])
    with pytest.raises(DataError, match="validation must be a Panel, or a table; got list"):
        small().fit(EARLY, validation=[1, 2])


def test_rows_after_the_training_rows_start_from_them() -> None:
    """An index of dates tells, without a word of the caller."""
    cut = len(HOUSE) - 30
    model = small().fit(HOUSE[:cut], "load")
    whole = model.predict(HOUSE)[cut:]
    np.testing.assert_allclose(model.predict(HOUSE[cut:]), whole, rtol=0.05)
    cold = model.predict(HOUSE[cut:], resume=False)
    assert abs(cold[0] - whole[0]) > abs(model.predict(HOUSE[cut:])[0] - whole[0])


def test_a_long_frame_is_evaluated_as_it_is() -> None:
    rows: Any = LONG  # a panel is asked for, and people bring frames
    expected = evaluation.compare(Panel.from_frame(rows), ["persistence"]).rows()
    found = evaluation.compare(rows, ["persistence"]).rows()
    assert [line["rmse"] for line in found] == [line["rmse"] for line in expected]
    assert len(evaluation.cut(rows).train) == len(evaluation.cut(Panel.from_frame(rows)).train)
    others: list[tuple[Any, str]] = [
        (np.zeros((9, 2)), r"rows must be a Panel; got ndarray.*Panel\.from_arrays"),
        (HOUSE, "the column to predict must be named"),
    ]
    for given, said in others:
        for call in (evaluation.compare, evaluation.cut, evaluation.backtest):
            with pytest.raises(DataError, match=said):
                call(given)


def test_many_models_and_a_search_take_frames_too() -> None:
    rows: Any = LONG
    models = fit_many(rows, small(), workers=1)
    assert list(models) == ["u", "v"]
    pytest.importorskip("optuna")
    tuner = VARNNTuner(small(), trials=1, workers=1, seeds=1).fit(
        LONG[["price"]].to_numpy(), LONG["y"], series=LONG["unique_id"], time=LONG["ds"]
    )
    last = next(iter(tuner.best_.fitted_.last_rows.values()))
    assert last.time is not None and last.time[-1] == LONG["ds"].iloc[-1].to_numpy()
    assert evaluation.one_step_scorer("r2")(tuner, LONG[["price"]].to_numpy(), LONG["y"]) < 1
    with pytest.raises(ConfigError, match="one_step_scorer"):
        get_scorer("r2")(tuner, LONG[["price"]].to_numpy()[:9], LONG["y"][:9])
