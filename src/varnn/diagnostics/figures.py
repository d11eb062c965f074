"""A diagnosis and a monitor's events -> figures, in the style of `varnn.figures`.

Write one with `varnn.figures.to_svg`, which gives it the colour of the text around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn import figures
from varnn.diagnostics.diagnosis import Diagnosis
from varnn.errors import DataError
from varnn.figures import COLOURS, INK
from varnn.monitor.event import Event

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EVENT_COLOURS = {"level shift": COLOURS[5], "variance change": COLOURS[3], "coverage lost": COLOURS[4]}


def autocorrelation(diagnosis: Diagnosis) -> Figure:
    """Draw a bar per lag, and the band that white noise keeps to.

    Parameters
    ----------
    diagnosis
        As :func:`varnn.diagnostics.diagnose` gives it. Far lags, such as that of a week, stand apart at the
        right end.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> figure = autocorrelation(diagnose(noise, Panel.from_arrays(None, np.zeros(500))))
    >>> figure.axes[0].get_ylabel()
    'autocorrelation'
    """
    figure, (axes,) = figures.new_figure()
    far = diagnosis.lags > len(diagnosis.ljung_box)
    places = np.cumsum(np.where(far, 3, 1))  # far lags stand apart, so that their numbers can be read
    beyond = np.abs(diagnosis.autocorrelation) > diagnosis.band
    colours = [COLOURS[0] if outside else COLOURS[6] for outside in beyond]
    axes.bar(places, 2 * diagnosis.band, bottom=-diagnosis.band, width=1, color=COLOURS[6], alpha=0.25)
    axes.bar(places, diagnosis.autocorrelation, color=colours, width=0.7)
    axes.axhline(0, color=INK, linewidth=0.8)
    shown = (diagnosis.lags % 6 == 0) | (diagnosis.lags == 1) | far
    axes.set_xticks(places[shown], [str(lag) for lag in diagnosis.lags[shown]])
    axes.set_xlabel("lag (rows)")
    axes.set_ylabel("autocorrelation")
    axes.margins(x=0.01)
    return figure


def error_by_hour(diagnosis: Diagnosis, *, unit: str = "") -> Figure:
    """Draw error and bias by hour of the day, and coverage beside them if it is known.

    Parameters
    ----------
    diagnosis
        Of rows whose time has hours.
    unit
        Unit of the target, for the axis.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> time = np.datetime64("2026-01-01T00") + np.arange(500)
    >>> figure = error_by_hour(diagnose(noise, Panel.from_arrays(None, np.zeros(500), time=time)))
    >>> len(figure.axes)
    1
    """
    hours = diagnosis.hours
    if hours is None:
        raise DataError(
            "errors by hour need rows whose time has hours; these have none. Give the panel's `time` column."
        )
    figure, axes = figures.new_figure(panels=1 if hours.coverage is None else 2)
    places = np.arange(24)
    axes[0].bar(places, hours.error, color=COLOURS[6], width=0.7, label="root mean square")
    axes[0].plot(places, hours.bias, color=COLOURS[1], linewidth=1.6, label="mean (bias)")
    axes[0].axhline(0, color=INK, linewidth=0.8)
    axes[0].set_ylabel(f"innovation {unit}".strip())
    axes[0].legend(fontsize=9)
    if hours.coverage is not None:
        overall = np.nansum(hours.coverage * hours.count) / hours.count.sum()
        axes[1].plot(places, 100 * hours.coverage, color=COLOURS[0], marker="o", markersize=4)
        axes[1].axhline(100 * overall, color=INK, linestyle=":", linewidth=1.2)
        axes[1].set_ylabel("rows within their interval (%)")
    for one in axes:
        one.set_xticks(places[::3])
        one.set_xlabel("hour of day")
    return figure


def memory_map(diagnosis: Diagnosis, *, events: Sequence[Event] = ()) -> Figure:
    """Draw the memory over time as a heat map, most active unit on top.

    Parameters
    ----------
    diagnosis
        Made with ``memory``.
    events
        Marked by a line each.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=(500, 9))
    >>> diagnosis = diagnose(noise[:, 0], Panel.from_arrays(None, np.zeros(500)), noise[:, 1:])
    >>> len(memory_map(diagnosis).axes)  # with the colour bar
    2
    """
    if diagnosis.memory is None:
        raise DataError("a map of the memory needs its states. Give them: diagnose(..., memory=states).")
    return figures.memory(
        diagnosis.memory.rows, diagnosis.memory.states, events=[event.row for event in events]
    )


def marked_innovations(
    rows: npt.NDArray[Any], innovations: npt.NDArray[Any], events: Sequence[Event], *, unit: str = ""
) -> Figure:
    """Draw innovations over time, with each event from where it began to where it was noticed.

    Parameters
    ----------
    rows, innovations
        Rows to draw, as numbered in the events, and their innovations.
    events
        As a monitor or :func:`varnn.monitor.detect` gives them; those outside the rows are left out.
    unit
        Unit of the target, for the axis.

    Examples
    --------
    >>> event = Event("level shift", series=0, row=60, began=50, size=2.0)
    >>> figure = marked_innovations(np.arange(100), np.zeros(100), [event])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['level shift']
    """
    figure, (axes,) = figures.new_figure()
    axes.plot(rows, innovations, color=COLOURS[0], linewidth=0.7)
    axes.axhline(0, color=INK, linewidth=0.8)
    labelled: set[str] = set()
    for event in events:
        if rows[0] <= event.row <= rows[-1]:
            colour = _EVENT_COLOURS[event.kind]
            axes.axvspan(event.began, event.row, color=colour, alpha=0.3, linewidth=0)
            label = None if event.kind in labelled else event.kind
            axes.axvline(event.row, color=colour, linewidth=1.5, label=label)
            labelled.add(event.kind)
    if labelled:
        axes.legend(loc="upper left", fontsize=9, ncols=len(labelled))
    axes.set_xlabel("row")
    axes.set_ylabel(f"innovation {unit}".strip())
    axes.margins(x=0.01)
    return figure


def standalone(svg: str) -> str:
    """Give an SVG its own text colours, for light and dark: an image in a page cannot take the page's.

    Parameters
    ----------
    svg
        As :func:`varnn.figures.to_svg` gives it.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in standalone('<svg width="9">...</svg>')
    True
    """
    head, rest = svg.split(">", 1)
    style = "svg { color: #1c2430 } @media (prefers-color-scheme: dark) { svg { color: #e6ebf2 } }"
    return f"{head}><style>{style}</style>{rest}"
