"""Objects -> their pictures: what their ``plot()`` gives. Found by name, by `varnn.data.display.drawn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np
import numpy.typing as npt

from varnn.data.panel import Panel
from varnn.errors import DataError, check_choice, nearest
from varnn.evaluation.backtesting import Backtest
from varnn.evaluation.scores import Comparison
from varnn.model.calendar import has_times
from varnn.model.expert_weights import ExpertWeights
from varnn.model.forecast import Forecast
from varnn.monitoring.diagnosis import Diagnosis, Picture
from varnn.report import diagnostic_figures, figures, over_time
from varnn.report.figures import COLOURS, INK, LINES
from varnn.report.thinning import thinned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SERIES = 4  # drawn, where none are named
SHORTEST_PAST = 24  # rows drawn before a forecast, at least;
PAST = 3  # times its own length, if that is more


def panel(panel: Panel, series: Sequence[str] | str | None = None) -> Figure:
    """Draw the target of some series over time, one below the other.

    Examples
    --------
    >>> one = Panel.from_arrays(None, np.sin(np.arange(50)), target_name="load")
    >>> one.plot().axes[0].get_ylabel()
    'load'
    """
    chosen = _chosen(panel.ids, series)
    figure, axes = figures.new_figure(height=0.8 + 1.7 * len(chosen), panels=len(chosen), columns=1)
    for one, name in zip(axes, chosen, strict=True):
        index = panel.ids.index(name)
        rows = slice(int(panel.starts[index]), int(panel.starts[index + 1]))
        places, values = _places(panel, rows), panel.target[rows]
        kept = thinned([values], over_time.OVERVIEW)
        one.plot(places[kept], values[kept], color=COLOURS[0], linewidth=0.9)
        over_time.name_axes(one, places, panel.target_name)
        if len(panel.ids) > 1:
            one.set_title(name, fontsize=10, loc="left", color=INK)
    return _described(figure, f"{panel.target_name} over time.")


def forecast(
    forecast: Forecast, history: Panel | None = None, series: Sequence[str] | str | None = None
) -> Figure:
    """Draw forecasts with their bands, after the end of the rows so far.

    Examples
    --------
    >>> ahead = Forecast(ids=("0",), time=None, prediction=np.array([[1.0, 2.5]]), target_name="load")
    >>> figure = ahead.plot(Panel.from_arrays(None, [0.0, 0.5, 1.0]))
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['so far', 'forecast']
    """
    chosen = _chosen(forecast.ids, series)
    figure, axes = figures.new_figure(height=0.9 + 2.0 * len(chosen), panels=len(chosen), columns=1)
    for one, name in zip(axes, chosen, strict=True):
        index = forecast.ids.index(name)
        ahead: npt.NDArray[Any] = np.arange(1, forecast.horizon + 1)
        dated = forecast.time is not None and has_times(forecast.time[index])
        if forecast.time is not None and dated:
            ahead = forecast.time[index]
        if history is not None:
            before, values = _past(history, name, forecast.horizon, dated=dated)
            one.plot(before, values, color=INK, linewidth=1.1, label="so far", alpha=0.75)
        one.plot(ahead, forecast.prediction[index], color=COLOURS[0], linewidth=1.5, label="forecast")
        if forecast.lower is not None and forecast.upper is not None:
            lower, upper = (bounds[index].reshape(forecast.horizon, -1) for bounds in _bounds(forecast))
            for place, level in sorted(enumerate(forecast.levels), key=lambda pair: -pair[1]):
                band = (lower[:, place], upper[:, place])
                label = f"{level:.0%} interval"
                one.fill_between(ahead, *band, color=COLOURS[0], alpha=0.2, linewidth=0, label=label)
        over_time.name_axes(one, ahead, forecast.target_name)
        if not dated:
            one.set_xlabel("rows ahead")
        if len(forecast.ids) > 1:
            one.set_title(name, fontsize=10, loc="right", color=INK)
    figures.legend_above(axes[0])
    return _described(figure, f"Forecast of {forecast.target_name}, {forecast.horizon} rows ahead.")


def comparison(comparison: Comparison) -> Figure:
    """Draw the error of each model, best on top, with a dot for each seed or origin."""
    rows = comparison.rows()
    each = "rmse_by_origin" if len(comparison.cuts) > 1 else "rmse_by_seed"
    unit = f"RMSE of {comparison.parts.test.target_name}"
    pooled = [float(np.mean(row["rmse_by_seed"])) for row in rows]
    figure = figures.scores(
        [str(row["model"]) for row in rows], pooled, [row[each] for row in rows], unit=unit
    )
    return _described(figure, f"{unit} of each model, best on top.")


def backtest(backtest: Backtest) -> Figure:
    """Draw squared errors at each step of the horizon over those of persistence."""
    figure, (axes,) = figures.new_figure()
    steps = np.arange(1, backtest.horizon + 1)
    last = backtest.mse["persistence"].mean(axis=0)
    others = sorted(
        (name for name in backtest.mse if name != "persistence"), key=lambda name: name != "VARNN"
    )
    for name, (colour, dash, marker) in zip(others, LINES, strict=False):
        ratio = backtest.mse[name].mean(axis=0) / last
        axes.plot(steps, ratio, color=colour, linestyle=dash, marker=marker, markersize=4, label=name)
    axes.axhline(1, color=INK, linestyle=":", linewidth=1.0)
    axes.set_xlabel("rows ahead")
    axes.set_ylabel("squared error over persistence's")
    axes.locator_params(axis="x", integer=True)
    figures.legend_above(axes)
    return _described(figure, "Squared error over that of persistence, by rows ahead.")


def diagnosis(diagnosis: Diagnosis, what: Picture = "autocorrelation") -> Figure:
    """Draw one part of a diagnosis."""
    check_choice("what", what, get_args(Picture))
    draw: dict[Picture, Callable[[Diagnosis], Figure]] = {
        "autocorrelation": diagnostic_figures.autocorrelation,
        "hours": diagnostic_figures.error_by_hour,
        "calibration": diagnostic_figures.calibration,
        "memory": diagnostic_figures.memory_map,
    }
    return _described(draw[what](diagnosis), f"Diagnosis of {diagnosis.n_rows:,} rows: {what}.")


def expert_weights(weights: ExpertWeights, time: npt.NDArray[Any] | None = None) -> Figure:
    """Draw how much each expert counts, row by row or over time."""
    places = np.arange(len(weights.weights)) if time is None else np.asarray(time)
    if len(places) != len(weights.weights):
        raise DataError(
            f"there must be one time for each row; {len(weights.weights)} rows came with {len(places)} times."
        )
    return _described(over_time.belief(places, weights.names, weights.weights), "Weight of each expert.")


def _described(figure: Figure, alt: str) -> Figure:
    from varnn.report.drawing import Drawing  # it imports matplotlib

    return cast(Drawing, figure).described(alt)


def _chosen(ids: Sequence[str], series: Sequence[str] | str | None) -> list[str]:
    """Series to draw: those named, or the first few."""
    if series is None:
        return list(ids[:MOST_SERIES])
    named = [series] if isinstance(series, str) else list(series)
    if unknown := [one for one in named if one not in ids]:
        raise DataError(f"there is no series {unknown[0]!r}. {nearest(str(unknown[0]), ids)}")
    return named


def _places(panel: Panel, rows: slice) -> npt.NDArray[Any]:
    """Where rows stand: their times, or their numbers."""
    if panel.time is not None and has_times(panel.time):
        return panel.time[rows]
    return np.arange(rows.stop - rows.start)


def _bounds(forecast: Forecast) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    return cast(Any, forecast.lower), cast(Any, forecast.upper)


def _past(
    history: Panel, name: str, horizon: int, *, dated: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Last rows of a series before its forecast, and where they stand."""
    if name not in history.ids:
        raise DataError(f"`history` has no series {name!r}. {nearest(name, history.ids)}")
    index = history.ids.index(name)
    last = int(history.starts[index + 1])
    first = max(int(history.starts[index]), last - max(SHORTEST_PAST, PAST * horizon))
    if dated and history.time is not None and has_times(history.time):
        return history.time[first:last], history.target[first:last]
    return np.arange(first - last + 1, 1), history.target[first:last]
