"""How a table is read for a fitted model: as its training rows were, unless told otherwise."""

from collections.abc import Collection
from dataclasses import replace

from varnn.data.categories import source_columns
from varnn.data.roles import NONE
from varnn.data.tables import Reading
from varnn.model.fitted import Fitted


def as_fitted(reading: Reading, columns: Collection[str], fitted: Fitted) -> Reading:
    """Read as the rows of a model were read, where nothing else is said and the table has the columns."""
    before = fitted.training.reading
    reading = reading.as_before(before)
    time = reading.time or fitted.time_name
    series = reading.series or fitted.series_name or before.get("series")
    there = all(one in columns for one in replace(reading, time=time).times_in(columns))
    return replace(
        reading,
        inputs=source_columns(fitted.input_names, fitted.categories),
        categories=fitted.categories,
        time=time if there else reading.time,
        series=series if series in (*columns, NONE) else reading.series,
    )
