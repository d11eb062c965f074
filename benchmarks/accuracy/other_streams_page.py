"""Saved errors on other streams -> their page and its figure; no number on it is typed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.accuracy.other_streams import OURS
from varnn.data.files import write_atomically
from varnn.errors import DataError
from varnn.report import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAD = """\
# Other streams, out of the box

Made by `python -m benchmarks other-streams-page` from `benchmarks/results/{source}` ({date};
{machine}).
`VARNNRegressor()` without an argument, on {count} streams that none of its settings was chosen on: columns of
the Appliances and Beijing files as targets of their own, picked by name before anything was fitted to them.
Single series of {shortest:,} to {longest:,} rows, every hour or every 10 minutes, some with a daily cycle,
some near a random walk, up to {missing:.0%} of the targets missing. Every model gets the first 80 % of the
rows and is scored on the others. {seeds}{note}

**The mean squared error is {mean:.3f} times that of the best of {simple}
(geometric mean; the best is another one each time). It is lower on {wins} of {count} streams, {worst:.3f}
times at worst.** The coverage of {level:.0%} intervals is between
{least:.1%} and {most:.1%}.
"""
NOTES = """\
Figures are mean squared errors over that of the best simple model, which is 1; **coverage** is the share
of outcomes within the intervals, **fit** the seconds VARNN took. Trees cannot go beyond the values they were
trained on: hence the figures of boosting where the test rows are warmer than all before; what is beyond 1.75
is not in the picture. **boosting, 24 lags** chooses its number of trees on the last fifth of its rows; **all
rows** grows 500 on all of them.{seasonal}

The files are those that the settings were chosen on, so this is no other part of the world. What was chosen
on are 15,700 rows each, before the last fifth, of other columns (Appliances, T3, RH_1, RH_5, Windspeed) and
other pairs of a quantity and a station (O3, NO2, PM2.5, TEMP, PRES, WSPM, CO). PM2.5 at Dingling is also one
of the twelve series of the figures on Beijing.
"""


CAPTION = "Error of the default over that of the best simple model on each stream; the others beside it"
SEASONAL = """ **seasonal** models also see the labels of a day and a week ago and the calendar, and
the boosted one chooses its number of trees on the last fifth of its rows."""
MARKS = [*((colour, marker) for colour, _, marker in figures.LINES[1:]), (figures.INK, "*")]
_WORST_SHOWN = 1.75  # some simple models are hundreds of times worse somewhere


def write(source: str | Path, output: str | Path) -> None:
    """Write the page from a file of ``python -m benchmarks other-streams --json``, with its figure."""
    place = Path(output)
    picture = place.with_suffix(".svg")
    try:
        saved = json.loads(Path(source).read_text())
        lines = sorted(saved["lines"], key=lambda line: line["of best simple"])
        text = page(saved, lines, Path(source).name, picture.name)
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{str(source)!r} is no file of `python -m benchmarks other-streams --json`."
        ) from None
    svg = figures.to_svg(draw(lines), CAPTION, alone=True)
    write_atomically(picture, f"{svg}\n".encode())
    write_atomically(place, text.encode())


def _seeds(lines: Sequence[Mapping[str, Any]]) -> str:
    """Say from how many seeds VARNN was trained, and how far apart they were."""
    draws = [line["draws"] for line in lines if len(line.get("draws", ())) > 1]
    if not draws:
        return "One seed."
    apart = max((max(one) - min(one)) / (sum(one) / len(one)) for one in draws)
    return f"{OURS} is the mean of {len(draws[0])} seeds, which are {apart:.1%} apart at most."


def simple_names(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the models that a file has beside ours: an older file has fewer."""
    return [name for name in lines[0]["mse"] if name != OURS]


def draw(lines: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw a line for each stream: the default as a bar, the simple models as marks."""
    figure, (axes,) = figures.new_figure(height=0.9 + 0.3 * len(lines))
    places = range(len(lines), 0, -1)
    axes.barh(places, [line["of best simple"] for line in lines], 0.6, color=figures.COLOURS[0], label=OURS)
    for index, name in enumerate(simple_names(lines)):
        colour, marker = MARKS[index % len(MARKS)]
        ratios = [line["mse"][name] / line["mse"][line["best simple"]] for line in lines]
        shown = [(ratio, at) for ratio, at in zip(ratios, places, strict=True) if ratio <= _WORST_SHOWN]
        ratios, at = [one for one, _ in shown], [one for _, one in shown]  # none, if it is worse everywhere
        axes.plot(ratios, at, linestyle="", marker=marker, color=colour, label=name)
    axes.axvline(1, color=figures.INK, linewidth=1)
    axes.set_yticks(list(places), [line["stream"] for line in lines])
    axes.set_xlim(0, _WORST_SHOWN)
    axes.set_xlabel("mean squared error over that of the best simple model")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=9, ncols=3, frameon=False)
    return figure


def page(saved: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], source: str, picture: str) -> str:
    """Lay the figures out, a line for each stream, the one we are best on first."""
    head = HEAD.format(
        source=source,
        date=saved["date"],
        machine=saved["machine"],
        count=len(lines),
        shortest=min(line["rows"] for line in lines),
        longest=max(line["rows"] for line in lines),
        missing=max(line["missing"] for line in lines),
        simple="; ".join(simple_names(lines)),
        mean=saved["geometric mean"],
        wins=sum(line["of best simple"] < 1 for line in lines),
        worst=saved["worst"],
        level=saved["level"],
        seeds=_seeds(lines),
        note=f" {saved['note']}." if "note" in saved else "",
        least=min(line["coverage"] for line in lines),
        most=max(line["coverage"] for line in lines),
    )
    names = [OURS, *simple_names(lines)]
    rows = [["stream", "inputs", *names, "coverage", "fit, s"], ["---", *["---:"] * (len(names) + 3)]]
    for line in lines:
        best = line["mse"][line["best simple"]]
        ratios = [f"{line['mse'][name] / best:.3g}" for name in names]
        rows.append(
            [
                line["stream"],
                str(line["inputs"]),
                *ratios,
                f"{line['coverage']:.1%}",
                f"{line['seconds']:.0f}",
            ]
        )
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    seasonal = SEASONAL if any(name.startswith("seasonal") for name in names) else ""
    return "\n".join([head, f"![{CAPTION}]({picture})\n", table, "", NOTES.format(seasonal=seasonal)])
