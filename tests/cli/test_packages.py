"""What is not installed is said before the work: here before the table is even looked for."""

import shlex
import sys
from pathlib import Path

import pytest
import scipy.stats  # noqa: F401  # now: SciPy stumbles where torch is None among modules
import sklearn.linear_model  # noqa: F401  # for the same reason
from typer.testing import CliRunner

from varnn.cli.app import app
from varnn.errors import MissingExtraError

COMMANDS = [  # and the package that is not there; no.csv is not there, either
    ("demo -o page.html", "torch"),
    ("demo -o page.html", "matplotlib"),
    ("fit no.csv --target y -o y.varnn", "torch"),
    ("fit no.csv --target y -o y.varnn", "pyarrow"),
    ("fit no.csv --target y -o y.varnn --experts boosting", "lightgbm"),
    ("fit no.csv --target y -o ys.varnns --series s --each series --cluster auto", "ray"),
    ("predict no.varnn no.csv -o y.parquet", "pyarrow"),
    ("predict no.varnn . -o there --cluster auto", "ray"),
    ("forecast no.csv --target y -o y.csv", "torch"),
    ("forecast no.csv --target y -o y.csv --backtest --cluster auto", "ray"),
    ("compare no.csv --target y", "torch"),
    ("compare no.csv --target y --models persistence,lstm", "torch"),
    ("compare no.csv --target y --models arx-lr", "sklearn"),
    ("compare no.csv --target y --models persistence", "scipy"),
    ("fit no.csv --target y -o y.varnn", "scipy"),
    ("compare no.csv --target y --models armax", "statsmodels.tsa.statespace.sarimax"),
    ("compare no.csv --target y --models persistence --report page.html", "matplotlib"),
    ("compare no.csv --target y --models persistence --cluster auto", "ray"),
    ("tune no.csv --target y", "optuna"),
    ("tune no.csv --target y", "torch"),
    ("tune no.csv --target y --report page.html", "matplotlib"),
    ("tune no.csv --target y --cluster auto", "ray"),
    ("reproduce table1 -o here", "torch"),
    ("reproduce --check", "torch"),
    ("reproduce figures -o here --finished", "matplotlib"),
    ("serve no.varnn", "starlette"),
    ("serve no.varnn", "uvicorn"),
    ("serve no.varnn --mqtt mqtt://nowhere", "paho.mqtt.client"),
]


@pytest.mark.parametrize(("line", "module"), COMMANDS)
def test_a_package_is_asked_for_first(
    line: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(app, shlex.split(line))
    assert isinstance(done.exception, MissingExtraError), done.output
    assert [one.module for one in done.exception.needs] == [module]
    assert list(tmp_path.iterdir()) == []


def test_all_that_a_comparison_needs_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "matplotlib", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(app, ["compare", "no.csv", "--target", "y", "--report", "page.html"])
    assert "[files,plots,train]'" in str(done.exception)


@pytest.mark.parametrize(
    "line",
    ["compare no.csv --target y --models persistence,arx-lr", "forecast no.csv --model no.varnn -o y.csv"],
)
def test_what_is_not_needed_is_not_asked_for(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in ("torch", "matplotlib", "lightgbm", "optuna", "ray"):
        monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(app, shlex.split(line))
    assert "there is no" in str(done.exception)
