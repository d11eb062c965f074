"""A diagnosis and a monitor's events -> figures, in the style of `varnn.report.figures`.

Write one with `varnn.report.figures.to_svg`, which gives it the colour of the text around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn.errors import DataError
from varnn.monitoring.diagnosis import Diagnosis, Hours
from varnn.monitoring.event import Event
from varnn.report import figures, over_time
from varnn.report.chart import marks_of
from varnn.report.figures import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def autocorrelation(diagnosis: Diagnosis, *, width: float = figures.WIDE) -> Figure:
    """Draw a bar per lag, and the band that white noise keeps to.

    Parameters
    ----------
    diagnosis : Diagnosis
        As :func:`varnn.monitoring.diagnostics.diagnose` gives it. Far lags, such as that of a week, stand
        apart at the right end.
    width : float
        Of the figure, in inches.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.monitoring.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> figure = autocorrelation(diagnose(noise, Panel.from_arrays(None, np.zeros(500))))
    >>> figure.axes[0].get_ylabel()
    'autocorrelation'
    """
    far = diagnosis.lags > len(diagnosis.ljung_box)
    return correlogram(diagnosis.lags, diagnosis.autocorrelation, diagnosis.band, far=far, width=width)


def correlogram(
    lags: npt.NDArray[Any],
    correlations: npt.NDArray[Any],
    band: npt.NDArray[Any],
    *,
    far: npt.NDArray[Any] | None = None,
    width: float = figures.WIDE,
) -> Figure:
    """Draw autocorrelation as a bar per lag, and the band that white noise keeps to.

    Parameters
    ----------
    lags, correlations, band : array
        Lags in rows, the correlation at each, and the bound that white noise keeps to.
    far : array or None, default=None
        Which lags stand apart at the right end.
    width : float
        Of the figure, in inches.

    Examples
    --------
    >>> figure = correlogram(np.array([1, 2]), np.array([0.5, 0.1]), np.array([0.2, 0.2]))
    >>> figure.axes[0].get_xlabel()
    'lag (rows)'
    """
    figure, (axes,) = figures.new_figure(width)
    far = np.zeros(len(lags), dtype=bool) if far is None else far
    places = np.cumsum(np.where(far, 3, 1))  # far lags stand apart, so that their numbers can be read
    colours = [COLOURS[0] if outside else COLOURS[6] for outside in np.abs(correlations) > band]
    axes.bar(places, 2 * band, bottom=-band, width=1, color=COLOURS[6], alpha=0.25)
    axes.bar(places, correlations, color=colours, width=0.7)
    axes.axhline(0, color=INK, linewidth=0.8)
    shown = (lags % 6 == 0) | (lags == 1) | far
    axes.set_xticks(places[shown], [str(lag) for lag in lags[shown]])
    axes.set_xlabel("lag (rows)")
    axes.set_ylabel("autocorrelation")
    axes.margins(x=0.01)
    return figure


def error_by_hour(diagnosis: Diagnosis, *, unit: str = "") -> Figure:
    """Draw error and bias by hour of the day, and coverage beside them if it is known.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of rows whose time has hours.
    unit : str, default=""
        Unit of the target, for the axis.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.monitoring.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> time = np.datetime64("2026-01-01T00") + np.arange(500)
    >>> figure = error_by_hour(diagnose(noise, Panel.from_arrays(None, np.zeros(500), time=time)))
    >>> len(figure.axes)
    1
    """
    hours = _hours(diagnosis)
    figure, axes = figures.new_figure(panels=1 if hours.coverage is None else 2)
    _draw_hours(axes, hours, unit)
    return figure


def _hours(diagnosis: Diagnosis) -> Hours:
    if diagnosis.hours is None:
        raise DataError(
            "errors by hour need rows whose time has hours; these have none. Give the panel's `time` column."
        )
    return diagnosis.hours


def _draw_hours(axes: Sequence[Axes], hours: Hours, unit: str) -> None:
    places = np.arange(24)
    axes[0].bar(places, hours.error, color=COLOURS[6], width=0.7, label="root mean square")
    axes[0].plot(places, hours.bias, color=COLOURS[1], linewidth=1.6, label="mean (bias)")
    axes[0].axhline(0, color=INK, linewidth=0.8)
    axes[0].set_ylabel(f"innovation, {unit}" if unit else "innovation")
    figures.legend_above(axes[0])
    if hours.coverage is not None:
        overall = np.nansum(hours.coverage * hours.count) / hours.count.sum()
        axes[1].plot(places, 100 * hours.coverage, color=COLOURS[0], marker="o", markersize=4)
        axes[1].axhline(100 * overall, color=INK, linestyle=":", linewidth=1.2)
        axes[1].set_ylabel("rows within their interval (%)")
    for one in axes:
        one.set_xticks(places[::3])
        one.set_xlabel("hour of day")


def memory_map(diagnosis: Diagnosis, *, events: Sequence[Event] = ()) -> Figure:
    """Draw the memory over time as a heat map, most active unit on top.

    Parameters
    ----------
    diagnosis : Diagnosis
        Made with ``memory``.
    events : sequence of Event, default=()
        Marked by a line each.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.monitoring.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=(500, 9))
    >>> diagnosis = diagnose(noise[:, 0], Panel.from_arrays(None, np.zeros(500)), noise[:, 1:])
    >>> len(memory_map(diagnosis).axes)  # with the colour bar
    2
    """
    if diagnosis.memory is None:
        raise DataError("a map of the memory needs its states. Give them: diagnose(..., memory=states).")
    return over_time.memory(diagnosis.memory.rows, diagnosis.memory.states, marks=marks_of(events))


def marked_innovations(
    rows: npt.NDArray[Any], innovations: npt.NDArray[Any], events: Sequence[Event], *, unit: str = ""
) -> Figure:
    """Draw innovations over time, with each event from where it began to where it was noticed.

    Parameters
    ----------
    rows, innovations : array
        Rows to draw, as numbered in the events, and their innovations.
    events : sequence of Event
        As a monitor or :func:`varnn.monitoring.monitor.detect` gives them; those outside the rows are left
        out.
    unit : str, default=""
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
    shown = [event for event in events if rows[0] <= event.row <= rows[-1]]
    over_time.mark(axes, marks_of(shown))
    if shown:
        figures.legend_above(axes)
    axes.set_xlabel("row")
    axes.set_ylabel(f"innovation, {unit}" if unit else "innovation")
    axes.margins(x=0.01)
    return figure


def calibration(diagnosis: Diagnosis) -> Figure:
    """Draw coverage by level, where labels fall between the bounds, and coverage over time.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of a model with intervals.

    Examples
    --------
    >>> from varnn import Panel, VARNNRegressor
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=400))
    >>> panel = Panel.from_arrays(None, y)
    >>> model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    >>> len(calibration(model.diagnose(panel)).axes)
    3
    """
    figure, axes = figures.new_figure(panels=3)
    _draw_calibration(axes, diagnosis)
    return figure


def calibration_apart(diagnosis: Diagnosis) -> list[Figure]:
    """Draw the panels of :func:`calibration` as figures of their own, for a page."""
    drawn, axes = figures.apart(3)
    _draw_calibration(axes, diagnosis)
    return drawn


def _draw_calibration(axes: Sequence[Axes], diagnosis: Diagnosis) -> None:
    found = diagnosis.calibration
    if found is None:
        raise DataError(
            "calibration is that of intervals; these rows have none. Fit the model with intervals=True."
        )
    levels, bins, spans = axes
    levels.plot([0, 100], [0, 100], color=INK, linestyle=":", linewidth=1.0)
    levels.plot(100 * found.levels, 100 * found.coverage, color=COLOURS[0], marker="o", markersize=5)
    levels.set_xlabel("nominal level (%)")
    levels.set_ylabel("labels covered (%)")
    widths = np.diff(found.edges)
    bins.bar(found.edges[:-1], found.density, width=widths, align="edge", color=COLOURS[0], alpha=0.75)
    bins.axhline(1, color=INK, linestyle=":", linewidth=1.0)
    bins.set_xlabel("predicted probability")
    bins.set_ylabel("labels, of those expected")
    level, chance = 100 * found.watched, 100 * found.chance
    spans.axhspan(level - chance, min(level + chance, 100), color=COLOURS[6], alpha=0.25, linewidth=0)
    spans.axhline(level, color=INK, linestyle=":", linewidth=1.0)
    spans.plot(found.spans, 100 * found.span_coverage, color=COLOURS[0], marker="o", markersize=4)
    spans.set_ylim(min(60.0, 100 * float(found.span_coverage.min()) - 2), 100.5)
    spans.set_xlabel("row of a series")
    spans.set_ylabel(f"within {level:.0f} % intervals (%)")
