"""A forecast and the rows before it -> the page of a forecast."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from varnn._types import FloatArray
from varnn.data.in_words import figure
from varnn.data.panel import Panel
from varnn.data.understood import written_time
from varnn.errors import DataError
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.forecast import Forecast
from varnn.report import _sections
from varnn.report.chart import ChartSeries, TimeChart
from varnn.report.page import Report
from varnn.report.trace_charts import MOST_SERIES
from varnn.report.understood import add_understood

LEVELS = (0.9, 0.5)
_HISTORY = 20  # horizons of rows that are drawn before a forecast,
_FEWEST, _MOST = 100, 2_000  # but no fewer, and no more
_SHOWN = 48  # rows of a forecast in the table; the rest is folded away,
_LISTED = 1_000  # up to here
_TABLES = 3  # series whose forecasts are listed


def forecast_page(
    model: VARNNRegressor,
    panel: Panel,
    *,
    forecast: Forecast | None = None,
    levels: Sequence[float] | None = None,
    horizon: int | None = None,
    inputs: Any = None,
    title: str = "",
    guessed: Collection[str] = (),
) -> Report:
    """Make the page of a forecast: history, forecast and bands of each series, and the figures.

    Parameters
    ----------
    model : VARNNRegressor
        Fitted.
    panel : Panel
        The rows so far.
    forecast : Forecast or None, default=None
        Made from these rows, with bounds at ``levels``, if it has some; None makes one, as far ahead as the
        model was fitted for.
    levels : sequence of float or None, default=None
        Levels of the forecast's intervals; None is 0.9 and 0.5 for one that is made here, and none else.
    horizon, inputs : int or None, Panel or array_like or None
        Rows ahead, and coming inputs, of a forecast that is made here, as in ``forecast``.
    title : str, default=""
        What to call the data; the panel's own name if not given.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.

    Returns
    -------
    Report
        To be written: ``forecast_page(...).write("forecast.html")``.

    Examples
    --------
    >>> from varnn import Panel, VARNNRegressor
    >>> panel = Panel.from_arrays(None, np.sin(np.arange(300) / 4))
    >>> model = VARNNRegressor(horizon=4, epochs=1, hidden_size=4, ensemble=1).fit(panel)
    >>> [title for title, _ in forecast_page(model, panel).parts][0]
    'History and forecast'
    """
    if forecast is None:
        known = model.forecaster_ is not None and model.forecaster_.calibrator is not None
        levels = (levels or LEVELS) if known else ()
        ahead: dict[str, Any] = {"horizon": horizon, "inputs": inputs}
        forecast = model.forecast(panel, interval=list(levels) or None, **ahead)
    levels = list(levels or [])
    if forecast.lower is not None and len(levels) != _bounds(forecast)[0].shape[2]:
        raise DataError(
            f"there must be one level for each pair of bounds of the forecast; got {levels} for "
            f"{_bounds(forecast)[0].shape[2]}. Give the levels that the forecast was made with."
        )
    name = title or panel.name or model.fitted_.target_name
    count = len(forecast.ids)
    report = Report(
        f"{name}: forecast of {model.fitted_.target_name}",
        f"{forecast.horizon:,} rows ahead of {count:,} series, from the end of {len(panel):,} rows.",
        _in_words(forecast, panel, levels),
    )
    chart = _chart(forecast, panel, levels, model.fitted_.target_name)
    left = count - len(chart.series)
    report.add_chart(
        "History and forecast",
        chart,
        "Labels so far, and the forecast after them"
        + (f" with intervals of {' and '.join(f'{100 * one:g} %' for one in levels)}." if levels else ".")
        + (f" {left:,} more series are not drawn." if left > 0 else ""),
    )
    if levels:
        _sections.add_few_errors(report, model)
    for index in range(min(count, _TABLES)):
        _add_figures(report, forecast, index, levels)
    add_understood(report, panel, leak=model.fitted_.training.leak, guessed=guessed)
    _sections.add_card(report, model)
    return report


def _bounds(forecast: Forecast) -> tuple[FloatArray, FloatArray]:
    """Bounds with an axis of levels: (S, H, L)."""
    shape = (*forecast.prediction.shape, -1)
    return np.asarray(forecast.lower).reshape(shape), np.asarray(forecast.upper).reshape(shape)


def _in_words(forecast: Forecast, panel: Panel, levels: Sequence[float]) -> str:
    first = forecast.prediction[0]
    last = panel.target[panel.starts[1] - 1]
    whose = f"Series {forecast.ids[0]}: " if len(forecast.ids) > 1 else ""
    now, following = figure(float(last)), figure(float(first[0]))
    said = f"{whose}{panel.target_name} was {now} last, and is forecast to be {following} next"
    if forecast.horizon > 1:
        said += f" and {figure(float(first[-1]))} after {forecast.horizon:,} rows"
    if levels and forecast.lower is not None:
        lower, upper = _bounds(forecast)
        widest = int(np.argmax(levels))
        low, high = (figure(float(one[0, -1, widest])) for one in (lower, upper))
        said += f", between {low} and {high} with {100 * levels[widest]:g} % confidence"
    return f"{said}."


def _chart(forecast: Forecast, panel: Panel, levels: Sequence[float], unit: str) -> TimeChart:
    horizon, shown = forecast.horizon, []
    before = int(np.clip(_HISTORY * horizon, _FEWEST, _MOST))
    timed = forecast.time is not None and forecast.time.dtype.kind == "M" and panel.time is not None
    order = sorted(range(len(levels)), key=lambda one: -levels[one])  # the widest first
    for index, name in enumerate(forecast.ids[:MOST_SERIES]):
        series = panel.ids.index(name) if name in panel.ids else index
        end = int(panel.starts[series + 1])
        past = slice(max(int(panel.starts[series]), end - before), end)
        length = past.stop - past.start
        places = np.arange(1 - length, horizon + 1)  # 0 is the last row known
        if timed and forecast.time is not None and panel.time is not None:
            places = np.concatenate([panel.time[past], forecast.time[index]])
        nothing, rows = np.full(length, np.nan), max(0, length - 3 * horizon)
        bands = {}
        if levels and forecast.lower is not None:
            lower, upper = _bounds(forecast)
            bands = {
                f"{100 * levels[one]:g} % interval": (
                    np.concatenate([nothing, lower[index, :, one]]),
                    np.concatenate([nothing, upper[index, :, one]]),
                )
                for one in order
            }
        shown.append(
            ChartSeries(
                places=places,
                truth=np.concatenate([panel.target[past], np.full(horizon, np.nan)]),
                lines={"forecast": np.concatenate([nothing, forecast.prediction[index]])},
                bands=bands,
                views={"the forecast": (places[rows], places[-1])},
                name=name,
            )
        )
    return TimeChart(shown, unit=unit)


def _add_figures(report: Report, forecast: Forecast, index: int, levels: Sequence[float]) -> None:
    columns = ["ahead", *(["time"] if forecast.time is not None else []), "forecast"]
    columns += [f"{100 * one:g} % interval" for one in levels] if forecast.lower is not None else []
    rows = []
    for step in range(min(forecast.horizon, _LISTED)):
        line = [f"{step + 1}"]
        if forecast.time is not None:
            line.append(written_time(forecast.time[index, step]))
        line.append(figure(float(forecast.prediction[index, step])))
        if levels and forecast.lower is not None:
            lower, upper = _bounds(forecast)
            line += [
                f"{figure(float(lower[index, step, one]))} to {figure(float(upper[index, step, one]))}"
                for one in range(len(levels))
            ]
        rows.append(line)
    more = forecast.horizon - len(rows)
    title = "The forecast in figures" + (f": {forecast.ids[index]}" if len(forecast.ids) > 1 else "")
    note = f"{more:,} more rows are in the chart." if more > 0 else ""
    report.add_table(title, columns, rows, note=note, shown=_SHOWN)
