"""Frames in every shape that people have: long ones, indexes, lazy ones, relations, Arrow streams."""

import pickle
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from varnn import Panel, VARNNRegressor
from varnn.errors import DataError

ROWS = 120
HOURS = pd.date_range("2026-01-01", periods=ROWS, freq="h")


def small() -> VARNNRegressor:
    return VARNNRegressor(ensemble=1, epochs=1, hidden_size=4)


def long_frame() -> pd.DataFrame:
    """Give two series, one after the other, as Nixtla's libraries have them."""
    generator = np.random.default_rng(0)
    parts = [
        pd.DataFrame({"unique_id": name, "ds": HOURS, "price": generator.normal(size=ROWS)}).assign(
            y=lambda one: one["price"] + np.cumsum(generator.normal(size=ROWS))
        )
        for name in ("u", "v")
    ]
    return pd.concat(parts, ignore_index=True)


def house(index: Any = HOURS) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    heat = generator.normal(size=ROWS)
    return pd.DataFrame({"heat": heat, "load": heat + np.cumsum(generator.normal(size=ROWS))}, index=index)


LONG, HOUSE = long_frame(), house()
WHEN = HOUSE.reset_index(names="when")


def same(one: Panel, other: Panel) -> None:
    """Compare all that a model learns from."""
    np.testing.assert_array_equal(one.inputs, other.inputs)
    np.testing.assert_array_equal(one.target, other.target)
    assert (one.time is None) == (other.time is None)
    if one.time is not None and other.time is not None:
        np.testing.assert_array_equal(one.time, other.time)
    assert one.ids == other.ids and one.input_names == other.input_names


# ---- long frames


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_long_frame_says_what_is_what(kind: Callable[[pd.DataFrame], Any]) -> None:
    panel = Panel.from_frame(kind(LONG))
    same(panel, Panel.from_frame(LONG, target="y", time="ds", series="unique_id"))
    assert (panel.target_name, panel.time_name, panel.series_name) == ("y", "ds", "unique_id")


def test_a_long_frame_goes_in_and_comes_back() -> None:
    before = LONG.copy()
    model = small().fit(LONG)
    by_panel = small().fit(Panel.from_frame(LONG, target="y", time="ds", series="unique_id"))
    assert model.fitted_.fingerprint == by_panel.fitted_.fingerprint
    predicted = model.predict_frame(LONG)
    assert predicted.columns.tolist() == ["unique_id", "ds", "y", "prediction"]
    np.testing.assert_array_equal(predicted["prediction"], model.predict(LONG))
    np.testing.assert_array_equal(model.predict(LONG), by_panel.predict(Panel.from_frame(LONG)))
    assert model.score(LONG) == by_panel.score(Panel.from_frame(LONG))
    mixed = LONG.sample(frac=1, random_state=0).sort_values("ds", kind="stable")
    found = model.predict_frame(mixed).sort_index()
    np.testing.assert_array_equal(found["prediction"], predicted["prediction"])
    pd.testing.assert_frame_equal(LONG, before)


def test_the_names_of_a_long_frame_may_be_its_index() -> None:
    expected = Panel.from_frame(LONG)
    for index in (["unique_id"], ["ds"], ["unique_id", "ds"], ["ds", "unique_id"]):
        indexed = LONG.set_index(index)
        same(Panel.from_frame(indexed), expected)
        model = small().fit(indexed)
        assert len(model.predict(indexed)) == 2 * ROWS
        assert "y" in model.predict_frame(indexed) and model.predict_frame(indexed).index.names == index


def test_one_series_needs_no_id_and_a_future_frame_no_label() -> None:
    prophet = LONG[LONG["unique_id"] == "u"][["ds", "y"]]
    panel = Panel.from_frame(prophet)
    assert panel.time_name == "ds" and panel.series_name is None and panel.n_inputs == 0
    coming = Panel.from_frame(LONG[["unique_id", "ds", "price"]], target=None)
    assert coming.ids == ("u", "v") and coming.input_names == ("price",)


def test_a_name_alone_does_not_make_a_frame_long() -> None:
    """A partition by day is called ds, the key of a row unique_id."""
    partition = pd.DataFrame({"ds": ["2026-01-01"] * 4, "load": [1.0, 2.0, 3.0, 4.0]})
    assert Panel.from_frame(partition, target="load").time is None
    keyed = pd.DataFrame({"unique_id": range(4), "load": [1.0, 2.0, 3.0, 4.0]})
    assert Panel.from_frame(keyed, target="load").n_series == 1
    told = LONG.assign(place=LONG["unique_id"], hour=LONG["ds"])
    assert Panel.from_frame(told, target="y", time="hour", series="place").series_name == "place"


def test_other_frames_do_not_tell_their_target() -> None:
    for call in (Panel.from_frame, small().fit):
        with pytest.raises(DataError, match=r"named: only long frames|requires y to be passed.*fit\(frame,"):
            call(HOUSE)


# ---- a frame and the names of its columns


def test_columns_are_named_in_fit() -> None:
    named = small().fit(WHEN, "load", time="when")
    expected = Panel.from_frame(WHEN, target="load", time="when")
    assert named.fitted_.fingerprint == small().fit(expected).fitted_.fingerprint
    assert named.fitted_.target_name == "load" and named.feature_names_in_.tolist() == ["heat"]
    np.testing.assert_array_equal(named.predict(WHEN), named.predict(expected))
    # Labels beside the table are the same as labels in it.
    beside = small().fit(WHEN[["when", "heat"]], WHEN["load"], time="when")
    assert beside.fitted_.fingerprint == named.fitted_.fingerprint
    assert beside.fitted_.target_name == "load"
    np.testing.assert_array_equal(
        named.predict(WHEN[["when", "heat"]], WHEN["load"].to_numpy()), named.predict(WHEN)
    )
    np.testing.assert_array_equal(named.predict(WHEN.assign(watt=WHEN["load"]), "watt"), named.predict(WHEN))


def test_times_and_series_stand_beside_arrays_and_tables() -> None:
    X, y = LONG[["price"]], LONG["y"].to_numpy()
    expected = small().fit(LONG)
    beside: dict[str, Any] = {"series": LONG["unique_id"], "time": LONG["ds"]}
    for rows in (X, X.to_numpy(), pl.from_pandas(X)):
        model = small().fit(rows, y, **beside)
        np.testing.assert_array_equal(model.predict(rows, y, **beside), expected.predict(LONG))
        assert model.score(rows, y, **beside) == expected.score(LONG)
        assert model.fitted_.time_name is None and model.fitted_.series_name is None
        assert len(model.innovations(rows, y, **beside)) == len(y) == len(model.memory(rows, y, **beside))
        assert model.forecast(rows, y, **beside, horizon=2).time is not None
        assert model.diagnose(rows, y, **beside) is not None
        assert len(model.expert_weights(rows, y, **beside).weights) == len(y)
    both = small().fit(LONG[["price", "y"]], "y", **beside)  # a name, and values of rows
    np.testing.assert_array_equal(both.predict(LONG[["price"]], y, **beside), expected.predict(LONG))


@pytest.mark.parametrize(
    "time",
    [
        HOURS,
        HOURS.to_numpy(),
        HOURS.to_period("h"),
        pd.Series(HOURS),
        pl.Series(HOURS.to_pydatetime().tolist()),
        HOURS.astype(str).tolist(),
        HOURS.to_pydatetime().tolist(),
        HOURS.tz_localize("UTC"),
        HOURS.tz_localize("UTC").tz_convert("Asia/Kolkata"),
        HOURS.tz_localize("UTC").tz_convert("Asia/Kolkata").to_pydatetime().tolist(),
        HOURS.strftime("%d.%m.%Y %H:%M").tolist(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_times_of_every_kind(time: Any) -> None:
    panel = Panel.from_arrays(None, HOUSE["load"], time=time)
    assert panel.time is not None and panel.time.dtype.kind == "M"
    np.testing.assert_array_equal(panel.time, HOURS.to_numpy())


def test_times_that_are_numbers_stay_numbers() -> None:
    for time in (
        range(3),
        np.arange(3.0),
        pl.Series([0, 1, 2]),
        pd.Series([1_700_000_000 + i for i in range(3)]),
    ):
        found = Panel.from_arrays(None, [1.0, 2.0, 3.0], time=time).time
        assert found is not None and found.dtype.kind in "if" and found[1] - found[0] == 1


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (list(HOURS[:-1]), "one value per row"),
        ([None, *HOURS[1:]], "a time for every row"),
        ([object()] * ROWS, "must hold dates, texts or numbers"),
        (["soon"] * ROWS, "'soon'"),
        ([[1, 2], [3]], "lists of several lengths"),
        ([True] * ROWS, "must hold dates, texts or numbers"),
    ],
)
def test_times_that_are_none(time: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        small().fit(HOUSE[["heat"]].to_numpy(), HOUSE["load"].to_numpy(), time=time)


@pytest.mark.parametrize("role", ["y", "series", "time"])
def test_names_need_a_table(role: str) -> None:
    given: dict[str, Any] = {"y": HOUSE["load"].to_numpy()} | {role: "load"}
    with pytest.raises(DataError, match=f"{role} may be the name of a column where X is a table"):
        small().fit(HOUSE[["heat"]].to_numpy(), **given)


def test_a_panel_has_its_times() -> None:
    with pytest.raises(DataError, match="holds labels, series and times already"):
        small().fit(Panel.from_frame(LONG), time=LONG["ds"])


# ---- an index


@pytest.mark.parametrize(
    "index",
    [HOURS, HOURS.tz_localize("UTC").tz_convert("Europe/Vienna"), HOURS.to_period("h"), HOURS.astype(str)],
    ids=["dates", "zone", "periods", "texts"],
)
def test_an_index_of_dates_is_the_time(index: Any) -> None:
    frame = house(index)
    expected = Panel.from_frame(WHEN, target="load", time="when")
    same(Panel.from_frame(frame, target="load"), expected)
    by_name, by_labels = small().fit(frame, "load"), small().fit(frame[["heat"]], frame["load"])
    assert by_name.fitted_.fingerprint == by_labels.fitted_.fingerprint
    assert by_labels.fitted_.fingerprint == small().fit(expected).fitted_.fingerprint
    found = by_labels.predict_frame(frame)
    assert found.columns.tolist() == ["load", "prediction"] and found.index.equals(frame.index)
    np.testing.assert_array_equal(by_name.predict(frame), by_labels.predict(frame[["heat"]], frame["load"]))


def test_the_index_of_labels_will_do() -> None:
    model = small().fit(HOUSE[["heat"]].to_numpy(), HOUSE["load"])
    last = next(iter(model.fitted_.last_rows.values()))
    assert last.time is not None and last.time[-1] == HOURS[-1].to_numpy()


def test_an_index_that_counts_is_left_alone() -> None:
    assert Panel.from_frame(WHEN, target="load", inputs=["heat"]).time is None
    named = HOUSE.reset_index(drop=True).rename_axis("row")
    assert Panel.from_frame(named, target="load").input_names == ("heat",)
    told = HOUSE.assign(hour=HOURS + pd.Timedelta("1h"))
    panel = Panel.from_frame(told, target="load", time="hour")
    assert panel.time_name == "hour" and panel.input_names == ("heat",)


def test_an_index_of_series_and_time() -> None:
    expected = Panel.from_frame(LONG)
    for names in (["unique_id", "ds"], ["ds", "unique_id"]):
        indexed = LONG.set_index(names).rename_axis([None, None])
        model = small().fit(indexed[["price"]], indexed["y"])
        np.testing.assert_array_equal(model.predict(indexed), small().fit(expected).predict(LONG))
    counted = LONG.assign(ds=np.tile(np.arange(ROWS), 2)).set_index(["unique_id", "ds"])
    found = Panel.from_frame(counted.rename_axis(["place", "step"]), target="y")
    assert (found.series_name, found.time_name) == ("place", "step")


@pytest.mark.parametrize(
    "frame",
    [
        LONG.assign(country="at").set_index(["country", "unique_id", "ds"]),
        LONG.assign(other="x").set_index(["unique_id", "other"]),
    ],
    ids=["three levels", "two of names"],
)
def test_an_index_that_cannot_be_told_is_refused(frame: pd.DataFrame) -> None:
    frame = frame.rename(columns={"y": "load"}).rename_axis(list("abc")[: frame.index.nlevels])
    with pytest.raises(DataError, match=r"index of several levels must be.*reset_index\(\)"):
        small().fit(frame[["price"]], frame["load"])
    with pytest.raises(DataError, match="index of several levels"):
        Panel.from_frame(frame, target="load")
    timed = frame.assign(hour=np.arange(len(frame)))  # whoever has a time may have any index
    assert Panel.from_frame(timed, target="load", time="hour").n_series == 1


def test_an_index_out_of_order_is_refused_with_a_way_out() -> None:
    mixed = HOUSE.sample(frac=1, random_state=0)
    for given in ((mixed, "load"), (mixed[["heat"]], mixed["load"])):
        with pytest.raises(DataError, match=r"time must increase.*frame\.sort_index\(\)"):
            small().fit(*given)
    assert small().fit(mixed.sort_index(), "load").score(HOUSE) == small().fit(HOUSE, "load").score(HOUSE)


# ---- lazy ones, relations, streams


def as_relation() -> Any:
    return duckdb.connect().from_arrow(TABLE)


TABLE: Any = pa.Table.from_pandas(WHEN, preserve_index=False)
DOORS: dict[str, Callable[[], Any]] = {
    "polars": lambda: pl.from_pandas(WHEN),
    "lazy": lambda: pl.from_pandas(WHEN).lazy(),
    "duckdb": as_relation,
    "arrow table": lambda: TABLE,
    "arrow reader": TABLE.to_reader,
    "arrow batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "arrow dataset": lambda: pyarrow.dataset.dataset(TABLE),
    "arrow scanner": lambda: pyarrow.dataset.dataset(TABLE).scanner(),
    "capsule": lambda: Capsule(TABLE),
}


class Capsule:
    """Rows of a library that nobody here knows."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("name", DOORS)
def test_tables_of_every_kind(name: str) -> None:
    door = DOORS[name]
    same(Panel.from_frame(door(), target="load", time="when"), Panel.from_frame(HOUSE, target="load"))
    model, expected = small().fit(door(), "load", time="when"), small().fit(WHEN, "load", time="when")
    np.testing.assert_array_equal(model.predict(door()), expected.predict(WHEN))
    found = model.predict_frame(door())
    kind = pl.DataFrame if name in ("polars", "lazy") else pa.Table
    assert isinstance(found, kind)
    assert list(getattr(found, "column_names", found.columns)) == ["when", "load", "prediction"]


def test_inputs_of_every_kind() -> None:
    expected = small().fit(HOUSE[["heat"]].reset_index(drop=True), HOUSE["load"].to_numpy())
    inputs = TABLE.select(["heat"])
    doors: list[Callable[[], Any]] = [inputs.to_reader, lambda: inputs, lambda: as_relation().select("heat")]
    for rows in doors:
        model = small().fit(rows(), HOUSE["load"].to_numpy())
        assert model.feature_names_in_.tolist() == ["heat"]
        assert model.fitted_.fingerprint == expected.fitted_.fingerprint
        assert len(model.predict(rows(), HOUSE["load"].to_numpy())) == ROWS


def test_a_query_on_a_file(tmp_path: Any) -> None:
    LONG.to_csv(tmp_path / "long.csv", index=False)
    relation = duckdb.connect().sql(f"select * from '{tmp_path}/long.csv' where unique_id = 'u' order by ds")
    model = small().fit(relation)
    only = LONG[LONG["unique_id"] == "u"]
    np.testing.assert_array_equal(model.predict(relation), small().fit(only).predict(only))


# ---- awkward ones


def query(sql: str) -> Any:
    return duckdb.connect().sql(sql)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (lambda: pd.concat([HOUSE, HOUSE], axis=1), r"a name of its own.*'heat', 'load'"),
        (lambda: pa.table([[1.0], [2.0]], names=["load", "load"]), "a name of its own.*'load'"),
        (lambda: query("select 1 as load, 2 as load"), "a name of its own.*'load'"),
        (lambda: HOUSE.iloc[:0], "at least one row"),
        (lambda: pl.DataFrame({"load": []}), "at least one row"),
        (lambda: query("select ('x' || 1)::int as load"), "a query, which failed: ConversionException"),
        (lambda: pl.LazyFrame({"heat": [1.0]}).select("load"), "a query, which failed: ColumnNotFound"),
        (lambda: Capsule(pa.chunked_array([[1.0]])), "rows must come in columns; Capsule"),
        (lambda: pd.DataFrame({"load": [{"watt": 1}]}), "holds text, such as"),
    ],
)
def test_rows_that_cannot_be_read(rows: Callable[[], Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        small().fit(rows(), "load")


def test_awkward_columns_that_can() -> None:
    expected = small().fit(LONG)
    for frame in (
        LONG.astype({"unique_id": "category"}),
        LONG.astype(object),
        LONG.astype({"ds": str, "y": str}),
        LONG.assign(ds=LONG["ds"].dt.tz_localize("UTC").dt.tz_convert("Europe/Vienna")),
        pl.from_pandas(LONG).with_columns(pl.col("unique_id").cast(pl.Categorical)),
    ):
        before = pickle.dumps(frame)
        model = small().fit(frame)
        np.testing.assert_allclose(model.predict(frame), expected.predict(LONG))
        assert pickle.loads(before).equals(frame)
