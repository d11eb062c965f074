"""``varnn predict`` of a folder: a file for each, and what is said of those that cannot be."""

import json
from pathlib import Path

import polars
import pytest
from typer.testing import CliRunner

from tests.scale.meters import fitted, meters, together, written
from varnn.cli.app import app
from varnn.scale import score_files


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folders")
    frame = meters(6, 120)
    fitted(frame.filter(polars.col("meter") < "m003")).save(place / "m.varnn")
    written(frame, place / "in", 3)
    return place


def test_a_folder_in_means_a_folder_out(place: Path, tmp_path: Path) -> None:
    arguments = ["predict", place / "m.varnn", place / "in", "-o", tmp_path / "out", "--workers", "1"]
    done = CliRunner().invoke(app, [*map(str, arguments), "--interval", "0.9"])
    assert done.exit_code == 0, done.output
    assert f"Predicted 765 rows of 6 series in 3 files. Wrote {tmp_path / 'out'}." in done.stderr
    score_files(place / "m.varnn", place / "in", tmp_path / "ours", interval=0.9, workers=1)
    assert together(tmp_path / "out").equals(together(tmp_path / "ours"))
    again = CliRunner().invoke(app, [*map(str, arguments), "--interval", "0.9", "--json"])
    files = json.loads(again.stdout)["files"]
    assert [one["before"] for one in files] == [True] * 3
    assert sum(one["rows"] for one in files) == 765 and files[0]["failure"] is None


def test_files_that_cannot_be_predicted_are_named(place: Path, tmp_path: Path) -> None:
    frame = meters(6, 120)
    written(frame, tmp_path / "in", 3)
    (tmp_path / "in" / "part-1.parquet").write_bytes(b"no table")
    arguments = ["predict", place / "m.varnn", tmp_path / "in", "-o", tmp_path / "out", "--workers", "1"]
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code != 0
    assert "part-1.parquet" in done.stderr and "cannot be read as Parquet" in done.stderr
    assert "1 of 3 files could not be predicted" in str(done.exception)
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["part-0.parquet", "part-2.parquet"]


def test_columns_are_named_by_the_options_of_a_table(place: Path, tmp_path: Path) -> None:
    frame = meters(6, 120).rename({"meter": "metre", "when": "hour", "load": "y"})
    (tmp_path / "in").mkdir()
    frame.write_parquet(tmp_path / "in" / "all.parquet")
    arguments = ["predict", place / "m.varnn", tmp_path / "in", "-o", tmp_path / "out", "--workers", "1"]
    named = ["--series", "metre", "--time", "hour", "--target", "y"]
    done = CliRunner().invoke(app, [*map(str, arguments), *named])
    assert done.exit_code == 0, done.exception
    found = polars.read_parquet(tmp_path / "out" / "all.parquet")
    assert found.columns == ["hour", "metre", "y", "prediction"]
    plain = ["predict", place / "m.varnn", place / "in", "-o", tmp_path / "plain", "--workers", "1"]
    assert CliRunner().invoke(app, [*map(str, plain)]).exit_code == 0
    ours, theirs = found.sort("metre", "hour")["prediction"], together(tmp_path / "plain")["prediction"]
    assert (ours - theirs).abs().max() < 1e-5  # type: ignore[operator]  # numbers, as polars cannot tell


def test_what_is_for_folders_is_refused_of_a_file(place: Path, tmp_path: Path) -> None:
    file = place / "in" / "part-0.parquet"
    for option in (["--workers", "2"], ["--cluster", "auto"]):
        done = CliRunner().invoke(app, [*map(str, ["predict", place / "m.varnn", file]), *option])
        assert "are for folders" in str(done.exception)
    done = CliRunner().invoke(app, [*map(str, ["predict", place / "m.varnn", place / "in"])])
    assert "go to a folder" in str(done.exception)
