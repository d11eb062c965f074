"""A forecaster for sktime: ``fit``, ``predict``, ``update``, intervals and in-sample rows; needs sktime.

Rows in the sample are predicted one step ahead, each from the labels before it, as ``VARNNRegressor.predict``
does; so is the first row ahead, where no further one is asked for. Rows farther ahead are forecasts of the
network that is trained for them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.data.rules import optional, whole
from varnn.errors import ConfigError, DataError, require
from varnn.estimator.packages import check_packages
from varnn.estimator.regressor import VARNNRegressor
from varnn.model.forecast.rows import coming_times

_base: Any = require("sktime.forecasting.base", extra="sktime", purpose="varnn.adapters.sktime")


class VARNNForecaster(_base.BaseForecaster):  # type: ignore[misc]  # a base that is asked for at run time
    """A VARNN as a forecaster of sktime.

    Series of a panel, and columns of a table, get a model of their own each, as sktime does it for
    forecasters of one series; ``VARNNRegressor.fit`` of a ``Panel`` fits one model to all series.

    Parameters
    ----------
    model : VARNNRegressor or None, default=None
        What to fit; None is ``VARNNRegressor()``. Its ``horizon`` and ``known_inputs`` are set by ``fit``.
    horizon : int or None, default=None
        Rows ahead that the model is trained for at least: those of an ``fh`` that is given to ``fit`` anyway.
        Rows beyond are predicted step by step, and have no intervals.

    Attributes
    ----------
    model_ : VARNNRegressor
        The fitted model.

    Notes
    -----
    ``update`` takes in rows: the next predictions start from them, with linear part, readout and the weights
    of experts as they are after them. Nothing is trained again, whatever ``update_params`` is; sktime's
    ``UpdateRefitsEvery`` does that. All columns of X are taken to be known in the future, as sktime has it.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from varnn import VARNNRegressor
    >>> from varnn.adapters.sktime import VARNNForecaster
    >>> hours = pd.period_range("2026-01-01", periods=400, freq="h")
    >>> load = pd.Series(np.sin(np.arange(400) * 2 * np.pi / 24), index=hours, name="load")
    >>> small = VARNNRegressor(hidden_size=8, ensemble=1)
    >>> forecaster = VARNNForecaster(small).fit(load[:360], fh=[1, 2, 3])
    >>> bool(np.abs(forecaster.predict() - load[360:363]).max() < 0.2)
    True
    >>> list(forecaster.predict_interval(coverage=0.8).columns)
    [('load', 0.8, 'lower'), ('load', 0.8, 'upper')]
    """

    _tags = {  # noqa: RUF012  # sktime's own form
        "authors": ["The varnn developers"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": False,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:missing_values": True,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:non_contiguous_X": False,
        "capability:update": True,
        "capability:random_state": False,
        "requires-fh-in-fit": False,
        "X-y-must-have-same-index": True,
        "enforce_index_type": None,
    }
    _config = {"remember_data": False}  # noqa: RUF012  # the rows are kept here

    def __init__(self, model: VARNNRegressor | None = None, horizon: int | None = None) -> None:
        self.model = model
        self.horizon = horizon
        self._y, self._X = None, None  # sktime's own memory, which it may be told to use
        super().__init__()

    def _fit(self, y: Any, X: Any, fh: Any) -> "VARNNForecaster":
        if wrong := optional(whole(1)).broken("horizon", self.horizon):
            raise ConfigError(wrong)
        model = VARNNRegressor() if self.model is None else self.model
        check_packages(model)
        farthest = 1 if fh is None else max(1, *self._steps(fh))
        names = [] if X is None else [str(one) for one in X.columns]
        self.model_ = type(model)(**model.get_params(deep=False))
        self.model_.set_params(horizon=max(self.horizon or 1, farthest), known_inputs=names)
        self._labels, self._inputs = y, X
        self.model_.fit(self._panel())
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> "VARNNForecaster":
        self._labels = _joined(self._labels, y)
        self._inputs = None if self._inputs is None else _joined(self._inputs, X)
        return self

    def _predict(self, fh: Any, X: Any) -> Any:
        import pandas as pd

        found, _, _ = self._predicted(fh, X, [])
        return pd.Series(found, index=self._index(fh), name=self._labels.name)

    def _predict_interval(self, fh: Any, X: Any, coverage: Sequence[float]) -> Any:
        import pandas as pd

        # An interval of coverage 0, which sktime's median is read off, is the prediction itself.
        levels = [one for one in coverage if one > 0]
        found, lower, upper = self._predicted(fh, X, levels)
        name = self._get_varnames()[0]
        columns = {}
        for level in coverage:
            place = levels.index(level) if level in levels else None
            columns[name, level, "lower"] = found if place is None else lower[:, place]
            columns[name, level, "upper"] = found if place is None else upper[:, place]
        table = pd.DataFrame(columns, index=self._index(fh))
        table.columns = pd.MultiIndex.from_tuples(columns)
        return table

    def _predicted(self, fh: Any, X: Any, levels: list[float]) -> list[FloatArray]:
        """Predictions (H,) and bounds (H, L) below and above, of the rows of a horizon."""
        steps, rows = np.array(self._steps(fh)), len(self._labels)
        if steps.min() < 1 - rows:
            raise DataError(
                f"rows in the sample reach back to step {1 - rows}; got {steps.min()}. Ask for later ones."
            )
        farthest, panel = max(0, int(steps.max())), self._panel()
        coming = self._coming(X, panel, farthest)
        if farthest == 1:
            panel = _with_next(panel, coming)
        found, begin = [], 1
        if farthest <= 1 or steps.min() <= 0:
            found, begin = [self._one_step(panel, levels)], 1 - rows
        if farthest > 1:
            inputs = coming if coming.shape[1] else None
            ahead = self.model_.forecast(panel, horizon=farthest, inputs=inputs, interval=levels or None)
            bounds = (None if one is None else one[0] for one in (ahead.lower, ahead.upper))
            found.append(_three(ahead.prediction[0], *bounds))
        return [np.concatenate(one)[steps - begin] for one in zip(*found, strict=True)]

    def _one_step(self, panel: Panel, levels: list[float]) -> list[FloatArray]:
        """Predict each row from the labels before it."""
        if not levels:
            return _three(self.model_.predict(panel, resume=False))
        return _three(*self.model_.predict(panel, interval=levels, resume=False))

    def _panel(self) -> Panel:
        """The rows so far."""
        import pandas as pd

        index, time, names = self._labels.index, None, None
        if isinstance(index, pd.PeriodIndex):
            time = index.to_timestamp().to_numpy()
        elif isinstance(index, pd.DatetimeIndex):
            time = index.tz_localize(None).to_numpy()
        inputs = None
        if self._inputs is not None:
            names = [str(one) for one in self._inputs.columns]
            inputs = self._inputs.to_numpy(dtype=np.float64, na_value=np.nan)
        labels = self._labels.to_numpy(dtype=np.float64, na_value=np.nan)
        return Panel.from_arrays(inputs, labels, time=time, input_names=names)

    def _coming(self, X: Any, panel: Panel, farthest: int) -> FloatArray:
        """Inputs of rows to come, (H, D); rows that X does not have are as the row before."""
        if not panel.n_inputs or not farthest:
            return np.empty((farthest, panel.n_inputs))
        if X is None:
            raise DataError(
                f"a model that was fitted with X needs {list(panel.input_names)[:5]} of rows to come, too. "
                "Give predict(fh, X=...)."
            )
        wanted = _base.ForecastingHorizon(np.arange(1, farthest + 1), is_relative=True)
        every = _joined(self._inputs, X)
        return np.asarray(every.ffill().reindex(self._index(wanted), method="ffill"), dtype=np.float64)

    def _steps(self, fh: Any) -> list[int]:
        """Steps of a horizon, 1 for the row after the last."""
        return [int(one) for one in fh.to_relative(self.cutoff).to_pandas()]

    def _index(self, fh: Any) -> Any:
        return fh.to_absolute_index(self.cutoff)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters that sktime's checks make forecasters with: fitted in no time."""
        quick = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1)
        return [{"model": quick}, {"model": quick, "horizon": 2}]


def _three(
    prediction: FloatArray, lower: FloatArray | None = None, upper: FloatArray | None = None
) -> list[FloatArray]:
    """Predictions (N,) and bounds (N, L), which are (N, 0) where none were asked for."""
    none = np.empty((len(prediction), 0))
    return [prediction, none if lower is None else lower, none if upper is None else upper]


def _with_next(panel: Panel, inputs: FloatArray) -> Panel:
    """A panel of one series with the row after its last, whose label is not known."""
    time = None if panel.time is None else np.concatenate([panel.time, coming_times(panel, 1)[0]])
    return Panel.from_arrays(
        np.concatenate([panel.inputs, inputs]),
        np.append(panel.target, np.nan),
        time=time,
        input_names=panel.input_names,
    )


def _joined(rows: Any, more: Any) -> Any:
    """Rows and further ones of pandas in order; where both have a row, it is that of the latter."""
    import pandas as pd

    both = pd.concat([rows, more])
    return both[~both.index.duplicated(keep="last")].sort_index()
