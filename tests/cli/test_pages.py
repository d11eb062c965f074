"""``--report`` of commands, and ``varnn monitor``: pages are written, events listed, wrong use refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from varnn.cli.app import app
from varnn.errors import VarnnError

SMALL = ["--epochs", "1", "--hidden-size", "4", "--ensemble", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a table, its later rows with a change, and a model with its page."""
    path = tmp_path_factory.mktemp("pages")
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2026-01-01", periods=900, freq="h"),
            "heat": generator.normal(size=900),
            "note": [f"text {one}" for one in range(900)],
        }
    )
    frame["load"] = frame["heat"] + 0.2 * generator.normal(size=900)
    frame.loc[800:, "load"] += 3 * generator.normal(size=100)
    frame[:600].to_csv(path / "house.csv", index=False)
    frame[600:].to_csv(path / "later.csv", index=False)
    frame[600:650].drop(columns="load").to_csv(path / "blind.csv", index=False)
    done = CliRunner().invoke(
        app,
        [
            *(
                "fit",
                str(path / "house.csv"),
                "--target",
                "load",
                "-o",
                str(path / "m.varnn"),
                "--horizon",
                "3",
            ),
            *("--report", str(path / "fit.html"), *SMALL),
        ],
    )
    assert done.exit_code == 0, done.output
    return path


def invoke(*words: object) -> str:
    done = CliRunner().invoke(app, [str(one) for one in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_fit_writes_a_page_of_what_was_understood(folder: Path) -> None:
    page = (folder / "fit.html").read_text()
    assert "house.csv: fit of load" in page and "(a guess)" in page
    assert "text is left out: &#x27;note&#x27; (600 values)" in page
    assert "held-out rows" in page


@pytest.mark.parametrize("data", ["later.csv", "blind.csv"])
def test_predictions_write_a_page(folder: Path, data: str) -> None:
    out, page = folder / "out.csv", folder / f"{data}.html"
    invoke("predict", folder / "m.varnn", folder / data, "-o", out, "--report", page)
    assert f"{data}: predictions of load" in page.read_text()


@pytest.mark.parametrize("levels", [[], ["--interval", "0.8"]])
def test_a_forecast_writes_a_page(folder: Path, levels: list[str]) -> None:
    page = folder / "forecast.html"
    words = ["--model", folder / "m.varnn", "-o", folder / "out.csv", "--report", page, *levels]
    invoke("forecast", folder / "later.csv", *words)
    assert ("80 % interval" if levels else "90 % interval") in page.read_text()


def test_a_monitor_lists_events_and_writes_a_page(folder: Path) -> None:
    page = folder / "monitor.html"
    facts = json.loads(
        invoke("monitor", folder / "m.varnn", folder / "later.csv", "--json", "--report", page)
    )
    first = facts["events"][0]
    assert (
        first["kind"] == "variance change"
        and first["time"].startswith("2026-02-0")
        and 200 <= first["row"] < 260
    )
    assert first["words"] in page.read_text() or first["time"] in page.read_text()
    assert facts["summary"].startswith(str(len(facts["events"])))
    said = invoke("monitor", folder / "m.varnn", folder / "later.csv")
    assert first["words"] in said and facts["summary"].partition(" The last")[0] in said
    quiet = json.loads(invoke("monitor", folder / "m.varnn", folder / "house.csv", "--json"))
    assert len(quiet["events"]) <= 1


def test_what_has_no_page_is_refused_before_the_work(folder: Path) -> None:
    house, page = folder / "house.csv", ["--report", folder / "no.html"]
    fit = ["fit", house, "--target", "load", "-o"]
    wrong: dict[str, list[object]] = {
        "target column 'load' is not in": ["monitor", folder / "m.varnn", folder / "blind.csv"],
        "DATA is a folder": ["predict", folder / "m.varnn", folder, *page],
        "--backtest fits many": ["forecast", house, "--target", "load", "--backtest", *page],
        "--each fits many": [*fit, folder / "x.varnns", "--each", "series", *page],
        "/nowhere": [*fit, folder / "x.varnn", "--report", "/nowhere/x.html"],
    }
    for said, words in wrong.items():
        done = CliRunner().invoke(app, [str(one) for one in words])
        assert isinstance(done.exception, VarnnError) and said in str(done.exception), done.output
    assert not (folder / "no.html").exists() and not (folder / "x.varnn").exists()


_WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("sklearn", "scipy", "matplotlib", "torch", "numba"):
            raise ModuleNotFoundError(name, name=name.split(".")[0])

sys.meta_path.insert(0, Absent())
from varnn.cli.app import main
main()
"""


def test_pages_of_a_model_need_no_package_beyond_those_that_predict(folder: Path) -> None:
    for words in (
        ["predict", folder / "m.varnn", folder / "later.csv", "-o", folder / "o.csv"],
        ["forecast", folder / "later.csv", "--model", folder / "m.varnn", "-o", folder / "o.csv"],
        ["monitor", folder / "m.varnn", folder / "later.csv"],
    ):
        page = folder / f"light {words[0]}.html"
        line = [sys.executable, "-c", _WITHOUT, *map(str, words), "--report", str(page)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert page.stat().st_size > 50_000
