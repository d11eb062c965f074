"""Tables, figures, charts and words -> one self-contained HTML page: no network, light and dark.

A page with charts (`chart.py`) carries one script; without script it has still pictures in their place.
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from varnn.data.files import write_atomically
from varnn.report import inlined
from varnn.report._gaps import with_gaps
from varnn.report._packing import packed
from varnn.report._picture import picture
from varnn.report.bars import Bar, bars
from varnn.report.chart import TimeChart
from varnn.report.provenance import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOM = 1_000_000  # characters of charts' values: a page stays below 1.5 MB
LEAST_ROOM = 50_000  # of any chart, however many there are
WIDEST_ON_A_PHONE = 6.0  # inches; figures wider than that scroll there, or nobody could read them
LETTERS_ON_A_PHONE = 40  # a table with longer lines becomes cards there
LISTED_MARKS = 12  # below a chart; all of them are drawn


@dataclass
class Report:
    """A page under construction: add parts in reading order, then write it.

    Parameters
    ----------
    title, subtitle : str
        Head of the page.
    summary : str
        What the reader should take away, in a sentence or two.

    Examples
    --------
    >>> page = Report("A stream", "100 rows", "Nothing happened.")
    >>> page.add_table("Scores", ["model", "RMSE"], [["persistence", "1.0"]])
    >>> "<td>persistence</td>" in page.html()
    True
    """

    title: str
    subtitle: str
    summary: str
    parts: list[tuple[str, str]] = field(default_factory=list)  # title and body, as HTML
    held: int = 0  # characters of charts' values so far

    def add_table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        note: str = "",
        strong: int | None = None,
        shown: int | None = None,
    ) -> None:
        """Add a table; ``strong`` is the row to bring out; rows after the first ``shown`` are folded away."""
        longest = [max([len(name), *(len(row[at]) for row in rows)]) for at, name in enumerate(columns)]
        many = sum(longest) + 2 * len(columns) > LETTERS_ON_A_PHONE
        head = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in columns)
        opening = '<table class="many">' if many else "<table>"
        lines = [
            ('<tr class="strong">' if index == strong else "<tr>")
            + "".join(_cell(one, name if many else "") for one, name in zip(row, columns, strict=True))
            + "</tr>"
            for index, row in enumerate(rows)
        ]

        def table(some: Sequence[str], name: str) -> str:
            body = "".join(some)
            return _wide(f"{opening}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", name)

        first, rest = lines[:shown], lines[len(lines[:shown]) :]
        more = f"{len(rest):,} more row{'s' * (len(rest) > 1)}"
        folded = f"<details><summary>{more}</summary>{table(rest, f'{title}, {more}')}</details>"
        said = f'<p class="note">{html.escape(note)}</p>' if note else ""
        self._add(title, table(first, title) + (folded if rest else "") + said)

    def add_bars(
        self,
        title: str,
        columns: Sequence[str],
        lines: Sequence[Bar],
        *,
        note: str = "",
        strong: int | None = None,
    ) -> None:
        """Add a table with a bar in each line; the second column stands over the bars.

        Examples
        --------
        >>> page = Report("A stream", "48 rows", "Seven o'clock is hard.")
        >>> page.add_bars("By hour", ["hour", "", "RMSE"], [Bar(["07:00", "3.1"], 3.1, mark=2.0)])
        >>> '<table class="bars">' in page.html()
        True
        """
        said = f'<p class="note">{html.escape(note)}</p>' if note else ""
        self._add(title, _wide(bars(columns, lines, strong=strong), title) + said)

    def add_chart(self, title: str, chart: TimeChart, caption: str) -> None:
        """Add a chart over time that readers zoom; the caption also describes it to those who cannot see it.

        Examples
        --------
        >>> from varnn.report.chart import ChartSeries
        >>> page = Report("A stream", "3 rows", "It rose, and fell.")
        >>> rows = ChartSeries(places=np.arange(3), truth=np.array([1.0, 2.0, 1.5]))
        >>> page.add_chart("Over time", TimeChart([rows], unit="load"), "The load of three rows.")
        >>> '<figure class="chart">' in page.html()
        True
        """
        chart = with_gaps(chart)
        values, left_out = packed(chart, max(ROOM - self.held, LEAST_ROOM))
        self.held += len(str(values["data"]))
        if left_out:
            count = sum(len(one.places) for one in chart.series)
            caption += (
                f" This page holds {count - left_out:,} of the {count:,} rows: the lowest and the highest of "
                "each span."
            )
        # No text of a user can end the element that it stands in.
        data = json.dumps(values, separators=(",", ":")).replace("<", "\\u003c")
        self._add(
            title,
            f'<figure class="chart"><div class="still">{_wide(picture(chart, caption), title)}</div>'
            f'<script type="application/json">{data}</script>'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>{_marks(chart)}",
        )

    def add_figure(self, title: str, figure: "Figure | Sequence[Figure]", caption: str) -> None:
        """Add a figure, or several side by side; the caption also describes it to those who cannot see it."""
        from varnn.report.figures import to_svg

        several = list(figure) if isinstance(figure, Sequence) else [figure]
        wide = any(one.get_figwidth() > WIDEST_ON_A_PHONE for one in several)
        # Each has a description of its own: the ids inside a figure are made of it.
        numbers = [f" ({number} of {len(several)})" for number in range(1, len(several) + 1)]
        told = [caption + number for number in numbers] if len(several) > 1 else [caption]
        drawn = "".join(f"<div>{to_svg(one, alt)}</div>" for one, alt in zip(several, told, strict=True))
        body = (
            _wide(f'<div class="drawn wider">{drawn}</div>', title)
            if wide
            else f'<div class="drawn">{drawn}</div>'
        )
        self._add(title, f"<figure>{body}<figcaption>{html.escape(caption)}</figcaption></figure>")

    def add_points(self, title: str, points: Sequence[tuple[str, str]], *, compact: bool = False) -> None:
        """Add a list of points, each a heading and a text; compact, the text stands beside its heading."""
        if points:
            listed = "".join(
                f"<dt>{html.escape(head)}</dt><dd>{html.escape(text)}</dd>" for head, text in points
            )
            opening = '<dl class="compact">' if compact else "<dl>"
            self._add(title, f"{opening}{listed}</dl>")

    def add_words(self, title: str, sentences: Sequence[str]) -> None:
        """Add sentences, one below the other."""
        listed = "".join(f"<li>{html.escape(one)}</li>" for one in sentences)
        self._add(title, f"<ul>{listed}</ul>")

    def add_facts(self, title: str, facts: Mapping[str, object]) -> None:
        """Add names and values, such as a configuration."""
        listed = "".join(
            f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd></div>"
            for name, value in facts.items()
        )
        self._add(title, f'<dl class="facts">{listed}</dl>')

    def html(self) -> str:
        """The whole page."""
        made = ", ".join(f"{name} {value}" for name, value in provenance().items())
        links = "".join(
            f'<a href="#part-{number}">{title}</a>' for number, (title, _) in enumerate(self.parts, 1)
        )
        sections = "".join(
            f'<section id="part-{number}"><h2>{title}</h2>{body}</section>'
            for number, (title, body) in enumerate(self.parts, 1)
        )
        script = f"<script>{inlined.script()}</script>" if self.held > 0 else ""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{inlined.policy(charts=self.held > 0)}">'
            f"<title>{html.escape(self.title)}</title><style>{inlined.style(charts=self.held > 0)}</style>"
            "</head><body>"
            f'<header><h1>{html.escape(self.title)}</h1><p class="subtitle">{html.escape(self.subtitle)}</p>'
            f'<p class="summary">{html.escape(self.summary)}</p>'
            f'<nav aria-label="Parts of this page">{links}</nav></header><main>{sections}</main>'
            f"<footer>Made by varnn. {html.escape(made)}.</footer>{script}</body></html>\n"
        )

    def write(self, path: str | Path) -> None:
        """Write the page; an existing file is replaced only by a complete one."""
        write_atomically(path, self.html().encode())

    def _add(self, title: str, body: str) -> None:
        self.parts.append((html.escape(title), body))


def _wide(content: str, title: str) -> str:
    """Let content that is wider than a phone scroll by itself, with the keyboard too."""
    return f'<div class="wide" role="region" aria-label="{html.escape(title)}" tabindex="0">{content}</div>'


def _marks(chart: TimeChart) -> str:
    """List the changes that are marked, with their dates: what is drawn can be read and searched, too."""
    several = len(chart.series) > 1
    said = []
    for one in chart.series:
        for mark in one.marks:
            began = "" if mark.began == mark.noticed else f", begun {_place(mark.began)}"
            series = f"{one.name}: " if several and one.name else ""
            said.append(f"<li>{html.escape(f'{series}{mark.kind}, {_place(mark.noticed)}{began}')}</li>")
    if not said:
        return ""
    more = len(said) - LISTED_MARKS
    rest = f"<li>and {more:,} more</li>" if more > 0 else ""
    return f'<ul class="marks">{"".join(said[:LISTED_MARKS])}{rest}</ul>'


def _place(place: Any) -> str:
    """Write a place on a time axis: a time to the minute or as finely as it needs, or the number of a row."""
    if isinstance(place, np.datetime64):
        return str(place.astype("M8[s]")).replace("T", " ").removesuffix(":00")
    return f"row {place:,}"


def _cell(text: str, label: str) -> str:
    """A table cell; long text may wrap, numbers stay on one line. A label is shown where cells are cards."""
    kind = ' class="text"' if len(text) > 28 else ""
    named = f' data-label="{html.escape(label)}"' if label else ""
    return f"<td{kind}{named}>{html.escape(text)}</td>"
