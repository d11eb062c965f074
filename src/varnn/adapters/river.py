"""``learn_one`` and ``predict_one`` over a stream, for river's evaluations and pipelines; needs river.

An x comes as a dict by name, whatever keys it has: what a model does not know is left out, what it lacks is
a gap. ``predict_one`` looks and changes nothing; ``learn_one`` closes the row.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import date, datetime
from typing import Any

from varnn.data.categories import source_columns
from varnn.data.panel import Panel
from varnn.data.rules import whole
from varnn.errors import ConfigError, DataError, require
from varnn.estimator.packages import check_packages
from varnn.estimator.regressor import VARNNRegressor
from varnn.streaming.resume import Resume
from varnn.streaming.stream import Stream

base: Any = require("river.base", extra="river", purpose="varnn.adapters.river")

_SMALLEST = 20  # rows: a model of fewer means nothing


class OnlineVARNN(base.Regressor):  # type: ignore[misc]  # a base that is asked for at run time
    """A VARNN as a regressor of river: it predicts from the labels so far, and learns from each.

    With a fitted model it predicts from the first row on. Without one it collects ``fit_after`` rows, and
    predicts the last label meanwhile; then it is fitted to them, once, which takes seconds, lets them go,
    and goes on after them. From there on linear part, readout and the weights of experts follow the labels.

    Parameters
    ----------
    model : VARNNRegressor or None, default=None
        Fitted, or to be fitted; None is ``VARNNRegressor()``. It is left as it is.
    fit_after : int, default=500
        Rows to fit a model to that is not fitted.
    time : str or None, default=None
        Key of x that holds the time of the row, rather than an input.
    resume : bool or str, default=False
        Whether the rows follow those that a fitted model was trained on; see :meth:`VARNNRegressor.stream`.
    confidence_level : float, default=0.9
        Of the intervals of ``predict_one(x, with_interval=True)``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from varnn import VARNNRegressor
    >>> small = VARNNRegressor(epochs=1, hidden_size=4, ensemble=1)
    >>> model = OnlineVARNN(small, fit_after=200)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval().take(400), model, metrics.MAE())
    MAE: 0...
    """

    def __init__(
        self,
        model: VARNNRegressor | None = None,
        fit_after: int = 500,
        time: str | None = None,
        resume: Resume = False,
        confidence_level: float = 0.9,
    ) -> None:
        if wrong := whole(_SMALLEST).broken("fit_after", fit_after):
            raise ConfigError(wrong)
        self.model = model
        self.fit_after = fit_after
        self.time = time
        self.resume = resume
        self.confidence_level = confidence_level
        self._rows: list[tuple[dict[str, Any], Any, Any]] = []  # inputs, time and label, until it is fitted
        self._last = 0.0  # label: what is predicted until then
        self._stream: Stream | None = None
        if model is not None and hasattr(model, "fitted_"):
            self._stream = model.stream(resume=resume)
            _ = self._stream.model.fingerprint  # kept once known: pickles from before and after would differ
        else:  # asked for now, not when the rows are there
            check_packages(model or VARNNRegressor())
            _arrow()

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Take in a row and its label; None or NaN is a missing one, which holds the memory."""
        inputs, when = self._parted(x)
        if self._stream is not None:
            self._stream.predict(self._by_name(inputs), time=when)
            self._stream.observe(y)
            return
        label = float("nan") if y is None else float(y)
        self._rows.append((inputs, when, label))
        self._last = self._last if label != label else label
        if len(self._rows) >= self.fit_after:
            self._fit()

    def predict_one(self, x: Mapping[Any, Any], *, with_interval: bool = False) -> Any:
        """Predict the label of x from what was learnt so far; changes nothing.

        Parameters
        ----------
        x : mapping
            Inputs by name; texts only where the model was fitted with some.
        with_interval : bool, default=False
            Whether to give a `river.conf.Interval` instead, as river's own intervals do. Until a model is
            fitted it is without bounds.
        """
        inputs, when = self._parted(x)
        if self._stream is None:
            return _interval(-float("inf"), float("inf")) if with_interval else self._last
        asked = self.confidence_level if with_interval else None
        found = self._stream.peek(self._by_name(inputs), time=when, interval=asked)
        return _interval(float(found.lower), float(found.upper)) if with_interval else found

    def _parted(self, x: Mapping[Any, Any]) -> tuple[dict[str, Any], Any]:
        """Inputs of a row by name, in a dict of our own, and its time."""
        inputs = {str(name): value for name, value in x.items()}
        when = inputs.pop(self.time, None) if self.time is not None else None
        for name, value in inputs.items():
            if isinstance(value, date | datetime):
                raise DataError(
                    f"inputs must be numbers; {name!r} of x is a time. Say so: OnlineVARNN(time={name!r})."
                )
        return {name: float(one) if isinstance(one, bool) else one for name, one in inputs.items()}, when

    def _by_name(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the model knows of a row; what it lacks is missing."""
        stream = self._stream
        if stream is None:
            return dict(inputs)
        names = source_columns(stream.model.input_names, stream.model.categories)
        return {name: inputs.get(name) for name in names}

    def _fit(self) -> None:
        """Fit a model to the rows collected, and go on after them."""
        rows, self._rows = self._rows, []
        names = sorted({name for inputs, _, _ in rows for name in inputs})  # whatever order they came in
        columns: dict[str, list[Any]] = {name: [row[0].get(name) for row in rows] for name in names}
        target = "y" if "y" not in columns else "the label of y"
        columns[target] = [label for _, _, label in rows]
        if self.time is not None:
            columns[self.time] = [when for _, when, _ in rows]
        table = require("pyarrow", extra="files", purpose="fitting to rows that come one by one").table(
            columns
        )
        panel = Panel.from_frame(table, target=target, time=self.time, inputs=names)
        fitted = deepcopy(self.model) if self.model is not None else VARNNRegressor()
        self._stream = fitted.fit(panel).stream(resume=True)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """River's checks take a model that is fitted within their 200 rows, in no time."""
        yield {"model": VARNNRegressor(epochs=1, hidden_size=4, ensemble=1), "fit_after": 60}


def _arrow() -> Any:
    return require("pyarrow", extra="files", purpose="fitting to rows that come one by one")


def _interval(lower: float, upper: float) -> Any:
    from river import conf

    return conf.Interval(lower, upper)
