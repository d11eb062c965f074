"""Every door into a Panel gives the same panel; what cannot be used is refused in words."""

import gzip
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from varnn import Panel, VARNNRegressor
from varnn.errors import DataError

COLUMNS: dict[str, list[Any]] = {
    "when": ["2026-01-01", "2026-01-01", "2026-01-02", "2026-01-02"],
    "site": ["b", "a", "b", "a"],
    "heat": [1.5, None, 3.5, 4.5],
    "count": [1, 2, 3, 4],
    "note": ["x", "y", "z", "w"],
    "load": [10.0, 20.0, None, 40.0],
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_every_library_give_the_same_panel(library: str) -> None:
    frame = FRAMES[library](COLUMNS)
    before = nw.from_native(frame, eager_only=True).clone()
    panel = Panel.from_frame(frame, target="load", time="when", series="site")
    assert panel.ids == ("b", "a")
    assert panel.starts.tolist() == [0, 2, 4]
    assert panel.input_names == ("heat", "count")
    assert panel.ignored == ("note",)
    np.testing.assert_array_equal(panel.inputs, [[1.5, 1], [3.5, 3], [np.nan, 2], [4.5, 4]])
    np.testing.assert_array_equal(panel.target, [10, np.nan, 20, 40])
    assert panel.time is not None
    assert panel.time.dtype.kind == "M"
    assert panel.rows.tolist() == [0, 2, 1, 3]
    np.testing.assert_array_equal(panel.in_caller_order(panel.target), [10, 20, np.nan, 40])
    assert (
        nw.from_native(frame, eager_only=True).to_dict(as_series=False).__repr__()
        == before.to_dict(as_series=False).__repr__()
    )


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet"])
def test_files_of_every_kind_give_the_same_panel(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    frame = pd.DataFrame(COLUMNS)
    if kind == "parquet":
        parquet.write_table(pa.table(COLUMNS), path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    panel = Panel.read(path, target="load", time="when", series="site")
    expected = Panel.from_frame(frame, target="load", time="when", series="site")
    np.testing.assert_array_equal(panel.inputs, expected.inputs)
    np.testing.assert_array_equal(panel.target, expected.target)
    np.testing.assert_array_equal(panel.time, expected.time)


def test_padded_and_quoted_numbers_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "padded.csv"
    path.write_text('"a","y"\n"  1.5","60"\n" 2","  70"\n')
    panel = Panel.read(path, target="y")
    assert panel.inputs.tolist() == [[1.5], [2.0]]
    assert panel.target.tolist() == [60.0, 70.0]


def test_arrays_are_neither_copied_needlessly_nor_changed() -> None:
    X, y = np.ones((4, 2)), np.ones(4)
    panel = Panel.from_arrays(X, y)
    assert np.shares_memory(panel.inputs, X)
    assert Panel.from_arrays(X.astype(np.float32), y).inputs.dtype == np.float32
    interleaved = Panel.from_arrays(X, y, series=[1, 2, 1, 2])
    interleaved.inputs[:] = 7
    assert X.max() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "laod"}, "Did you mean 'load'"),
        ({"time": "whne"}, "Did you mean 'when'"),
        ({"series": "sites"}, "Did you mean 'site'"),
        ({"inputs": ["heta"]}, "Did you mean 'heat'"),
        ({"inputs": ["when"], "time": None, "series": None}, "row 0 holds '2026-01-01'"),
        ({"inputs": ["load"]}, "cannot also be an input"),
        ({"series": None}, "row 1 repeats"),
    ],
)
def test_a_wrong_column_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Panel.from_frame(
            pd.DataFrame(COLUMNS), **{"target": "load", "time": "when", "series": "site"} | change
        )


def test_a_number_column_with_one_bad_cell_is_not_dropped_in_silence() -> None:
    with pytest.raises(DataError, match=r"column 'heat' must hold numbers; row 2 holds 'warm'"):
        Panel.from_frame(pd.DataFrame({"heat": ["1", "2", "warm"], "y": [1, 2, 3]}), target="y")


def test_unsorted_time_shows_the_first_offending_row() -> None:
    with pytest.raises(DataError, match=r"in series 'b', row 4 goes back to 1 after 5"):
        Panel.from_arrays(None, np.ones(5), series=list("aabab"), time=[1, 2, 5, 3, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, None), "both are None"),
        ((np.ones(3), np.ones(3)), r"two-dimensional.*reshape\(-1, 1\)"),
        ((np.ones((3, 1)), np.ones(2)), r"shape \(3,\); it has shape \(2,\)"),
        ((np.ones((0, 1)), np.ones(0)), "at least one row"),
        (([[np.inf]], [1.0]), "column 'x0' holds infinity in row 0"),
        (([[1.0]], [-np.inf]), "column 'y' holds infinity"),
        (([["a"]], [1.0]), "must hold numbers"),
    ],
)
def test_unusable_arrays_are_refused(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Panel.from_arrays(*arguments)


def test_a_time_column_must_be_complete_and_readable() -> None:
    with pytest.raises(DataError, match="row 1 is empty"):
        Panel.from_frame(pl.DataFrame({"t": [1, None], "y": [1, 2]}), target="y", time="t")
    with pytest.raises(DataError, match="must hold dates"):
        Panel.from_frame(pl.DataFrame({"t": ["noon", "dusk"], "y": [1, 2]}), target="y", time="t")


def test_times_with_a_zone_become_utc() -> None:
    times = pd.to_datetime(["2026-06-01 12:00", "2026-06-01 13:00"]).tz_localize("Europe/Berlin")
    panel = Panel.from_frame(pd.DataFrame({"t": times, "y": [1.0, 2.0]}), target="y", time="t")
    assert panel.time is not None
    assert panel.time[0] == np.datetime64("2026-06-01T10:00")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absent.csv", None, "there is no file"),
        ("empty.csv", "", "cannot be read as a table"),
        ("ragged.csv", "a,b\n1,2\n3\n", "line 3 has 1"),
        ("fake.parquet", "a,b\n1,2\n", "cannot be read as a table"),
        ("header.csv", "a,y\n", "at least one row below the names of its columns; this one has none"),
        (
            "text.csv",
            "day,a,b,y\nMon,1,2,low\nTue,3,4,high\n",
            "column 'y' holds text, such as 'low'. Columns of numbers: a, b. Name another `target`",
        ),
        (
            "words.csv",
            "a,y\nx,low\nz,high\n",
            "holds text, such as 'low'. The table has no column of numbers",
        ),
    ],
)
def test_an_unusable_file_is_one_clear_error(
    name: str, text: str | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        Panel.read(tmp_path / name, target="y")
    assert "\n" not in str(caught.value)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30))
def test_grouping_keeps_rows_together_and_in_order(series: list[str]) -> None:
    values = np.arange(len(series), dtype=float)
    panel = Panel.from_arrays(None, values, series=series)
    for index, name in enumerate(panel.ids):
        rows = panel.target[panel.starts[index] : panel.starts[index + 1]]
        assert rows.tolist() == [row for row, one in enumerate(series) if one == name]
    assert panel.in_caller_order(panel.target).tolist() == values.tolist()
    assert sorted(panel.ids, key=series.index) == list(panel.ids)


def test_steps_that_only_count_the_rows_are_no_input_beside_a_time() -> None:
    hours = pd.date_range("2026-01-01", periods=40, freq="h")
    frame = pd.DataFrame({"date": hours, "time": np.arange(40), "heat": np.arange(40) % 5, "load": 1.0})
    panel = Panel.from_frame(frame, target="load", time="date")
    assert panel.input_names == ("heat",)
    alone = Panel.from_frame(frame.drop(columns="date"), target="load")  # it may be the time, or a trend
    assert alone.input_names == ("time", "heat")


@pytest.mark.parametrize("suffix", [".varnn", ".csv"])
def test_a_model_that_is_given_as_a_table_is_called_one(suffix: str, tmp_path: Path) -> None:
    path = (tmp_path / "model").with_suffix(suffix)  # whatever it is called
    VARNNRegressor(ensemble=1, epochs=1, hidden_size=2).fit(None, np.sin(np.arange(60.0))).save(path)
    with pytest.raises(DataError, match=r"is a model file\. Give it with --model"):
        Panel.read(path, target="y")
