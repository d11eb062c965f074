"""A table in, predictions as a table of the same kind out: pandas, polars and pyarrow alike.

``predict`` gives arrays, as scikit-learn's contract has it: a Series that came back instead would align
itself by index in the middle of a cross-validation or a pipeline. A table is another matter: it has its
own names for time and series, and those who bring one want one back. Hence a way of its own, in which
everything is taken and given by name.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from varnn._types import FloatArray
from varnn.data.categories import source_columns
from varnn.data.panel import from_columns
from varnn.data.tables import Reading, collected
from varnn.errors import DataError
from varnn.model.fitted import Fitted
from varnn.model.intervals import Interval, bound_name

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Frame = TypeVar("Frame", bound="IntoDataFrame")
PREDICTION = "prediction"


class Model(Protocol):
    """What is asked of a model."""

    fitted_: Fitted

    def predict(
        self, X: Any, *, interval: float | Sequence[float] | None = None, resume: bool | None = None
    ) -> Any:
        """Predict the rows of a panel."""


def predict_frame(
    model: Model,
    frame: Frame,
    *,
    time: str | Sequence[str] | None = None,
    series: str | None = None,
    interval: float | Sequence[float] | None = None,
    resume: bool | None = None,
) -> Frame:
    """Predict every row of a table; see :meth:`varnn.VARNNRegressor.predict_frame`."""
    import narwhals as nw

    fitted = model.fitted_
    table = collected(frame)
    target, fitted_series = (
        one if one in table.columns else None for one in (fitted.target_name, fitted.series_name)
    )
    fitted_times = Reading(target=None, time=fitted.time_name).times_in(table.columns)
    if time is None and fitted_times and set(fitted_times) <= set(table.columns):
        time = fitted_times
    series = series or fitted_series
    times = [] if time is None else [time] if isinstance(time, str) else list(time)
    # Rows that repeat a time would be left out, and each row is to have its prediction.
    used = ("missing",) if time is None else ("missing", "time_format", "time_zone", "sort")
    before = {name: one for name, one in fitted.training.reading.items() if name in used}
    reading = Reading(
        target=target,
        time=time,
        series=series,
        inputs=source_columns(fitted.input_names, fitted.categories),
        categories=fitted.categories,
        **before,
    )
    panel = from_columns({name: table[name] for name in table.columns}, reading).logged()
    found = _columns(model.predict(panel, interval=interval, resume=resume), interval)
    kept = list(dict.fromkeys(one for one in (*times, series, target) if one is not None))
    taken = [one for one in kept if one in found]
    if taken:
        raise DataError(
            f"the predictions come in columns {list(found)}; rename the table's own {taken[0]!r}."
        )
    added = [
        nw.new_series(name, panel.in_caller_order(values), nw.Float64, backend=table.implementation)
        for name, values in found.items()
    ]
    given: Frame = table.with_columns(*added).select(*kept, *found).to_native()
    return given


def _columns(found: Any, interval: float | Sequence[float] | None) -> dict[str, FloatArray]:
    """Name predictions and bounds: lower_90 and upper_90 are those of the level 0.9."""
    if not isinstance(found, Interval):
        return {PREDICTION: found}
    columns = {PREDICTION: found.prediction}
    for place, level in enumerate(np.atleast_1d(np.asarray(interval))):
        for side, bounds in (("lower", found.lower), ("upper", found.upper)):
            columns[bound_name(side, level)] = bounds.reshape(len(bounds), -1)[:, place]
    return columns
