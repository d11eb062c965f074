"""``varnn fit --each series``, and what predict and inspect do with many models."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from varnn import VARNNRegressor, load
from varnn.cli.app import main
from varnn.errors import OutputError
from varnn.scale import Models

Run = Callable[..., tuple[int, str, str]]
SMALL = ["--epochs", "1", "--ensemble", "1", "--hidden-size", "4"]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs the command in this process and gives its exit code, output and words."""

    def once(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["varnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, error = capfd.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, out, " ".join(error.split())

    return once


def meters(rows: int = 60, bad: bool = True) -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(3 * rows, 2)), columns=["heat", "load"])
    frame["sky"] = np.where(np.arange(3 * rows) % 4 < 2, "sun", "rain")
    frame.loc[frame.index % 3 == 1, "sky"] = "sun"  # what all rows of the second one hold tells nothing
    frame.insert(0, "meter", ["a", "b", "bad"] * rows)  # mixed
    frame.insert(0, "when", pd.date_range("2026-01-01", periods=rows, freq="h").repeat(3))
    if bad:
        frame.loc[frame["meter"] == "bad", "load"] = np.nan
    return frame


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "meters.csv"
    meters().to_csv(path, index=False)
    return path


def test_one_model_does_not_take_the_place_of_many(run: Run, table: Path, tmp_path: Path) -> None:
    many, roles = tmp_path / "meters.varnns", ["--target", "load", "--series", "meter"]
    assert run("fit", table, *roles, "--each", "series", "-o", many, "--workers", "1", *SMALL)[0] == 0
    before = many.read_bytes()
    code, _, said = run("fit", table, *roles, "-o", many, *SMALL)  # --each was forgotten
    assert code == 2 and "files of many end in .varnns" in said
    models = load(many)
    with pytest.raises(OutputError, match="such as of many models"):
        models["a"].save(many)
    with pytest.raises(OutputError, match="such as of many models"):
        models.export("a", many)
    assert many.read_bytes() == before


def test_one_model_for_each_series_and_predictions_of_all(
    run: Run, table: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models, fit = tmp_path / "meters.varnns", ["fit", table, "--target", "load", "--series", "meter"]
    fit += ["--each", "series", "-o", models, "--workers", "1", *SMALL]
    code, _, said = run(*fit)
    assert code == 0, said
    assert "2 models of 3 series are in" in said and "1 of 3 models failed: 'bad': the target 'load'" in said
    code, out, _ = run(*fit, "--json")
    found = json.loads(out)
    assert code == 0 and found["fitted"] == 2 and found["of"] == 3 and list(found["failed"]) == ["bad"]

    code, _, said = run("predict", models, table, "-o", tmp_path / "out.csv", "--interval", "0.9")
    assert code == 0, said
    assert "Predicted 180 rows one step ahead, each series by its own model." in said
    assert "1 of 3 series have no model" in caplog.text
    predicted, rows = pd.read_csv(tmp_path / "out.csv"), meters()
    assert predicted["meter"].tolist() == rows["meter"].tolist()
    assert predicted.columns.tolist() == ["when", "meter", "load", "prediction", "lower_90", "upper_90"]
    of_bad = predicted["meter"] == "bad"
    assert (
        predicted.loc[of_bad, "prediction"].isna().all() and predicted.loc[~of_bad, "upper_90"].notna().all()
    )
    alone: VARNNRegressor = load(models)["b"]
    assert alone.fitted_.input_names == ("heat",) and Models.open(models).columns[0] == ["heat", "sky"]
    wanted = alone.predict_frame(rows[rows["meter"] == "b"], time="when", series="meter")
    np.testing.assert_allclose(
        predicted.loc[predicted["meter"] == "b", "prediction"], wanted["prediction"], rtol=1e-9
    )

    code, out, _ = run("inspect", models)
    assert code == 0 and "1 of 3 models failed:" in out and "settings of 2" in out
    code, out, _ = run("inspect", models, "--json")
    facts = json.loads(out)
    assert facts["names"] == ["a", "b"] and list(facts["failed"]) == ["bad"]
    assert facts["settings"][0]["models"] == 2 and facts["settings"][0]["hidden_size"] == 4


def test_all_failing_is_an_error_and_a_folder_will_do(run: Run, table: Path, tmp_path: Path) -> None:
    frame = meters(bad=False)
    frame["load"] = np.nan
    frame.loc[:2, "load"] = 1.0
    frame.to_csv(table, index=False)
    fit = [
        "fit",
        table,
        "--target",
        "load",
        "--series",
        "meter",
        "--each",
        "series",
        "--workers",
        "1",
        *SMALL,
    ]
    code, _, said = run(*fit, "-o", tmp_path / "folder")
    assert code == 2 and "error: all 3 series failed; the first: " in said, said
    code, _, said = run("predict", tmp_path / "folder", table)
    assert code == 2 and "there is no model in" in said
    meters(bad=False).to_csv(table, index=False)
    code, _, said = run(*fit, "-o", tmp_path / "folder")
    assert code == 0 and "3 models of 3 series are in" in said
    assert sorted(one.name for one in (tmp_path / "folder").glob("*.varnn")) == [
        "a.varnn",
        "b.varnn",
        "bad.varnn",
    ]
    code, _, said = run(*fit, "-o", tmp_path / "folder")
    assert "3 models of 3 series are in" in said and "3 of them before" in said


def test_wrong_use_is_one_line(run: Run, table: Path, tmp_path: Path) -> None:
    fit, out = ["fit", table, "--target", "load"], ["-o", tmp_path / "m.varnns"]
    for more, said in (
        (["--each", "row"], "--each must be one of ['series']"),
        (["--workers", "2"], "--workers is for --each series"),
        (["--no-resume"], "--resume is for --each series"),
        (["--each", "series", "--series", "none", "--time", "none"], "needs a column that says which series"),
    ):
        code, _, heard = run(*fit, *out, *more)
        assert code == 2 and said in heard, heard
    (tmp_path / "m.varnns").write_text("else" * 2000)
    code, _, heard = run(*fit, *out, "--each", "series", "--series", "meter")
    assert code == 2 and "m.varnns' is damaged, or no file of many models" in heard


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(run: Run, tmp_path: Path) -> None:
    rows, names = 80, [f"m{number}" for number in range(30)]
    frame = pd.DataFrame(
        {"meter": np.repeat(names, rows), "load": np.tile(np.sin(np.arange(rows)), len(names))}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    models = tmp_path / "m.varnns"
    fit = [
        "fit",
        tmp_path / "t.csv",
        "--target",
        "load",
        "--series",
        "meter",
        "--each",
        "series",
        "-o",
        models,
    ]
    command = [
        sys.executable,
        "-c",
        "from varnn.cli.app import main; main()",
        *map(str, fit),
        "--workers",
        "2",
    ]
    process = subprocess.Popen([*command, *SMALL], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if models.exists() and models.stat().st_size and len(Models.open(models)):
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    said = " ".join(said.split())
    assert "those that are finished are kept" in said and "the same command goes on with them" in said
    kept = list(Models.open(models))
    assert 0 < len(kept) < 30
    code, _, heard = run(*fit, "--workers", "1", *SMALL)
    assert code == 0 and f"30 models of 30 series are in {models}, {len(kept)} of them before" in heard


def test_names_of_files_say_how_many_models_are_in_them(run: Run, table: Path, tmp_path: Path) -> None:
    fit = ["fit", table, "--target", "load", "--series", "meter", *SMALL]
    code, _, said = run(*fit, "-o", tmp_path / "one.varnns")
    assert code == 2 and "one model is fitted here, and files of many end in .varnns" in said
    code, _, said = run(*fit, "--each", "series", "-o", tmp_path / "many.varnn")
    assert code == 2 and "files of one model end in .varnn" in said and "many.varnns" in said
    assert not list(tmp_path.glob("*.varnn*"))


def test_commands_that_take_one_model_say_what_they_were_given(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tmp_path / "meters.varnns"
    each = ["--each", "series", "--series", "meter", "--workers", "1"]
    assert run("fit", table, "--target", "load", *each, *SMALL, "-o", many)[0] == 0
    monkeypatch.chdir(tmp_path)
    for command in (["stream", many], ["forecast", table, "--model", many], ["serve", many, "--port", "0"]):
        code, _, said = run(*command)
        assert code == 2 and "holds many models" in said and "export" in said, said
        assert ".part" not in said


def test_rows_that_say_nothing_of_their_series_are_refused_in_words(
    run: Run, table: Path, tmp_path: Path
) -> None:
    many = tmp_path / "meters.varnns"
    each = ["--each", "series", "--series", "meter", "--workers", "1"]
    assert run("fit", table, "--target", "load", *each, *SMALL, "-o", many)[0] == 0
    frame = meters()
    alone = tmp_path / "alone.csv"
    frame[frame["meter"] == "a"].drop(columns="meter").to_csv(alone, index=False)
    code, _, said = run("predict", many, alone, "-o", tmp_path / "out.csv")
    assert code == 2 and "column 'meter'" in said and "which series" in said, said


def test_what_all_models_warn_of_is_said_once(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, many = tmp_path / "meters.csv", tmp_path / "meters.varnns"
    meters(bad=False).to_csv(table, index=False)
    each = ["--each", "series", "--series", "meter", "--workers", "1"]
    assert run("fit", table, "--target", "load", *each, *SMALL, "-o", many)[0] == 0
    meters().drop(columns="load").to_csv(table, index=False)
    caplog.clear()
    assert run("predict", many, table, "-o", tmp_path / "out.csv")[0] == 0
    said = [one.getMessage() for one in caplog.records]
    assert sum("closed loop" in one for one in said) == 1, said
    assert sum("these begin at" in one for one in said) == 1, said
