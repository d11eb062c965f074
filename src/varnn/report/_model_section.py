"""A fitted model on its test rows -> the part of a report that looks at it closely."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, FloatArray
from varnn.data.panel import Panel
from varnn.estimator.details import flattened
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.protocols import Parts
from varnn.model.calendar import has_times
from varnn.model.expert_weights import expert_weights
from varnn.model.prediction import residual_memory
from varnn.monitoring.calibration import Calibration
from varnn.monitoring.diagnostics import FEWEST_ROWS, Diagnosis, PredictionTrace, diagnose_trace
from varnn.report import diagnostic_figures, figures, over_time
from varnn.report.page import Report

_WEEK = 604_800
LOOKED_AT = 100_000  # test rows, the latest
_SHORTEST_STRETCH = 100  # rows drawn together, where a week is not known


def add_model(
    report: Report,
    name: str,
    model: VARNNRegressor,
    parts: Parts,
    *,
    others: Mapping[str, FloatArray] | None = None,
) -> None:
    """Add predictions, innovations, calibration, experts, memory, learning curve and settings to a report.

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
        worst = _add_course(report, name, trace, diagnose_trace(trace), beside)
        if model.fitted_.experts is not None:
            _add_experts(report, name, model, lead_in, trace.panel, worst)
        _add_memory(report, name, model, lead_in, test, worst)
    if model.history_:
        report.add_figure(
            "Learning curve",
            figures.learning_curve(model.history_, best_epochs=model.fitted_.training.best_epoch),
            "Training and validation error by epoch, a pair of lines for each member of the ensemble. "
            "Dots: the epochs whose weights were kept.",
        )
    trained = {
        "training rows": f"{model.fitted_.training.rows:,}",
        "window used": model.fitted_.window,
        "rows are predicted from": model.fitted_.context_in_words,
        "epochs kept": ", ".join(map(str, model.fitted_.training.best_epoch)),
    }
    report.add_facts("Configuration", {**trained, **flattened(model.get_params(deep=False))})


def worst_stretch(errors: npt.NDArray[Any], starts: npt.NDArray[Any], length: int) -> slice:
    """Find the rows with the largest mean squared error, among stretches within one series.

    Examples
    --------
    >>> worst_stretch(np.array([0.0, 1.0, 5.0, 5.0, 0.0, 0.0]), np.array([0, 3, 6]), length=2)
    slice(1, 3, None)
    """
    length = min(length, int(np.diff(starts).max()))
    sums = np.convolve(np.nan_to_num(errors) ** 2, np.ones(length), mode="valid")
    series = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    first = int(np.argmax(np.where(series[: len(sums)] == series[length - 1 :], sums, -1.0)))
    return slice(first, first + length)


def _spread_out(others: Mapping[str, FloatArray], scored: BoolArray) -> dict[str, FloatArray]:
    """Put predictions of scored rows where these rows stand among all test rows."""
    spread = {}
    for name, values in others.items():
        spread[name] = np.full(len(scored), np.nan)
        spread[name][scored] = values
    return spread


def _add_course(
    report: Report, name: str, trace: PredictionTrace, diagnosis: Diagnosis, others: Mapping[str, FloatArray]
) -> slice:
    """Show a model's way over the test rows; give those in which it errs most."""
    panel, unit = trace.panel, trace.panel.target_name
    length, span = _stretch(diagnosis, int(panel.lengths.max()))
    worst = worst_stretch(trace.innovations, panel.starts, length)
    series = int(np.searchsorted(panel.starts, worst.start, side="right")) - 1
    rows = slice(int(panel.starts[series]), int(panel.starts[series + 1]))
    several = panel.n_series > 1
    places = _places(panel)
    marks = over_time.marks_of([event for event in diagnosis.events if event.series == series], places)
    band = trace.band()
    report.add_figure(
        f"The hardest {span}",
        over_time.predictions(
            places[rows],
            panel.target[rows],
            {name: trace.prediction[rows], **{other: one[rows] for other, one in others.items()}},
            band=None if band is None else (band[0][rows], band[1][rows]),
            marks=marks,
            unit=unit,
            zoom=slice(worst.start - rows.start, worst.stop - rows.start),
        ),
        "Truth and one-step predictions. Above: the test rows"
        + (f" of series {panel.ids[series]}. " if several else ". ")
        + f"Below: the {span} in which {name} errs most"
        + ("." if band is None else ", with its 90 % intervals, cut off where they leave the picture.")
        + _marks_in_words(len(marks))
        + ("" if _is_timed(panel) else " Rows are counted from the first test row."),
    )
    gapless = slice(0, len(diagnosis.ljung_box))
    report.add_figure(
        "Innovations",
        over_time.innovations(
            np.arange(len(panel)) if several else places,
            trace.innovations,
            diagnosis.autocorrelation[gapless],
            diagnosis.band[gapless],
            marks=over_time.marks_of(diagnosis.events) if several else marks,
            unit=unit,
        ),
        f"Errors of {name} on the test rows"
        + (", series end to end," if several else "")
        + " and their autocorrelation; inside the band they look like noise.",
    )
    report.add_words("What is left in the errors", diagnosis.findings)
    if diagnosis.hours is not None:
        report.add_figure(
            "By hour of the day",
            diagnostic_figures.error_by_hour(diagnosis, unit=unit),
            "Size of the errors and their mean by hour of the day"
            + ("." if band is None else ", and the share of labels within their 90 % interval."),
        )
    if diagnosis.calibration is not None:
        report.add_figure(
            "Calibration",
            diagnostic_figures.calibration(diagnosis),
            _calibration_in_words(diagnosis.calibration),
        )
    return worst


def _add_experts(
    report: Report, name: str, model: VARNNRegressor, lead_in: Panel, test: Panel, worst: slice
) -> None:
    """Show who was believed, in the series of the rows in which the model errs most."""
    names, weights = expert_weights(model.fitted_, lead_in)
    weights = weights[np.isin(lead_in.rows, test.rows)]
    series = int(np.searchsorted(test.starts, worst.start, side="right")) - 1
    rows = slice(int(test.starts[series]), int(test.starts[series + 1]))
    mean = weights[rows].mean(axis=0)
    report.add_figure(
        "Who is right when",
        over_time.belief(_places(test)[rows], names, weights[rows]),
        f"How much each expert counts in what {name} predicts, over the test rows"
        + (f" of series {test.ids[series]}" if test.n_series > 1 else "")
        + ": who was right lately counts more. On the whole it believed "
        + f"{names[int(mean.argmax())]!r} most, {mean.max():.0%}.",
    )


def _add_memory(
    report: Report, name: str, model: VARNNRegressor, lead_in: Panel, test: Panel, worst: slice
) -> None:
    """Show the memory over some of the test rows."""
    first, last = (
        int(np.flatnonzero(lead_in.rows == test.rows[row])[0]) for row in (worst.start, worst.stop - 1)
    )
    report.add_figure(
        "Residual memory",
        over_time.memory(_places(test)[worst], residual_memory(model.fitted_, lead_in, first, last + 1)),
        f"The memory {name} made of its own recent errors, row by row where it errs most: brighter units "
        "carry larger corrections.",
    )


def _places(panel: Panel) -> npt.NDArray[Any]:
    """Times of rows, or their numbers."""
    return np.asarray(panel.time) if _is_timed(panel) else np.arange(len(panel))


def _is_timed(panel: Panel) -> bool:
    return panel.time is not None and has_times(panel.time)


def _stretch(diagnosis: Diagnosis, longest: int) -> tuple[int, str]:
    """Say how many rows to look at closely, and what they are: a week where it fits, else a fiftieth."""
    seconds = diagnosis.seconds_per_row
    if seconds is not None and 20 * seconds <= _WEEK <= longest * seconds / 2:
        return _WEEK // seconds, "week"
    return max(_SHORTEST_STRETCH, diagnosis.n_rows // 50), "stretch"


def _marks_in_words(count: int) -> str:
    if not count:
        return " The monitor noticed no change."
    return f" The monitor noticed {count} change{'s' if count > 1 else ''}, marked from where each began."


def _calibration_in_words(found: Calibration) -> str:
    coverage = float(found.coverage[found.levels == found.watched][0])
    return (
        "Left: labels within intervals of each level; on the dotted line they hold what they promise. The "
        f"coverage of {100 * found.watched:.0f} % intervals is {100 * coverage:.1f} %. Middle: where labels "
        "fall among the predicted probabilities; flat is right. Right: coverage along the test rows, and the "
        "band that chance explains."
    )
