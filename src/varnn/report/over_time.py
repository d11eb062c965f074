"""What a model did over time -> still figures: experts and memory, with changes marked.

Places along the time axis are row numbers or times, whichever the rows have. Pages have charts instead
(`chart.py`), which readers zoom; these are for documents and notebooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from varnn.report import figures
from varnn.report.chart import Mark
from varnn.report.figures import COLOURS, INK, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OVERVIEW = 1000  # spans of rows that are drawn all at once


def mark(axes: Axes, marks: Sequence[Mark]) -> None:
    """Draw a line where each change was noticed, and shade the rows since it began."""
    labelled: set[str] = set()
    for one in marks:
        colour, dash = _MARKS.get(one.kind, (INK, ":"))
        if one.began != one.noticed:
            axes.axvspan(one.began, one.noticed, color=colour, alpha=0.25, linewidth=0)
        label = None if one.kind in labelled else one.kind
        axes.axvline(one.noticed, color=colour, linestyle=dash, linewidth=1.4, label=label)
        labelled.add(one.kind)


_MARKS = {
    "level shift": (COLOURS[5], "-"),
    "variance change": (COLOURS[3], "--"),
    "coverage lost": (COLOURS[4], "-."),
}


def name_axes(axes: Axes, places: Values, unit: str) -> None:
    """Name both axes; times are written as briefly as they can be."""
    axes.set_xlabel("row")
    axes.set_ylabel(unit)
    axes.margins(x=0.01)
    if np.issubdtype(places.dtype, np.datetime64):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()  # type: ignore[no-untyped-call]  # matplotlib leaves its dates untyped
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # as above
        axes.xaxis.get_offset_text().set_color(INK)
        axes.set_xlabel("")


def memory(places: Values, states: Values, *, marks: Sequence[Mark] = ()) -> Figure:
    """Draw the residual memory as a heat map: one line per unit, most active on top.

    Units that stand still are left out, or most of the map would be one colour; the axis says how many move.
    """
    figure, (axes,) = figures.new_figure()
    moves = states.std(axis=0)
    order = np.argsort(moves)
    order = order[moves[order] > 0.05 * moves.max()] if moves.max() > 0 else order
    axes.xaxis.update_units(places)  # type: ignore[no-untyped-call]  # an image is placed by plain numbers
    first, last = axes.convert_xunits(places[[0, -1]])  # type: ignore[no-untyped-call]  # as above
    image = axes.imshow(
        states[:, order].T,
        aspect="auto",
        origin="lower",
        cmap="magma",
        interpolation="nearest",
        extent=(float(first), float(last), 0.0, float(len(order))),
    )
    for one in marks:
        axes.axvline(one.noticed, color="#ffffff", linestyle=":", linewidth=1.4)
    name_axes(axes, places, f"memory units that move\n({len(order)} of {states.shape[1]})")
    axes.set_yticks([])
    bar = figure.colorbar(image, ax=axes, pad=0.01)
    bar.set_label("state", color=INK)
    bar.ax.tick_params(colors=INK, labelsize=8)
    return figure


def belief(places: Values, names: Sequence[str], weights: Values) -> Figure:
    """Draw how much each expert counts over time, as areas that fill the figure from 0 to 1.

    Parameters
    ----------
    places, weights : Values
        Where each row stands, and the weights of the experts: (n,) and (n, n_experts).
    names : sequence of str
        Of the experts; those of simple ones are drawn at the bottom.
    """
    figure, (axes,) = figures.new_figure()
    middle, means = in_spans(weights)
    colours = [COLOURS[(6 - index) % len(COLOURS)] for index in range(len(names))]  # the simplest is grey
    areas = axes.stackplot(places[middle], means.T, colors=colours, alpha=0.85, linewidth=0)
    axes.set_ylim(0, 1)
    axes.legend(  # beside the areas, in the order they lie in
        areas[::-1], names[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9, frameon=False
    )
    name_axes(axes, places, "weight")
    return figure


def in_spans(values: Values, most: int = 250) -> tuple[npt.NDArray[np.int64], Values]:
    """Mean of each of so many spans of rows, at most, and the row in the middle of each.

    Examples
    --------
    >>> rows, means = in_spans(np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [8.0]]), most=2)
    >>> rows.tolist(), means.tolist()
    ([1, 4], [[1.0], [5.0]])
    """
    ends = np.linspace(0, len(values), min(most, len(values)) + 1).round().astype(np.int64)
    sums = np.add.reduceat(values, ends[:-1], axis=0)
    return (ends[:-1] + ends[1:] - 1) // 2, sums / np.diff(ends)[:, None]
