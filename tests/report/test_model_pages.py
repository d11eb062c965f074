"""Pages of a fit, predictions, a forecast and a monitor: what they say holds of the rows they name."""

import html
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from varnn import Details, Panel, VARNNRegressor, load, report
from varnn.data.in_words import figure
from varnn.errors import DataError
from varnn.monitoring import watch
from varnn.report.page import Report
from varnn.report.settings import changed_settings

HOURS = np.datetime64("2026-03-02T00") + np.arange(1000)


def hourly(series: int = 1, rows: int = 600, seed: int = 0) -> Panel:
    """Make hourly rows: a cause, an input without use, and a shift that nothing tells of."""
    generator = np.random.default_rng(seed)
    inputs = generator.normal(size=(series * rows, 2))
    target = 5 + 2 * inputs[:, 0] + 0.3 * generator.normal(size=series * rows)
    names = np.repeat([f"meter {one}" for one in range(series)], rows)
    return Panel.from_arrays(
        inputs,
        target,
        series=names if series > 1 else None,
        time=np.tile(HOURS[:rows], series),
        input_names=["cause", "noise"],
        target_name="load",
    )


@pytest.fixture(scope="module")
def panel() -> Panel:
    return hourly(2)


@pytest.fixture(scope="module")
def model(panel: Panel) -> VARNNRegressor:
    return VARNNRegressor(epochs=3, hidden_size=8, ensemble=1, horizon=3).fit(panel)


def parts(page: Report) -> dict[str, str]:
    """Give the text of each part of a page."""
    return {html.unescape(title): html.unescape(re.sub(r"<[^>]*>", " ", body)) for title, body in page.parts}


def test_a_fit_is_judged_on_rows_that_were_held_out(model: VARNNRegressor, panel: Panel) -> None:
    page = report.fit_page(model, panel, title="house.csv", guessed=["time"])
    said = parts(page)
    assert list(said)[:3] == ["What was understood", "Truth and predictions", "Which inputs matter"]
    assert "before it was trained again on all rows" in page.subtitle and "240 rows" in page.subtitle
    error = math.sqrt(model.fitted_.training.validation["model"])  # as the fit itself measured it
    assert f"On 238 held-out rows the RMSE is {figure(error)}" in page.summary
    assert "(a guess)" in said["What was understood"] and "every 1 h" in said["What was understood"]
    assert "One input matters: cause." in said["Which inputs matter"]
    assert "meter 1" in said["By series"] and "2026-03-" in said["The worst stretches"]
    assert "persistence" in said["By hour of the day"] and "By day of the week" not in said  # of 5 days
    assert set(said) >= {"Who is right when", "Intervals by level", "Learning curve", "Settings"}
    assert "hidden_size 8" in " ".join(said["Settings"].split()) and "patience" not in said["Settings"]
    assert "Predicts 'load'" in said["The model and its limits"]


def test_a_page_says_when_rows_were_trained_on(model: VARNNRegressor, panel: Panel, tmp_path: Path) -> None:
    model.save(tmp_path / "one.varnn")
    page = report.fit_page(load(tmp_path / "one.varnn"), panel, repeats=0)
    assert "which the model was trained on" in page.subtitle and "training rows" in page.summary
    assert "Which inputs matter" not in parts(page)


def test_rows_given_apart_and_a_fit_without_a_second_training(panel: Panel) -> None:
    settings = {"epochs": 1, "hidden_size": 4, "ensemble": 1}
    once = VARNNRegressor(**settings, refit=False).fit(panel)  # type: ignore[arg-type]  # of many kinds
    page = report.fit_page(once, panel, repeats=0)
    error = math.sqrt(once.fitted_.training.validation["model"])
    assert f"RMSE is {figure(error)}" in page.summary and "was not trained on these rows" in page.subtitle
    apart = VARNNRegressor(**settings).fit(panel.between(0, 500), validation=panel.between(500, 600))  # type: ignore[arg-type]
    page = report.fit_page(apart, panel.between(0, 500), rows=panel.between(500, 600), repeats=0)
    assert "100 rows that were given apart" in page.subtitle
    with pytest.raises(DataError, match="about the rows it was fitted to, 500"):
        report.fit_page(apart, panel)


def test_short_tables_and_held_out_rows_without_labels_have_a_page(panel: Panel) -> None:
    settings = {"epochs": 1, "hidden_size": 4, "ensemble": 1}
    short = panel.between(0, 40)
    model = VARNNRegressor(**settings).fit(short)  # type: ignore[arg-type]
    assert "On 7 held-out rows" in report.fit_page(model, short).summary
    unknown = np.where((np.arange(600) < 480) | (np.arange(600) == 599), panel.target[:600], np.nan)
    blind = replace(panel.between(0, 600), target=unknown)
    model = VARNNRegressor(**settings).fit(blind)  # type: ignore[arg-type]
    page = report.fit_page(model, blind, repeats=1)
    assert "all 600 rows, which the model was trained on" in page.subtitle


def test_inputs_that_the_model_left_out_are_said_to_be_none() -> None:
    generator = np.random.default_rng(0)
    rows = Panel.from_arrays(generator.normal(size=(400, 2)), np.cumsum(generator.normal(size=400)))
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(rows)
    said = parts(report.fit_page(model, rows, repeats=1))["Which inputs matter"]
    used = model.fitted_.pipeline.use_inputs
    assert used or said.strip().startswith("None: its predictions are the same")


def test_predictions_say_how_good_they_are_and_without_labels_that_nobody_knows(
    model: VARNNRegressor, panel: Panel
) -> None:
    later = replace(hourly(2, 200, seed=1), time=np.tile(HOURS[600:800], 2))
    page = report.predict_page(model, later, repeats=1)
    said = parts(page)
    errors = model.innovations(later)
    errors[later.starts[:-1]] = np.nan
    assert f"RMSE is {figure(float(np.sqrt(np.nanmean(errors**2))))}" in page.summary
    assert {"Where and when it fails", "Coverage over time", "Which inputs matter"} <= set(said)
    assert "trained on" not in page.summary
    before = report.predict_page(model, panel).summary
    assert "These rows are of the time that the model was trained on: errors on new rows" in before
    blind = replace(later, target=np.full(len(later), np.nan))
    page = report.predict_page(model, blind)
    assert "No row has a label" in page.summary
    assert "The last training rows, and predictions after them" in parts(page)


def test_a_forecast_is_on_its_page(model: VARNNRegressor, panel: Panel) -> None:
    page = report.forecast_page(model, panel)
    said = parts(page)
    found = model.forecast(panel, interval=[0.9, 0.5])
    assert found.lower is not None
    table = said["The forecast in figures: meter 1"]
    assert figure(found.prediction[1, 2]) in table and figure(found.lower[1, 2, 0]) in table
    assert "2026-03-27 02:00" in table and "90 % interval" in table
    assert f"forecast to be {figure(found.prediction[0, 0])} next" in page.summary
    plain = report.forecast_page(model, panel, forecast=model.forecast(panel, horizon=2))
    assert "interval" not in parts(plain)["The forecast in figures: meter 0"]
    with pytest.raises(DataError, match="one level for each pair of bounds"):
        report.forecast_page(model, panel, forecast=found, levels=[0.9])


def test_a_long_forecast_is_folded_and_says_what_its_bands_rest_on() -> None:
    labels = np.cumsum(np.random.default_rng(0).normal(size=400))
    rows = Panel.from_arrays(None, labels, time=HOURS[:400])
    far = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, horizon=60).fit(rows)
    page = report.forecast_page(far, rows)
    table = dict(page.parts)["The forecast in figures"]
    assert table.count("<tr>") == 62 and "<details><summary>12 more rows</summary>" in table
    assert table.index(">48<") < table.index("<details>") < table.index(">49<")
    said = "hold fewer than 20 separate errors of forecasts 4 to 60 rows ahead"
    for one in (page, report.fit_page(far, rows, repeats=0)):
        assert said in parts(one)["What the bands of forecasts rest on"]
        assert said in parts(one)["The model and its limits"]
    plain = report.forecast_page(far, rows, forecast=far.forecast(rows))
    assert "What the bands of forecasts rest on" not in parts(plain)  # which has none


def test_pages_say_why_a_monitor_names_another_row(model: VARNNRegressor) -> None:
    rows = hourly(2, 400, seed=2)
    target = rows.target.copy()
    target[300:400] += 8 * np.random.default_rng(9).normal(size=100)
    changed = replace(rows, target=target)
    assert (
        "A monitor tells as rows come" in parts(report.predict_page(model, changed))["Truth and predictions"]
    )
    said = parts(report.monitor_page(model, changed))
    assert "look back" in said["What was noticed"] and "A monitor tells" not in said["Truth and predictions"]
    assert "A monitor tells" not in parts(report.predict_page(model, rows))["Truth and predictions"]


def test_a_monitor_tells_what_changed_and_when(model: VARNNRegressor) -> None:
    rows = hourly(2, 400, seed=2)
    target = rows.target.copy()
    target[300:400] += 8 * np.random.default_rng(9).normal(size=100)
    rows = replace(rows, target=target, time=np.tile(HOURS[600:1000], 2))
    found = watch(model.fitted_, rows)
    assert found.events and found.events[0].series == 0 and 300 <= found.events[0].row < 360
    page = report.monitor_page(model, rows, watched=found, title="meters")
    said = parts(page)
    line = found.lines()[0]
    assert line["time"] == str(HOURS[600 + found.events[0].row]).replace("T", " ") + ":00"
    assert line["time"] in said["What was noticed"] and "meter 0" in said["What was noticed"]
    assert line["words"].startswith(found.events[0].what) and "meter 0" in line["words"]
    assert f"{found.events[0].kind}, {line['time']}" in said["Truth and predictions"]
    assert page.summary == found.in_words() and "noticed in 800 rows" in page.summary
    with pytest.raises(DataError, match="rows need labels"):
        watch(model.fitted_, replace(rows, target=np.full(800, np.nan)))


def test_a_leak_and_what_was_left_out_stand_on_the_page() -> None:
    riders = np.random.default_rng(0).poisson(9, size=(300, 2)).astype(float)
    frame = pd.DataFrame(
        {
            "casual": riders[:, 0],
            "registered": riders[:, 1],
            "name": [f"day {one}" for one in range(300)],
            "all": riders.sum(axis=1),
        }
    )
    panel = Panel.from_frame(frame, target="all")
    model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    said = parts(report.fit_page(model, panel, repeats=0))["What was understood"]
    assert "all is the exact sum of casual and registered in the training rows" in said
    assert "'name' (300 values)" in said and "left out" in said


def test_only_settings_that_were_changed_are_listed() -> None:
    assert changed_settings(VARNNRegressor().get_params(deep=False)) == {}
    changed = VARNNRegressor(window=6, details=Details(patience=3)).get_params(deep=False)
    assert changed_settings(changed) == {"window": 6, "patience": 3}


def test_a_wild_model_makes_a_page_that_can_be_read(model: VARNNRegressor, panel: Panel) -> None:
    wild = replace(panel, target=np.where(np.arange(len(panel)) % 7 == 0, 1e30, panel.target))
    page = report.predict_page(model, wild).html()
    told = re.sub(r"<(script|style).*?</\1>|<svg.*?</svg>|<figcaption.*?</figcaption>", "", page, flags=re.S)
    words = html.unescape(re.sub(r"<[^>]*>", " ", told))
    assert not re.search(r"\d{12}|\d[eE][+-]\d\d", words)
