"""Metrics are what their names say, tables take them by name, and a new one is one function."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as theirs
from typer.testing import CliRunner

from tests.cases import random_panel
from varnn import Panel, VARNNRegressor, evaluation
from varnn._types import DoubleArray
from varnn.cli.app import app
from varnn.errors import ConfigError, DataError
from varnn.evaluation import metrics
from varnn.report import comparison_page

ROWS = st.integers(2, 40)
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def columns(draw: st.DrawFn, count: int) -> list[DoubleArray]:
    rows = draw(ROWS)
    return [draw(arrays(np.float64, rows, elements=NUMBERS)) for _ in range(count)]


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-6)


@given(columns(2))
def test_errors_are_those_of_scikit_learn(made: list[DoubleArray]) -> None:
    truth, prediction = made
    assert metrics.mse(truth, prediction) == close(theirs.mean_squared_error(truth, prediction))
    assert metrics.rmse(truth, prediction) == close(theirs.root_mean_squared_error(truth, prediction))
    assert metrics.mae(truth, prediction) == close(theirs.mean_absolute_error(truth, prediction))
    found, median = metrics.median_absolute_error, theirs.median_absolute_error
    assert found(truth, prediction) == close(median(truth, prediction))
    if np.ptp(truth) == 0 or np.ptp(truth) > 1e-3:  # else both are a matter of rounding
        assert metrics.r2(truth, prediction) == close(theirs.r2_score(truth, prediction))


def test_r2_of_labels_that_do_not_change_is_that_of_scikit_learn() -> None:
    for prediction in ([3.0, 3.0], [3.0, 4.0]):
        assert metrics.r2([3.0, 3.0], prediction) == theirs.r2_score([3.0, 3.0], prediction)
    assert np.isnan(metrics.r2([3.0], [3.0]))


@given(columns(3), st.floats(0.05, 0.99))
def test_pinball_is_that_of_scikit_learn_and_the_interval_score_in_another_unit(
    made: list[DoubleArray], level: float
) -> None:
    truth, lower, upper = made[0], np.minimum(*made[1:]), np.maximum(*made[1:])
    expected = [
        theirs.mean_pinball_loss(truth, bound, alpha=alpha)
        for bound, alpha in ((lower, (1 - level) / 2), (upper, (1 + level) / 2))
    ]
    found = metrics.pinball(truth, lower, upper, level)
    assert found == close(np.mean(expected))
    assert metrics.interval_score(truth, lower, upper, level) * (1 - level) / 4 == close(found)


def test_the_interval_score_by_hand() -> None:
    truth, lower, upper = [1.0, 5.0, -2.0, np.nan], [0.0, 0.0, 0.0, 0.0], [2.0, 4.0, 1.0, 9.0]
    by_hand = (2.0 + (4.0 + 10 * 1.0) + (1.0 + 10 * 2.0)) / 3
    assert metrics.interval_score(truth, lower, upper, level=0.8) == pytest.approx(by_hand)
    assert metrics.coverage(truth, lower, upper) == pytest.approx(1 / 3)
    assert metrics.width(truth, lower, upper) == pytest.approx(7 / 3)


def test_the_interval_score_is_smallest_for_the_true_quantiles() -> None:
    labels = np.random.default_rng(0).normal(size=200_000)
    scores = {reach: metrics.interval_score(labels, -reach, reach, 0.9) for reach in (1.3, 1.6449, 2.0)}
    assert min(scores, key=lambda reach: scores[reach]) == 1.6449


def test_skill_mase_and_smape_by_hand() -> None:
    truth, prediction = [1.0, 3.0, 3.0], [2.0, 3.0, 1.0]
    assert metrics.skill(truth, prediction, naive=[1.0, 0.0, 0.0]) == pytest.approx(1 - 5 / 18)
    assert metrics.skill(truth, prediction, naive=truth) == 0.0
    assert metrics.mase(truth, prediction, scale=[1.0, 1.0, 4.0]) == pytest.approx((1 + 0 + 0.5) / 3)
    assert np.isnan(metrics.mase(truth, prediction, scale=[1.0, 0.0, 4.0]))
    assert metrics.smape(truth, prediction) == pytest.approx((1 / 1.5 + 0 + 2 / 2) / 3)
    assert metrics.smape([0.0, 1.0], [0.0, -1.0]) == 1.0


VALUES = {"prediction": 0.5, "naive": 2.0, "scale": 1.5, "lower": -1.0, "upper": 1.5, "level": 0.9}


@pytest.mark.parametrize("name", metrics.METRICS)
def test_every_metric_leaves_rows_without_a_label_out(name: str) -> None:
    generator = np.random.default_rng(1)
    truth = generator.normal(size=50)
    given = {
        one: value if one == "level" else value + generator.normal(scale=0.1, size=50)
        for one, value in VALUES.items()
        if one in metrics.needs(name)
    }
    truth[::3] = np.nan
    known = ~np.isnan(truth)
    kept = {one: value[known] if isinstance(value, np.ndarray) else value for one, value in given.items()}
    function = metrics.METRICS[name]
    found = function(truth=truth, **given)
    assert isinstance(found, float)
    assert found == function(truth=truth[known], **kept)
    spoilt = {
        one: np.where(known, value, np.nan) if one != "level" else value for one, value in given.items()
    }
    assert found == function(truth=truth, **spoilt), "what stands beside a missing label does not count"
    assert found == pytest.approx(function(truth=truth.reshape(5, 10), **_reshaped(given)))


@pytest.mark.parametrize("name", metrics.METRICS)
def test_without_any_label_there_is_no_number_and_with_odd_shapes_an_error(name: str) -> None:
    function = metrics.METRICS[name]
    given = {one: value for one, value in VALUES.items() if one in metrics.needs(name)}
    assert np.isnan(function(truth=[np.nan, np.nan], **given))
    wrong = next(one for one in ("prediction", "lower") if one in given)
    with pytest.raises(DataError, match=r"arrays of one shape; the labels have \(2,\), and \(2, 1\) came"):
        function(truth=[1.0, 2.0], **given | {wrong: [[1.0], [2.0]]})


@pytest.mark.parametrize("name", metrics.METRICS)
def test_a_prediction_that_is_no_number_is_never_passed_over(name: str) -> None:
    given = {one: value for one, value in VALUES.items() if one in metrics.needs(name)}
    for wrong in {"prediction", "lower", "upper"} & set(given):
        found = metrics.METRICS[name](truth=[1.0, 2.0], **given | {wrong: [0.5, np.nan]})
        assert np.isnan(found), wrong


def test_every_metric_is_documented_with_what_it_is() -> None:
    for name, function in metrics.METRICS.items():
        lines = (function.__doc__ or "").splitlines()
        assert lines[0].endswith(".") and not lines[0].startswith("Give"), name
        for argument in metrics.needs(name):
            assert any(argument in line and " : " in line for line in lines), f"{name}, {argument}"


# ---------------------------------------------------------------- tables


def small(seed: int, *, intervals: bool = True) -> VARNNRegressor:
    return VARNNRegressor(hidden_size=8, epochs=1, ensemble=1, random_state=seed, intervals=intervals)


def test_a_table_holds_what_the_functions_give() -> None:
    panel = random_panel([300, 200], missing=0.03)
    asked = list(metrics.METRICS)
    table = evaluation.compare(
        panel, ["arx-lr", ("small", small)], seeds=2, origins=2, metrics=asked, interval=0.8
    )
    lines = {line["model"]: line for line in table.rows()}
    assert [name for name in lines["small"] if name in asked] == asked
    naive = np.concatenate(
        [
            evaluation.predict_scored_rows(
                one, one.scored(), evaluation.make_model("persistence", 0).fit(one.train)
            )
            for one in table.cuts
        ]
    )
    for name in ("arx-lr", "small"):
        scores, line = table.of(name), lines[name]
        for metric in ("mse", "rmse", "mae", "median_absolute_error", "r2", "smape"):
            values = [metrics.METRICS[metric](table.truth, one.predictions) for one in scores]
            assert line[metric] == np.mean(values)
        assert line["skill"] == np.mean(
            [metrics.skill(table.truth, one.predictions, naive) for one in scores]
        )
    assert all(lines["arx-lr"][one] is None for one in ("interval_score", "pinball", "coverage", "width"))
    # The last fit is kept, so its part of the intervals can be made again.
    last = table.cuts[-1]
    rows = last.scored()
    found = table.fitted["small"].predict(last.lead_in, interval=0.8)
    alone = evaluation.compare(
        panel, [("small", lambda seed: small(2026))], seeds=1, parts=last, metrics=asked, interval=0.8
    )
    (line,) = alone.rows()
    bounds = found.lower[rows], found.upper[rows]
    assert line["coverage"] == metrics.coverage(alone.truth, *bounds)
    assert line["interval_score"] == metrics.interval_score(alone.truth, *bounds, 0.8)
    assert line["pinball"] == metrics.pinball(alone.truth, *bounds, 0.8)
    assert line["width"] == metrics.width(alone.truth, *bounds)


def test_mase_is_in_units_of_each_series_own_training_rows() -> None:
    panel = random_panel([100, 50, 80], missing=0.1)
    scaled = Panel.from_arrays(
        panel.inputs,
        panel.target * np.repeat([1.0, 100.0, 0.01], panel.lengths),
        series=np.repeat(panel.ids, panel.lengths),
    )
    for one in (panel, scaled):
        table = evaluation.compare(one, ["persistence"], metrics="mase")
        (score,) = table.of("persistence")
        by_hand, place = 0.0, 0
        for index in range(3):
            labels = one.target[one.starts[index] : one.starts[index + 1]]
            train = labels[: round(0.64 * len(labels))]
            train = train[~np.isnan(train)]
            count = int(np.count_nonzero(~np.isnan(labels[round(0.8 * len(labels)) :])))
            errors = (table.truth - score.predictions)[place : place + count]
            by_hand += np.abs(errors).sum() / np.abs(np.diff(train)).mean()
            place += count
        assert table.rows()[0]["mase"] == pytest.approx(by_hand / len(table.truth))


def test_mase_of_series_that_training_never_saw_takes_the_scale_of_all() -> None:
    panel = random_panel([60, 60, 60])
    train, validation, test = (_only(panel, name) for name in panel.ids)
    parts = evaluation.Parts(train, validation, test, test, "honest")
    (line,) = evaluation.compare(panel, ["persistence"], parts=parts, metrics=["mase", "mae"]).rows()
    assert line["mase"] == pytest.approx(line["mae"] / np.abs(np.diff(train.target)).mean())


def test_a_model_without_intervals_has_a_dash_and_numbers_do_not_depend_on_what_is_asked() -> None:
    panel = random_panel([300])
    models: list[str | tuple[str, Callable[[int], evaluation.Model]]] = [
        "persistence",
        ("small", small),
        ("bare", lambda seed: small(seed, intervals=False)),
    ]
    table = evaluation.compare(panel, models, seeds=1, metrics=["coverage", "mae"])
    columns, lines = comparison_page.table(table)
    assert columns[:3] == ["model", "coverage (90 %)", "MAE"]
    cells = {line[0]: line[1] for line in lines}
    assert cells["persistence"] == cells["bare"] == "-"
    assert cells["small"].endswith("%")
    usual = evaluation.compare(panel, models, seeds=1)
    for name in ("persistence", "small", "bare"):
        assert np.array_equal(usual.of(name)[0].predictions, table.of(name)[0].predictions)
        mean = next(line["mae"] for line in table.rows() if line["model"] == name)
        assert mean == usual.of(name)[0].mae
    assert [line["model"] for line in usual.rows()] == [line["model"] for line in table.rows()]
    page = comparison_page.page(table, "house").html()
    assert "Interval coverage: the share of labels" in page and "Intervals have the level 90 %" in page


def test_a_metric_that_is_not_defined_is_null_and_a_dash(tmp_path: Path) -> None:
    labels = np.concatenate([np.full(70, 3.0), np.random.default_rng(0).normal(size=30)])
    table = evaluation.compare(Panel.from_arrays(None, labels), ["persistence"], metrics=["mase", "mae"])
    assert table.rows()[0]["mase"] is None
    assert comparison_page.table(table)[1][0][1] == "-"
    assert "NaN" not in json.dumps(table.rows())


def test_metrics_that_there_are_not_are_refused_with_the_nearest_name() -> None:
    panel = random_panel([90])
    with pytest.raises(ConfigError, match=r"there is no metric 'maee'\. Did you mean 'mae'"):
        evaluation.compare(panel, ["persistence"], metrics=["rmse", "maee"])
    with pytest.raises(ConfigError, match="at least one metric"):
        evaluation.compare(panel, ["persistence"], metrics=[])
    with pytest.raises(ConfigError, match="interval must hold levels"):
        evaluation.compare(panel, ["persistence"], interval=90)
    with pytest.raises(ConfigError, match="about one level"):
        evaluation.compare(panel, ["persistence"], interval=[0.8, 0.9])  # type: ignore[arg-type]  # wrong on purpose


# ---------------------------------------------------------------- the seam


@pytest.fixture
def registry() -> Iterator[None]:
    """Let metrics be added for one test."""
    before = dict(metrics.METRICS)
    yield
    metrics.METRICS.clear()
    metrics.METRICS.update(before)


@pytest.mark.usefixtures("registry")
def test_a_new_metric_is_one_function(tmp_path: Path) -> None:
    @metrics.metric
    def largest_error(truth: DoubleArray, prediction: DoubleArray) -> float:
        """Largest error of all."""
        return float(np.nanmax(np.abs(truth - prediction)))

    panel = random_panel([300])
    table = evaluation.compare(panel, ["persistence", "arx-lr"], metrics=["largest_error", "mae"])
    for line in table.rows():
        (score,) = table.of(line["model"])
        assert line["largest_error"] == np.abs(table.truth - score.predictions).max()
    columns, _ = comparison_page.table(table)
    assert columns[1:3] == ["largest error", "MAE"]
    assert "Largest error of all." in comparison_page.page(table, "house").html()

    rows = "\n".join(f"{x:.6f},{y:.6f}" for x, y in zip(panel.inputs[:, 0], panel.target, strict=True))
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}\n")
    arguments = ["compare", str(tmp_path / "t.csv"), "--target", "y", "--models", "persistence,arx-lr"]
    arguments += ["--metrics", "largest_error,mae", "--report", str(tmp_path / "r.html")]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert shown.exit_code == 0, shown.output
    assert "largest error" in shown.output and "MAE" in shown.output and "RMSE ┃" not in shown.output
    assert "largest error" in (tmp_path / "r.html").read_text()
    said = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert all(line["largest_error"] >= line["mae"] > 0 for line in said["scores"]) and said["level"] is None
    arguments += ["--metrics", "coverage", "--interval", "0.8"]
    assert "coverage (80 %)" in CliRunner().invoke(app, arguments, env={"COLUMNS": "120"}).output
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["level"] == 0.8


@pytest.mark.usefixtures("registry")
def test_a_metric_asks_for_what_there_is_and_takes_no_name_of_ours() -> None:
    with pytest.raises(ConfigError, match="takes 'weights', too"):

        @metrics.metric
        def weighted(truth: DoubleArray, weights: DoubleArray) -> float:
            return 0.0

    def mse(truth: DoubleArray, prediction: DoubleArray) -> float:
        return 0.0

    with pytest.raises(ConfigError, match="there is a metric 'mse' already"):
        metrics.metric(mse)

    def mine(truth: DoubleArray, prediction: DoubleArray) -> float:
        return 0.0

    assert metrics.metric(metrics.metric(mine)) is mine, "defined again, as in a notebook"


def test_the_command_refuses_a_misspelt_metric_before_it_reads_anything(tmp_path: Path) -> None:
    arguments = ["compare", str(tmp_path / "none.csv"), "--target", "y", "--metrics", "rsme"]
    refused = CliRunner().invoke(app, arguments)
    assert isinstance(refused.exception, ConfigError)
    assert "Did you mean 'rmse'" in str(refused.exception)


def _reshaped(values: Mapping[str, object]) -> dict[str, object]:
    return {
        one: value.reshape(5, 10) if isinstance(value, np.ndarray) else value for one, value in values.items()
    }


def _only(panel: Panel, name: str) -> Panel:
    index = panel.ids.index(name)
    first, last = (np.zeros(panel.n_series, dtype=np.int64) for _ in range(2))
    first[index], last[index] = panel.starts[index], panel.starts[index + 1]
    return panel.ranges(first, last)


@pytest.mark.parametrize(
    "answer",
    [np.zeros(180), np.zeros(3), (np.zeros(180), np.ones(180)), (0.0, 1.0, 2.0), [np.zeros(7)] * 3, None],
)
def test_a_model_that_promises_intervals_and_gives_none_is_named(answer: Any) -> None:
    class Promising:
        def fit(self, panel: Panel, *, validation: Panel | None = None) -> "Promising":
            return self

        def predict(self, panel: Panel, interval: float | None = None) -> Any:
            return np.zeros(len(panel)) if interval is None else answer

    models: list[Any] = [("promising", lambda seed: Promising())]
    with pytest.raises(
        DataError, match=r"Promising.predict\(panel, interval=0.9\) must give predictions, lower"
    ):
        evaluation.compare(random_panel([500]), models, seeds=1, metrics=["coverage"])


def test_the_level_stands_beside_metrics_of_intervals() -> None:
    table = evaluation.compare(
        random_panel([300]), [("small", small)], seeds=1, metrics=["coverage", "mae"], interval=0.975
    )
    columns, _ = comparison_page.table(table, terse=True)
    assert "coverage (97.5 %)" in columns and "MAE" in columns
    assert "Intervals have the level 97.5 %" in comparison_page.page(table, "t").html()
