"""The estimator's look ahead: from the end of each series to its next rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from varnn.data.panel import Panel
from varnn.data.rules import optional, whole
from varnn.errors import ConfigError, DataError, check_choice
from varnn.estimator.input import RowSeries
from varnn.model.fitted import Fitted, LastRows, last_rows_of
from varnn.model.forecast import Forecast, Forecaster
from varnn.model.forecast.forecaster import future_numbers
from varnn.model.forecast.rows import coming_times
from varnn.model.linear import LABEL_LAGS
from varnn.streaming.closed_loop import continued


class ForecastMixin:
    """What :class:`varnn.VARNNRegressor` can say of rows that are several steps away."""

    fitted_: Fitted
    forecaster_: Forecaster | None
    _panel: Callable[..., Panel]  # the estimator's own

    def forecast(
        self,
        X: Any = None,
        y: Any = None,
        *,
        series: RowSeries = None,
        horizon: int | None = None,
        inputs: Any = None,
        interval: float | Sequence[float] | None = None,
        method: Literal["auto", "direct", "iterate"] = "auto",
    ) -> Forecast:
        """Forecast the rows after the end of each series.

        Parameters
        ----------
        X, y, series
            The rows so far: a :class:`Panel`, or inputs and labels. None goes on after the rows that
            were given to ``fit``.
        horizon
            Rows ahead; None is the ``horizon`` the model was fitted with.
        inputs
            Coming inputs: a panel with the same series, or an array (H, inputs) for one series and
            (S, H, inputs) for several. With "direct", of the inputs in ``known_inputs``; with
            "iterate" of all inputs, which stay as they were last if none are given.
        interval
            Level, or levels, of intervals to give with the forecasts; with "direct" only.
        method
            "direct" asks the network trained for it; "iterate" predicts row after row with the
            one-step model, taking each prediction as the label. "auto" is "direct" where it can be.

        Returns
        -------
        Forecast
            With ``ids``, ``time``, ``prediction`` (S, H), ``lower`` and ``upper``.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import Panel, VARNNRegressor
        >>> panel = Panel.from_arrays(None, np.sin(np.arange(400) / 4))
        >>> model = VARNNRegressor(horizon=6, hidden_size=8, ensemble=1).fit(panel)
        >>> ahead = model.forecast(horizon=4)
        >>> ahead.prediction.shape
        (1, 4)
        >>> bool(np.abs(ahead.prediction - np.sin(np.arange(400, 404) / 4)).max() < 0.1)
        True
        """
        check_is_fitted(self, "fitted_")
        check_choice("method", method, ("auto", "direct", "iterate"))
        forecaster = self.forecaster_
        panel = self._ends() if X is None else self._panel(X, y, series, fitting=False)
        if wrong := optional(whole(1)).broken("horizon", horizon):
            raise ConfigError(wrong)
        steps = horizon or (forecaster.horizon if forecaster is not None else 1)
        if method == "auto":
            method = "direct" if forecaster is not None and steps <= forecaster.horizon else "iterate"
        if method == "iterate":
            if interval is not None:
                raise ConfigError(
                    "method='iterate' gives no intervals: errors of errors are not known to it. "
                    "Fit with horizon=..., and use method='direct'."
                )
            return self._iterated(panel, steps, inputs)
        if forecaster is None:
            raise ConfigError(
                "this model was fitted for one row ahead. Fit with horizon=..., or use method='iterate'."
            )
        return forecaster.forecast(
            self.fitted_.matched(panel), horizon=steps, inputs=inputs, interval=interval
        )

    def _ends(self) -> Panel:
        """Give the last rows of each training series."""
        last_rows = self.fitted_.last_rows
        if not last_rows:
            raise DataError("this model keeps no training rows to go on from: give the rows so far.")
        times = [tail.time for tail in last_rows.values()]
        return Panel(
            inputs=np.concatenate([tail.inputs for tail in last_rows.values()]),
            target=np.concatenate([tail.target for tail in last_rows.values()]),
            starts=np.cumsum([0, *(len(tail.target) for tail in last_rows.values())]),
            ids=tuple(last_rows),
            input_names=self.fitted_.input_names,
            target_name=self.fitted_.target_name,
            time=None if any(one is None for one in times) else np.concatenate([*times]),
        )

    def _iterated(self, panel: Panel, steps: int, inputs: Any) -> Forecast:
        """Predict row after row, each prediction taken as the label."""
        fitted = self.fitted_
        if fitted.pipeline.peers:
            raise ConfigError(
                "a model with peers=True predicts all series together, which method='iterate' does not do. "
                "Fit with horizon=..., and use method='direct'."
            )
        panel = fitted.matched(panel)
        rows = fitted.window + max(LABEL_LAGS) + 1
        last_rows = last_rows_of(panel, fitted.pipeline, rows)
        time = None if panel.time is None else coming_times(panel, steps)
        coming = _coming(panel, last_rows, steps, inputs)
        predictions = [
            continued(fitted, tail, coming[index], None if time is None else time[index])
            for index, tail in enumerate(last_rows.values())
        ]
        return Forecast(ids=panel.ids, time=time, prediction=np.array(predictions))


def _coming(panel: Panel, last_rows: dict[str, LastRows], steps: int, inputs: Any) -> Any:
    """Give the inputs of coming rows, (S, H, D): those given, or the last ones held."""
    shape = (panel.n_series, steps, panel.n_inputs)
    if inputs is None:
        last = np.array([tail.inputs[-1] for tail in last_rows.values()])
        return np.repeat(last[:, None, :], steps, axis=1)
    if isinstance(inputs, Panel):
        inputs = [
            inputs.inputs[first : first + steps]
            for first in (inputs.starts[inputs.ids.index(name)] for name in panel.ids)
        ]
    values = future_numbers(inputs)
    values = values[None] if values.ndim == 2 else values
    if values.shape != shape:
        raise DataError(
            f"coming inputs must have shape {shape}: series, rows, inputs; they have {values.shape}."
        )
    return values
