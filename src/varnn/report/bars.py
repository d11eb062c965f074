"""Lines of a table with a bar each -> HTML: groups one below the other, on a phone and on paper alike."""

import html
import math
from collections.abc import Sequence
from typing import NamedTuple


class Bar(NamedTuple):
    """A line of a table of bars.

    Parameters
    ----------
    cells : sequence of str
        Texts of the line; the first is its name and stands before the bar, the others after it.
    length : float
        Of the bar, in units that all bars share; nothing is drawn of what is not above 0.
    mark : float or None, default=None
        What the length is compared with: a stroke.
    spread : tuple of float or None, default=None
        Lowest and highest of what the length is the mean of: a thin line.
    """

    cells: Sequence[str]
    length: float
    mark: float | None = None
    spread: tuple[float, float] | None = None


def bars(columns: Sequence[str], lines: Sequence[Bar], *, strong: int | None = None) -> str:
    """Write a table with a bar in each line.

    Parameters
    ----------
    columns : sequence of str
        Heads of the cells; the second one stands over the bars.
    lines : sequence of Bar
        One for each line, with as many cells as there are columns but one.
    strong : int or None, default=None
        Line to bring out.

    Examples
    --------
    >>> text = bars(["hour", "error", "RMSE"], [Bar(["07:00", "3"], 3.0, 1.5), Bar(["08:00", "1"], 1.0)])
    >>> 'width:100.0%' in text, 'left:50.0%' in text, 'width:33.3%' in text
    (True, True, True)
    """
    longest = max((_longest(one) for one in lines), default=0.0) or 1.0
    head = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in columns)
    body = "".join(
        ('<tr class="strong">' if index == strong else "<tr>") + f"<td>{html.escape(one.cells[0])}</td>"
        f'<td class="bar">{_drawn(one, longest)}</td>'
        + "".join(  # a phone shows names of columns beside the values
            f'<td data-label="{html.escape(name)}">{html.escape(cell)}</td>'
            for name, cell in zip(columns[2:], one.cells[1:], strict=True)
        )
        + "</tr>"
        for index, one in enumerate(lines)
    )
    return f'<table class="bars"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _longest(one: Bar) -> float:
    known = [one.length, *([] if one.mark is None else [one.mark]), *(one.spread or ())]
    return max((value for value in known if math.isfinite(value)), default=0.0)


def _drawn(one: Bar, longest: float) -> str:
    drawn = f'<i style="width:{_place(one.length, longest)}"></i>'
    if one.spread is not None:
        low, high = (_share(value, longest) for value in one.spread)
        drawn += f'<u style="left:{low:.1f}%;width:{max(high - low, 0.0):.1f}%"></u>'
    if one.mark is not None and math.isfinite(one.mark):
        drawn += f'<b style="left:{_place(one.mark, longest)}"></b>'
    return f"<span>{drawn}</span>"


def _place(value: float, longest: float) -> str:
    return f"{_share(value, longest):.1f}%"


def _share(value: float, longest: float) -> float:
    """Percent of the longest bar; what is not a number has no length, and what is beyond has all of it."""
    if math.isnan(value):
        return 0.0
    return min(100.0, max(0.0, 100 * value / longest))
