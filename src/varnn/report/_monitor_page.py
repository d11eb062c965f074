"""A fitted model over rows with labels -> the page of what a monitor noticed."""

from collections.abc import Collection

from varnn.data.in_words import figure
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.monitoring.watching import Watched, watch
from varnn.report import _sections, trace_charts
from varnn.report.page import Report
from varnn.report.understood import add_understood

_LISTED = 200  # events in the table, the latest


def monitor_page(
    model: VARNNRegressor,
    panel: Panel,
    *,
    watched: Watched | None = None,
    resume: bool | None = None,
    title: str = "",
    guessed: Collection[str] = (),
) -> Report:
    """Make the page of a monitor: what changed and when, marked on truth and predictions.

    Parameters
    ----------
    model : VARNNRegressor
        Fitted.
    panel : Panel
        Rows with labels.
    watched : Watched or None, default=None
        What `varnn.monitoring.watch` gave for these rows; None watches them, as it does by default.
    resume : bool or None, default=None
        Whether the rows follow the training rows, as in ``predict``.
    title : str, default=""
        What to call the data; the panel's own name if not given.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.

    Returns
    -------
    Report
        To be written: ``monitor_page(...).write("monitor.html")``.

    Examples
    --------
    >>> import numpy as np
    >>> from varnn import VARNNRegressor
    >>> panel = Panel.from_arrays(None, np.random.default_rng(0).normal(size=600))
    >>> model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel.between(0, 400))
    >>> page = monitor_page(model, panel.between(400, 600))
    >>> page.summary.startswith("Nothing changed")
    True
    """
    found = watch(model.fitted_, panel, resume=resume) if watched is None else watched
    trace, events = found.trace, found.events
    name = title or panel.name or model.fitted_.target_name
    series = f" of {panel.n_series:,} series" if panel.n_series > 1 else ""
    report = Report(
        f"{name}: changes of {model.fitted_.target_name}",
        f"{len(panel):,} rows{series}, predicted one step ahead and watched as they would be in a stream. "
        f"False alarms to be expected in so many: {figure(found.expected, 2)}.",
        found.in_words(),
    )
    if events:
        several = panel.n_series > 1
        lines = found.lines()
        report.add_table(
            "What was noticed",
            ["what", *(["series"] if several else []), "noticed", "begun about"],
            [
                [event.what, *([line["series"]] if several else []), line["time"], line["began"]]
                for line, event in list(zip(lines, events, strict=True))[-_LISTED:]
            ],
            note="A level shift: the mean error moved by so much. A variance change: errors are so many "
            "times as large. Coverage lost: so many points fewer labels lie within their interval than was "
            "promised. It is told as soon as a monitor can tell; pages of a fit and of predictions look "
            "back, wait until they are sure, and name a later row."
            + (f" The latest {_LISTED} of {len(lines):,}." if len(lines) > _LISTED else ""),
        )
    _sections.add_course(report, trace, f"{len(panel):,} rows, with what was noticed marked", events=events)
    chart = trace_charts.coverage(trace)
    if chart is not None:
        report.add_chart(
            "Coverage over time",
            chart,
            f"Share of labels within their {trace_charts.BAND}, of the rows just before each.",
        )
    _sections.add_experts(report, model.fitted_, trace, resume)
    add_understood(report, panel, leak=model.fitted_.training.leak, guessed=guessed)
    _sections.add_card(report, model)
    return report
