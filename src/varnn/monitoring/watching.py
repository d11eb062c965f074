"""A fitted model over rows with labels, watched by a monitor -> what changed, when, and in words."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from varnn.data.in_words import percent
from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.model.fitted import Fitted
from varnn.monitoring.event import Event, event_in_words, time_of_row
from varnn.monitoring.monitor import detect
from varnn.monitoring.trace import WATCHED, PredictionTrace


@dataclass(frozen=True, eq=False, kw_only=True)
class Watched:
    """What a monitor noticed along some rows; made by :func:`watch`.

    Parameters
    ----------
    trace : PredictionTrace
        The rows, and what the model predicted for them.
    events : tuple of Event
        What was noticed, by row; rows are those of the trace's panel.
    false_alarms : float
        Events per row that chance alone may make.
    """

    trace: PredictionTrace
    events: tuple[Event, ...]
    false_alarms: float

    @property
    def expected(self) -> float:
        """Events that chance alone would make in so many rows with a label."""
        return self.false_alarms * int(np.count_nonzero(~np.isnan(self.trace.innovations)))

    def in_words(self, *, last: bool = True) -> str:
        """What was noticed, in a sentence or two; with the last of it, or how much alone."""
        known, covered, held = (
            int(np.count_nonzero(~np.isnan(self.trace.innovations))),
            self.trace.covered,
            "",
        )
        if covered is not None and not np.isnan(covered).all():
            share = percent(float(np.nanmean(covered)))
            held = f" {share} of the labels lie within their {100 * WATCHED:g} % intervals."
        if not self.events:
            return f"Nothing changed in {known:,} rows with a label, as far as a monitor can tell.{held}"
        counts = Counter(event.kind for event in self.events)
        listed = ", ".join(f"{count} × {kind}" for kind, count in counts.most_common())
        changes = "1 change was" if len(self.events) == 1 else f"{len(self.events):,} changes were"
        said = f"{changes} noticed in {known:,} rows with a label: {listed}."
        latest = f" The last: {event_in_words(self.events[-1], self.trace.panel)}." if last else ""
        return f"{said}{latest}{held}"

    def lines(self) -> list[dict[str, Any]]:
        """Events as plain values, with times and words."""
        return [
            {
                "time": time_of_row(self.trace.panel, event.row),
                "began": time_of_row(self.trace.panel, event.began),
                "series": self.trace.panel.ids[event.series],
                "kind": event.kind,
                "size": event.size,
                "row": int(event.row - self.trace.panel.first_rows[event.row]),
                "words": event_in_words(event, self.trace.panel),
            }
            for event in self.events
        ]


def watch(
    fitted: Fitted, panel: Panel, *, false_alarms: float = 1 / 10_000, resume: bool | None = None
) -> Watched:
    """Predict rows one step ahead, and watch errors and intervals for changes.

    Parameters
    ----------
    fitted : Fitted
        The model, ``fitted_`` of an estimator.
    panel : Panel
        Rows with labels.
    false_alarms : float, default=1 / 10000
        False alarms to accept per row of each series.
    resume : bool or None, default=None
        Whether the rows follow the training rows; None goes by their times, if both have some.

    Examples
    --------
    >>> from varnn import VARNNRegressor
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> y[800:] += 8
    >>> panel = Panel.from_arrays(None, y)
    >>> model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1, adapt=None).fit(panel.between(0, 400))
    >>> found = watch(model.fitted_, panel.between(400, 1000))
    >>> [(line["kind"], 400 <= line["row"] < 440) for line in found.lines()][:1]
    [('level shift', True)]
    """
    if np.isnan(panel.target).all():
        raise DataError(
            "a monitor watches errors, so rows need labels; they have none. Give rows with the target column."
        )
    trace = PredictionTrace.of(fitted, fitted.matched(panel), memory=False, resume=resume)
    level = None if trace.covered is None else WATCHED
    events = detect(
        trace.innovations,
        trace.panel.starts,
        covered=trace.covered,
        coverage=level,
        false_alarms=false_alarms,
    )
    return Watched(trace=trace, events=tuple(events), false_alarms=false_alarms)
