"""Rows of a table -> the fields of a panel: series together, in the order of time, every number checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varnn.data._notes import Note
from varnn.data.categories import Texts
from varnn.data.finite import refuse_unusable
from varnn.data.grouping import Coded
from varnn.data.order import Duplicates, one_each, refuse_unordered, reorder, time_order
from varnn.errors import ConfigError, DataError


def grouped(
    values: dict[str, Any],
    *,
    series: Coded | None,
    input_names: tuple[str, ...],
    target_name: str,
    ignored: tuple[str, ...] = (),
    notes: Sequence[Note] = (),
    texts: Mapping[str, tuple[str, ...]] | None = None,
    sort: bool = False,
    duplicates: Duplicates = "error",
) -> dict[str, Any]:
    """Bring the rows of each series together, in the order in which the series first appear.

    Inputs, target and time (or None) are taken out of ``values`` one by one, so that few are held twice.
    """
    n_rows = len(values["target"])
    if n_rows == 0:
        raise DataError("a panel needs at least one row; the data are empty (0 samples).")
    if len(input_names) == values["inputs"].shape[1]:  # otherwise Panel itself complains
        refuse_unusable(values["inputs"], input_names)
    refuse_unusable(values["target"][:, None], (target_name,))
    for role, one in (("series", None if series is None else series.codes), ("time", values["time"])):
        if one is not None and one.shape != (n_rows,):
            raise DataError(
                f"`{role}` must hold one value per row, shape ({n_rows},); it has shape {one.shape}."
            )
    series = Coded(("0",), np.zeros(n_rows, np.int8)) if series is None else series
    starts, order = series.grouping()
    starts = starts.astype(np.int64)
    if np.any(series.codes[1:] < series.codes[:-1]):
        reorder(values, order)
    said: list[Note] = []
    if values["time"] is not None:
        if sort and (by_time := time_order(values["time"], starts)) is not None:
            reorder(values, by_time)
            order = order[by_time]
            said.append(Note("rows are put in the order of time"))
        starts, order, dropped = one_each(values, starts, order, duplicates)
        if dropped:
            said.append(Note(f"{dropped:,} rows repeat a time: the {duplicates} of each is kept"))
        refuse_unordered(values["time"], starts, series.names, order)
    elif sort or duplicates != "error":
        raise ConfigError(
            "sort and duplicates go by the time of rows, which have none. Name the `time` column."
        )
    inputs, target, time = (values.pop(name) for name in ("inputs", "target", "time"))
    return {
        "inputs": inputs,
        "target": target,
        "starts": starts,
        "ids": series.names,
        "input_names": input_names,
        "target_name": target_name,
        "time": time,
        "rows": order,
        "ignored": ignored,
        "notes": (*notes, *said),
        "texts": Texts(dict(texts), values["codes"]) if texts else None,
    }
