"""A table in, predictions as a table of the same kind out: pandas, polars and pyarrow alike.

What is no table yet comes back as the one it was computed to: a LazyFrame as a DataFrame, a DuckDB relation
or an Arrow stream as a pyarrow table.

``predict`` gives arrays, as scikit-learn's contract has it: a Series that came back instead would align
itself by index in the middle of a cross-validation or a pipeline. A table is another matter: it has its
own names for time and series, and those who bring one want one back. Hence a way of its own, in which
everything is taken and given by name.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from varnn._types import FloatArray
from varnn.data.panel import from_columns
from varnn.errors import DataError
from varnn.estimator._tables import held, reading_for
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

    from varnn.data.frames import read_frame
    from varnn.data.long_frames import as_long
    from varnn.data.tables import collected

    fitted, rows = model.fitted_, held(frame)
    table = collected(rows)
    target = fitted.target_name if fitted.target_name in table.columns else None
    reading = reading_for(fitted, table.columns, target=target, time=time, series=series)
    columns, reading = read_frame(rows, as_long(reading, table.columns))
    read = {*reading.times_in(columns), reading.series, target}
    panel = from_columns(columns, reading).logged()
    found = _columns(model.predict(panel, interval=interval, resume=resume), interval)
    kept = [one for one in table.columns if one in read]  # what is the index stays there
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
