"""A fitted model on its test rows -> the part of a report that looks at it closely."""

from collections.abc import Mapping

import numpy as np

from varnn._types import BoolArray, FloatArray
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.protocols import Parts
from varnn.model.expert_weights import expert_weights
from varnn.monitoring.calibration import Calibration
from varnn.monitoring.diagnostics import FEWEST_ROWS, Diagnosis, PredictionTrace, diagnose_trace
from varnn.monitoring.failures import failures, stretch_length
from varnn.report import diagnostic_figures, trace_charts
from varnn.report._failures import add_failures
from varnn.report._importance import measure_and_add
from varnn.report._learning import add_learning_curve
from varnn.report.figures import NARROW as WIDTH
from varnn.report.page import Report
from varnn.report.settings import add_settings

LOOKED_AT = 100_000  # test rows, the latest


def add_model(
    report: Report,
    name: str,
    model: VARNNRegressor,
    parts: Parts,
    *,
    others: Mapping[str, FloatArray] | None = None,
) -> None:
    """Add predictions, errors, calibration, experts, learning curve and settings to a report.

    Parameters
    ----------
    report : Report
        The page to add to.
    name, model : str, VARNNRegressor
        The fitted model, and what to call it.
    parts : Parts
        The cut it was fitted on; its test rows are shown.
    others : mapping or None, default=None
        Predictions of the scored rows by other models, to draw beside its own.
    """
    test = parts.test.latest(LOOKED_AT)
    cut_off = len(parts.test) > len(test)
    lead_in = parts.lead_in.latest(2 * LOOKED_AT) if cut_off else parts.lead_in
    trace = PredictionTrace.of(model.fitted_, lead_in, memory=False).part(test)
    if np.count_nonzero(~np.isnan(trace.innovations)) >= FEWEST_ROWS and trace.panel.lengths.max() > 1:
        if cut_off:
            few = f"All below is about the latest {len(test):,} of {len(parts.test):,} test rows."
            report.add_words("A closer look", [few])
        scored = parts.scored()[np.isin(parts.lead_in.rows, parts.test.rows)]
        shown = np.isin(parts.test.rows, test.rows)
        beside = {other: one[shown] for other, one in _spread_out(others or {}, scored).items()}
        _add_course(report, name, trace, diagnose_trace(trace), beside)
        if model.fitted_.experts is not None:
            _add_experts(report, name, model, lead_in, trace)
        rows = f"the last {len(parts.validation):,} rows before the test rows, which {name} was chosen on"
        measure_and_add(report, model, parts.validation, rows)
    add_learning_curve(report, model)
    add_settings(report, model)


def _spread_out(others: Mapping[str, FloatArray], scored: BoolArray) -> dict[str, FloatArray]:
    """Put predictions of scored rows where these rows stand among all test rows."""
    spread = {}
    for name, values in others.items():
        spread[name] = np.full(len(scored), np.nan)
        spread[name][scored] = values
    return spread


def _add_course(
    report: Report, name: str, trace: PredictionTrace, diagnosis: Diagnosis, others: Mapping[str, FloatArray]
) -> None:
    """Show a model's way over the test rows, and what its errors look like."""
    panel, band = trace.panel, trace.band()
    failed = failures(panel, trace.prediction, covered=trace.covered)
    _, span = stretch_length(panel)
    chart = trace_charts.predictions(
        trace,
        name=name,
        events=diagnosis.events,
        stretches=failed.stretches,
        others=others,
    )
    report.add_chart(
        "Truth and predictions",
        chart,
        f"The test rows and one-step predictions, first the {span} in which {name} errs most"
        + ("" if panel.n_series == 1 else ", of the series with the largest error; others are in the picker")
        + f". Below: the errors of {name}, truth less prediction."
        + ("" if band is None else " Intervals are cut off where they leave the picture.")
        + _marks_in_words(len(diagnosis.events))
        + ("" if chart.timed else " Rows are counted from the first test row of a series."),
    )
    report.add_figure(
        "Autocorrelation of the errors",
        diagnostic_figures.autocorrelation(diagnosis, width=WIDTH),
        f"How errors of {name} go with those so many rows before; inside the band they look like noise.",
    )
    report.add_words("What is left in the errors", diagnosis.findings)
    add_failures(report, failed, panel)
    if diagnosis.calibration is not None:
        report.add_figure(
            "Calibration",
            diagnostic_figures.calibration_apart(diagnosis),
            _calibration_in_words(diagnosis.calibration),
        )


def _add_experts(
    report: Report, name: str, model: VARNNRegressor, lead_in: Panel, trace: PredictionTrace
) -> None:
    """Show who was believed in each series, the one with the largest error first."""
    names, weights = expert_weights(model.fitted_, lead_in)
    weights = weights[np.isin(lead_in.rows, trace.panel.rows)]
    mean = weights.mean(axis=0)
    order = trace_charts.worst_first(trace.innovations, trace.panel.starts)
    report.add_chart(
        "Who is right when",
        trace_charts.experts(trace.panel, names, weights, order),
        f"How much each expert counts in what {name} predicts, over the test rows: who was right lately "
        f"counts more. On the whole it believed {names[int(mean.argmax())]!r} most, {mean.max():.0%}.",
    )


def _marks_in_words(count: int) -> str:
    if not count:
        return " The monitor noticed no change."
    return f" The monitor noticed {count} change{'s' if count > 1 else ''}, marked from where each began."


def _calibration_in_words(found: Calibration) -> str:
    coverage = float(found.coverage[found.levels == found.watched][0])
    return (
        "First: labels within intervals of each level; on the dotted line they hold what they promise. The "
        f"coverage of {100 * found.watched:.0f} % intervals is {100 * coverage:.1f} %. Second: where labels "
        "fall among the predicted probabilities; flat is right. Third: coverage along the test rows, and the "
        "band that chance explains."
    )
