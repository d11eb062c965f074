"""The command as a person meets it: what it prints, what it writes, and how it refuses."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import varnn
from varnn.datasets import synthetic


def run(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from varnn.cli.app import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a table of two series and a model fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    panel = synthetic.panel("drift", rows=240)
    frame = pd.DataFrame(panel.inputs, columns=list(panel.input_names))
    frame.insert(0, "when", pd.date_range("2026-01-01", periods=120, freq="h").repeat(2))
    frame.insert(1, "site", ["north", "south"] * 120)
    frame["note"] = "x"
    frame["load"] = panel.target
    frame.to_csv(folder / "house.csv", index=False)
    fitted = run(
        *("fit", folder / "house.csv", "--target", "load", "--time", "when", "--series", "site"),
        *("-o", folder / "m.varnn", "--epochs", "2", "--hidden-size", "8"),
    )
    assert fitted.returncode == 0, fitted.stderr
    said = [line.strip() for line in fitted.stderr.splitlines()]
    assert said[:5] == [
        "house.csv:",
        "rows     240, in 2 series",
        "target   load, 0.0% missing",
        "time     when, every 1 h, 2026-01-01 00:00 to 2026-01-05 23:00",
        "series   site",
    ]
    assert said[5].startswith("inputs   5: demand, ")
    assert said[6] == "left out note"
    assert said[7].startswith("note:    text is left out: 'note', which is the same in every row.")
    return folder


def test_predictions_are_those_of_the_library_in_the_order_of_the_table(folder: Path) -> None:
    out = folder / "out.csv"
    done = run(
        "predict", folder / "m.varnn", folder / "house.csv", "-o", out, "--time", "when", "--series", "site"
    )
    assert done.returncode == 0, done.stderr
    written = pd.read_csv(out)
    assert written.columns.tolist() == ["when", "site", "load", "prediction"]
    panel = varnn.Panel.read(folder / "house.csv", target="load", time="when", series="site")
    expected = panel.in_caller_order(varnn.load(folder / "m.varnn").predict(panel))
    np.testing.assert_allclose(written["prediction"], expected, rtol=1e-9)


def test_time_and_series_are_those_the_model_was_fitted_with(tmp_path: Path) -> None:
    """They are numbers here, which nobody would guess."""
    rows = np.arange(120)
    table = pd.DataFrame({"step": rows // 2, "unit": rows % 2, "load": np.sin(rows)})
    table.to_csv(tmp_path / "units.csv", index=False)
    roles = ("--target", "load", "--time", "step", "--series", "unit")
    options = (*roles, "--epochs", "1", "-o", tmp_path / "m.varnn")
    assert run("fit", tmp_path / "units.csv", *options).returncode == 0
    done = run("predict", tmp_path / "m.varnn", tmp_path / "units.csv", "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    assert "in 2 series" in done.stderr
    assert pd.read_csv(tmp_path / "out.csv").columns.tolist() == ["step", "unit", "load", "prediction"]
    table[::2].drop(columns=["step", "unit"]).to_csv(tmp_path / "one.csv", index=False)
    done = run("predict", tmp_path / "m.varnn", tmp_path / "one.csv", "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    refused = run("predict", tmp_path / "m.varnn", tmp_path / "one.csv", "--time", "step")
    assert refused.returncode == 2 and "'step' is not in the table" in refused.stderr


def test_a_table_without_the_target_is_predicted_in_closed_loop(folder: Path) -> None:
    table = pd.read_csv(folder / "house.csv").drop(columns="load").head(10)
    table.to_csv(folder / "unlabelled.csv", index=False)
    out = folder / "out.parquet"
    done = run("predict", folder / "m.varnn", folder / "unlabelled.csv", "-o", out, "--series", "site")
    assert done.returncode == 0, done.stderr
    assert "in closed loop" in done.stderr
    predictions = pd.read_parquet(out)["prediction"]
    assert predictions.notna().all()
    table.assign(load="").to_csv(folder / "unlabelled.csv", index=False)  # a column without a label is none
    done = run("predict", folder / "m.varnn", folder / "unlabelled.csv", "-o", out, "--series", "site")
    assert done.returncode == 0, done.stderr
    assert "in closed loop" in done.stderr
    pd.testing.assert_series_equal(pd.read_parquet(out)["prediction"], predictions)


def test_a_stream_of_json_lines_equals_the_library(folder: Path) -> None:
    model = varnn.load(folder / "m.varnn")
    names = model.fitted_.input_names
    x = dict(zip(names, [0.1, 0.2, 0.3, 0.4, 0.5], strict=True))
    lines = [
        {"series": "a", "x": x},
        {"series": "a", "y": 1.5},
        {"series": "b", "x": list(x.values()), "y": None},
        {"series": "a", "x": x, "y": 2.0},
        {"series": "a", "y": 1.0},
        {"series": "a", "x": {"demand": 1}},
        {"neither": 1},
    ]
    text = "\n".join([*map(json.dumps, lines), "not json", "", "[1]"])
    done = run("stream", folder / "m.varnn", stdin=text)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    live = model.stream()
    first = live.predict(x)
    assert answers[0] == {"series": "a", "prediction": first}
    assert answers[1] == {"series": "a", "innovation": live.observe(1.5)}
    assert answers[2] == {"series": "b", "prediction": first, "innovation": None}
    assert answers[3] == {"series": "a", "prediction": live.predict(x), "innovation": live.observe(2.0)}
    assert "Call predict(x) first" in answers[4]["error"]
    assert "lacks" in answers[5]["error"]
    assert "must be an object" in answers[6]["error"]
    assert "line 8 is not JSON" in answers[7]["error"]
    assert "line 10 must be an object" in answers[8]["error"]


def test_a_stream_goes_on_from_its_state_file(folder: Path) -> None:
    generator = np.random.default_rng(0)
    lines = [
        json.dumps({"series": name, "x": generator.normal(size=5).tolist(), "y": float(generator.normal())})
        for _ in range(20)
        for name in ("a", "b")
    ]
    whole = run("stream", folder / "m.varnn", stdin="\n".join(lines)).stdout.splitlines()
    state = folder / "live.state"
    first = run("stream", folder / "m.varnn", "--state", state, stdin="\n".join(lines[:13]))
    second = run("stream", folder / "m.varnn", "--state", state, stdin="\n".join(lines[13:]))
    kept = [json.loads(line) for line in first.stdout.splitlines() + second.stdout.splitlines()]
    assert [one.pop("seq") for one in kept] == [1 + row // 2 for row in range(40)]
    assert kept == [json.loads(line) for line in whole]
    state.write_bytes(state.read_bytes()[:-5])
    damaged = run("stream", folder / "m.varnn", "--state", state, stdin=lines[0])
    assert damaged.returncode == 2
    assert "truncated or damaged" in damaged.stderr


def test_inspecting_a_model_says_what_is_in_it(folder: Path) -> None:
    content = json.loads(run("inspect", folder / "m.varnn", "--json").stdout)
    assert content["target"] == "load"
    assert content["inputs"][0] == "demand"
    assert content["settings"]["hidden_size"] == 8
    shown = run("inspect", folder / "m.varnn").stdout
    assert "microseconds here" in shown
    assert "ARM+AM" in shown


def test_bad_use_of_a_real_process_is_one_line_and_exit_code_2(folder: Path) -> None:
    done = run("fit", folder / "house.csv", "--target", "laod", "-o", folder / "x.varnn")
    assert done.returncode == 2
    assert done.stderr.startswith("error: target column 'laod' is not in the table. Did you mean 'load'?")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (folder / "x.varnn").exists()
    assert "No such command 'dmeo'" in run("dmeo").stderr


@pytest.mark.parametrize("words", [["--help"], ["inspect", "m.varnn"]])
def test_no_colours_in_a_pipe_nor_on_a_terminal_that_asks_for_none(folder: Path, words: list[str]) -> None:
    piped = run(*(folder / one if "." in one else one for one in words))
    assert "\x1b" not in piped.stdout + piped.stderr
    assert "\x1b" not in on_a_terminal(folder, words, {"NO_COLOR": "1"})
    if words != ["--help"]:  # which is plain text
        assert "\x1b" in on_a_terminal(folder, words, {}), "there is something to turn off"


def on_a_terminal(folder: Path, words: list[str], environment: dict[str, str]) -> str:
    pty = pytest.importorskip("pty", reason="only Unix has terminals to make")
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from varnn.cli.app import main; main()", *words],
        cwd=folder,
        env=clean | {"TERM": "xterm-256color"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while block := os.read(ours, 4096):
            said += block
    os.close(ours)
    process.wait(timeout=30)
    return said.decode()


def test_the_shell_can_complete_commands(tmp_path: Path) -> None:
    """Through a console script such as pip makes of what pyproject.toml names."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["varnn"].partition(":")
    script = tmp_path / "varnn"
    script.write_text(f"#!{sys.executable}\nfrom {module} import {function}\n{function}()\n")
    script.chmod(0o755)
    varnn = str(script)
    # What --show-completion prints; that itself looks for the shell it was called from.
    source = os.environ | {"_VARNN_COMPLETE": "source_bash"}
    shown = subprocess.run([varnn], capture_output=True, text=True, env=source, check=True)
    assert "complete -o default -F _varnn_completion varnn" in shown.stdout
    asked = {"_VARNN_COMPLETE": "complete_bash", "COMP_WORDS": "varnn pre", "COMP_CWORD": "1"}
    done = subprocess.run([varnn], capture_output=True, text=True, env=os.environ | asked, check=True)
    assert done.stdout.split() == ["predict"]


def test_a_stream_that_is_told_to_end_keeps_its_state(folder: Path) -> None:
    state = folder / "ended.state"
    command = [
        sys.executable,
        "-c",
        "from varnn.cli.app import main; main()",
        "stream",
        str(folder / "m.varnn"),
    ]
    process = subprocess.Popen(
        [*command, "--state", str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"x": [1, 2, 3, 4, 5], "y": 1}\n')
    process.stdin.flush()
    assert "innovation" in process.stdout.readline()
    process.terminate()
    assert process.wait(timeout=30) == 143
    process.stdin.close()
    process.stdout.close()
    assert state.exists()


def test_the_demonstration_writes_its_report(tmp_path: Path) -> None:
    done = run("demo", "-o", tmp_path / "report.html", "--rows", "1200", "--epochs", "2")
    assert done.returncode == 0, done.stderr
    assert "best possible" in done.stdout
    page = (tmp_path / "report.html").read_text()
    for title in (
        "Around a regime switch",
        "Truth and predictions",
        "Where and when it fails",
        "Which inputs matter",
        "Learning curve",
        "Settings",
    ):
        assert f"<h2>{title}</h2>" in page
    assert page.count("<svg") == page.count('role="img"') >= 4
    named = {"http://www.w3.org", "https://github.com"}  # names of formats, and whose script it is
    assert set(re.findall(r"https?://[^/]*", page)) <= named, "the page asks the network for nothing"


def test_a_comparison_names_the_winner_and_writes_its_page(folder: Path) -> None:
    options = ("--target", "load", "--time", "when", "--series", "site")
    arguments: list[str | Path] = ["compare", folder / "house.csv", *options]
    done = run(*arguments, "--models", "persistence,arx-lr", "--report", folder / "compare.html", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert {line["model"] for line in content["scores"]} == {"persistence", "arx-lr"}
    assert any(said in content["summary"] for said in ("is best", "has the lowest error"))
    page = (folder / "compare.html").read_text()
    assert page.count("<svg") >= 3
    assert content["summary"].split("'")[0] in page
    wrong = run(*arguments, "--models", "persistence,arx-rl")
    assert wrong.returncode == 2
    assert "Did you mean 'arx-lr'" in wrong.stderr
