"""A fitted model and the rows it was fitted to -> the page of a fit."""

from collections.abc import Callable, Collection
from importlib.util import find_spec

from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.monitoring.failures import failures
from varnn.monitoring.trace import PredictionTrace
from varnn.report import _sections
from varnn.report._failures import add_failures
from varnn.report._held_out import held_out
from varnn.report._importance import REPEATS, measure_and_add
from varnn.report._learning import add_learning_curve
from varnn.report.page import Report
from varnn.report.settings import add_settings
from varnn.report.understood import add_understood


def fit_page(
    model: VARNNRegressor,
    panel: Panel,
    *,
    rows: Panel | None = None,
    title: str = "",
    guessed: Collection[str] = (),
    repeats: int = REPEATS,
    on_step: Callable[[int, int], None] | None = None,
) -> Report:
    """Make the page of a fit: what was understood, how good it is on rows held out, which inputs matter.

    Parameters
    ----------
    model : VARNNRegressor
        Fitted, best in this process: after loading it from a file, the rows that were held out are rows that
        it was trained on, and the page says so.
    panel : Panel
        What was given to ``fit``.
    rows : Panel or None, default=None
        Rows that it was not trained on, such as those given as ``validation``; None takes those that ``fit``
        held out to choose on, and the model as it was before it was trained again on all rows.
    title : str, default=""
        What to call the data; the panel's own name if not given.
    guessed : collection of str, default=()
        Which of "time" and "series" were guessed.
    repeats : int, default=3
        How often each input is rolled to see whether it matters; 0 leaves that out.
    on_step : callable or None, default=None
        Called while importance is measured, with what is done and how much there is.

    Returns
    -------
    Report
        To be written: ``fit_page(...).write("fit.html")``.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> panel = datasets.load("synthetic", rows=400)
    >>> model = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1).fit(panel)
    >>> page = fit_page(model, panel, repeats=1)
    >>> [title for title, _ in page.parts][:3]
    ['What was understood', 'Truth and predictions', 'Which inputs matter']
    """
    judged = held_out(model, panel, rows)
    shown, few = _sections.latest(judged.panel)
    resume = judged.resume if not few else False
    trace = PredictionTrace.of(judged.fitted_, shown, memory=False, resume=resume)
    diagnosis = _sections.diagnosed(trace)
    name = title or panel.name or panel.target_name
    where = few or judged.rows
    found = failures(trace.panel, trace.prediction, covered=trace.covered)
    report = Report(
        f"{name}: fit of {panel.target_name}",
        f"Measured on {judged.rows}{f', {few}' if few else ''}. {judged.words}",
        _sections.verdict(
            found, f"{found.overall.rows:,} {'held-out ' if judged.unseen else 'training '}rows"
        ),
    )
    add_understood(report, panel, leak=model.fitted_.training.leak, guessed=guessed)
    events = () if diagnosis is None else diagnosis.events
    _sections.add_course(report, trace, where, events=events, failures=found, looking_back=True)
    measure_and_add(report, judged, judged.panel, judged.rows, repeats=repeats, on_step=on_step)
    add_failures(report, found, trace.panel)
    _sections.add_coverage(report, trace)
    _sections.add_few_errors(report, model)
    _sections.add_experts(report, judged.fitted_, trace, resume)
    _sections.add_left_over(report, diagnosis)
    if find_spec("matplotlib"):
        add_learning_curve(report, model)
    add_settings(report, model)
    _sections.add_card(report, model)
    return report
