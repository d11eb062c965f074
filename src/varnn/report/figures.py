"""Arrays -> figures, as SVG that takes the colour of the text around it (light and dark pages alike).

Only the ``Figure`` class of matplotlib is used, never pyplot: nothing global is changed, no window
system is needed, and importing this library does not import matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn.errors import require
from varnn.report.svg import INK as INK
from varnn.report.svg import to_svg as to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#3b7dd8", "#e07b39", "#3a9d6b", "#b05cc6", "#c9a227", "#d1495b", "#6c8a9b")
# Colour, dash and marker of a line among many: told apart without colour too, and each colour stands out
# by 3 to 1 or more from a white page and from a dark one.
LINES = (
    ("#2f7fd6", "-", "o"),
    ("#d55e00", "-", "s"),
    ("#a05fc0", "--", "D"),
    ("#0e936a", "-.", "^"),
    ("#b07f00", "--", "v"),
    ("#c2517f", ":", "P"),
    ("#7b8791", ":", "X"),
)

Values = npt.NDArray[Any]
WIDE = 9.0  # inches, of a figure in a document
NARROW = 5.0  # of one on a page, which also fits a phone
_LETTERS_IN_AN_INCH, _LETTERS_OF_A_KEY = 13, 6  # of a legend


def new_figure(
    width: float = WIDE, height: float | None = None, panels: int = 1, *, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels side by side, or so many in a line, in the house style."""
    require("matplotlib", extra="plots", purpose="drawing a figure")
    from varnn.report.drawing import Drawing

    figure = Drawing(figsize=(width, height or (2.8 if width <= NARROW else 3.2)), layout="constrained")
    columns = columns or panels
    axes = [figure.add_subplot(-(-panels // columns), columns, index + 1) for index in range(panels)]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(INK)
        one.tick_params(which="both", colors=INK, labelsize=9)  # those between powers of ten, too
        one.patch.set_alpha(0)
    figure.patch.set_alpha(0)
    return figure, axes


def apart(panels: int) -> tuple[list[Figure], list[Axes]]:
    """So many panels as figures of their own, which a page puts side by side or below each other."""
    made = [new_figure(NARROW) for _ in range(panels)]
    return [figure for figure, _ in made], [axes for _, (axes,) in made]


def legend_above(axes: Axes) -> None:
    """Name the lines above the axes, where they hide nothing, in as many lines as their names need."""
    names = axes.get_legend_handles_labels()[1]
    letters = sum(len(name) + _LETTERS_OF_A_KEY for name in names)
    figure = axes.get_figure(root=True)
    wide = WIDE if figure is None else figure.get_figwidth()
    room = _LETTERS_IN_AN_INCH * wide / _abreast(axes)
    ncols = max(1, min(len(names), int(len(names) * room / max(letters, 1))))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), fontsize=9, ncols=ncols, frameon=False)


def _abreast(axes: Axes) -> int:
    """How many panels share the width of the figure."""
    place = axes.get_subplotspec()
    return 1 if place is None else int(place.get_gridspec().ncols)


def scores(
    names: Sequence[str],
    pooled: Sequence[float],
    singles: Sequence[Sequence[float]],
    *,
    unit: str = "",
    width: float = WIDE,
) -> Figure:
    """Draw one bar per model, best on top, and a dot for each figure that the bar sums up.

    Parameters
    ----------
    names, pooled : sequence of str, sequence of float
        Models, best first, and the length of their bars.
    singles : sequence of sequence of float
        For each model its figures by seed or by origin; a line spans them.
    unit, width : str, float
        What is drawn, and how wide, in inches.
    """
    figure, (axes,) = new_figure(width, height=0.9 + 0.42 * len(names))
    places = np.arange(len(names))[::-1]
    colours = [COLOURS[0] if index == 0 else COLOURS[6] for index in range(len(names))]
    axes.barh(places, pooled, color=colours, height=0.62, alpha=0.75)
    for place, points in zip(places, singles, strict=True):
        if len(points) > 1:
            axes.hlines(place, min(points), max(points), color=INK, linewidth=1.2)
            axes.scatter(points, np.full(len(points), place), color=INK, s=14, zorder=3)
    axes.set_yticks(places, names)
    axes.set_xlim(left=0)
    axes.set_xlabel(unit)
    return figure


def learning_curve(
    history: Sequence[Mapping[str, float]], *, best_epochs: Sequence[int] = (), width: float = WIDE
) -> Figure:
    """Draw training and validation loss by epoch, one pair of lines per ensemble member.

    Parameters
    ----------
    history : sequence
        As a fitted model has it: one line per epoch and member.
    best_epochs : sequence of int, default=()
        The epoch whose weights were kept, of each member: a dot.
    width : float
        Of the figure, in inches.
    """
    from matplotlib.ticker import MaxNLocator

    figure, (axes,) = new_figure(width)
    for member in sorted({int(line.get("member", 0)) for line in history}):
        lines = [line for line in history if int(line.get("member", 0)) == member]
        epochs = [line["epoch"] for line in lines]
        for loss, name, (colour, dash, _) in zip(
            ("loss", "validation_loss"), ("training", "validation"), LINES, strict=False
        ):
            if loss in lines[0]:
                values = [line[loss] for line in lines]
                label = name if member == 0 else None
                axes.plot(epochs, values, color=colour, linestyle=dash, linewidth=1.2, label=label)
                if name == "validation" and member < len(best_epochs):
                    best = epochs.index(best_epochs[member])
                    label = "kept" if member == 0 else None
                    axes.scatter(epochs[best], values[best], color=INK, s=26, zorder=3, label=label)
    losses = [value for line in history for name, value in line.items() if name.endswith("loss")]
    if max(losses) > 8 * min(losses):
        axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))  # there is no half of an epoch
    axes.set_ylabel("mean squared error (scaled)")
    legend_above(axes)
    return figure


def ratios(
    panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    *,
    strong: Sequence[str] = (),
    across: str = "strength",
    unit: str = "",
) -> Figure:
    """Draw small multiples of ratios on a shared log scale, and a legend in the last place.

    Parameters
    ----------
    panels : mapping
        Title of a panel -> name of a line -> place on the x axis -> ratios there; the line runs through
        their geometric means, and upright strokes span them.
    strong : sequence of str, default=()
        Lines to bring out, each narrower than the one before: those that coincide all show.
    across, unit : str
        Names of the axes.
    """
    columns = 4
    figure, axes = new_figure(
        width=10.5, height=2.7 * -(-(len(panels) + 1) // columns), panels=len(panels) + 1, columns=columns
    )
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    highest = max(max(some) for lines in panels.values() for line in lines.values() for some in line.values())
    for index, (one, (title, lines)) in enumerate(zip(axes, panels.items(), strict=False)):
        one.axhline(1, color=INK, linewidth=0.9)
        for name, line in lines.items():
            colour, dash, marker = LINES[names.index(name) % len(LINES)]
            places = sorted(line)
            means = [float(np.exp(np.mean(np.log(line[place])))) for place in places]
            width, layer = (4.0 - 1.8 * strong.index(name), 4) if name in strong else (1.2, 3)
            one.plot(
                places,
                means,
                color=colour,
                linestyle=dash,
                linewidth=width,
                marker=marker,
                markersize=4.5,
                zorder=layer,
                label=name,
            )
            one.vlines(
                places,
                [min(line[place]) for place in places],
                [max(line[place]) for place in places],
                color=colour,
                linewidth=0.9,
                alpha=0.6,
            )
        one.set_title(title, fontsize=10, loc="left", color=INK)
        one.set_yscale("log")
        one.set_ylim(0.94, max(2.0, highest * 1.08))
        _plain_log_ticks(one, labelled=index % columns == 0)
        one.set_xticks(sorted({place for line in lines.values() for place in line}))
        one.set_xlabel(across, fontsize=9)
        if index % columns == 0:
            one.set_ylabel(unit, fontsize=9)
    axes[-1].set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    axes[-1].legend(handles, labels, loc="center left", fontsize=9, frameon=False, handlelength=3.2)
    return figure


def _plain_log_ticks(axes: Axes, *, labelled: bool) -> None:
    """Mark a log axis at round numbers, written as people write them."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    marks = [mantissa * 10.0**power for power in range(4) for mantissa in (1, 1.5, 2, 3, 5)]
    axes.yaxis.set_major_locator(FixedLocator(marks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FixedFormatter([f"{mark:g}" if labelled else "" for mark in marks]))
    axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
