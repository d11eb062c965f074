"""Tables, figures and words -> one self-contained HTML page: no script, no network, light and dark."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from varnn.data.files import write_atomically
from varnn.report.provenance import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #566272; --paper: #ffffff; --card: #f4f6f9;
  --line: #dde3ea; --accent: #1d62bf; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6ebf2; --soft: #9fabba;
  --paper: #12161c; --card: #1b212a; --line: #2d3642; --accent: #7db3f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .5rem; }
.subtitle, figcaption, footer, .note { color: var(--soft); font-size: .92rem; }
.summary { background: var(--card); border-left: 4px solid var(--accent); padding: .8rem 1.1rem;
  margin: 1.2rem 0; border-radius: 0 .4rem .4rem 0; font-size: 1.05rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .92rem; }
a { color: var(--accent); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .5rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 600; }
tr.strong td { font-weight: 650; color: var(--accent); }
td.text { white-space: normal; text-align: left; min-width: 14rem; }
dt { font-weight: 650; margin-top: .8rem; }
dd { margin: .1rem 0 0; }
ul { margin: .3rem 0 0; padding-left: 1.2rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr));
  gap: 0 1.5rem; margin: 0; font-size: .93rem; }
.facts div { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .8rem; padding: .3rem 0;
  border-bottom: 1px solid var(--line); }
.facts dt { font-weight: 400; color: var(--soft); margin: 0; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: .6rem 0 0; }
figure svg { display: block; width: 100%; min-width: 40rem; height: auto; }
footer { margin-top: 3.5rem; border-top: 1px solid var(--line); padding-top: .8rem; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } nav { display: none; }
  figure, table, li, .facts div { break-inside: avoid; } h2 { break-after: avoid; }
  .wide { overflow: visible; } figure svg { min-width: 0; } table, .facts { font-size: .75rem; }
  th, td { white-space: normal; padding: .25rem .3rem; } td.text { min-width: 0; } }
"""


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

    def add_table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        note: str = "",
        strong: int | None = None,
    ) -> None:
        """Add a table; ``strong`` is the row to bring out."""
        head = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in columns)
        body = "".join(
            ('<tr class="strong">' if index == strong else "<tr>")
            + "".join(_cell(one) for one in row)
            + "</tr>"
            for index, row in enumerate(rows)
        )
        said = f'<p class="note">{html.escape(note)}</p>' if note else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self._add(title, _wide(table, title) + said)

    def add_figure(self, title: str, figure: "Figure", caption: str) -> None:
        """Add a figure; the caption also describes it to those who cannot see it."""
        from varnn.report.figures import to_svg

        said = f"<figcaption>{html.escape(caption)}</figcaption>"
        self._add(title, f"<figure>{_wide(to_svg(figure, caption), title)}{said}</figure>")

    def add_points(self, title: str, points: Sequence[tuple[str, str]]) -> None:
        """Add a list of points, each a heading and a text."""
        if points:
            listed = "".join(
                f"<dt>{html.escape(head)}</dt><dd>{html.escape(text)}</dd>" for head, text in points
            )
            self._add(title, f"<dl>{listed}</dl>")

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
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head><body>"
            f'<header><h1>{html.escape(self.title)}</h1><p class="subtitle">{html.escape(self.subtitle)}</p>'
            f'<p class="summary">{html.escape(self.summary)}</p>'
            f'<nav aria-label="Parts of this page">{links}</nav></header><main>{sections}</main>'
            f"<footer>Made by varnn. {html.escape(made)}.</footer></body></html>\n"
        )

    def write(self, path: str | Path) -> None:
        """Write the page; an existing file is replaced only by a complete one."""
        write_atomically(path, self.html().encode())

    def _add(self, title: str, body: str) -> None:
        self.parts.append((html.escape(title), body))


def _wide(content: str, title: str) -> str:
    """Let content that is wider than a phone scroll by itself, with the keyboard too."""
    return f'<div class="wide" role="region" aria-label="{html.escape(title)}" tabindex="0">{content}</div>'


def _cell(text: str) -> str:
    """A table cell; long text may wrap, numbers stay on one line."""
    opening = '<td class="text">' if len(text) > 28 else "<td>"
    return f"{opening}{html.escape(text)}</td>"
