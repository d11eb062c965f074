"""``unique_id, ds, y`` need no options, and come back under their names."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from varnn.cli.app import app

ROWS = 150
QUICK = ["--epochs", "1", "--ensemble", "1", "--hidden-size", "4"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two series of numbers for names, and a third column that is no input by mistake."""
    generator = np.random.default_rng(0)
    days = pd.date_range("2025-01-01", periods=ROWS, freq="D")
    parts = [
        pd.DataFrame({"unique_id": number, "ds": days, "y": np.cumsum(generator.normal(size=ROWS))})
        for number in (7, 8)
    ]
    path = tmp_path_factory.mktemp("long") / "long.csv"
    pd.concat(parts).to_csv(path, index=False)
    return path


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout + done.stderr


def test_a_long_table_needs_no_options(table: Path, tmp_path: Path) -> None:
    said = run("fit", table, "-o", tmp_path / "m.varnn", *QUICK)
    assert "y, 0.0% missing" in said and "300, in 2 series" in said
    assert "ds, every 1 d" in said and "unique_id  (a guess" in said
    run("predict", tmp_path / "m.varnn", table, "-o", tmp_path / "p.csv", "--interval", "0.9")
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.columns.tolist() == ["ds", "unique_id", "y", "prediction", "lower_90", "upper_90"]
    assert len(found) == 2 * ROWS and set(found["unique_id"]) == {7, 8}


def test_forecasts_keep_the_names(table: Path, tmp_path: Path) -> None:
    run("forecast", table, "--horizon", "2", "--max-rows", "200", "-o", tmp_path / "f.csv")
    found = pd.read_csv(tmp_path / "f.csv")
    assert found.columns.tolist()[:2] == ["unique_id", "ds"] and len(found) == 4
    assert found["ds"].str.startswith("2025-05-31").sum() == 2


def test_models_are_compared_on_it(table: Path) -> None:
    said = run("compare", table, "--models", "persistence,arx-lr", "--seeds", "1")
    assert "unique_id" in said and "persistence" in said


@pytest.mark.parametrize("command", [["fit", "-o", "m.varnn"], ["compare"], ["forecast"], ["tune"]])
def test_other_tables_must_name_their_target(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "house.csv").write_text("when,load\n2026-01-01,1\n2026-01-02,2\n")
    done = CliRunner().invoke(app, [command[0], str(tmp_path / "house.csv"), *command[1:]])
    assert done.exit_code != 0
    said = f"{done.output} {done.exception}"
    assert "the column to predict must be named" in said and "as target=" in said and "'load'" in said
