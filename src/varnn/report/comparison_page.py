"""A comparison -> a table, a sentence and a page that people can read."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import IntArray
from varnn.data.in_words import change, figure, percent
from varnn.data.leaks import advice
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.metrics import METRICS, SHARES, of_intervals
from varnn.evaluation.scores import Comparison
from varnn.evaluation.verdict import in_words, written_p
from varnn.model.calendar import has_times
from varnn.monitoring.correlation import autocorrelation
from varnn.monitoring.failures import worst_stretches
from varnn.monitoring.monitor import detect
from varnn.report import diagnostic_figures, figures, trace_charts
from varnn.report._model_section import add_model
from varnn.report.page import Report
from varnn.report.understood import add_understood

LONGEST_STRETCH = 168  # rows drawn together: a week of hours
ON_THE_PAGE_ONLY = ("vs best", "scaled MSE", "fit")  # a terminal has no room for more,
FEW_METRICS_ONLY = ("p (DM)", "p (boot)")  # nor for these beside more than
FEW = 3
TITLES = {"mse": "MSE", "rmse": "RMSE", "mae": "MAE", "r2": "R²", "mase": "MASE", "smape": "sMAPE"}


def table(comparison: Comparison, *, terse: bool = False) -> tuple[list[str], list[list[str]]]:
    """Columns, and one line of text per model, best first, with the metrics that were asked for.

    The median over series is there when several are scored, the range over origins with rolling ones.
    A terse table fits a terminal: without some columns, and with many metrics without p values.
    """
    rows = comparison.rows()
    lines = [_line(comparison, row, str(rows[0]["model"])) for row in rows]
    many = len(comparison.metrics) > FEW
    hidden = (*ON_THE_PAGE_ONLY, *(FEW_METRICS_ONLY if many else ())) if terse else ()
    kept = [column for column in lines[0] if column not in hidden and any(line[column] for line in lines)]
    return kept, [[line[column] for column in kept] for line in lines]


def page(
    comparison: Comparison,
    title: str,
    *,
    fitted: Mapping[str, VARNNRegressor] | None = None,
    panel: Panel | None = None,
    guessed: Collection[str] = (),
) -> Report:
    """Make the report page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        What was compared.
    title : str
        What to call the data.
    fitted : mapping or None, default=None
        Models by name, as fitted at the last origin: the best of them is looked at closely. None takes
        those that the comparison kept; without any, the page shows where the best model of all errs most.
    panel : Panel or None, default=None
        What was given to ``compare``, to say what was understood of it.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.
    """
    rows = comparison.rows()
    report = Report(f"{title}: one step ahead", _protocol_in_words(comparison), in_words(comparison))
    if panel is not None:
        add_understood(
            report, panel, leak=comparison.leak, guessed=guessed, learnt_from=comparison.cuts[-1].train
        )
    elif comparison.leak is not None:
        report.add_words("An exact leak", [f"{advice(comparison.leak)}."])
    columns, lines = table(comparison)
    note = (
        f"{_metrics_in_words(comparison)} Scaled MSE: in units of the target's range before the test rows. "
        "Against the best: how much more squared "
        "error, and its p by Diebold-Mariano and by a paired bootstrap of blocks of rows."
    )
    if comparison.n_series > 1:
        note += " Median series: the RMSE of the series in the middle."
    report.add_table("Scores", columns, lines, note=note, strong=0)
    by, each = ("origin", "rmse_by_origin") if len(comparison.cuts) > 1 else ("seed", "rmse_by_seed")
    report.add_figure(
        "Error of each model",
        figures.scores(
            [str(row["model"]) for row in rows],
            [float(np.mean(row["rmse_by_seed"])) for row in rows],
            [row[each] for row in rows],
            unit=f"RMSE of {comparison.parts.test.target_name}",
            width=figures.NARROW,
        ),
        "Root mean squared error on the test rows, best on top."
        + (f" Dots: one for each {by}." if any(len(row[each]) > 1 for row in rows) else ""),
    )
    if len(comparison.cuts) > 1:
        _add_origins(report, comparison, rows)
    if fitted is None:
        kept = comparison.fitted.items()
        fitted = {name: one for name, one in kept if isinstance(one, VARNNRegressor)}
    ours = [str(row["model"]) for row in rows if row["model"] in fitted]
    if ours:
        count = int(comparison.cuts[-1].scored().sum())
        rival = next((str(row["model"]) for row in rows if row["model"] != ours[0]), None)
        others = {} if rival is None else {rival: (comparison.truth - comparison.errors(rival))[-count:]}
        add_model(report, ours[0], fitted[ours[0]], comparison.cuts[-1], others=others)
    else:
        _add_best(report, comparison, [str(row["model"]) for row in rows])
    return report


def _add_best(report: Report, comparison: Comparison, names: Sequence[str]) -> None:
    """Show where the best model errs most, and what its errors look like."""
    best, (rows, starts, series) = names[0], _by_series(comparison)
    places = _places(comparison)[rows]
    errors = comparison.errors(best)[rows]
    events = detect(errors, starts)
    chart = trace_charts.lines(
        places,
        comparison.truth[rows],
        {name: (comparison.truth - comparison.errors(name))[rows] for name in names[:2]},
        starts=starts,
        names=series,
        events=events,
        stretches=worst_stretches(errors, starts, LONGEST_STRETCH, most=5),
        unit=comparison.parts.test.target_name,
    )
    report.add_chart(
        "Truth and predictions",
        chart,
        f"The test rows and one-step predictions, first those where {best} errs most"
        + ("" if len(series) == 1 else ", of the series with the largest error; others are in the picker")
        + f". Below: the errors of {best}, truth less prediction.",
    )
    correlations, pairs = autocorrelation(
        errors, np.arange(1, min(40, np.diff(starts).max() - 1) + 1), starts
    )
    if len(correlations):
        report.add_figure(
            "Autocorrelation of the errors",
            diagnostic_figures.correlogram(
                np.arange(1, len(correlations) + 1),
                correlations,
                1.96 / np.sqrt(np.maximum(pairs, 1)),
                width=figures.NARROW,
            ),
            f"How errors of {best} go with those so many rows before; inside the band they look like noise.",
        )


def _by_series(comparison: Comparison) -> tuple[IntArray, IntArray, list[str]]:
    """Put scored rows in the order of series, each from origin to origin: rows, where each begins, names."""
    ids = np.concatenate(
        [np.repeat(one.lead_in.ids, one.lead_in.lengths)[one.scored()] for one in comparison.cuts]
    )
    names = list(dict.fromkeys(ids.tolist()))
    numbers = {name: number for number, name in enumerate(names)}
    series = np.array([numbers[one] for one in ids.tolist()], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(series, minlength=len(names)))])
    return np.argsort(series, kind="stable"), starts, [str(one) for one in names]


def _places(comparison: Comparison) -> npt.NDArray[Any]:
    """List the times of all rows that are scored, or their numbers."""
    rows = [one.lead_in for one in comparison.cuts]
    timed = all(has_times(one.time) for one in rows)
    values = [np.asarray(one.time) if timed else one.rows for one in rows]
    return np.concatenate([one[cut.scored()] for one, cut in zip(values, comparison.cuts, strict=True)])


def _line(comparison: Comparison, row: dict[str, Any], best: str) -> dict[str, str]:
    """Write one model's line; what does not apply is left empty."""
    name = str(row["model"])
    several_seeds, several_origins = row["seeds"] > 1, len(comparison.cuts) > 1
    found = None if name == best else comparison.difference(name, best)
    measured: dict[str, str] = {}
    for metric in comparison.metrics:
        about = f" ({_percent(comparison.level)})" if of_intervals(metric) else ""
        measured[f"{_title(metric)}{about}"] = _written(metric, row[metric])
        if metric == "skill" and several_origins:
            skills = row["skill_by_origin"]
            measured["by origin"] = f"{percent(min(skills), 0)} to {percent(max(skills), 0)}"
    return {
        "model": name + (f" ({row['seeds']} seeds)" if several_seeds else ""),
        **measured,
        "median series": figure(row["median_series_mse"] ** 0.5) if comparison.n_series > 1 else "",
        "vs best": "" if found is None else change(found.change),
        "p (DM)": "" if found is None else written_p(found.p),
        "p (boot)": "" if found is None else written_p(found.p_bootstrap),
        "scaled MSE": f"{row['scaled_mse']:.3g}" + (f" ± {row['spread']:.1g}" if several_seeds else ""),
        "fit": f"{row['seconds']:.1f} s",
    }


def _title(metric: str) -> str:
    return TITLES.get(metric, metric.replace("_", " "))


def _percent(level: float) -> str:
    return f"{100 * level:g} %"


def _written(metric: str, value: float | None) -> str:
    """Write the value of a metric; a dash where there is none."""
    return "-" if value is None else percent(value) if metric in SHARES else figure(value)


def _metrics_in_words(comparison: Comparison) -> str:
    """Say what each metric is, as the first line of its documentation does."""
    said = []
    for metric in comparison.metrics:
        title, first = _title(metric), (METRICS[metric].__doc__ or "").strip().partition("\n")[0]
        if title.lower() in first.lower():  # it names itself
            said.append(first)
        elif first:
            said.append(f"{title}: {first[0].lower()}{first[1:]}")
    if any(of_intervals(metric) for metric in comparison.metrics):
        said.append(
            f"Intervals have the level {_percent(comparison.level)}; a dash is for models without any."
        )
    return " ".join(said)


def _protocol_in_words(comparison: Comparison) -> str:
    parts, last = comparison.parts, comparison.cuts[-1]
    series = f"{comparison.n_series} series; "
    if len(comparison.cuts) > 1:
        return (
            f"{len(comparison.truth):,} rows scored, {series}fitted anew at {len(comparison.cuts)} "
            f"successive origins on the {len(parts.train) + len(parts.validation):,} to "
            f"{len(last.train) + len(last.validation):,} rows before each, of which the last fifth is there "
            "to choose on; each origin is scored once, on the block of rows after it."
        )
    counts = f"{len(parts.train):,} / {len(parts.validation):,} / {len(parts.test):,} rows, {series}"
    if parts.protocol == "paper":
        return f"{counts}best epoch read on the test part, as the paper does."
    return f"{counts}train, validation and test in time order, test read once."


def _add_origins(report: Report, comparison: Comparison, rows: Sequence[dict[str, Any]]) -> None:
    columns = ["model", *(f"{number}" for number in range(1, len(comparison.cuts) + 1))]
    lines = [[str(row["model"]), *(figure(value) for value in row["rmse_by_origin"])] for row in rows]
    blocks = ", ".join(f"{len(one.test):,}" for one in comparison.cuts)
    note = f"RMSE on the {blocks} rows after each origin, in time order; means over seeds."
    report.add_table("Origin by origin", columns, lines, note=note, strong=0)
