"""A table in, a table of the same kind out; arrays stay arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import varnn
from varnn import Panel, VARNNRegressor
from varnn.errors import DataError

SMALL: dict[str, Any] = {"hidden_size": 8, "epochs": 2, "ensemble": 1}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Give two interleaved series with lost labels, under an index that repeats itself."""
    generator = np.random.default_rng(0)
    hours = pd.date_range("2026-01-01", periods=80, freq="h", tz="Europe/Vienna")
    parts = [
        pd.DataFrame({"hour": hours, "meter": name, "heat": generator.normal(size=80)}).assign(
            load=lambda one: one["heat"] + np.cumsum(generator.normal(size=80))
        )
        for name in ("u", "v")
    ]
    joined = pd.concat(parts).sort_values("hour", kind="stable")
    joined.loc[[5, 6, 40], "load"] = np.nan
    return joined


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> VARNNRegressor:
    return VARNNRegressor(**SMALL).fit(Panel.from_frame(frame, target="load", time="hour", series="meter"))


def expected(model: VARNNRegressor, frame: pd.DataFrame, **asked: Any) -> Any:
    """Predict by arrays, which come back in the order of the rows."""
    return model.predict(frame[["heat"]], frame["load"].to_numpy(), series=frame["meter"].to_numpy(), **asked)


def test_pandas_comes_back_with_its_index(model: VARNNRegressor, frame: pd.DataFrame) -> None:
    before = frame.copy()
    given = model.predict_frame(frame, time="hour", series="meter")
    assert isinstance(given, pd.DataFrame)
    assert given.columns.tolist() == ["hour", "meter", "load", "prediction"]
    pd.testing.assert_frame_equal(given.drop(columns="prediction"), frame[["hour", "meter", "load"]])
    np.testing.assert_array_equal(given["prediction"].to_numpy(), expected(model, frame))
    pd.testing.assert_frame_equal(frame, before)


def test_polars_and_pyarrow_come_back_as_such(model: VARNNRegressor, frame: pd.DataFrame) -> None:
    polars = model.predict_frame(pl.from_pandas(frame), time="hour", series="meter")
    assert isinstance(polars, pl.DataFrame)
    assert polars.columns == ["hour", "meter", "load", "prediction"]
    np.testing.assert_array_equal(polars["prediction"].to_numpy(), expected(model, frame))
    arrow = model.predict_frame(pa.Table.from_pandas(frame, preserve_index=False), series="meter")
    assert isinstance(arrow, pa.Table)
    assert arrow.column_names == ["hour", "meter", "load", "prediction"]
    np.testing.assert_array_equal(arrow["prediction"].to_numpy(), expected(model, frame))


def test_intervals_are_columns_named_by_their_level(model: VARNNRegressor, frame: pd.DataFrame) -> None:
    one = model.predict_frame(pl.from_pandas(frame), series="meter", interval=0.9)
    assert one.columns == ["hour", "meter", "load", "prediction", "lower_90", "upper_90"]
    prediction, lower, upper = expected(model, frame, interval=[0.5, 0.975])
    several = model.predict_frame(frame, series="meter", interval=[0.5, 0.975])
    np.testing.assert_array_equal(several["prediction"], prediction)
    np.testing.assert_array_equal(several[["lower_50", "lower_97.5"]], lower)
    np.testing.assert_array_equal(several[["upper_50", "upper_97.5"]], upper)


def test_without_labels_rows_follow_the_training_rows(model: VARNNRegressor, frame: pd.DataFrame) -> None:
    coming = frame.drop(columns="load").head(10)
    given = model.predict_frame(coming, series="meter")
    assert given.columns.tolist() == ["hour", "meter", "prediction"]
    wanted = model.predict(coming[["heat"]], series=coming["meter"].to_numpy())
    np.testing.assert_array_equal(given["prediction"], wanted)
    with pytest.raises(DataError, match="rows need labels"):
        model.predict_frame(coming, series="meter", interval=0.9)


def test_columns_that_lack_or_clash_are_refused(model: VARNNRegressor, frame: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="input column 'heat' is not in the table"):
        model.predict_frame(frame.drop(columns="heat"))
    clashing = frame.rename(columns={"meter": "prediction"})
    with pytest.raises(DataError, match=r"rename the table's own 'prediction'"):
        model.predict_frame(clashing, series="prediction")


@pytest.mark.parametrize("kind", [pd, pl], ids=["pandas", "polars"])
def test_predict_gives_an_array_whatever_the_inputs_came_in(kind: Any, frame: pd.DataFrame) -> None:
    inputs, labels = kind.DataFrame({"heat": frame["heat"].to_numpy()}), frame["load"].to_numpy()
    model = VARNNRegressor(**SMALL).fit(inputs, kind.Series(labels))
    assert model.feature_names_in_.tolist() == ["heat"]
    predictions = model.predict(inputs, kind.Series(labels))
    assert type(predictions) is np.ndarray
    by_array = VARNNRegressor(**SMALL).fit(inputs.to_numpy(), labels)
    np.testing.assert_array_equal(predictions, by_array.predict(inputs.to_numpy(), labels))


def test_the_columns_of_time_and_series_are_remembered(
    model: VARNNRegressor, frame: pd.DataFrame, tmp_path: Path
) -> None:
    named = model.predict_frame(frame, time="hour", series="meter")
    pd.testing.assert_frame_equal(model.predict_frame(frame), named)
    model.save(tmp_path / "m.varnn")
    pd.testing.assert_frame_equal(varnn.load(tmp_path / "m.varnn").predict_frame(frame), named)
    one = frame[frame["meter"] == "u"].drop(columns=["hour", "meter"])  # a table without them will do
    assert model.predict_frame(one).columns.tolist() == ["load", "prediction"]
    with pytest.raises(DataError, match="time column 'day' is not in the table"):
        model.predict_frame(frame, time="day")


@pytest.mark.parametrize("time", ["date,utc", ["date,utc", "hour"], ["day", "hour"]])
def test_columns_of_time_with_a_comma_in_their_name_are_found_again(
    time: str | list[str], tmp_path: Path
) -> None:
    days = pd.date_range("2026-01-01", periods=60, freq="D").astype(str)
    frame = pd.DataFrame({"date,utc": days, "day": days, "hour": 5, "load": np.sin(np.arange(60))})
    panel = Panel.from_frame(frame, target="load", time=time, inputs=[])
    model = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4).fit(panel)
    model.save(tmp_path / "m.varnn")
    found = varnn.load(tmp_path / "m.varnn").predict_frame(frame)
    columns = [time] if isinstance(time, str) else time
    assert found.columns.tolist() == [*columns, "load", "prediction"]
    read = Panel.from_frame(frame, target="load", time=model.fitted_.time_name, inputs=[])
    assert read.time_name == model.fitted_.time_name
