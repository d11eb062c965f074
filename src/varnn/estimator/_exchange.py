"""What the estimator exchanges with other tools: tables of any kind, and ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from varnn.data.files import write_atomically
from varnn.estimator import _frames
from varnn.estimator._settings import plain_settings
from varnn.model.fitted import Fitted
from varnn.persistence.card import card
from varnn.persistence.onnx.step import step

if TYPE_CHECKING:
    import onnx


class ExchangeMixin:
    """What :class:`varnn.VARNNRegressor` gives in the form that another tool wants."""

    fitted_: Fitted
    get_params: Callable[..., dict[str, Any]]  # the estimator's own
    predict: Callable[..., Any]

    def predict_frame(
        self,
        frame: _frames.Frame,
        *,
        time: str | Sequence[str] | None = None,
        series: str | None = None,
        interval: float | Sequence[float] | None = None,
    ) -> _frames.Frame:
        """Predict every row of a table, and give a table of the same kind: pandas, polars or pyarrow.

        ``predict`` gives arrays, as scikit-learn's contract has it; here all is taken and given by name.

        Parameters
        ----------
        frame
            A table with the model's inputs by name; a lazy one is collected. With its target too, each row
            is predicted from the labels before it; without, the rows are taken to follow the training rows,
            in closed loop.
        time, series
            Columns with the time and the series of each row; None are those the model was fitted with,
            if the table has them.
        interval
            Level, or levels, of intervals, as in ``predict``.

        Returns
        -------
        table
            The rows of ``frame`` in their order, and with its index if it has one. Columns are its time,
            series and target, then ``prediction``, and for a level such as 0.9 ``lower_90`` and
            ``upper_90``.

        Examples
        --------
        >>> import polars
        >>> from varnn import Panel, VARNNRegressor
        >>> house = polars.DataFrame({"heat": range(60), "load": [t % 7 for t in range(60)]})
        >>> model = VARNNRegressor(epochs=1, hidden_size=4).fit(Panel.from_frame(house, target="load"))
        >>> model.predict_frame(house, interval=0.9).columns
        ['load', 'prediction', 'lower_90', 'upper_90']
        """
        check_is_fitted(self, "fitted_")
        return _frames.predict_frame(self, frame, time=time, series=series, interval=interval)

    def to_onnx(self, path: str | Path | None = None) -> onnx.ModelProto:
        """Give one step of a stream as an ONNX model, and write it to a file if a path is given.

        Its inputs are x (n, D), the labels ``y_previous`` (n,) of the rows before (NaN: missing, or none
        yet), ``time`` (n,) in seconds since 1970 if the model sees the clock, and states, which begin at
        zero. Its outputs are ``prediction`` (n,) and the next states. Predictions are those of a stream;
        there are no intervals. Models with ``peers=True`` are refused.

        Examples
        --------
        >>> import numpy as np
        >>> from varnn import VARNNRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = VARNNRegressor.paper("ARM+AM", epochs=1, hidden_size=4).fit(X, X[:, 0])
        >>> [one.name for one in model.to_onnx().graph.input]
        ['x', 'y_previous', 'memory', 'expected', 'activation']
        """
        check_is_fitted(self, "fitted_")
        found = step(self.fitted_, card(self.fitted_, plain_settings(self.get_params(deep=False))))
        if path is not None:
            write_atomically(path, found.SerializeToString())
        return found
