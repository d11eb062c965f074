"""A panel that follows the training rows -> the same, begun with the last rows that the model keeps.

A series that begins empty is predicted from nothing at first. Where it goes on after the training rows, the
lags, seasons and windows of its first rows reach back into the rows that the model keeps of the same series.
Nothing is learnt from those a second time: they are what predictions are made from, and no more.
"""

from dataclasses import replace

import numpy as np

from varnn._types import BoolArray
from varnn.data.context import preceded
from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.model.fitted import Fitted


def rows_kept(fitted: Fitted) -> Panel:
    """Last rows of each training series."""
    last_rows = fitted.last_rows
    if not last_rows:
        raise DataError("this model keeps no training rows to go on from: give the rows so far.")
    times = [one.time for one in last_rows.values()]
    return Panel(
        inputs=np.concatenate([one.inputs for one in last_rows.values()]),
        target=np.concatenate([one.target for one in last_rows.values()]),
        starts=np.cumsum([0, *(len(one.target) for one in last_rows.values())]),
        ids=tuple(last_rows),
        input_names=fitted.input_names,
        target_name=fitted.target_name,
        time=None if any(one is None for one in times) else np.concatenate([*times]),
    )


def begun(fitted: Fitted, panel: Panel, resume: bool | None) -> tuple[Panel, BoolArray]:
    """Put the rows that a model keeps before those that follow them.

    Parameters
    ----------
    fitted : Fitted
        The model.
    panel : Panel
        Rows to predict, with its inputs.
    resume : bool or None
        Whether they follow the training rows; None goes by their times, where both have some.

    Returns
    -------
    panel, own
        The rows together, and which of them are the panel's own: (N,).
    """
    own = np.ones(len(panel), dtype=bool)
    if resume is False or (resume is None and panel.time is None) or not fitted.last_rows:
        if resume and not fitted.last_rows:
            rows_kept(fitted)  # says that there are none
        return panel, own
    earlier = rows_kept(fitted)
    if earlier.n_series == 1 == panel.n_series:  # a series alone has no name to go by
        earlier = replace(earlier, ids=panel.ids)
    if resume is None and (earlier.time is None or not _comparable(panel, earlier)):
        return panel, own
    if resume and (panel.time is None) != (earlier.time is None):
        earlier = replace(earlier, time=None if panel.time is None else earlier.time)
    numbered = replace(earlier, rows=np.full(len(earlier), -2))  # rows of another table
    found, own = preceded(panel, numbered, fitted.reach, told=bool(resume))
    if resume and own.all() and len(own):
        raise DataError(
            f"resume=True goes on after the training rows of the same series, {list(earlier.ids)[:5]}, with "
            f"times if those have some; the rows are of {list(panel.ids)[:5]}. Name the series as when it "
            "was fitted, or leave resume out."
        )
    return found, own


def _comparable(panel: Panel, earlier: Panel) -> bool:
    """Whether times of both are of one kind."""
    return (np.asarray(panel.time).dtype.kind == "M") == (np.asarray(earlier.time).dtype.kind == "M")
