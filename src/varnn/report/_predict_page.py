"""A fitted model and other rows -> the page of its predictions."""

from collections.abc import Callable, Collection

import numpy as np

from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.warm_start import rows_kept
from varnn.monitoring.failures import failures
from varnn.monitoring.trace import PredictionTrace
from varnn.report import _sections
from varnn.report._failures import add_failures
from varnn.report._importance import measure_and_add
from varnn.report.chart import ChartSeries, TimeChart
from varnn.report.page import Report
from varnn.report.trace_charts import MOST_SERIES
from varnn.report.understood import add_understood
from varnn.streaming.closed_loop import continue_from_training, without_labels

_BEFORE = 200  # training rows drawn before a closed loop


def predict_page(
    model: VARNNRegressor,
    panel: Panel,
    *,
    resume: bool | None = None,
    title: str = "",
    guessed: Collection[str] = (),
    repeats: int = 0,
    on_step: Callable[[int, int], None] | None = None,
) -> Report:
    """Make the page of predictions: truth, prediction and interval, coverage so far, where the model fails.

    Parameters
    ----------
    model : VARNNRegressor
        Fitted.
    panel : Panel
        Rows to predict. Without a label, they are taken to follow the training rows, in closed loop.
    resume : bool or None, default=None
        Whether the rows follow the training rows, as in ``predict``.
    title : str, default=""
        What to call the data; the panel's own name if not given.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.
    repeats : int, default=0
        How often each input is rolled to see whether it matters; 0 leaves that out.
    on_step : callable or None, default=None
        Called while importance is measured, with what is done and how much there is.

    Returns
    -------
    Report
        To be written: ``predict_page(...).write("predictions.html")``.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> panel = datasets.load("synthetic", rows=400)
    >>> model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel.between(0, 300))
    >>> page = predict_page(model, panel.between(300, 400))
    >>> [title for title, _ in page.parts][1:3]
    ['Truth and predictions', 'Where and when it fails']
    """
    name = title or panel.name or model.fitted_.target_name
    panel = model.fitted_.matched(panel)
    if without_labels(panel):
        return _closed_loop(model, panel, name, guessed)
    shown, few = _sections.latest(panel)
    resume = resume if not few else False
    trace = PredictionTrace.of(model.fitted_, shown, memory=False, resume=resume)
    diagnosis = _sections.diagnosed(trace)
    found = failures(trace.panel, trace.prediction, covered=trace.covered)
    where = few or f"{len(panel):,} rows"
    report = Report(
        f"{name}: predictions of {model.fitted_.target_name}",
        f"{where[0].upper()}{where[1:]}, each predicted one step ahead, from inputs and labels before it.",
        _sections.verdict(found, f"{found.overall.rows:,} rows") + _sections.trained_on(model.fitted_, panel),
    )
    add_understood(report, panel, leak=model.fitted_.training.leak, guessed=guessed)
    events = () if diagnosis is None else diagnosis.events
    _sections.add_course(report, trace, where, events=events, failures=found, looking_back=True)
    add_failures(report, found, trace.panel)
    _sections.add_coverage(report, trace)
    measure_and_add(report, model, shown, "these rows", repeats=repeats, on_step=on_step)
    _sections.add_experts(report, model.fitted_, trace, resume)
    _sections.add_left_over(report, diagnosis)
    _sections.add_card(report, model)
    return report


def _closed_loop(model: VARNNRegressor, panel: Panel, name: str, guessed: Collection[str]) -> Report:
    """Make the page of rows without a label: each prediction is taken as the label of the rows after it."""
    predicted = continue_from_training(model.fitted_, panel)
    report = Report(
        f"{name}: predictions of {model.fitted_.target_name}",
        f"{len(panel):,} rows without labels, taken to follow the training rows.",
        "No row has a label, so each prediction is taken as the label of the rows after it: the further they "
        "go, the less they know. How good they are cannot be told from these rows.",
    )
    add_understood(report, panel, guessed=guessed)
    before = rows_kept(model.fitted_)
    timed = (
        panel.time is not None
        and before.time is not None
        and panel.time.dtype.kind == before.time.dtype.kind == "M"
    )
    shown = []
    for series in range(min(panel.n_series, MOST_SERIES)):
        rows = slice(int(panel.starts[series]), int(panel.starts[series + 1]))
        known = before.ids.index(panel.ids[series]) if panel.ids[series] in before.ids else 0
        end = int(before.starts[known + 1])
        past = slice(max(int(before.starts[known]), end - _BEFORE), end)
        length, ahead = past.stop - past.start, rows.stop - rows.start
        places = (
            np.concatenate([before.time[past], panel.time[rows]])
            if timed and before.time is not None and panel.time is not None
            else np.arange(-length, ahead)
        )
        shown.append(
            ChartSeries(
                places=places,
                truth=np.concatenate([before.target[past], np.full(ahead, np.nan)]),
                lines={"prediction": np.concatenate([np.full(length, np.nan), predicted[rows]])},
                name=panel.ids[series],
            )
        )
    report.add_chart(
        "The last training rows, and predictions after them",
        TimeChart(shown, unit=model.fitted_.target_name),
        "Labels of the last training rows, and predictions in closed loop after them.",
    )
    _sections.add_card(report, model)
    return report
