"""A chart -> a still picture of it in SVG, for paper and where there is no script.

Its first series is drawn: all rows above, thinned, and its first view below. `assets/page.css` colours it.
"""

import html
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from varnn._types import FloatArray
from varnn.report._axis_ticks import number_ticks, time_ticks
from varnn.report._packing import axis_numbers
from varnn.report.chart import ChartSeries, TimeChart, Values
from varnn.report.thinning import thinned

WIDTH, LEFT, RIGHT, FOOT = 900, 64, 12, 34  # of the drawing, in its own units
SPANS = 120  # of an overview, where lines are faint, too: a zigzag one can see through, not a wall
CLOSE_SPANS = 400  # of a view, which is there for its details


class _Panel(NamedTuple):
    """A rectangle to draw into, and what its edges mean."""

    top: float
    height: float
    first: float
    last: float
    low: float
    high: float

    def across(self, numbers: Values) -> FloatArray:
        wide = (self.last - self.first) or 1.0
        return np.asarray(LEFT + (WIDTH - LEFT - RIGHT) * (numbers - self.first) / wide, dtype=float)

    def upright(self, values: Values) -> FloatArray:
        """Heights of values; those beyond the edges lie on them."""
        share = (np.clip(values, self.low, self.high) - self.low) / ((self.high - self.low) or 1.0)
        return np.asarray(self.top + self.height * (1 - share), dtype=float)


def picture(chart: TimeChart, alt: str) -> str:
    """Draw the still picture, with a line that names its colours above it."""
    one = chart.series[0]
    parts: list[str] = []
    top = 8.0
    view = next(iter(one.views.values()), None)
    for number, ends in enumerate([None, view] if view else [None]):
        height = 200 if number or not view else 120
        rows = one if ends is None else _cut(one, ends)
        part = _thin(rows, SPANS if ends is None else CLOSE_SPANS)
        crowded = " crowded" if len(part.places) < len(rows.places) else ""
        panel = _panel(chart, part, top, height)
        if ends is None and view:
            parts.append(_shade(panel, view, "view"))
        parts += _drawn(chart, part, panel, crowded)
        top += height + FOOT
    if chart.errors and one.truth is not None and one.lines:
        part = _thin(one, SPANS)
        errors = np.asarray(part.truth, dtype=float) - next(iter(part.lines.values()))
        most = _usual(errors)
        panel = _panel(chart, part, top, 90)._replace(low=-most, high=most)
        parts += [*_frame(chart, panel), *_paths(panel, part.places, errors, "error")]
        top += 90 + FOOT
    drawing = "".join(parts)
    size = f'viewBox="0 0 {WIDTH} {top:.0f}"'
    return f'{_keys(chart, one)}<svg {size} role="img" aria-label="{html.escape(alt)}">{drawing}</svg>'


def _cut(one: ChartSeries, ends: tuple[Any, Any]) -> ChartSeries:
    """The rows between two places."""
    first, last = np.searchsorted(one.places, ends[0]), np.searchsorted(one.places, ends[1], side="right")
    return one.part(slice(int(first), int(last))) if last > first else one


def _thin(one: ChartSeries, spans: int) -> ChartSeries:
    columns = list(one.named_values().values())[:2]  # truth, and the line that matters most
    if one.truth is not None and one.lines:
        columns.append(columns[0] - columns[1])  # the largest errors must not be lost, either
    return one.part(thinned(columns, spans))


def _panel(chart: TimeChart, one: ChartSeries, top: float, height: float) -> _Panel:
    numbers = axis_numbers(one.places)
    low, high = (0.0, 1.0) if chart.stacked else _range(one)
    return _Panel(top, height, float(numbers[0]), float(numbers[-1]), low, high)


def _range(one: ChartSeries) -> tuple[float, float]:
    """The range of truth, or of the lines where there is none; others may widen it, but not without end."""
    named = one.named_values()
    known = [values[np.isfinite(values)] for values in named.values()]
    known = [values for values in known if len(values)]
    if not known:
        return 0.0, 1.0
    low, high = float(known[0].min()), float(known[0].max())
    spare = (high - low) or abs(high) or 1.0
    lowest, highest = float(np.concatenate(known).min()), float(np.concatenate(known).max())
    low, high = max(lowest, low - 0.75 * spare), min(highest, high + 0.75 * spare)
    margin = 0.06 * ((high - low) or abs(high) or 1.0)
    return low - margin, high + margin


def _usual(errors: FloatArray) -> float:
    """The reach of an axis of errors: one wild error must not flatten all others."""
    known = np.abs(errors[np.isfinite(errors)])
    return (
        (min(1.08 * float(known.max()), 8 * float(np.sqrt(np.mean(known**2)))) or 1.0) if len(known) else 1.0
    )


def _drawn(chart: TimeChart, one: ChartSeries, panel: _Panel, crowded: str) -> Iterator[str]:
    """What a panel holds, from the bottom up: what is drawn last hides what is below, so truth comes last."""
    yield from _frame(chart, panel)
    for lower, upper in one.bands.values():
        yield _area(panel, one.places, lower, upper, "band")
    lines = list(enumerate(one.lines.values(), start=1))
    if chart.stacked:
        base = np.zeros(len(one.places))
        for number, values in lines:
            top = base + np.nan_to_num(values)
            yield _area(panel, one.places, base, top, f"area line-{number}")
            base = top
    else:
        for number, values in reversed(lines):
            yield from _paths(panel, one.places, values, f"line-{number}{crowded}")
    if one.truth is not None:
        yield from _paths(panel, one.places, one.truth, f"truth{crowded}")
    for mark in one.marks:
        began, noticed = axis_numbers(np.array([mark.began, mark.noticed]))
        if panel.first <= noticed <= panel.last:
            if began < noticed:
                yield _shade(panel, (mark.began, mark.noticed), "since")
            place = panel.across(np.array([noticed]))[0]
            yield f'<path class="mark" d="M{place:.1f} {panel.top:.0f}v{panel.height:.0f}"/>'


def _frame(chart: TimeChart, panel: _Panel) -> Iterator[str]:
    """Axes: lines across at round numbers, and dates below."""
    for value, label in number_ticks(panel.low, panel.high):
        height = panel.upright(np.array([value]))[0]
        yield f'<path class="grid" d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{html.escape(label)}</text>'
    ticks = (time_ticks if chart.timed else number_ticks)(panel.first, panel.last)
    for value, label in ticks:
        place = panel.across(np.array([value]))[0]
        foot = panel.top + panel.height
        yield f'<path class="grid" d="M{place:.1f} {panel.top:.0f}V{foot + 4:.0f}"/>'
        yield f'<text x="{place:.1f}" y="{foot + 18:.0f}" text-anchor="middle">{html.escape(label)}</text>'


def _shade(panel: _Panel, ends: Sequence[Any], name: str) -> str:
    first, last = panel.across(np.clip(axis_numbers(np.array(ends)), panel.first, panel.last))
    size = f'width="{max(last - first, 1.0):.1f}" height="{panel.height:.0f}"'
    return f'<rect class="{name}" x="{first:.1f}" y="{panel.top:.0f}" {size}/>'


def _area(panel: _Panel, places: Values, lower: Values, upper: Values, name: str) -> str:
    known = np.isfinite(lower) & np.isfinite(upper)
    across = panel.across(axis_numbers(places))
    pieces = []
    for piece in _stretches(known):
        ahead = _points(across[piece], panel.upright(upper[piece]))
        back = _points(across[piece][::-1], panel.upright(lower[piece][::-1]))
        pieces.append(f"M{ahead}L{back}Z")
    return f'<path class="{name}" d="{"".join(pieces)}"/>'


def _paths(panel: _Panel, places: Values, values: Values, name: str) -> Iterator[str]:
    across, upright = panel.across(axis_numbers(places)), panel.upright(np.asarray(values, dtype=float))
    pieces = [f"M{_points(across[one], upright[one])}" for one in _stretches(np.isfinite(values))]
    if pieces:
        yield f'<path class="{name}" d="{"".join(pieces)}"/>'


def _stretches(known: Values) -> list[slice]:
    """Rows without a gap; a row alone is drawn as a line of no length, which round ends make a dot."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    return [slice(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def _points(across: FloatArray, upright: FloatArray) -> str:
    if len(across) == 1:
        across, upright = np.repeat(across, 2), np.repeat(upright, 2)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, upright, strict=True))


def _keys(chart: TimeChart, one: ChartSeries) -> str:
    """Name the colours, in HTML: a line of words wraps on a phone."""
    named = [("truth", "truth")] if one.truth is not None else []
    named += [(f"line-{number}", name) for number, name in enumerate(one.lines, start=1)]
    named += [("band", name) for name in one.bands]
    named += [("mark", name) for name in dict.fromkeys(mark.kind for mark in one.marks)]
    keys = "".join(
        f'<span class="key"><i class="{kind}"></i>{html.escape(name)}</span>' for kind, name in named
    )
    title = html.escape(
        ", ".join(word for word in (chart.unit, one.name if len(chart.series) > 1 else "") if word)
    )
    return f'<p class="keys"><span>{title}</span>{keys}</p>'
