"""Texts as inputs: which become categories, what is unseen or missing, and that nothing else changes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn import Panel
from varnn.data.categories import MOST_INPUTS, category_numbers
from varnn.data.preparation import with_learnt_inputs
from varnn.errors import DataError

SKY = ["sun", "rain", "sun", None, "fog", " sun", "?", "rain", "sun", "sun", "sun", "fog"]
ROWS = {"heat": np.arange(12.0), "sky": SKY, "load": np.arange(12.0)}
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame(ROWS),
    "pandas category": pd.DataFrame(ROWS).astype({"sky": "category"}),
    "polars": pl.DataFrame(ROWS),
    "polars category": pl.DataFrame(ROWS).with_columns(pl.col("sky").cast(pl.Categorical)),
    "polars enum": pl.DataFrame(ROWS).with_columns(
        pl.col("sky").cast(pl.Enum(["never", "?", "fog", "rain", " sun", "sun"]))
    ),
    "pyarrow": pa.table(ROWS),
    "pyarrow dictionary": pa.table({**ROWS, "sky": pa.array(SKY).dictionary_encode()}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_texts_of_every_library_become_the_same_inputs(kind: str) -> None:
    panel = Panel.from_frame(FRAMES[kind], target="load")
    assert panel.input_names == (
        "heat",
        "sky=sun",
        "sky=rain",
        "sky=fog",
    )  # rain comes first, as often as fog
    assert panel.categories == {"sky": ("sun", "rain", "fog")}
    assert panel.ignored == ()
    expected = [[one is not None and one.strip() == known for known in ("sun", "rain", "fog")] for one in SKY]
    np.testing.assert_array_equal(panel.inputs[:, 1:], expected)


def test_a_csv_and_a_parquet_file_are_read_alike(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    expected = Panel.from_frame(frame, target="load")
    for name in ("a.csv", "a.parquet"):
        panel = Panel.read(tmp_path / name, target="load")
        assert panel.input_names == expected.input_names
        np.testing.assert_array_equal(panel.inputs, expected.inputs)
        assert [note.text for note in panel.notes] == ["text is read as categories: 'sky' (3 values)"]


def test_what_a_user_calls_missing_is_no_category() -> None:
    panel = Panel.from_frame(pd.DataFrame(ROWS), target="load", missing=["FOG"])
    assert panel.categories == {"sky": ("sun", "rain")}


def many(texts: list[str]) -> Panel:
    return Panel.from_frame(pd.DataFrame({"sky": texts, "load": np.arange(len(texts))}), target="load")


def test_names_notes_and_dates_stay_out() -> None:
    assert many([f"row {one}" for one in range(100)]).ignored == ("sky",)
    assert many([f"row {one % 51}" for one in range(1000)]).ignored == ("sky",)
    assert many([f"row {one % 50}" for one in range(1000)]).ignored == ()
    assert many([f"2026-01-{1 + one % 9:02}" for one in range(100)]).n_inputs == 0
    assert many([f"{one % 24:02}:00" for one in range(100)]).n_inputs == 0
    assert many(["always"] * 100).ignored == ("sky",)


def test_only_frequent_categories_have_an_input() -> None:
    panel = many([f"{chr(97 + one)}" for one in range(12) for _ in range(100 + one)] + ["rare"] * 2)
    assert panel.categories == {"sky": tuple("lkjihgfe")}
    assert len(panel.input_names) == MOST_INPUTS
    assert not panel.inputs[-1].any()


def test_numbers_written_as_texts_stay_numbers() -> None:
    panel = many(["1", "2", "?", "1"] * 5)
    assert panel.input_names == ("sky",)
    with pytest.raises(DataError, match="column 'sky' must hold numbers; row 2 holds 'warm'"):
        many(["1", "2", "warm", "1"] * 5)
    assert Panel.from_frame(pd.DataFrame({"on": [True, False], "y": [1, 2]}), target="y").inputs[
        :, 0
    ].tolist() == [1, 0]


def test_a_column_that_is_named_is_taken_or_refused() -> None:
    frame = pd.DataFrame({"sky": list("abcd"), "load": range(4)})
    named = Panel.from_frame(frame, target="load", inputs=["sky"])
    assert named.input_names == ("sky=a", "sky=b", "sky=c", "sky=d")
    notes = pd.DataFrame({"note": [f"note {one}" for one in range(60)], "load": range(60)})
    with pytest.raises(DataError, match="'note' must hold numbers, or categories: at most 50 different"):
        Panel.from_frame(notes, target="load", inputs=["note"])


def test_two_inputs_of_one_name_are_refused() -> None:
    frame = pd.DataFrame({"sky": ["a", "b"] * 4, "sky=a": range(8), "load": range(8)})
    with pytest.raises(DataError, match="'sky=a' is there twice"):
        Panel.from_frame(frame, target="load")


def test_a_model_gets_its_inputs_from_a_panel_that_made_others() -> None:
    panel = Panel.from_frame(pd.DataFrame({"sky": ["hail", "sun", "snow"], "heat": [1.0, 2, 3]}), target=None)
    assert panel.ignored == ("sky",)  # three rows, three texts
    matched = panel.with_inputs(["sky=sun", "heat", "sky=rain"])
    assert matched.inputs.tolist() == [[0, 1, 0], [1, 2, 0], [0, 3, 0]]
    assert matched.categories == {"sky": ("sun", "rain")}


@pytest.mark.parametrize(
    ("frame", "names", "said"),
    [
        ({"sky": [1.0, 2.0]}, ["sky=sun"], "'sky' held texts when the model was fitted, and holds numbers"),
        (
            {"heat": ["low", "high"]},
            ["heat"],
            "'heat' held numbers when the model was fitted, and holds texts",
        ),
        ({"heat": [1.0, 2.0]}, ["sky=sun"], r"lack \['sky=sun'\]"),
    ],
)
def test_texts_and_numbers_taken_for_each_other_are_named(
    frame: dict[str, list[Any]], names: list[str], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        Panel.from_frame(pd.DataFrame(frame), target=None).with_inputs(names)


def test_training_rows_decide_on_the_categories() -> None:
    panel = many(["a", "b"] * 50 + ["new"] * 100)
    assert panel.categories == {"sky": ("new", "a", "b")}
    learnt = with_learnt_inputs(panel, panel.between(0, 100))
    assert learnt.input_names == ("sky=a", "sky=b")
    assert not learnt.inputs[100:].any()
    again = with_learnt_inputs(
        panel.with_inputs(panel.input_names), panel.between(0, 100).with_inputs(panel.input_names)
    )
    assert again.input_names == learnt.input_names  # without the texts themselves as well


def test_rows_keep_their_texts_when_they_are_sorted_cut_and_merged() -> None:
    frame = pd.DataFrame(
        {
            "time": [3, 1, 2, 2, 1, 3],
            "site": list("babaab"),
            "sky": ["s", "r", "s", "r", "r", "s"],
            "load": [3.0, 1, 2, 20, 10, 30],
        }
    )
    panel = Panel.from_frame(frame, target="load", time="time", series="site", sort=True, duplicates="mean")
    wanted = panel.with_inputs(["sky=s", "sky=r"])
    by_row = {(one, time): sky for one, time, sky in zip(frame.site, frame.time, frame.sky, strict=True)}
    series = np.repeat(panel.ids, panel.lengths)
    found = ["s" if one[0] else "r" for one in wanted.inputs]
    assert found == [by_row[key] for key in zip(series, panel.time, strict=True)]  # type: ignore[arg-type]  # these rows have times
    part = panel.ranges(panel.starts[:-1] + 1, panel.starts[1:]).with_inputs(["sky=s"])
    np.testing.assert_array_equal(
        part.inputs, panel.inputs[np.isin(panel.rows, part.rows)][:, [panel.input_names.index("sky=s")]]
    )


TEXTS = st.text(min_size=0, max_size=8) | st.sampled_from(
    ["sun", "rain", "sun ", "x" * 5000, "ß☂", "a=b", "nan"]
)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(TEXTS | st.none(), min_size=1, max_size=60), st.lists(TEXTS | st.none(), min_size=1, max_size=9)
)
def test_any_texts_give_zeros_and_ones_and_the_same_row_by_row(
    before: list[str | None], after: list[str | None]
) -> None:
    frame = pd.DataFrame({"sky": pd.Series(before, dtype=object), "load": range(len(before))})
    try:
        panel = Panel.from_frame(frame, target="load")
    except DataError as error:  # nearly all of them are numbers
        assert "must hold numbers" in str(error) or "finite" in str(error)
        return
    if not panel.categories.get("sky"):
        return
    known = panel.categories["sky"]
    assert set(np.unique(panel.inputs)) <= {0.0, 1.0}
    assert (panel.inputs.sum(axis=1) <= 1).all()
    assert panel.inputs.any(axis=0).all()
    rows = [category_numbers(one, "sky", known) for one in before]
    np.testing.assert_array_equal(panel.inputs, rows)
    wanted = [category_numbers(one, "sky", known) for one in after]
    polars = pl.DataFrame({"sky": pl.Series(after, dtype=pl.String)})
    try:
        later = Panel.from_frame(polars, target=None, inputs=["sky"])
    except DataError as error:  # of so few rows all may look like numbers
        assert "must hold numbers" in str(error)
        return
    if later.texts is not None:  # else nothing is there, or all are numbers
        np.testing.assert_array_equal(later.with_inputs(panel.input_names).inputs, wanted)


def test_a_number_is_no_text() -> None:
    assert category_numbers(float("nan"), "sky", ("sun",)) == [0.0]
    for cell in (1, 2.5, True):
        with pytest.raises(DataError, match="input 'sky' must be a text, such as 'sun', or missing"):
            category_numbers(cell, "sky", ("sun",))
