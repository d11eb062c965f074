"""The report page: what it holds, that it escapes what it is given, and that every kind of page is made."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor, evaluation
from varnn.report import comparison_page, figures
from varnn.report._learning import validation_below
from varnn.report.page import Report

MODEL_PARTS = [
    *("Autocorrelation of the errors", "What is left in the errors", "Where and when it fails"),
    *("By hour of the day", "By day of the week", "By level of kWh", "The worst stretches", "Calibration"),
    *("Who is right when", "Which inputs matter", "Learning curve", "Settings"),
]


class Tags(HTMLParser):
    """Refuse a page whose tags are not closed in order."""

    VOID = frozenset({"meta", "br", "img", "use", "path", "image", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.ids += [str(value) for name, value in attributes if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def check_markup(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids)), "two things on the page have one id"
    outside = [one for one in re.findall(r"""(?:src|href)=["']([^"']*)""", page) if one[:5] not in ("data:",)]
    assert all(one.startswith("#") for one in outside)


def titles(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def hourly(rows: int) -> Panel:
    panel = random_panel([rows], missing=0.02)
    time = np.datetime64("2026-01-01T00") + np.arange(rows)
    return Panel.from_arrays(panel.inputs, panel.target, time=time, target_name="kWh")


def compared(
    panel: Panel, *, origins: int = 1, **settings: Any
) -> tuple[evaluation.Comparison, dict[str, VARNNRegressor]]:
    kept: dict[str, VARNNRegressor] = {}

    def make(seed: int) -> VARNNRegressor:
        small: dict[str, Any] = {
            "hidden_size": 6,
            "details": Details(memory_size=5),
            "epochs": 1,
            "ensemble": 1,
            "random_state": seed,
        }
        kept["ours"] = VARNNRegressor(**{**small, **settings})
        return kept["ours"]

    models: list[Any] = ["persistence", "arx-lr", ("ours", make)]
    return evaluation.compare(panel, models, seeds=1, origins=origins), kept


def test_a_page_escapes_what_it_is_given() -> None:
    report = Report("<b>", "a & b", "1 < 2")
    report.add_table("<i>", ["<u>"], [["<s>"]], note="<a>")
    report.add_points("p", [("<em>", "<q>")])
    report.add_words("<w>", ["<li>"])
    report.add_facts("<f>", {"<k>": "<v>"})
    figure, (axes,) = figures.new_figure()
    axes.set_xlabel("<x>")
    report.add_figure("<h>", figure, 'a "quoted" <caption>')
    page = report.html()
    check_markup(page)
    for given in ("<b>", "<i>", "<u>", "<s>", "<em>", "<q>", "<w>", "<k>", "<v>", "<h>", "<caption>", "<x>"):
        assert given not in page
        assert given.replace("<", "&lt;").replace(">", "&gt;") in page
    assert 'aria-label="a &quot;quoted&quot; &lt;caption&gt;"' in page


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    Report("Title", "", "Summary.").write(path)
    assert path.read_text().endswith("</html>\n")
    assert re.search(r"Made by varnn\. .*python 3.*numpy ", path.read_text())


def test_a_model_is_looked_at_closely() -> None:
    result, kept = compared(hourly(2400))
    page = comparison_page.page(result, "house", fitted=kept).html()
    check_markup(page)
    assert titles(page) == ["Scores", "Error of each model", "Truth and predictions", *MODEL_PARTS]
    described = re.findall(r'<svg [^>]*role="img" aria-label="([^"]+)"', page)
    assert len(described) == page.count("<svg ") == 8
    assert "the hardest day" in page and "Intervals are cut off" in page
    lead_in, scored = result.parts.lead_in, result.parts.scored()
    found = kept["ours"].predict(lead_in, interval=0.9)
    covered = ((found.lower <= lead_in.target) & (lead_in.target <= found.upper))[scored]
    assert f"The coverage of 90 % intervals is {100 * covered.mean():.1f} %." in page
    assert "<dt>memory_size</dt><dd>5</dd>" in page
    assert "<dt>patience</dt>" not in page  # as it is by default
    said = kept["ours"].fitted_.context_in_words
    assert "windows of 24 rows" in said and f"<dt>rows are predicted from</dt><dd>{said}</dd>" in page


def test_who_is_right_when_is_drawn_where_something_learns_on() -> None:
    result, kept = compared(random_panel([700, 500]), epochs=1)
    page = comparison_page.page(result, "houses", fitted=kept).html()
    check_markup(page)
    part = page.split("Who is right when</h2>")[1].split("</figure>")[0]
    experts = kept["ours"].fitted_.experts
    assert experts is not None
    told = json.loads(re.findall(r"json\">(.*?)</script>", part)[0])
    assert [one["name"] for one in told["series"]] in (["s0", "s1"], ["s1", "s0"])
    shown = [name.removeprefix("line ") for name in told["series"][0]["columns"]]
    assert set(shown) - {"others"} <= set(experts.names) and len(shown) <= 6
    assert ("others" in shown) == (len(experts.names) > 6)
    assert "over the test rows: who was right lately counts more" in part
    result, kept = compared(random_panel([700]), adapt=None, epochs=1)
    assert "Who is right when" not in comparison_page.page(result, "house", fitted=kept).html()


def test_a_model_without_a_clock_or_intervals_has_a_page_without_them() -> None:
    result, kept = compared(random_panel([900]), intervals=False)
    page = comparison_page.page(result, "house", fitted=kept).html()
    check_markup(page)
    clock = ("By hour of the day", "By day of the week", "Calibration")
    without = [one.replace("kWh", "y") for one in MODEL_PARTS if one not in clock]
    assert titles(page)[2:] == ["Truth and predictions", *without]
    assert "interval" not in page.split("<main>")[1].split("Settings</h2>")[0]


def test_several_series_after_several_origins_have_a_page() -> None:
    result, kept = compared(random_panel([700, 500], missing=0.05), origins=2)
    page = comparison_page.page(result, "houses", fitted=kept).html()
    check_markup(page)
    assert "of the series with the largest error; others are in the picker" in page


def test_of_very_many_test_rows_the_latest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.report._model_section.LOOKED_AT", 130)
    result, kept = compared(random_panel([900, 700], missing=0.05))
    assert len(result.parts.test) == 320
    page = comparison_page.page(result, "houses", fitted=kept).html()
    check_markup(page)
    assert "All below is about the latest 130 of 320 test rows." in page
    latest = result.parts.test.latest(130)
    found = kept["ours"].predict(result.parts.lead_in.latest(260), interval=0.9)
    rows = result.parts.lead_in.latest(260)
    shown = np.isin(rows.rows, latest.rows) & ~np.isnan(rows.target)
    covered = ((found.lower <= rows.target) & (rows.target <= found.upper))[shown]
    assert f"The coverage of 90 % intervals is {100 * covered.mean():.1f} %." in page


def test_too_few_rows_to_diagnose_still_make_a_page() -> None:
    result, kept = compared(random_panel([150]))
    page = comparison_page.page(result, "hut", fitted=kept).html()
    assert titles(page)[-2:] == ["Learning curve", "Settings"]
    assert "Autocorrelation" not in page and "<script" not in page


def test_the_changes_of_a_stream_are_marked() -> None:
    panel = random_panel([2500], drift=0.0)
    spread = np.where(np.arange(2500) < 2200, 0.1, 2.0)
    target = panel.target + np.random.default_rng(3).normal(size=2500) * spread
    result, kept = compared(Panel.from_arrays(panel.inputs, target))
    page = comparison_page.page(result, "house", fitted=kept).html()
    assert re.search(r"The monitor noticed \d changes?, marked from where each began", page)
    assert re.search(r"(noticed \(|was noticed: ).*variance change", page)
    assert re.search(r"<li>variance change, row [\d,]+, begun row [\d,]+</li>", page)
    without = comparison_page.page(result, "house", fitted={}).html()
    assert titles(without)[2:] == ["Truth and predictions", "Autocorrelation of the errors"]
    assert "<li>variance change, row " in without


def test_validation_below_training_is_explained_only_where_it_is_so() -> None:
    lines = [{"epoch": 1.0, "member": float(one), "loss": 0.5, "validation_loss": 0.4} for one in range(3)]
    assert validation_below(lines)
    assert not validation_below([*lines, *({**line, "loss": 0.3} for line in lines)])  # the last epoch counts
    assert not validation_below([{"epoch": 1.0, "loss": 0.5}])


def test_a_learning_curve_has_whole_epochs() -> None:
    for last in (1, 2, 3, 40):
        epochs = np.arange(1.0, last + 1)
        history = [{"epoch": one, "loss": 1 / one, "validation_loss": 2 / one} for one in epochs]
        figure = figures.learning_curve(history, best_epochs=[last])
        assert all(tick == round(tick) for tick in figure.axes[0].get_xticks())


def test_ticks_between_powers_of_ten_have_the_colour_of_the_page() -> None:
    figure, (axes,) = figures.new_figure()
    axes.semilogy([1, 2], [3e-3, 2e-2])
    svg = figures.to_svg(figure, "two points")
    assert "#000000" not in svg
    assert all("fill: currentColor" in one for one in re.findall(r"<tspan[^>]*>", svg))
