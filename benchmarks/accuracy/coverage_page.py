"""Saved coverage of intervals -> its page and its figure; nothing on either is typed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.accuracy.coverage import ADAPTIVE, CONSTANT, LEVELS, OURS, SHOWN
from benchmarks.record import Measured, Row, Saved, read, shown
from benchmarks.robustness.trouble import capitalised
from varnn.data.files import write_atomically
from varnn.errors import DataError
from varnn.report import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = """\
# Intervals, measured

Made by `python -m benchmarks coverage-page` from `{source}`. Each data set is cut in time, 64 / 16 / 20
(BIDMC by records); the default model is fitted on the first part, chooses on the second, and the third, which
the figures are of, is read once ({seeds}). Three methods put intervals around **the same predictions**:

- **{ours}**: its own, with `predict(panel, interval=0.9)`.
- **{constant}**: the quantile of the size of validation errors, everywhere the same, of the same series
  where it has validation rows.
- **{adaptive}**: its `TimeSeriesRegressor` with `method="aci"`, calibrated on the same errors and told each
  label before the next row; its step size is chosen on validation rows, and where it asks for an infinite
  interval it gets the largest error it has seen.

The **interval score** is the mean width plus, for each label outside, 2 / (1 - level) times its distance to
the interval: narrow is good, wrong is dear. The **worst tenth** is the coverage in the worst of ten equal
stretches of the test part, all series together.
"""
CAPTION = (
    "A week of PM2.5 at one station in Beijing, the one of the test part in which it varies most: truth, "
    "prediction and the band of the 90 % interval, narrow in clean air and wide in bad."
)
_LEVEL = 0.9  # of the table
_COLUMNS = [
    "data",
    "rows",
    *(f"coverage: {name}" for name in (OURS, CONSTANT, ADAPTIVE)),
    *(f"worst tenth: {name}" for name in (OURS, CONSTANT, ADAPTIVE)),
    f"score: {OURS} / {CONSTANT}",
    f"score: {OURS} / {ADAPTIVE}",
]


def write(source: str | Path, output: str | Path) -> None:
    """Write the page, and its figure beside it under the same name.

    Parameters
    ----------
    source
        File written by ``python -m benchmarks coverage --json``.
    output
        The Markdown page.
    """
    saved, place = read(source), Path(output)
    week = _week(saved.measured)
    picture = place.with_suffix(".svg") if week else None
    if picture is not None:
        svg = figures.to_svg(draw(week), CAPTION, alone=True)
        write_atomically(picture, (svg + "\n").encode())
    text = page(saved, Path(source).name, None if picture is None else picture.name)
    write_atomically(place, text.encode())


def draw(week: Sequence[Row]) -> Figure:
    """Draw truth, predictions and the band of intervals over a week."""
    figure, (axes,) = figures.new_figure(height=3.8)
    times = np.array([str(row["time"]) for row in week], dtype="datetime64[m]")
    lower, upper = _column(week, "lower"), _column(week, "upper")
    blue = figures.COLOURS[0]
    axes.fill_between(times, lower, upper, color=blue, alpha=0.25, linewidth=0, label="90 % interval")
    axes.plot(times, _column(week, "prediction"), color=blue, linewidth=1.2, label="prediction")
    axes.plot(times, _column(week, "truth"), color=figures.INK, linewidth=1.0, label="truth")
    # From clean air to the worst is a factor of a hundred: even steps would leave the calm days a line.
    axes.set_yscale("symlog", linthresh=50, linscale=1.5)
    axes.set_yticks([0, 25, 50, 100, 200, 500, 1000], ["0", "25", "50", "100", "200", "500", "1,000"])
    axes.set_ylim(min(lower) - 5, 1.5 * max(upper))
    axes.set_ylabel("PM2.5 (µg/m³), log scale above 50")
    axes.margins(x=0.01)
    axes.legend(loc="lower right", fontsize=9, ncols=3)
    return figure


def page(saved: Saved, source: str, picture: str | None) -> str:
    """Write the page in Markdown."""
    header, *body = lines(saved.measured)
    parts = [
        HEAD.format(
            source=f"benchmarks/results/{source}",
            ours=OURS,
            constant=capitalised(CONSTANT),
            adaptive=ADAPTIVE,
            seeds=_seeds(saved.measured),
        ),
        *([f"![{CAPTION}]({picture})\n"] if picture else []),
        "## At 90 %\n",
        "Ratios of scores below 1 say that ours is better.\n",
        _table(header, body),
        "## Other levels\n",
        _levels(saved.measured),
        _made(saved),
    ]
    return "\n".join(parts)


def lines(measured: Sequence[Measured]) -> list[list[str]]:
    """Lay out the table of the 90 % intervals: its header, then a line per data set."""
    found = [_COLUMNS]
    for table in _tables(measured):
        at = {name: _of(table, name, _LEVEL) for name in (OURS, CONSTANT, ADAPTIVE)}
        found.append(
            [
                table.name.removeprefix("coverage "),
                shown(_mean(at[OURS], "rows")),
                *(
                    _percent(_mean(some, what))
                    for what in ("coverage", "worst tenth")
                    for some in at.values()
                ),
                *(_ratio(at[OURS], at[name]) for name in (CONSTANT, ADAPTIVE)),
            ]
        )
    return found


def _seeds(measured: Sequence[Measured]) -> str:
    """Say from how many fits the figures are; an interrupted run has more of some data sets."""
    counts = sorted({len({row["seed"] for row in table.rows}) for table in _tables(measured)})
    if counts == [1]:
        return "from one seed"
    return f"means over {' or '.join(map(str, counts))} seeds"


def _levels(measured: Sequence[Measured]) -> str:
    """Write ours at every level: coverage, mean width in units of the constant one, ratios of scores."""
    words = ("coverage", f"width / {CONSTANT}", f"score / {CONSTANT}", f"score / {ADAPTIVE}")
    header = ["data", *(f"{word} at {level:.0%}" for level in LEVELS for word in words)]
    body = []
    for table in _tables(measured):
        cells = [table.name.removeprefix("coverage ")]
        for level in LEVELS:
            ours, constant = _of(table, OURS, level), _of(table, CONSTANT, level)
            cells += [
                _percent(_mean(ours, "coverage")),
                _ratio(ours, constant, "width"),
                _ratio(ours, constant),
                _ratio(ours, _of(table, ADAPTIVE, level)),
            ]
        body.append(cells)
    return _table(header, body)


def _tables(measured: Sequence[Measured]) -> Iterator[Measured]:
    for table in measured:
        if table.name.startswith("coverage "):
            yield table
        elif not table.name.startswith("week "):
            raise DataError(
                f"the figures must be those of `python -m benchmarks coverage`; got a table {table.name!r}. "
                "Give another file."
            )


def _week(measured: Sequence[Measured]) -> list[Row]:
    return next((table.rows for table in measured if table.name == f"week {SHOWN}"), [])


def _of(table: Measured, contender: str, level: float) -> list[Row]:
    return [row for row in table.rows if row["contender"] == contender and row["level"] == level]


def _column(rows: Sequence[Row], name: str) -> list[float]:
    return [float("nan") if row[name] is None else float(row[name] or 0) for row in rows]


def _mean(rows: Sequence[Row], name: str) -> float:
    """Mean over seeds; of nothing, it is not a number."""
    return float(np.mean(_column(rows, name))) if rows else float("nan")


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:.1f}"


def _ratio(ours: Sequence[Row], theirs: Sequence[Row], name: str = "score") -> str:
    """Write the mean over seeds of ratios, each within its seed."""
    if not theirs:
        return "-"
    return f"{np.mean(np.divide(_column(ours, name), _column(theirs, name))):.3f}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    ruler = ["---"] * len(columns)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, ruler, *rows))


def _made(saved: Saved) -> str:
    stopped = "" if saved.complete else " It was interrupted, and left these figures."
    facts = [f"{what}: {value}" for what, value in saved.made.items() if value != "not installed"]
    facts += dict.fromkeys(check for table in saved.measured for check in table.checks)
    listed = "\n".join(f"- {fact}" for fact in facts)
    return f"## How this was made\n\n`{saved.command}`{stopped}\n\n{listed}\n"
