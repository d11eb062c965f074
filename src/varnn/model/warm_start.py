"""A panel that follows the training rows -> the same, begun with the last rows that the model keeps.

A series that begins empty is predicted from nothing at first. Where it goes on after the training rows, the
lags, seasons and windows of its first rows reach back into the rows that the model keeps of the same series.
Nothing is learnt from those a second time: they are what predictions are made from, and no more.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from varnn._types import BoolArray, IntArray
from varnn.data.context import preceded, rows_followed
from varnn.data.panel import Panel
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError
from varnn.model.fitted import Fitted, labels_up_to

_NAMELESS = ("0",)  # series of a panel that has one without a name


def rows_kept(fitted: Fitted, names: Sequence[str] | None = None) -> Panel:
    """Last rows of each training series, or of some that are kept."""
    if not fitted.last_rows:
        raise DataError("this model keeps no training rows to go on from: give the rows so far.")
    last_rows = {name: fitted.last_rows[name] for name in (fitted.last_rows if names is None else names)}
    times = [one.time for one in last_rows.values()]
    return Panel(
        inputs=np.concatenate([one.inputs for one in last_rows.values()]),
        target=np.concatenate([one.target for one in last_rows.values()]),
        starts=np.cumsum([0, *(len(one.target) for one in last_rows.values())]),
        ids=tuple(last_rows),
        input_names=fitted.input_names,
        target_name=fitted.target_name,
        time=None if any(one is None for one in times) else np.concatenate([*times]),
        time_name=fitted.time_name,
        series_name=fitted.series_name,
        backend=fitted.training.backend,
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
    earlier = _earlier(fitted, panel, resume)
    if earlier is None:
        return panel, np.ones(len(panel), dtype=bool)
    if earlier.time is None:  # then nothing is known of when those were
        panel = replace(panel, time=None)
    return preceded(panel, earlier, len(earlier), told=bool(resume))


def rows_before(fitted: Fitted, panel: Panel, resume: bool | None) -> IntArray:
    """How many rows that a model keeps :func:`begun` puts before each series of a panel: (S,)."""
    earlier = _earlier(fitted, panel, resume)
    if earlier is None:
        return np.zeros(panel.n_series, np.int64)
    return rows_followed(panel, earlier, len(earlier), told=bool(resume))


def gap_before(fitted: Fitted, panel: Panel) -> Any:
    """Shortest time from the last training row of a series to its first row here; None if none is later."""
    earlier = _earlier(fitted, panel, None)
    if earlier is None or earlier.time is None or panel.time is None:
        return None
    last = dict(zip(earlier.ids, earlier.time[earlier.starts[1:] - 1], strict=True))
    first = zip(panel.ids, panel.time[panel.starts[:-1]], strict=True)
    return min((one - last[name] for name, one in first if name in last and one > last[name]), default=None)


def _earlier(fitted: Fitted, panel: Panel, resume: bool | None) -> Panel | None:
    """Rows kept of the series of a panel, under its names; None where it follows none of them."""
    if not isinstance(resume, bool | np.bool_ | None):
        raise ConfigError(f"resume must be True, False or None; got {shown(resume)}.")
    kept = tuple(fitted.last_rows)
    if not len(panel) or (resume is not None and not resume) or (resume is None and panel.time is None):
        return None
    if not kept:
        return None if resume is None else rows_kept(fitted)  # which says that there are none
    names = [one for one in panel.ids if one in fitted.last_rows]
    renamed = False
    if len(kept) == 1 == panel.n_series and not names:
        # A series alone has no name to go by; of two that differ, the caller must say that they are one.
        renamed = bool(resume) or _NAMELESS in (kept, panel.ids)
        names = list(kept) if renamed else []
    if not names:
        if resume:
            raise DataError(
                f"resume=True goes on after the training rows of the same series, {list(kept)[:5]}; the rows "
                f"are of {list(panel.ids)[:5]}. Name the series as when it was fitted, or leave resume out."
            )
        return None
    earlier = rows_kept(fitted, names)
    earlier = replace(earlier, rows=np.full(len(earlier), -2))  # of another table
    if renamed:
        earlier = replace(earlier, ids=panel.ids)
    if not _comparable(panel.time, earlier.time):
        if resume is None:
            return None
        earlier = replace(earlier, time=None)
        return _in_step(panel, earlier) if fitted.pipeline.peers else earlier
    if resume:
        _refuse_overlap(panel, earlier)
    return earlier


def _comparable(time: Any, other: Any) -> bool:
    """Whether both rows have times, of one kind."""
    return time is not None and other is not None and (time.dtype.kind == "M") == (other.dtype.kind == "M")


def _refuse_overlap(panel: Panel, earlier: Panel) -> None:
    """Refuse rows that are said to follow, and begin before the others end."""
    if panel.time is None or earlier.time is None:
        return
    last = dict(zip(earlier.ids, earlier.time[earlier.starts[1:] - 1], strict=True))
    for name, first in zip(panel.ids, panel.time[panel.starts[:-1]], strict=True):
        if name in last and first <= last[name]:
            whose = "" if panel.n_series == 1 else f" of series {name!r}"
            raise DataError(
                f"with resume=True rows come after the training rows; those{whose} end at "
                f"{last[name]}, and these begin at {first}. Leave out rows that were trained on, or leave "
                "out resume."
            )


def _in_step(panel: Panel, earlier: Panel) -> Panel:
    """Keep as many rows of each series: those that see each other, without times, go by their number."""
    missing = [one for one in panel.ids if one not in earlier.ids]
    if missing:
        raise DataError(
            f"series that see each other start together, or have times; {missing[:5]} were not trained on. "
            "Give the rows times, or leave out resume."
        )
    first = earlier.starts[1:] - earlier.lengths.min()
    target = earlier.target.copy()
    target[first] = labels_up_to(earlier, first)
    return replace(earlier, target=target).ranges(first, earlier.starts[1:])
