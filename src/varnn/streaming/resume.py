"""Which of the rows that a model keeps a stream starts from."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from varnn._types import FloatArray
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError
from varnn.model.fitted import Fitted, LastRows

Resume = bool | str | Sequence[str]


def kept_series(fitted: Fitted, n_series: int | None, resume: Any) -> list[LastRows]:
    """Find the last training rows of the series that a stream goes on with: as many of each.

    Parameters
    ----------
    fitted : Fitted
        The model.
    n_series : int or None
        Series of the stream, None for one.
    resume : bool, str or sequence of str
        True where the model keeps as many series; else their names. False is none of them.
    """
    kept, count = fitted.last_rows, n_series or 1
    if isinstance(resume, bool | np.bool_):
        if not resume:
            return []
        if len(kept) != count:
            raise ConfigError(
                f"resume=True needs a model that keeps as many series as the stream has, {count}; it keeps "
                f"{len(kept)}: {list(kept)[:5]}. Name the series: resume={next(iter(kept), 'name')!r}."
            )
        return _in_step(dict(kept))
    names = [resume] if isinstance(resume, str) else resume
    if not isinstance(names, Sequence | np.ndarray) or not all(isinstance(one, str) for one in names):
        raise ConfigError(
            f"resume must be true, false, or the name of each series of the stream; got {shown(resume)}."
        )
    missing = [one for one in names if one not in kept]
    if missing:
        raise DataError(
            f"resume goes on after the training rows of a series; {missing[:5]} were not trained on. The "
            f"model keeps {list(kept)[:10]}."
        )
    if len(names) != count:
        raise ConfigError(f"resume must name each series of the stream, {count} of them; got {len(names)}.")
    if len(set(names)) < len(names):
        raise ConfigError(f"resume must name each series of the stream once; got {list(names)[:10]}.")
    return _in_step({str(one): kept[one] for one in names})


class Row(NamedTuple):
    """One training row of one series."""

    x: FloatArray  # (D,)
    label: float
    time: Any


def time_steps(fitted: Fitted, names: Sequence[str]) -> Iterator[dict[str, Row]]:
    """Go through the rows kept of some series time step by time step: by time or, without, by number."""
    kept = {name: fitted.last_rows[name] for name in names}
    if any(one.time is None for one in kept.values()):
        shortest = min(len(one.target) for one in kept.values())
        kept = {name: replace(_last(one, shortest), time=None) for name, one in kept.items()}
    steps: dict[Any, dict[str, Row]] = {}
    for name, one in kept.items():
        for row, (x, label) in enumerate(zip(one.inputs, one.target, strict=True)):
            time = None if one.time is None else one.time[row]
            steps.setdefault(row if time is None else time, {})[name] = Row(x, float(label), time)
    for when in sorted(steps):
        yield steps[when]


def _in_step(kept: dict[str, LastRows]) -> list[LastRows]:
    """Cut series to the shortest of them: rows of a fleet come together, at one time."""
    shortest = min(len(one.target) for one in kept.values())
    rows = [_last(one, shortest) for one in kept.values()]
    for name, one in zip(kept, rows, strict=True):
        first = rows[0].time
        if one.time is not None and first is not None and not np.array_equal(one.time, first):
            raise DataError(
                f"series in step have their rows at the same times; the training rows of {name!r}, up to "
                f"{one.time[-1]}, and of {next(iter(kept))!r}, up to {first[-1]}, have not. Stream these on "
                "their own."
            )
    return rows


def _last(rows: LastRows, count: int) -> LastRows:
    """Keep so many rows at the end; the first has the last label known."""
    target: FloatArray = rows.target[-count:].copy()
    before = rows.target[: len(rows.target) - count + 1]
    known = before[~np.isnan(before)]
    target[0] = known[-1] if len(known) else np.nan
    time = None if rows.time is None else rows.time[-count:]
    return replace(rows, inputs=rows.inputs[-count:], target=target, time=time)
