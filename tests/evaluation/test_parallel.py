"""Comparisons and backtests on several processes and on Ray: the same figures, bit for bit."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor, evaluation
from varnn.cli.app import app
from varnn.errors import ConfigError, DataError
from varnn.evaluation import Backtest, Comparison

PLACES = ["processes", "ray"]


@pytest.fixture(params=PLACES)
def elsewhere(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "ray":
        request.getfixturevalue("local_ray")
        return {"cluster": "auto"}
    return {"workers": 2}


def small(seed: int) -> VARNNRegressor:
    return VARNNRegressor(
        hidden_size=8, epochs=2, ensemble=2, random_state=seed, details=Details(max_rows=500)
    )


@pytest.fixture(scope="module")
def panel() -> Panel:
    return random_panel([300, 200], missing=0.03)


MODELS: list[str | tuple[str, Callable[[int], Any]]] = [
    "arx-lr",
    ("small", small),
    ("narx", lambda seed: evaluation.make_model("narx-gbm", seed)),
]
COMPARED: dict[str, Any] = {"seeds": 2, "origins": 3, "metrics": ["rmse", "coverage"]}


@pytest.fixture(scope="module")
def serial(panel: Panel) -> Comparison:
    return evaluation.compare(panel, MODELS, **COMPARED)


def test_a_comparison_is_the_same_wherever_it_is_made(
    serial: Comparison, panel: Panel, elsewhere: dict[str, Any]
) -> None:
    told: list[tuple[str, int]] = []
    found = evaluation.compare(
        panel, MODELS, **COMPARED, on_score=lambda one: told.append((one.model, one.seed)), **elsewhere
    )
    assert sorted(told) == sorted((one.model, one.seed) for one in serial.scores for _ in range(3))
    for one, two in zip(found.scores, serial.scores, strict=True):
        assert (one.model, one.seed, one.mse, one.metrics) == (two.model, two.seed, two.mse, two.metrics)
        np.testing.assert_array_equal(one.predictions, two.predictions)
        assert one.mse_by_origin == two.mse_by_origin
    assert set(found.fitted) == set(serial.fitted)
    rows = found.cuts[-1].lead_in
    for name, model in found.fitted.items():  # the very models that a serial run keeps
        np.testing.assert_array_equal(model.predict(rows), serial.fitted[name].predict(rows))


def test_a_cut_of_ones_own_is_sent_whole(panel: Panel) -> None:
    parts = evaluation.cut(panel)
    serial = evaluation.compare(panel, ["arx-lr", "persistence"], parts=parts)
    found = evaluation.compare(panel, ["arx-lr", "persistence"], parts=parts, workers=2)
    assert [one.mse for one in found.scores] == [one.mse for one in serial.scores]


def equal(one: Backtest, two: Backtest) -> bool:
    return (
        list(one.mse) == list(two.mse)
        and all(np.array_equal(one.mse[name], two.mse[name], equal_nan=True) for name in one.mse)
        and np.array_equal(one.coverage, two.coverage)
        and one.rows == two.rows
    )


BACKTESTED: dict[str, Any] = {"horizon": 3, "origins": 3, "seeds": 2}


@pytest.fixture(scope="module")
def backtested(panel: Panel) -> Backtest:
    return evaluation.backtest(panel, model=small, **BACKTESTED)


def test_a_backtest_is_the_same_wherever_it_is_made(
    backtested: Backtest, panel: Panel, elsewhere: dict[str, Any]
) -> None:
    told: list[tuple[int, int]] = []
    found = evaluation.backtest(
        panel, model=small, on_fit=lambda *numbers: told.append(numbers), **BACKTESTED, **elsewhere
    )
    assert equal(found, backtested)
    assert told == [(done, 6) for done in range(1, 7)]


def test_a_worker_that_is_killed_changes_nothing(
    backtested: Backtest, panel: Panel, elsewhere: dict[str, Any], tmp_path: Path
) -> None:
    mark = tmp_path / "killed"

    def deadly(seed: int) -> VARNNRegressor:
        if seed == 2026 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return small(seed)

    found = evaluation.backtest(panel, model=deadly, **BACKTESTED, **elsewhere)
    assert mark.exists()
    assert equal(found, backtested)


def test_an_error_of_a_fit_is_raised_as_it_is(panel: Panel, elsewhere: dict[str, Any]) -> None:
    class Refuses:
        def fit(self, panel: Any, /, *, validation: Any = None) -> None:
            raise DataError("of the model")

    with pytest.raises(DataError, match="of the model"):
        evaluation.compare(panel, ["persistence", ("bad", lambda seed: Refuses())], **elsewhere)  # type: ignore[list-item, return-value]  # it never gets to predict


@pytest.mark.parametrize("call", [evaluation.compare, evaluation.backtest])
def test_epochs_are_told_in_this_process_alone(call: Callable[..., Any], panel: Panel) -> None:
    with pytest.raises(
        ConfigError, match=r"on_epoch is called by fits of this process; got it with workers=2"
    ):
        call(panel, on_epoch=print, workers=2)


@pytest.mark.parametrize("changes", [{"origins": 0}, {"seeds": 0}])
def test_a_backtest_needs_something_to_fit(panel: Panel, changes: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(changes))):
        evaluation.backtest(panel, **changes)  # type: ignore[arg-type]  # a count, of one or the other


@pytest.fixture
def table(tmp_path: Path, panel: Panel) -> str:
    series = np.repeat(panel.ids, panel.lengths)
    frame = pd.DataFrame(panel.inputs, columns=list("abc")).assign(y=panel.target, site=series)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return str(tmp_path / "t.csv")


def test_the_commands_take_workers_and_a_cluster(table: str, elsewhere: dict[str, Any]) -> None:
    options = [text for name, value in elsewhere.items() for text in (f"--{name}", str(value))]
    asked = ["compare", table, "--target", "y", "--models", "persistence,arx-lr", "--origins", "3", "--json"]
    plain, spread = (CliRunner().invoke(app, [*asked, *more]) for more in ([], options))
    assert spread.exit_code == 0, spread.output
    lines = [[line["rmse_by_origin"] for line in json.loads(one.stdout)["scores"]] for one in (plain, spread)]
    assert lines[0] == lines[1]
    asked = ["forecast", table, "--target", "y", "--horizon", "3", "--json", "--max-rows", "250"]
    done = CliRunner().invoke(app, [*asked, "--backtest", "--origins", "2", *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 84
    refused = CliRunner().invoke(app, [*asked, "-o", "x.csv", *options])
    assert "are for --backtest" in str(refused.exception)
