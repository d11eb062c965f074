"""``varnn forecast``, as a user runs it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.cli.test_commands import run
from varnn import VARNNRegressor
from varnn.cli.app import app
from varnn.data.panel import Panel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a table of two series, a model that looks three rows ahead, and coming plans."""
    folder = tmp_path_factory.mktemp("forecast")
    generator = np.random.default_rng(0)
    plan = generator.normal(size=400)
    table = pd.DataFrame(
        {
            "when": list(pd.date_range("2026-01-01", periods=200, freq="h")) * 2,
            "place": ["a"] * 200 + ["b"] * 200,
            "plan": plan,
            "load": plan + 0.1 * generator.normal(size=400),
        }
    )
    table.to_csv(folder / "house.csv", index=False)
    coming = pd.DataFrame(
        {
            "when": list(pd.date_range("2026-01-09 08:00", periods=3, freq="h")) * 2,
            "place": ["a"] * 3 + ["b"] * 3,
            "plan": [1.0, 2.0, 3.0, -1.0, -2.0, -3.0],
        }
    )
    coming.to_csv(folder / "plan.csv", index=False)
    panel = Panel.read(folder / "house.csv", target="load", time="when", series="place")
    small = VARNNRegressor(horizon=3, known_inputs=["plan"], hidden_size=4, ensemble=1, epochs=2)
    small.fit(panel).save(folder / "house.varnn")
    return folder


def test_the_next_rows_as_a_table(folder: Path) -> None:
    done = run(
        "forecast", folder / "house.csv", "--target", "load", "--model", folder / "house.varnn",
        "--future", folder / "plan.csv", "--interval", "0.5", "--interval", "0.9", "-o", folder / "next.csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Forecast 3 rows of 2 series." in done.stderr and done.stdout == ""
    found = pd.read_csv(folder / "next.csv", parse_dates=["when"])
    assert found["place"].tolist() == ["a"] * 3 + ["b"] * 3 and found["ahead"].tolist() == [1, 2, 3] * 2
    assert found["when"].iloc[0] == pd.Timestamp("2026-01-09 08:00")
    np.testing.assert_allclose(found["prediction"], [1, 2, 3, -1, -2, -3], atol=1.0)  # the plan was read
    for outer, inner in (("lower_90", "lower_50"), ("upper_50", "upper_90")):
        assert (found[outer] <= found[inner]).all()


def test_a_model_knows_its_target(folder: Path) -> None:
    tables = []
    for named in ((), ("--target", "load")):
        done = run(
            "forecast", folder / "house.csv", "--model", folder / "house.varnn", "--future",
            folder / "plan.csv", *named,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        tables.append(done.stdout)
    assert tables[0] == tables[1]
    done = run("forecast", folder / "house.csv")
    assert done.returncode == 2
    assert done.stderr.startswith("error: the column to predict must be named")


def test_a_table_on_standard_output_is_all_that_is_there(folder: Path) -> None:
    done = run(
        "forecast", "-", "--target", "load", "--model", folder / "house.varnn",
        "--future", folder / "plan.csv", "--horizon", "2", stdin=(folder / "house.csv").read_text(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].replace('"', "") == "place,when,ahead,prediction" and len(lines) == 5
    assert done.stderr == ""


def test_a_backtest_in_words_and_for_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 20)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 1)
    asked = ["forecast", str(folder / "house.csv"), "--target", "load", "--horizon", "3", "--backtest"]
    shown = CliRunner().invoke(app, asked).output
    assert "80 test rows" in shown and "recursive ARX" in shown and "coverage of 90% intervals" in shown
    assert "40 test rows" in CliRunner().invoke(app, [*asked, "--max-rows", "200"]).output
    facts = json.loads(CliRunner().invoke(app, [*asked, "--json", "--known", "plan"]).stdout)
    assert facts["rows"] == 80 and len(facts["mse"]["VARNN"][0]) == 3
    assert facts["mse"]["VARNN"][0][2] < facts["mse"]["recursive ARX"][0][2]  # it was told the plan


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "house.varnn", "--horizon", "9"], "was fitted for 3 rows ahead; got --horizon 9"),
        (["--model", "house.varnn"], "give their next 3 values"),
        (["--model", "house.varnn", "--backtest"], "leave out --backtest"),
        (["--model", "house.varnn", "--future", "house.csv", "--json"], "cannot both go to standard output"),
        (["--model", "absent.varnn"], "there is no model file"),
        (["--known", "tariff"], "known_inputs must name"),
        (["--interval", "90", "--model", "house.varnn", "--future", "plan.csv"], "level"),
        (["-o", "absent/next.csv"], "absent"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_refusals_are_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], said: str
) -> None:
    monkeypatch.chdir(folder)
    done = run("forecast", "house.csv", "--target", "load", *more)
    assert done.returncode == 2
    complaint = done.stderr.splitlines()[-1]
    assert complaint.startswith("error: ") and said in complaint
    assert "Traceback" not in done.stderr and not (folder / "absent").exists()
