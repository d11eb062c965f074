"""What a comparison says: the right columns, an honest sentence, a page with the figures it promises."""

import inspect
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor, evaluation
from varnn.cli.app import app
from varnn.cli.compare import compare as compare_command
from varnn.evaluation.scores import Comparison
from varnn.evaluation.significance import Difference
from varnn.evaluation.verdict import difference_in_words, in_words
from varnn.report import comparison_page

Named = tuple[str, Callable[[int], evaluation.Model]]
SMALL: Named = (
    "small",
    lambda seed: VARNNRegressor(hidden_size=8, epochs=1, ensemble=1, random_state=seed),
)


@pytest.fixture(scope="module")
def rolled() -> Comparison:
    """Give a backtest of three models on two series."""
    panel = random_panel([260, 200], missing=0.02)
    return evaluation.compare(panel, ["persistence", "arx-lr", SMALL], seeds=2, origins=3)


def test_the_table_has_the_columns_that_apply(rolled: Comparison) -> None:
    columns, lines = comparison_page.table(rolled)
    assert columns == [
        *("model", "RMSE", "MAE", "skill", "by origin", "median series"),
        *("vs best", "p (DM)", "p (boot)", "scaled MSE", "fit"),
    ]
    assert all(len(line) == len(columns) for line in lines)
    row = next(row for row in rolled.rows() if row["model"] == "small")
    line = next(line for line in lines if line[0] == "small (2 seeds)")
    said = dict(zip(columns, line, strict=True))
    assert said["RMSE"] == f"{np.mean([score.rmse for score in rolled.of('small')]):.4g}"
    assert said["by origin"] == f"{min(row['skill_by_origin']):.0%} to {max(row['skill_by_origin']):.0%}"
    assert "±" in said["scaled MSE"]
    single = evaluation.compare(random_panel([200]), ["persistence", "arx-lr"], seeds=1)
    assert not {"by origin", "median series"} & set(comparison_page.table(single)[0])
    terse, _ = comparison_page.table(single, terse=True)
    assert terse == ["model", "RMSE", "MAE", "skill", "p (DM)", "p (boot)"]


def test_the_sentence_sets_ours_against_the_best_baseline(rolled: Comparison) -> None:
    said = in_words(rolled)
    names = [str(row["model"]) for row in rolled.rows()]
    baseline = next(name for name in names if name != "small")
    found = rolled.difference("small", baseline)
    side = "below" if found.change < 0 else "above"
    assert said.startswith(f"{names[0]} is best: RMSE ")
    assert f"of small is {abs(found.change):.1%} {side} that of {baseline}, the best baseline" in said
    assert "Diebold-Mariano p " in said
    assert "paired bootstrap p " in said
    assert found.significant != ("chance may explain it" in said or "does not rule it out" in said)


def test_the_best_baseline_may_be_a_seasonal_one() -> None:
    hours = np.arange(24 * 60)
    time = np.datetime64("2026-01-01T00") + hours
    shape = np.random.default_rng(0).normal(size=24)
    load = shape[hours % 24] + 0.1 * np.random.default_rng(1).normal(size=len(hours))
    shown = inspect.signature(compare_command).parameters["models"].default.split(",")
    assert shown == ["persistence", "arx-lr", "seasonal-arx", "narx-gbm", "seasonal-gbm", "varnn"]
    table = evaluation.compare(
        Panel.from_arrays(None, load, time=time), [*shown[:-1], SMALL], seeds=2, origins=1
    )
    said = in_words(table)
    assert any(f"that of {name}, the best baseline" in said for name in ("seasonal-arx", "seasonal-gbm"))
    assert len(table.of("seasonal-gbm")) == 1  # it draws nothing


def test_a_draw_is_called_one_and_a_lone_model_is_set_against_nobody() -> None:
    panel = random_panel([300])
    twins = [("one", SMALL[1]), ("other", SMALL[1])]
    said = in_words(evaluation.compare(panel, twins, seeds=1))
    assert said.endswith("The squared error of one is the same as that of other, the second best.")
    assert " has the lowest error, but no clear lead: RMSE " in said and "is best" not in said
    alone = in_words(evaluation.compare(panel, ["arx-lr"], seeds=1))
    assert alone.startswith("arx-lr: RMSE ") and "It is the only model here, so none is best" in alone
    assert "squared error" not in alone


@pytest.mark.parametrize(
    ("low", "high", "p", "said"),
    [
        (-0.2, -0.01, 0.01, "p = 0.04)."),
        (-0.2, -0.01, 0.09, "more than chance by the interval, but Diebold-Mariano does not rule it out)."),
        (-0.2, 0.01, 0.01, "more than chance by Diebold-Mariano, but the interval does not rule it out)."),
        (-0.2, 0.01, 0.09, "chance may explain it)."),
    ],
)
def test_what_is_said_holds_for_both_tests(low: float, high: float, p: float, said: str) -> None:
    """An interval without zero beside "chance may explain it" would be two answers to one question."""
    found = Difference(change=-0.1, low=low, high=high, p=p, p_bootstrap=0.04)
    words = difference_in_words(found, "ours", "theirs")
    assert words.endswith(said)
    assert ("chance may explain it" in words) == (low < 0 < high and p > 0.05)


def test_a_model_that_diverged_is_told_in_words() -> None:
    wild = Difference(change=8.28e21, low=0.5, high=9e21, p=0.0001, p_bootstrap=0.001)
    words = difference_in_words(wild, "ours", "theirs")
    assert "of ours is over 1,000 times that of theirs (between 50.0% above and over 1,000 times" in words


def constant(seeds: int = 3) -> tuple[Panel, Comparison]:
    draws = np.random.default_rng(0).normal(size=(300, 1))
    panel = Panel.from_arrays(draws, np.full(300, 5.0), target_name="load")
    return panel, evaluation.compare(panel, ["persistence", "arx-lr", SMALL], seeds=seeds)


def test_of_a_constant_target_it_is_said_once_and_on_the_page_that_nothing_is_to_be_learnt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    panel, compared = constant()
    assert (
        caplog.text.count("the target 'load' is 5 in all 192 training rows: there is nothing to learn") == 1
    )
    assert in_words(compared) == (
        "None of the 3 models errs on any test row: RMSE 0, and nothing to compare."
    )
    page = comparison_page.page(compared, "house", panel=panel).html()
    assert "is 5 in all 192 training rows: there is nothing to learn" in page and "inf" not in table_text(
        compared
    )


def table_text(compared: Comparison) -> str:
    return str(comparison_page.table(compared)) + repr(compared)


@pytest.mark.parametrize(
    ("change", "low", "high", "said"),
    [
        (0.0, 0.0, 0.0, "The squared error of ours is the same as that of theirs, the best."),
        (np.inf, np.inf, np.inf, "ours errs; theirs, the best, makes no error at all (Diebold"),
        (np.inf, 0.0, np.inf, "ours errs; theirs, the best, makes no error at all (Diebold"),
        (-1.0, -1.0, -1.0, "ours makes no error at all, unlike theirs, the best (Diebold"),
    ],
)
def test_a_ratio_to_no_error_is_told_in_words(change: float, low: float, high: float, said: str) -> None:
    found = Difference(change=change, low=low, high=high, p=0.01, p_bootstrap=0.01)
    words = difference_in_words(found, "ours", "theirs, the best")
    assert words.startswith(said) and "%" not in words and "inf" not in words


def test_the_page_shows_spread_origins_and_protocol(rolled: Comparison) -> None:
    page = comparison_page.page(rolled, "house <1>").html()
    assert "house &lt;1&gt;: one step ahead" in page
    assert "fitted anew at 3 successive origins on the 262 to 393 rows before each" in page
    assert "<h2>Origin by origin</h2>" in page
    assert "Dots: one for each origin." in page
    row = rolled.rows()[0]
    assert "".join(f"<td>{value:.4g}</td>" for value in row["rmse_by_origin"]) in page
    single = evaluation.compare(random_panel([260]), ["persistence", SMALL], seeds=2)
    page = comparison_page.page(single, "house").html()
    assert "166 / 42 / 52 rows, 1 series; train, validation and test in time order" in page
    assert "Dots: one for each seed." in page
    assert "Origin by origin" not in page
    paper = evaluation.compare(random_panel([260]), ["persistence"], protocol="paper")
    assert "best epoch read on the test part" in comparison_page.page(paper, "house").html()


def test_scored_rows_of_a_series_stand_together_from_origin_to_origin(rolled: Comparison) -> None:
    rows, starts, names = comparison_page._by_series(rolled)
    assert sorted(rows) == list(range(len(rolled.truth)))
    assert (len(names), starts[-1]) == (2, len(rolled.truth))
    places = comparison_page._places(rolled)[rows]
    for first, last in pairwise(starts):
        assert (np.diff(places[first:last].astype(np.int64)) > 0).all()


def test_the_command_makes_a_backtest(tmp_path: Path) -> None:
    panel = random_panel([300, 240])
    frame = pd.DataFrame(panel.inputs, columns=list("abc")).assign(
        y=panel.target, site=np.repeat(panel.ids, panel.lengths)
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--series", "site", "--origins", "4"]
    arguments += ["--models", "persistence,arx-lr", "--report", str(tmp_path / "r.html")]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert [len(line["rmse_by_origin"]) for line in content["scores"]] == [4, 4]
    assert "the second best" in content["summary"]
    assert "4 successive origins" in (tmp_path / "r.html").read_text()
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"}).output
    assert "honest protocol, 4 origins" in shown
    assert "by origin" in shown
    refused = CliRunner().invoke(app, [*arguments, "--protocol", "paper"])
    assert "cannot go with the paper's protocol" in str(refused.exception)


def test_an_exact_leak_stands_on_the_page_and_in_the_output(tmp_path: Path) -> None:
    riders = np.random.default_rng(0).poisson([3, 40], size=(300, 2))
    frame = pd.DataFrame({"casual": riders[:, 0], "registered": riders[:, 1], "cnt": riders.sum(axis=1)})
    frame.to_csv(tmp_path / "bikes.csv", index=False)
    words = ["compare", str(tmp_path / "bikes.csv"), "--target", "cnt", "--models", "persistence,arx-lr"]
    done = CliRunner().invoke(app, [*words, "--report", str(tmp_path / "page.html")])
    leak = "cnt is the exact sum of casual and registered"
    assert f"Look: {leak} in the training rows" in done.stdout
    assert leak in (tmp_path / "page.html").read_text()
    answer = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert answer["leak"] == leak
    honest = json.loads(CliRunner().invoke(app, [*words, "--inputs", "casual", "--json"]).stdout)
    assert honest["leak"] is None
