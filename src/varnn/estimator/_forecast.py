"""From the end of each series to its next rows: by the forecaster, or row after row."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from varnn.data.panel import Panel
from varnn.data.rules import optional, whole
from varnn.errors import ConfigError, check_choice
from varnn.estimator._tables import coming_rows
from varnn.model.fitted import Fitted, last_rows_of
from varnn.model.floor import lifted_at_end
from varnn.model.forecast import Forecast, Forecaster
from varnn.model.forecast.rows import coming_inputs, coming_times
from varnn.streaming.closed_loop import continued

Method = Literal["auto", "direct", "iterate"]
logger = logging.getLogger(__name__)


def forecast(
    fitted: Fitted,
    forecaster: Forecaster | None,
    panel: Panel,
    *,
    horizon: int | None,
    inputs: Any,
    interval: float | Sequence[float] | None,
    method: Method,
) -> Forecast:
    """Forecast the rows after the end of each series; see :meth:`varnn.VARNNRegressor.forecast`."""
    check_choice("method", method, get_args(Method))
    if wrong := optional(whole(1)).broken("horizon", horizon):
        raise ConfigError(wrong)
    inputs = coming_rows(fitted, () if forecaster is None else forecaster.known, inputs)
    steps = horizon or (forecaster.horizon if forecaster is not None else 1)
    if method == "auto":
        method = "direct" if forecaster is not None and steps <= forecaster.horizon else "iterate"
        if method == "iterate" and forecaster is not None and interval is not None:
            raise ConfigError(
                f"intervals reach as far as a model was fitted for: it was fitted for {forecaster.horizon} "
                f"rows ahead, asked for {steps}. Fit with horizon={steps}, ask for fewer rows, or for no "
                "interval."
            )
    if method == "iterate":
        if interval is not None:
            raise ConfigError(
                "method='iterate' gives no intervals: errors of errors are not known to it. "
                "Fit with horizon=..., and use method='direct'."
            )
        return _iterated(fitted, panel, steps, inputs)
    if forecaster is None:
        raise ConfigError(
            "this model was fitted for one row ahead. Fit with horizon=..., or use method='iterate'."
        )
    return forecaster.forecast(fitted.matched(panel), horizon=steps, inputs=inputs, interval=interval)


def _iterated(fitted: Fitted, panel: Panel, steps: int, inputs: Any) -> Forecast:
    """Predict row after row, each prediction taken as the label."""
    panel = fitted.matched(panel)
    last_rows = last_rows_of(panel, fitted.pipeline, fitted.reach)
    time = None if panel.time is None else coming_times(panel, steps)
    if inputs is None:  # they stay as they were last
        if steps > 1 and panel.n_inputs:
            logger.warning(
                "coming inputs are not given, and taken to stay as they were last: give inputs=..., or fit "
                "with horizon=%d, which learns to do without.",
                steps,
            )
        last = np.array([one.inputs[-1] for one in last_rows.values()])
        coming = np.repeat(last[:, None, :], steps, axis=1)
    else:
        coming = coming_inputs(inputs, panel.ids, panel.input_names, steps)
    free = lifted_at_end(fitted.pipeline.plausible(panel))
    predictions = [
        continued(
            replace(fitted, positive=fitted.positive and not free[index]),  # of labels before those kept, too
            rows,
            coming[index],
            None if time is None else time[index],
        )
        for index, rows in enumerate(last_rows.values())
    ]
    return Forecast.after(panel, np.array(predictions), time)
