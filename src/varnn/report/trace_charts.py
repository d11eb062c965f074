"""What a model did, row by row -> charts over time: truth and predictions, coverage, and who was believed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.data.panel import Panel
from varnn.monitoring.event import Event
from varnn.monitoring.failures import Stretch, stretch_length
from varnn.monitoring.trace import WATCHED, PredictionTrace
from varnn.report.chart import MOST_LINES, ChartSeries, TimeChart, chart_places, marks_of
from varnn.report.over_time import in_spans

MOST_SERIES = 40  # in a picker
BAND = f"{100 * WATCHED:.0f} % interval"
_FEWEST_IN_SPAN = 100  # rows that a share of covered labels is taken of
_SPANS = 1000  # of experts' weights
_REST = "all others"
_VIEWS = 3  # of a series: the hardest, and two more
_FEWEST_IN_VIEW = 60  # rows


def worst_first(errors: FloatArray, starts: IntArray) -> IntArray:
    """Numbers of the series to show, the one with the largest mean squared error first.

    Examples
    --------
    >>> worst_first(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 2, 4])).tolist()
    [1, 0]
    """
    with np.errstate(over="ignore"):
        squares = np.square(np.asarray(errors, np.float64))
    known = ~np.isnan(squares)
    sums = np.add.reduceat(np.where(known, squares, 0.0), starts[:-1])
    counts = np.add.reduceat(known, starts[:-1], dtype=np.int64)
    return np.argsort(-sums / np.maximum(counts, 1), kind="stable")[:MOST_SERIES]


def predictions(
    trace: PredictionTrace,
    *,
    name: str = "prediction",
    events: Sequence[Event] = (),
    stretches: Sequence[Stretch] = (),
    others: Mapping[str, FloatArray] | None = None,
) -> TimeChart:
    """Draw truth, predictions and intervals, with changes marked and the worst stretches a press away.

    Parameters
    ----------
    trace : PredictionTrace
        What the model did.
    name : str, default="prediction"
        What to call its line.
    events, stretches : sequence of Event, sequence of Stretch
        To mark, and to zoom into; rows are those of the trace's panel.
    others : mapping or None, default=None
        Predictions of the same rows by other models, by name.
    """
    panel, band = trace.panel, trace.band()
    return lines(
        chart_places(panel),
        panel.target,
        {name: trace.prediction, **(others or {})},
        starts=panel.starts,
        names=panel.ids,
        bands={} if band is None else {BAND: band},
        events=events,
        stretches=[slice(one.first, one.last + 1) for one in stretches],
        span=stretch_length(panel)[1],
        unit=panel.target_name,
    )


def lines(
    places: npt.NDArray[Any],
    truth: FloatArray,
    predicted: Mapping[str, FloatArray],
    *,
    starts: IntArray,
    names: Sequence[str],
    bands: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
    events: Sequence[Event] = (),
    stretches: Sequence[slice] = (),
    span: str = "stretch",
    unit: str = "",
) -> TimeChart:
    """Draw truth and predictions of rows, series end to end; the series with the largest error comes first.

    Parameters
    ----------
    places, truth, predicted : array, array, mapping
        Where each row stands, as :func:`varnn.report.chart.chart_places` says; its label; and predictions by
        the name of the model. Errors are those of the first.
    starts, names : array of int, sequence of str
        Where each series begins, and the number of rows; names of the series.
    bands : mapping or None, default=None
        Bounds by name.
    events, stretches : sequence of Event, sequence of slice
        To mark, and to zoom into, the worst first; they count rows end to end.
    span, unit : str
        What a stretch is, such as a week; name of the target.

    Examples
    --------
    >>> truth = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 9.0])
    >>> chart = lines(
    ...     np.array([0, 1, 2, 0, 1, 2]), truth, {"model": np.zeros(6)},
    ...     starts=np.array([0, 3, 6]), names=["north", "south"], stretches=[slice(4, 6)],
    ... )
    >>> [one.name for one in chart.series], [int(one) for one in chart.series[0].views["the hardest stretch"]]
    (['south', 'north'], [0, 2])
    """
    drawn = dict(list(predicted.items())[:MOST_LINES])
    errors = np.asarray(truth, np.float64) - next(iter(drawn.values()))
    shown = []
    for series in worst_first(errors, starts).tolist():
        rows = slice(int(starts[series]), int(starts[series + 1]))
        own = [one for one in stretches if rows.start <= one.start < rows.stop][:_VIEWS]
        shown.append(
            ChartSeries(
                places=places[rows],
                truth=truth[rows],
                lines={name: values[rows] for name, values in drawn.items()},
                bands={name: (lower[rows], upper[rows]) for name, (lower, upper) in (bands or {}).items()},
                marks=marks_of([event for event in events if rows.start <= event.row < rows.stop], places),
                views={_called(index, span): _around(one, rows, places) for index, one in enumerate(own)},
                name=str(names[series]),
            )
        )
    return TimeChart(shown, unit=unit, errors=True)


def coverage(trace: PredictionTrace) -> TimeChart | None:
    """Draw the share of labels within their interval over time, and what chance allows; None without any."""
    covered, panel = trace.covered, trace.panel
    if covered is None:
        return None
    places, shown = chart_places(panel), []
    for series in worst_first(trace.innovations, panel.starts).tolist():
        rows = _rows(panel, series)
        known = np.flatnonzero(~np.isnan(covered[rows])) + rows.start
        length = max(_FEWEST_IN_SPAN, len(known) // 20)
        if len(known) < 2 * length:
            continue
        sums = np.concatenate([[0.0], np.cumsum(covered[known])])
        share = 100 * (sums[length:] - sums[:-length]) / length
        at = known[length - 1 :]
        # Every row would be one of many that say the same: a few hundred show its course.
        at, share = at[:: max(1, length // 10)], share[:: max(1, length // 10)]
        reach = 196 * np.sqrt(WATCHED * (1 - WATCHED) / length)
        low, high = 100 * WATCHED - reach, min(100.0, 100 * WATCHED + reach)
        shown.append(
            ChartSeries(
                places=places[at],
                lines={f"covered, of the last {length:,} rows": share},
                bands={"what chance allows": (np.full(len(at), low), np.full(len(at), high))},
                name=panel.ids[series],
            )
        )
    return TimeChart(shown, unit=f"labels within their {BAND} (%)") if shown else None


def experts(panel: Panel, names: Sequence[str], weights: DoubleArray, order: IntArray) -> TimeChart:
    """Draw how much each expert counts over time, as areas that make up 1; of many, the least are one.

    Parameters
    ----------
    panel : Panel
        The rows.
    names, weights : sequence of str, array of shape (n_rows, n_experts)
        Of the experts.
    order : array of int
        Series to show.
    """
    names, weights = _few(list(names), weights)
    places, shown = chart_places(panel), []
    for series in order.tolist():
        rows = _rows(panel, series)
        middle, means = in_spans(weights[rows], _SPANS)
        shown.append(
            ChartSeries(
                places=places[rows][middle],
                lines={name: means[:, index] for index, name in enumerate(names)},
                name=panel.ids[series],
            )
        )
    return TimeChart(shown, unit="weight", stacked=True)


def _few(names: list[str], weights: DoubleArray) -> tuple[list[str], DoubleArray]:
    if len(names) <= MOST_LINES:
        return names, weights
    most = np.sort(np.argsort(-weights.mean(axis=0), kind="stable")[: MOST_LINES - 1])
    rest = weights.sum(axis=1) - weights[:, most].sum(axis=1)
    return [*(names[one] for one in most), _REST], np.column_stack([weights[:, most], rest])


def _rows(panel: Panel, series: int) -> slice:
    return slice(int(panel.starts[series]), int(panel.starts[series + 1]))


def _around(stretch: slice, rows: slice, places: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Ends of a view of a stretch, with some of the rows before and after it, which errors come from."""
    length = stretch.stop - stretch.start
    more = max(length // 2, (_FEWEST_IN_VIEW - length) // 2)
    first, last = max(stretch.start - more, rows.start), min(stretch.stop + more, rows.stop) - 1
    return places[first], places[last]


def _called(index: int, span: str) -> str:
    return f"the hardest {span}" if index == 0 else f"hardest {span} no. {index + 1}"
