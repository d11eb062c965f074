"""Facts and tables -> how an object shows itself: a few lines of text, or HTML for a notebook.

It lies this low so that objects of every room show themselves alike. The HTML has neither script nor a style
sheet of its own: notebooks drop both where a page is not trusted. Its colours are those of the text around
it, so that it is read on light and dark pages alike.

Pictures come from above: an object asks the report room for one by name, when somebody asks the object.
"""

import html
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from varnn.data.in_words import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 6  # names in a line
_RULE = "border:0;border-bottom:1px solid color-mix(in srgb, currentColor 20%, transparent);"
_CELL = f"{_RULE}padding:.2em .8em .2em 0;background:none;color:inherit;"
_TABLE = (
    "border-collapse:collapse;border:0;margin:.3em 0 .6em;font-variant-numeric:tabular-nums;color:inherit;"
)
_CAPTION = "white-space:nowrap;text-align:left;caption-side:top;padding:.2em 0;opacity:.75;color:inherit"


class Table(NamedTuple):
    """A table of texts: a title, the columns, and the cells of each row; ``strong`` is a row to bring out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: int | None = None


def counted(count: int, thing: str) -> str:
    """Write how many there are of something.

    Examples
    --------
    >>> counted(1, "row"), counted(12_000, "row"), counted(3, "series")
    ('1 row', '12,000 rows', '3 series')
    """
    return f"{count:,} {thing}{'' if count == 1 or thing.endswith('s') else 's'}"


def some(names: Sequence[str], most: int = SHOWN) -> str:
    """Write the first of some names.

    Examples
    --------
    >>> some(["heat", "wind", "sun"], most=2), some([])
    ('heat, wind, ...', '')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def cell(value: float | None) -> str:
    """Write a number for a table; nothing where there is none.

    Examples
    --------
    >>> [cell(one) for one in (0.81624, 1234.5, float("nan"), None)]
    ['0.8162', '1,234', '', '']
    """
    return "" if value is None or math.isnan(value) else figure(value)


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Write a table as lines of text, the first column to the left, numbers to the right.

    Examples
    --------
    >>> print(text_table(["model", "RMSE"], [["varnn", "0.8162"], ["persistence", "0.96"]], indent=""))
    model          RMSE
    varnn        0.8162
    persistence    0.96
    """
    lines = [list(columns), *map(list, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join(
        indent
        + "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_card(
    title: str,
    facts: Mapping[str, str] | None = None,
    tables: Sequence[Table] = (),
    words: Sequence[str] = (),
) -> str:
    """Write an object as HTML for a notebook.

    Parameters
    ----------
    title : str
        What it is, in a line.
    facts : mapping or None, default=None
        Names and values; those without a value are left out.
    tables : sequence of Table, default=()
        Tables below the facts.
    words : sequence of str, default=()
        Sentences below these.

    Examples
    --------
    >>> shown = html_card("A <b>", {"rows": "3"}, [Table("Scores", ["model"], [["varnn"]])], ["Good."])
    >>> "A &lt;b&gt;" in shown and ">varnn</td>" in shown and "<script" not in shown
    True
    """
    body = [f'<div style="font-weight:600">{html.escape(title)}</div>']
    if given := [(name, value) for name, value in (facts or {}).items() if value]:
        lines = "".join(
            f'<tr style="background:none"><th scope="row" style="{_CELL}text-align:left;font-weight:400;'
            f'opacity:.75">{html.escape(name)}</th>'
            f'<td style="{_CELL}text-align:left">{html.escape(value)}</td></tr>'
            for name, value in given
        )
        body.append(f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>')
    body += [_html_table(one) for one in tables]
    if words:
        listed = "".join(f"<li>{html.escape(one)}</li>" for one in words)
        body.append(f'<ul style="margin:.3em 0;padding-left:1.2em">{listed}</ul>')
    return f'<div style="max-width:60em;overflow-x:auto">{"".join(body)}</div>'


def _html_table(table: Table) -> str:
    def cells(row: Sequence[str], tag: str, weight: int) -> str:
        return "".join(
            f'<{tag} style="{_CELL}text-align:{"left" if place == 0 else "right"};font-weight:{weight}">'
            f"{html.escape(one)}</{tag}>"
            for place, one in enumerate(row)
        )

    body = "".join(
        f'<tr style="background:none">{cells(row, "td", 600 if index == table.strong else 400)}</tr>'
        for index, row in enumerate(table.rows)
    )
    caption = f'<caption style="{_CAPTION}">{html.escape(table.title)}</caption>' if table.title else ""
    head = f'<thead><tr style="background:none">{cells(table.columns, "th", 600)}</tr></thead>'
    return f'<table style="{_TABLE}">{caption}{head}<tbody>{body}</tbody></table>'


def drawn(kind: str, thing: object, *others: object, **how: Any) -> "Figure":
    """Draw an object: by the function of that name in `varnn.report.plots`.

    By name, as a plugin is: rooms import from below alone, and matplotlib is imported by who draws.
    """
    found: Figure = getattr(import_module("varnn.report.plots"), kind)(thing, *others, **how)
    return found
