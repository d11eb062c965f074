"""Rows of a chart with a long time between two of them -> a line that ends there, and begins again after it.

A row without values is put into each gap: whatever draws the chart, it draws nothing there.
"""

import numpy as np

from varnn._types import IntArray
from varnn.report.chart import ChartSeries, TimeChart, Values

_LONG = 3  # usual steps: beyond, a step is a gap; a weekend between working days is none
_MOST = 0.05  # of all steps: where more are long, rows come unevenly, and no step is usual


def with_gaps(chart: TimeChart) -> TimeChart:
    """Break the lines of a chart over time where rows are missing; areas on top of each other stay whole.

    Examples
    --------
    >>> time = np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-20"], dtype="M8[D]")
    >>> days = np.concatenate([time[:1] - np.arange(40, 0, -1), time])
    >>> chart = TimeChart([ChartSeries(places=days, truth=np.ones(44))])
    >>> one = with_gaps(chart).series[0]
    >>> str(one.places[-2]), one.truth[-3:].tolist()
    ('2026-01-04', [1.0, nan, 1.0])
    """
    if not chart.timed or chart.stacked:
        return chart
    series = [_broken(one) for one in chart.series]
    return TimeChart(series, unit=chart.unit, errors=chart.errors, stacked=chart.stacked)


def _broken(one: ChartSeries) -> ChartSeries:
    steps = np.diff(one.places).astype(np.int64)
    usual = np.median(steps) if len(steps) else 0
    long = steps > _LONG * usual
    if not usual > 0 or not long.any() or long.mean() > _MOST:
        return one
    after: IntArray = np.flatnonzero(long) + 1
    resting = one.places[after - 1] + np.array(int(usual), dtype=np.diff(one.places).dtype)

    def broken(values: Values) -> Values:
        return np.insert(np.asarray(values, dtype=float), after, np.nan)

    return ChartSeries(
        places=np.insert(one.places, after, resting),
        truth=None if one.truth is None else broken(one.truth),
        lines={name: broken(values) for name, values in one.lines.items()},
        bands={name: (broken(lower), broken(upper)) for name, (lower, upper) in one.bands.items()},
        marks=one.marks,
        views=one.views,
        name=one.name,
    )
