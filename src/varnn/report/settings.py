"""A fitted model -> what it was told, and what it chose: settings that are not the default, and the rest."""

from typing import Any

from varnn.estimator.details import flattened
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.fitted import Fitted
from varnn.report.page import Report


def changed_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Those settings of an estimator that are not the default, its details among them.

    Parameters
    ----------
    settings : dict
        As ``get_params(deep=False)`` gives them.

    Examples
    --------
    >>> changed_settings(VARNNRegressor(window=6).get_params(deep=False))
    {'window': 6}
    """
    usual = flattened(VARNNRegressor().get_params(deep=False))
    return {name: value for name, value in flattened(settings).items() if repr(value) != repr(usual[name])}


def add_settings(report: Report, model: VARNNRegressor, title: str = "Settings") -> None:
    """Add settings that differ from the default, and what was chosen from the rows."""
    changed = changed_settings(model.get_params(deep=False))
    told = {name: _written(value) for name, value in changed.items()}
    report.add_facts(title, {**(told or {"settings": "the default, nothing changed"}), **_chosen(model)})


def _chosen(model: VARNNRegressor) -> dict[str, Any]:
    fitted: Fitted = model.fitted_
    training = fitted.training
    facts: dict[str, Any] = {
        "training rows": "not known" if training.trained_on is None else f"{training.trained_on:,}",
        "rows are predicted from": fitted.context_in_words,
    }
    if training.best_epoch:
        facts["epochs kept, by member"] = ", ".join(map(str, training.best_epoch))
    if fitted.pipeline.calendar:
        facts["sees the time of"] = ", ".join(fitted.pipeline.calendar)
    if fitted.seasons:
        facts["looks back on"] = ", ".join(fitted.seasons)
    if fitted.input_names and not fitted.pipeline.use_inputs:
        facts["inputs"] = "found to be of no use, and left out"
    if training.interrupted:
        facts["cut short"] = training.interrupted
    return facts


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
