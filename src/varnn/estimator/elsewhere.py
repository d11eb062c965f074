"""A fit for those who make many: settings as plain values, code compiled ahead, members trained elsewhere."""

from typing import TYPE_CHECKING, Any

from varnn.data.panel import Panel
from varnn.estimator._fit import fit_rows
from varnn.estimator._settings import check_settings, plain_settings
from varnn.estimator._settings import wrong_value as wrong_value  # for those who search among settings
from varnn.estimator.contract import unfitted
from varnn.estimator.input import take_names
from varnn.estimator.regressor import VARNNRegressor

if TYPE_CHECKING:  # importing it would import torch
    from varnn.network.training import Trainer


def checked_settings(regressor: VARNNRegressor) -> dict[str, Any]:
    """Settings as values that survive JSON; those that no model has are refused.

    Examples
    --------
    >>> checked_settings(VARNNRegressor(window=5))["window"]
    5
    """
    settings = regressor.get_params(deep=False)
    check_settings(settings)
    return plain_settings(settings)


def fitted_by(trainer: "Trainer | None", regressor: VARNNRegressor, panel: Panel) -> VARNNRegressor:
    """What :meth:`VARNNRegressor.fit` gives, of a copy whose members another than `train_members` trains."""
    model, draft = unfitted(regressor), unfitted(regressor)
    how: dict[str, Any] = {"validation": None, "on_epoch": None, "stop": None, "trainer": trainer}
    model.fitted_, model.forecaster_ = fit_rows(draft, panel, None, None, **how)
    model.history_ = model.fitted_.training.history
    take_names(model, draft)
    found: VARNNRegressor = model
    return found
