"""Sections that pages of one model share: its course over some rows, what is left, experts, card."""

from collections.abc import Sequence

import numpy as np

from varnn.data.in_words import beside, figure, percent
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.calendar import has_times
from varnn.model.expert_weights import expert_weights
from varnn.model.fitted import Fitted
from varnn.monitoring.diagnostics import FEWEST_ROWS, Diagnosis, PredictionTrace, diagnose_trace
from varnn.monitoring.event import Event
from varnn.monitoring.failures import Failures
from varnn.persistence.card import card
from varnn.report import trace_charts
from varnn.report.bars import Bar
from varnn.report.page import Report

LOOKED_AT = 100_000  # rows, the latest
_LOOKING_BACK = (
    " Changes are marked looking back, which can wait until they are sure: chance alone marks one on 1 page "
    "in 20. A monitor tells as rows come, so it notices the same change some rows sooner, gives its size as "
    "far as it knows it by then, and may notice more."
)
_LEFT_OUT = ("Settings: ", "Written by ")  # lines of a card that a page has elsewhere


def add_course(
    report: Report,
    trace: PredictionTrace,
    rows: str,
    *,
    events: Sequence[Event] = (),
    failures: Failures | None = None,
    looking_back: bool = False,
) -> None:
    """Add truth, predictions and intervals over time; ``rows`` says what rows these are.

    Events of a diagnosis were found looking back, those of a monitor as rows came: the same change is not
    noticed at the same row, and a page says so.
    """
    chart = trace_charts.predictions(
        trace, events=events, stretches=() if failures is None else failures.stretches
    )
    left = trace.panel.n_series - len(chart.series)
    report.add_chart(
        "Truth and predictions",
        chart,
        f"One-step predictions of {rows}"
        + (", with their intervals" if trace.lower is not None else "")
        + "; below, the errors."
        + (" Series with the largest errors first." if len(chart.series) > 1 else "")
        + (f" {left:,} more with smaller errors are not drawn." if left else "")
        + (_LOOKING_BACK if events and looking_back else ""),
    )


def add_coverage(report: Report, trace: PredictionTrace) -> None:
    """Add what intervals kept of what they promised: over time, and by level."""
    calibration = trace.calibration
    if calibration is None:
        return
    chart = trace_charts.coverage(trace)
    if chart is not None:
        report.add_chart(
            "Coverage over time",
            chart,
            f"Share of labels within their {trace_charts.BAND}, of the rows just before each; within the "
            "band, chance explains that it is not exactly what was promised.",
        )
    lines = [
        Bar([f"{100 * level:g} %", percent(held), figure(width)], float(held), mark=float(level))
        for level, held, width in zip(
            calibration.levels.tolist(),
            calibration.coverage.tolist(),
            calibration.width.tolist(),
            strict=True,
        )
    ]
    report.add_bars(
        "Intervals by level",
        ["promised", "", "held", "mean width"],
        lines,
        note="Bars: share of labels within the intervals of each level; strokes: what was promised.",
    )


def add_few_errors(report: Report, model: VARNNRegressor) -> None:
    """Say how far ahead bands of forecasts rest on few errors, if they do anywhere."""
    said = model.fitted_.training.few_errors
    if said is not None:
        report.add_words("What the bands of forecasts rest on", [f"{said[0].upper()}{said[1:]}."])


def add_left_over(report: Report, diagnosis: Diagnosis | None) -> None:
    """Add what is left in the errors, in words."""
    if diagnosis is not None:
        report.add_words("What is left in the errors", diagnosis.findings)


def add_experts(report: Report, fitted: Fitted, trace: PredictionTrace, resume: bool | None) -> None:
    """Add who was believed, and how much, over time."""
    if fitted.experts is None or np.isnan(trace.panel.target).all():
        return
    names, weights = expert_weights(fitted, trace.panel, resume=resume)
    mean = weights.mean(axis=0)
    order = trace_charts.worst_first(trace.innovations, trace.panel.starts)
    report.add_chart(
        "Who is right when",
        trace_charts.experts(trace.panel, names, weights, order),
        "How much each expert counts in a prediction: who was right lately counts more. On the whole "
        f"{names[int(mean.argmax())]!r} was believed most, {percent(float(mean.max()), 0)}.",
    )


def add_card(report: Report, model: VARNNRegressor) -> None:
    """Add what the model is and what its limits are, as its file says it."""
    text = card(model.fitted_, {}, _horizon(model))
    lines = [line for line in text.splitlines() if not line.startswith(_LEFT_OUT)]
    report.add_words("The model and its limits", lines)


def diagnosed(trace: PredictionTrace) -> Diagnosis | None:
    """Diagnose rows; None where they are too few."""
    known = int(np.count_nonzero(~np.isnan(trace.innovations)))
    return diagnose_trace(trace) if known >= FEWEST_ROWS and trace.panel.lengths.max() > 1 else None


def verdict(found: Failures, rows: str) -> str:
    """Say in a sentence or two how well a model did on some rows.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.monitoring import failures
    >>> panel = Panel.from_arrays(None, np.tile([1.0, 2.0], 50))
    >>> verdict(failures(panel, panel.target + 0.5), "99 test rows")
    'On 99 test rows the RMSE is 0.5, that of persistence 1: its squared error is 75.0% below that of ...'
    """
    whole = found.overall
    said = f"On {rows} the RMSE is {figure(whole.rmse)}, that of persistence {figure(whole.persistence)}"
    if whole.persistence > 0:
        ratio = (whole.rmse / whole.persistence) ** 2 - 1
        said += f": its squared error is {beside(ratio)} that of predicting the last label"
    if whole.coverage is not None:
        said += f". Of the labels {percent(whole.coverage)} lie within their {trace_charts.BAND}s"
    return f"{said}."


def trained_on(fitted: Fitted, panel: Panel) -> str:
    """Say that a model was trained on rows of these times, if it was; without times nobody knows."""
    period = fitted.training.period
    if not period or not has_times(panel.time) or not len(panel):
        return ""
    try:
        first, last = (np.datetime64(one) for one in period)
    except ValueError:  # numbers
        return ""
    times = np.asarray(panel.time)
    shared = np.count_nonzero((times >= first) & (times <= last))
    if not shared:
        return ""
    some = "These rows are" if shared == len(panel) else f"{shared:,} of them are"
    return f" {some} of the time that the model was trained on: errors on new rows are larger."


def latest(panel: Panel) -> tuple[Panel, str]:
    """Rows to look at, and what to say where they are not all."""
    some = panel.latest(LOOKED_AT)
    return some, "" if len(some) == len(panel) else f"the latest {len(some):,} of {len(panel):,} rows"


def _horizon(model: VARNNRegressor) -> int:
    forecaster = getattr(model, "forecaster_", None)
    return 1 if forecaster is None else int(forecaster.horizon)
