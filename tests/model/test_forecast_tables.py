"""A forecast as a table: of the kind that came in, with the names that came in."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from varnn import Panel, VARNNRegressor, load
from varnn.errors import ConfigError, DataError
from varnn.model.forecast import Forecast

KINDS: dict[str, type] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def forecast(unit: str = "s", **changes: Any) -> Forecast:
    prediction = np.arange(4.0).reshape(2, 2)
    given: dict[str, Any] = {
        "ids": ("a", "b"),
        "time": np.array(["2026-01-01", "2026-01-02"] * 2, f"datetime64[{unit}]").reshape(2, 2),
        "prediction": prediction,
        "lower": prediction - 1,
        "upper": prediction + 1,
        "levels": (0.9,),
        "time_name": "ds",
        "series_name": "unique_id",
    }
    return Forecast(**(given | changes))


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_row_for_each_series_and_step(kind: Any, unit: str) -> None:
    frame: Any = forecast(unit).to_frame(kind)
    assert type(frame) is KINDS[kind]
    read: dict[str, Any] = {"pandas": pl.from_pandas, "polars": pl.DataFrame, "pyarrow": pl.from_arrow}
    table = read[kind](frame)
    assert table.columns == ["unique_id", "ds", "ahead", "prediction", "lower_90", "upper_90"]
    assert table["unique_id"].to_list() == ["a", "a", "b", "b"]
    assert table["ahead"].to_list() == [1, 2, 1, 2]
    assert table["ds"].dt.day().to_list() == [1, 2, 1, 2]
    assert table["upper_90"].to_list() == [1.0, 2.0, 3.0, 4.0]


def test_the_kind_is_that_of_the_rows_if_none_is_named() -> None:
    assert isinstance(forecast(backend="polars").to_frame(), pl.DataFrame)
    assert isinstance(forecast().to_frame(), pd.DataFrame)


def test_several_levels_and_a_series_without_a_name() -> None:
    bounds = np.zeros((2, 2, 2))
    table = forecast(series_name=None, lower=bounds, upper=bounds + 1, levels=(0.5, 0.9)).to_frame("polars")
    assert table.columns[:2] == ["series", "ds"]
    assert table.columns[-4:] == ["lower_50", "lower_90", "upper_50", "upper_90"]
    alone = Forecast(ids=("0",), time=None, prediction=np.zeros((1, 2)))
    assert list(alone.columns()) == ["ahead", "prediction"]
    assert "time" in forecast(time_name="date,hour").columns()


def test_names_that_would_be_there_twice_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(DataError, match="rename the table's own 'prediction'"):
        forecast(time_name="prediction").to_frame()
    with pytest.raises(ConfigError, match="backend must be one of"):
        forecast().to_frame("excel")  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("given", [True, False])
def test_a_model_remembers_the_names_of_its_table(given: bool) -> None:
    """Whether it forecasts from rows that are given, or from those that it keeps."""
    when = pd.date_range("2026-01-01", periods=80, freq="h")
    table = pd.DataFrame({"ds": [*when, *when], "unique_id": 80 * ["a"] + 80 * ["b"]})
    table["y"] = np.sin(np.arange(160) / 5)
    panel = Panel.from_frame(table, target="y", time="ds", series="unique_id")
    model = VARNNRegressor(horizon=2, hidden_size=4, ensemble=1, epochs=1).fit(panel)
    for method in ("direct", "iterate"):
        ahead = model.forecast(panel if given else None, horizon=2, method=method)
        frame = ahead.to_frame("pandas")
        assert frame.columns.tolist() == ["unique_id", "ds", "ahead", "prediction"]
        assert frame["ds"].iloc[0] == when[-1] + pd.Timedelta("1h")
        np.testing.assert_array_equal(frame["prediction"], ahead.prediction.ravel())


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_table_of_one_kind_gives_forecasts_of_that_kind(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"ds": pd.date_range("2026-01-01", periods=80, freq="h"), "y": np.sin(np.arange(80))}
    )
    frame: Any = {"pandas": table, "polars": pl.from_pandas(table), "pyarrow": pa.Table.from_pandas(table)}[
        kind
    ]
    panel = Panel.from_frame(frame, target="y", time="ds")
    model = VARNNRegressor(horizon=2, hidden_size=4, ensemble=1, epochs=1).fit(panel)
    assert panel.backend == kind and type(model.forecast(panel).to_frame()) is KINDS[kind]
    model.save(tmp_path / "m.varnn")  # a file remembers, too
    assert type(load(tmp_path / "m.varnn").forecast().to_frame()) is KINDS[kind]
    assert Panel.from_arrays(None, [1.0, 2.0]).backend is None
