"""What the default costs: that each bench times what it says, and what the page makes of it."""

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.cost import (
    answers,
    backtest,
    command,
    compiled,
    fit,
    fleet,
    forecast,
    growth,
    house,
    stream,
    stream_peers,
    trained,
)
from benchmarks.cost.batch_peers import PEERS
from benchmarks.cost.lagged import LABEL_LAGS, lag_table
from benchmarks.record import Measured, save
from benchmarks.speed import page
from varnn.errors import ConfigError, VarnnError

SMALL: dict[str, Any] = {"rows": 1200, "epochs": 1, "ensemble": 1, "hidden_size": 4}


@pytest.fixture(autouse=True, scope="module")
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Models are kept where no other run finds them, in processes of their own, too."""
    folder = tmp_path_factory.mktemp("kept")
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(folder))
        patched.setattr(tempfile, "tempdir", None)
        yield folder
    tempfile.tempdir = None
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def streamed() -> Measured:
    return Measured(**stream.measure(threads=1, rounds=1, calls=3, settings=dict(SMALL)))


@pytest.fixture(scope="module")
def fleet_of_30() -> Measured:
    return Measured(**fleet.measure(threads=1, rounds=1, calls=1, n_series=30, settings=dict(SMALL)))


@pytest.fixture(scope="module")
def backtested() -> Measured:
    def missing(threads: int) -> Any:
        raise ImportError

    with pytest.MonkeyPatch.context() as patched:
        few = {"LightGBM on lags": PEERS["LightGBM on lags"], "somebody else": missing}
        patched.setattr(backtest, "PEERS", few)
        return Measured(**backtest.measure(threads=1, rounds=1, rows=300, settings=dict(SMALL)))


@pytest.fixture(scope="module")
def forecasted() -> Measured:
    return Measured(**forecast.measure(threads=1, rounds=1, calls=2, series=3, settings=dict(SMALL)))


@pytest.fixture(scope="module")
def commanded() -> Measured:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            command, "WAYS", {command.ONE: command.Way(), "3 series, --state": command.Way(3, state=True)}
        )
        return Measured(**command.measure(threads=1, rounds=1, lines=7, settings=dict(SMALL)))


@pytest.fixture(scope="module")
def fitted() -> Measured:
    settings = {name: value for name, value in SMALL.items() if name != "rows"}
    before = str(Path(__file__).parents[2])  # this code itself
    peers = ["LightGBM on lags"]
    found = fit.measure(threads=1, rounds=1, rows=700, before=before, peers=peers, settings=settings)
    return Measured(**found)


def test_more_rows_of_a_house_begin_with_the_same() -> None:
    short, long = house.rows_like_appliances(300), house.rows_like_appliances(400)
    np.testing.assert_array_equal(long.inputs[:300], short.inputs)
    np.testing.assert_array_equal(long.target[:300], short.target)


def test_houses_differ_and_inputs_can_be_fewer_or_more() -> None:
    two = house.rows_like_appliances(400, n_series=2, inputs=30)
    assert (two.n_series, two.n_inputs, len(set(two.input_names))) == (2, 30, 30)
    assert not np.array_equal(two.target[:200], two.target[200:])
    assert house.rows_like_appliances(50, inputs=3).input_names == ("lights", "T1", "RH_1")


def test_the_default_is_kept_and_taken_up_again(temporary_folder: Path) -> None:
    first = trained.trained_default(**SMALL)
    (kept,) = temporary_folder.rglob("*.varnn")
    again = trained.trained_default(**SMALL)
    assert list(temporary_folder.rglob("*.varnn")) == [kept]
    assert again.fitted_.fingerprint == first.fitted_.fingerprint
    assert first.fitted_.pipeline.calendar == ("day", "week")


def test_other_rows_or_settings_are_another_file() -> None:
    names = {trained._kept_at(what) for what in [(1200, 26, []), (1200, 27, []), (1200, 26, [("epochs", 1)])]}
    assert len(names) == 3


def test_compiled_code_is_turned_off_and_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.VARIABLE, "1")
    with compiled.compiled_code(False):
        assert os.environ[compiled.VARIABLE] == "0"
    with compiled.compiled_code(True):
        assert compiled.VARIABLE not in os.environ
    assert os.environ[compiled.VARIABLE] == "1"


def test_lags_are_those_before_a_row() -> None:
    panel = house.rows_like_appliances(1100)
    table = lag_table(panel)
    for column, lag in enumerate(LABEL_LAGS):
        assert table[1050, 26 + column] == panel.target[1050 - lag]


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_predicts_without_looking_ahead(name: str) -> None:
    try:
        peer = PEERS[name](1)
    except ImportError:
        pytest.skip(f"{name} is not installed")
    panel = house.rows_like_appliances(500, inputs=2)
    peer.fit(panel.between(0, 300))
    after = panel.between(300, 500)
    predictions = peer.predict(after)
    assert predictions.shape == (200,)
    assert np.isfinite(predictions[30:]).all()
    changed = house.rows_like_appliances(500, inputs=2)
    changed.target[400:] += 500
    later = peer.predict(changed.between(300, 500))
    np.testing.assert_allclose(later[30:101], predictions[30:101], rtol=1e-4)
    assert not np.allclose(later[101:], predictions[101:], rtol=1e-4)


def test_streamed_steps_of_everybody_are_timed(streamed: Measured) -> None:
    named = [row["contender"] for row in streamed.rows]
    expected = {*compiled.ways(), stream.SNARIMAX, stream.FOREST, stream.REFITTED}
    assert expected - set(named) == set(streamed.absent) - set(compiled.without_numba())
    assert all(float(row["best us"] or 0) > 0 for row in streamed.rows)
    assert {row["interval"] for row in streamed.rows if row["contender"] in compiled.ways()} == {"90 %"}
    if stream.REFITTED in named:
        whole, predicted, refit = (
            float(next(row["best us"] or 0 for row in streamed.rows if row["contender"] == name))
            for name in (stream.REFITTED, stream.PREDICTED, stream.REFIT)
        )
        assert whole == pytest.approx(predicted + refit / stream_peers.REFIT_EVERY, rel=0.02)
    assert any(check.startswith("numba is ") for check in streamed.checks)


def test_a_fleet_is_timed_in_one_call_and_alone(fleet_of_30: Measured) -> None:
    named = {str(row["contender"]): row for row in fleet_of_30.rows}
    for ours in compiled.ways():
        assert float(named[fleet.TOGETHER.format(ours)]["series-steps per s"] or 0) > 0
        assert named[fleet.ONE_BY_ONE.format(ours)]["kB per series"] is None
    assert fleet.SNARIMAX in {*named, *fleet_of_30.absent}
    assert fleet_of_30.title.startswith("30 series")


def test_a_backtest_names_who_is_absent_and_how_good_each_is(backtested: Measured) -> None:
    assert [row["contender"] for row in backtested.rows] == [*compiled.ways(), "LightGBM on lags"]
    assert "somebody else" in backtested.absent
    assert all(0 < float(row["error"] or 0) < 5 for row in backtested.rows)


def test_errors_are_relative_to_persistence() -> None:
    labels = np.array([0.0, 0.0, 0.0, 2.0])
    assert backtest.over_persistence(labels, labels) == 0
    assert backtest.over_persistence(labels, np.array([9.0, 9.0, 0.0, 0.0])) == 1


def test_lines_of_the_command_are_answered_and_timed(commanded: Measured) -> None:
    assert [row["contender"] for row in commanded.rows] == [command.ONE, "3 series, --state"]
    assert all(float(row["lines a second"] or 0) > 0 for row in commanded.rows)


def test_a_line_that_is_refused_stops_the_bench(tmp_path: Path) -> None:
    trained.trained_default(**SMALL).save(tmp_path / "model.varnn")
    with pytest.raises(VarnnError, match="must be answered in full"):
        command.answered(tmp_path / "model.varnn", [b'{"x": [1]}\n'], command.Way(), None)


def test_fits_are_timed_beside_those_of_another_checkout(fitted: Measured) -> None:
    assert [row["contender"] for row in fitted.rows] == [fit.OURS, fit.BEFORE, "LightGBM on lags"]
    ours, before, _ = fitted.rows
    assert ours["error"] == before["error"]  # the same code, from there
    assert float(ours[f"time / {fit.BEFORE}"] or 0) > 0


def test_another_checkout_is_imported_from_there(tmp_path: Path) -> None:
    package = tmp_path / "src" / "varnn"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('the other one')")
    tiny = {"epochs": 1, "ensemble": 1, "hidden_size": 4}
    with pytest.raises(VarnnError, match="the other one"):
        fit.measure(threads=1, rounds=1, rows=300, before=str(tmp_path), peers=[], settings=tiny)
    fit.check_checkout(tmp_path)
    with pytest.raises(ConfigError, match="must be a checkout"):
        fit.check_checkout(package)


def test_growth_is_told_by_doubling() -> None:
    base = {"rows": 400, "inputs": 2, "members": 1, "series": 1}
    settings = {"epochs": 1, "hidden_size": 4}
    found = growth.measure(threads=1, size="series", values=(1, 4), base=base, settings=settings)
    first, second = Measured(**found).rows
    assert (first["series"], second["series"]) == ("1", "4")
    assert first["stream, per doubling"] is None
    one, four = (float(row["stream us a series"] or 0) for row in (first, second))
    assert float(second["stream, per doubling"] or 0) == pytest.approx((four / one) ** 0.5, rel=0.02)


def test_the_page_begins_with_what_it_costs(
    streamed: Measured,
    fleet_of_30: Measured,
    backtested: Measured,
    commanded: Measured,
    fitted: Measured,
    forecasted: Measured,
    tmp_path: Path,
) -> None:
    tables = [streamed, fleet_of_30, backtested, commanded, fitted, forecasted]
    save(tmp_path / "a.json", tables, "python -m benchmarks x")
    text = page.page([tmp_path / "a.json"])
    told = re.findall(r"^\| \*\*(.*?)\*\*", text, re.MULTILINE)
    assert told == ["One step", "A fit", "A million rows", "A step of 10,000 series", "A forecast", "A line"]
    assert "| river SNARIMAX(3, 0, 3) | " in text or stream.SNARIMAX in streamed.absent
    assert "met" not in text.split()  # what was once asked of it is nobody's question
    assert "### a.json" in page.tables_page([tmp_path / "a.json"])


def test_a_page_without_figures_of_the_default_answers_nothing() -> None:
    assert answers.answers([]) == []


def test_of_several_runs_the_one_with_fewest_threads_answers(fleet_of_30: Measured) -> None:
    quick = replace(
        fleet_of_30, threads=2, rows=[row | {"series-steps per s": 1e6} for row in fleet_of_30.rows]
    )
    (found,) = answers.answers([quick, fleet_of_30])
    assert "one thread" in found.what
    assert found.takes.endswith("; 10 ms with two threads")


def test_forecasts_of_everybody_are_timed(forecasted: Measured) -> None:
    names = [str(row["contender"]) for row in forecasted.rows]
    assert names[0] == compiled.yardstick()
    assert any(name.endswith("3 series in a call") for name in names)
    for peer in (forecast.SARIMAX, forecast.SNARIMAX):
        assert (peer in names) != (peer in forecasted.absent)
    assert all(float(row["best us"] or 0) > 0 for row in forecasted.rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit-default", "--data", "moon"], "moon"),
        (["fit-default", "--before", "/nowhere"], "must be a checkout"),
    ],
)
def test_bad_options_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, words)
    assert message in str(done.exception)
