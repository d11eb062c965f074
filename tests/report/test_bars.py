"""Bars in tables: lengths in proportion, and what a user calls things is text."""

import math
import re

from varnn.report.bars import Bar, bars


def test_bars_marks_and_spreads_share_one_scale() -> None:
    text = bars(
        ["name", "", "RMSE"],
        [Bar(["a", "4"], 4.0, mark=8.0), Bar(["b", "2"], 2.0, spread=(1.0, 3.0)), Bar(["c", "-"], -1.0)],
        strong=1,
    )
    assert re.findall(r"<i style=\"width:([\d.]+)%", text) == ["50.0", "25.0", "0.0"]
    assert '<b style="left:100.0%">' in text and '<u style="left:12.5%;width:25.0%">' in text
    assert text.count('<tr class="strong">') == 1 and text.index('"strong"') < text.index("<td>b</td>")


def test_names_are_escaped_and_wild_lengths_stay_in_their_place() -> None:
    text = bars(
        ["<x>", "", "b"], [Bar(["<script>", "1"], math.nan, mark=math.inf), Bar(["b", "1"], math.inf)]
    )
    assert "<script>" not in text and "<x>" not in text
    assert re.findall(r"width:([\d.]+)%", text) == ["0.0", "100.0"]
