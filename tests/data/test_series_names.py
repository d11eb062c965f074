"""Which series a row belongs to: from a column of names to rows series by series, block by block."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from varnn import Panel
from varnn.data import _columns, files, grouping, roles
from varnn.data.files import read_table
from varnn.data.grouping import Coded
from varnn.errors import DataError

NAMES = st.lists(st.sampled_from(["b", "a", "Ω", "a b", "0", "1"]), min_size=1, max_size=40)


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_columns, grouping, roles):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", 7)


FRAMES: dict[str, Callable[[list[str]], Any]] = {
    "pandas": lambda names: pandas.DataFrame({"s": names}),
    "pandas category": lambda names: pandas.DataFrame(
        {"s": pandas.Categorical(names, categories=["never", *sorted(set(names))])}
    ),
    "polars": lambda names: polars.DataFrame({"s": names}),
    "polars category": lambda names: polars.DataFrame({"s": polars.Series(names, dtype=polars.Categorical)}),
    "arrow": lambda names: pa.table({"s": names}),
    "arrow in blocks": lambda names: pa.concat_tables([pa.table({"s": [one]}) for one in names]),
    "arrow dictionary": lambda names: pa.table({"s": pa.array(names).dictionary_encode()}),
}


@pytest.mark.parametrize("kind", FRAMES)
@given(names=NAMES)
def test_names_are_numbered_as_they_first_appear(kind: str, names: list[str]) -> None:
    found = _columns.coded(nw.from_native(FRAMES[kind](names), eager_only=True)["s"], "s")
    expected = tuple(dict.fromkeys(names))
    assert found.names == expected
    assert [found.names[code] for code in found.codes] == names
    assert Coded.of(np.array(names)).names == expected
    np.testing.assert_array_equal(Coded.of(np.array(names)).codes, found.codes)


@pytest.mark.parametrize("values", [[3, 1, 3], [1.5, 0.5, 1.5], [True, False, True]])
def test_other_kinds_of_names(values: list[Any]) -> None:
    for frame in (pandas.DataFrame({"s": values}), polars.DataFrame({"s": values})):
        found = _columns.coded(nw.from_native(frame, eager_only=True)["s"], "s")
        assert found.names == (str(values[0]), str(values[1]))
        assert found.codes.tolist() == [0, 1, 0]


def test_names_of_mixed_kinds_are_names_too() -> None:
    frame = pandas.DataFrame({"s": ["a", 1, "a"], "y": [1.0, 2.0, 3.0]})
    assert Panel.from_frame(frame, target="y", series="s").ids == ("a", "1")


CELLS = st.lists(st.sampled_from(["1", "-2.5e3", " 7 ", "NA", "", None, "?"]), min_size=1, max_size=30)


@given(cells=CELLS)
def test_numbers_written_as_text_are_read_cell_by_cell(cells: list[str | None]) -> None:
    blank = [cell is None or cell in ("NA", "", "?") for cell in cells]
    expected = [np.nan if empty else float(str(cell)) for cell, empty in zip(cells, blank, strict=True)]
    kinds = pandas.Categorical(
        cells, categories=["no number", *sorted({one for one in cells if one is not None})]
    )
    for frame in (
        pandas.DataFrame({"x": kinds}),
        polars.DataFrame({"x": cells}, schema={"x": polars.String}),
    ):
        column = nw.from_native(frame, eager_only=True)["x"]
        np.testing.assert_array_equal(_columns.numbers(column, "x"), expected)
        assert _columns.is_nearly_numeric(column) == (not all(blank))


def test_a_word_among_numbers_is_found_in_its_row() -> None:
    frame = pandas.DataFrame({"x": ["1", "2", "lots", "1", "few"], "y": 1.0})
    with pytest.raises(DataError, match="row 2 holds 'lots'"):
        Panel.from_frame(frame, target="y")
    frame["x"] = ["1", "some", "lots", "1", "few"]
    assert Panel.from_frame(frame, target="y").ignored == ("x",)


@given(names=NAMES)
def test_rows_are_grouped_as_a_stable_sort_groups_them(names: list[str]) -> None:
    coded = Coded.of(np.array(names))
    starts, rows = coded.grouping()
    np.testing.assert_array_equal(rows, np.argsort(coded.codes, kind="stable"))
    np.testing.assert_array_equal(np.diff(starts), np.bincount(coded.codes))


@given(names=NAMES, data=st.data())
def test_times_increase_within_series_or_not(names: list[str], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 30), min_size=len(names), max_size=len(names)))
    coded, moments = Coded.of(np.array(names)), np.array(times)
    separate = [moments[coded.codes == code] for code in range(len(coded.names))]
    expected = all((np.diff(one) > 0).all() for one in separate)
    pairs = len(names) - len(coded.names)
    assert roles._increases(moments, coded) == (expected and 2 * pairs >= len(names) - 1)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_texts_of_a_file_come_as_numbers_of_a_list(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a name appears for the first time after a million bytes; of large tables in one piece."""
    monkeypatch.setattr(files, "_LARGE", 1 << 20)
    names = ["early"] * 150_000 + ["late, and quoted", "early"] * 75_000
    rows = pa.table({"s": names, "y": np.arange(300_000) / 8})
    path = tmp_path / "data"
    (csv.write_csv if kind == "csv" else parquet.write_table)(rows, path)
    read = read_table(path).table
    assert pa.types.is_dictionary(read["s"].type)
    assert [column.num_chunks for column in read.columns] == [1, 1]
    assert read["s"].to_pylist() == names
    found = Panel.read(path, target="y", series="s")
    assert found.ids == ("early", "late, and quoted")
    assert found.lengths.tolist() == [225_000, 75_000]
    assert found.target[225_000] == 150_000 / 8
