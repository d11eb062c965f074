"""``varnn tune``: a table in, a model whose settings were searched for, a verdict and a page out."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import varnn
from varnn.cli.app import main

SPACE = '{"hidden_size": [4, 8], "window": {"low": 4, "high": 12}, "experts": [[], ["boosting"]]}'
PROGRAM = "from varnn.cli.app import main; main()"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Give a table of labels and an input."""
    labels = np.sin(np.arange(240) / 9) + np.random.default_rng(0).normal(size=240) / 5
    frame = pd.DataFrame({"heat": np.roll(labels, 3), "load": labels})
    frame.to_csv(tmp_path / "house.csv", index=False)
    return tmp_path / "house.csv"


def tune(capfd: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["varnn", "tune", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    out, error = capfd.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, out, error


def test_a_model_a_page_and_a_study_are_left(
    table: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = table.parent
    command: list[str | Path] = [
        table,
        "--target",
        "load",
        "--origins",
        "1",
        "--space",
        SPACE,
        "--study",
        folder / "s.db",
    ]
    files: list[str | Path] = ["-o", folder / "m.varnn", "--report", folder / "page.html"]
    code, out, error = tune(capfd, monkeypatch, *command, *files, "--trials", "2")
    assert code == 0, error
    assert out.startswith(("The default is kept", "The tuned model is better"))
    assert f"Saved {folder / 'm.varnn'}" in error and f"Report: {folder / 'page.html'}" in error
    assert varnn.load(folder / "m.varnn").fitted_.training.trained_on == 240
    text = (folder / "page.html").read_text()
    assert "house.csv: tuning" in text and "What was understood" in text
    code, out, error = tune(capfd, monkeypatch, *command, "--trials", "3", "--json")
    found = json.loads(out)
    assert code == 0 and len(found["trial_table"]) == 3
    assert {"kept_default", "validation_ratio", "test_ratio", "test_mse", "words", "data"} <= set(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trials", "0"], "'--trials'"),
        (["--minutes", "0"], "minutes must be a number, above 0, or None; got 0.0"),
        (["--space", "window"], "space must be JSON such as"),
        (["--space", '{"widow": [3, 4]}'], "Did you mean 'window'?"),
        (["--study", "house.csv"], "study must be a SQLite file of an earlier search"),
        (["-o", "nowhere/m.varnn"], "the folder 'nowhere' does not exist"),
    ],
)
def test_bad_use_is_one_line(
    arguments: list[str],
    said: str,
    table: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(table.parent)
    code, out, error = tune(capfd, monkeypatch, table, "--target", "load", *arguments)
    assert code == 2 and not out
    assert said in " ".join(error.split())
    assert "Traceback" not in error


def test_ctrl_c_says_where_trials_are(table: Path) -> None:
    study = table.parent / "s.db"
    command = ["tune", str(table), "--target", "load", "--minutes", "9", "--study", str(study)]
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *command], stderr=subprocess.PIPE, text=True)
    while not study.exists():  # trial 0 begins
        time.sleep(0.05)
        assert process.poll() is None
    time.sleep(2)
    os.kill(process.pid, signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert f"the search was cut short: trials are kept in {study}." in " ".join(said.split())
    assert "Traceback" not in said
