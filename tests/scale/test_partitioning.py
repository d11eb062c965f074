"""Rows in any order, put together by series: all are there, in order, where the hash says."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

from tests.scale.meters import fitted, meters, together
from varnn.errors import ConfigError, DataError, OutputError
from varnn.scale import partition_files, partitioning, score_files
from varnn.scale.hashing import place_of
from varnn.scale.partitioning import Spills, _apart


def shuffled(folder: Path, files: int = 3) -> polars.DataFrame:
    """Write meters with all rows in disorder, and give them in order."""
    frame = meters(20, 60)
    mixed = frame.sample(fraction=1.0, shuffle=True, seed=1)
    folder.mkdir()
    for number in range(files):
        part = mixed.gather_every(files, number)
        part.write_parquet(folder / f"{number}.parquet", row_group_size=100)
    return frame.sort("meter", "when")


@pytest.mark.parametrize("budget", [1, 1 << 27])
@pytest.mark.parametrize("partitions", [1, 7, 200])
def test_all_rows_are_there_in_order(
    partitions: int, budget: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioning.Spills.__init__, "__defaults__", (budget,))
    frame = shuffled(tmp_path / "in")
    made = partition_files(
        tmp_path / "in", tmp_path / "out", series="meter", time="when", partitions=partitions
    )
    found = [polars.read_parquet(path) for path in made]
    assert polars.concat(found).sort("meter", "when").equals(frame)
    for path, part in zip(made, found, strict=True):
        number = int(path.name.split("-")[1])
        assert {place_of(name, partitions) for name in part["meter"]} == {number}
        assert part.equals(part.sort("meter", "when"))
    there = sorted(one.name for one in (tmp_path / "out").iterdir())
    assert there == ["_partitions.json", *(one.name for one in made)]
    assert json.loads((tmp_path / "out" / "_partitions.json").read_text())["partitions"] == partitions
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in", "out"]  # and no draft


def test_such_a_folder_can_be_scored(tmp_path: Path) -> None:
    frame = shuffled(tmp_path / "in")
    model = fitted(frame)
    partition_files(tmp_path / "in", tmp_path / "parts", series="meter", time="when", partitions=4)
    scored = score_files(model, tmp_path / "parts", tmp_path / "out", workers=1)
    assert not scored.failures and scored.rows == len(frame)
    assert (
        together(tmp_path / "out")
        .select("meter", "when", "load")
        .equals(frame.select("meter", "when", "load"))
    )


def test_rows_stay_in_order_where_times_do_not_tell(tmp_path: Path) -> None:
    rows = polars.DataFrame(
        {"meter": [2, 1, 2, 1], "when": ["9.1.2024", "1.2.2024", "10.1.2024", "3.1.2024"], "n": range(4)}
    )
    rows.write_parquet(tmp_path / "in.parquet")
    for time, place in (("when", "texts"), (None, "none")):
        (path,) = partition_files(tmp_path / "in.parquet", tmp_path / place, series="meter", time=time)
        assert polars.read_parquet(path)["n"].to_list() == [1, 3, 0, 2]


def test_rows_that_wait_hold_no_others_in_memory(tmp_path: Path) -> None:
    """A partition of few rows waits till the end, and must not have all batches wait with it."""
    rows = polars.DataFrame({"meter": ["few"] + 10_000 * ["many"], "load": np.arange(10_001.0)}).to_arrow()
    spills = Spills(tmp_path, 64)
    parts = [one for _, one in _apart(rows, "meter", spills, tmp_path, 0)]
    assert sorted(map(len, parts)) == [1, 10_000]
    assert min(one.get_total_buffer_size() for one in parts) < 1_000


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    shuffled(tmp_path / "in")
    with pytest.raises(DataError, match="Did you mean 'meter'"):
        partition_files(tmp_path / "in", tmp_path / "out", series="metre")
    with pytest.raises(ConfigError, match="from 1 to"):
        partition_files(tmp_path / "in", tmp_path / "out", series="meter", partitions=0)
    with pytest.raises(ConfigError, match="must not lie in"):
        partition_files(tmp_path / "in", tmp_path / "in" / "out", series="meter")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(OutputError, match="not empty"):
        partition_files(tmp_path / "in", tmp_path / "full", series="meter")
    first = polars.read_parquet(tmp_path / "in" / "0.parquet")
    first.with_columns(meter=polars.lit(None, polars.String)).write_parquet(tmp_path / "in" / "1.parquet")
    with pytest.raises(DataError, match=r"row 0 of '1\.parquet' is empty"):
        partition_files(tmp_path / "in", tmp_path / "out", series="meter")
    first.drop("heat").write_parquet(tmp_path / "in" / "1.parquet")
    with pytest.raises(DataError, match="differ in"):
        partition_files(tmp_path / "in", tmp_path / "out", series="meter")
    first.with_columns(heat=polars.lit("warm")).write_parquet(tmp_path / "in" / "1.parquet")
    with pytest.raises(DataError, match="must be of the kinds of"):
        partition_files(tmp_path / "in", tmp_path / "out", series="meter")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["full", "in"]
