"""How fit, batch and stream of the default grow with rows, inputs, members and series."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.cost.fit import spent
from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.trained import CALENDAR, LEVEL
from benchmarks.fresh import call
from benchmarks.record import Measured, Row, significant
from benchmarks.speed.rounds import Contender, interleave
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor

BASE = {"rows": 4000, "inputs": 26, "members": 4, "series": 1}
GROWN: Mapping[str, Sequence[int]] = {
    "rows": (4000, 8000, 16_000),
    "inputs": (13, 26, 52),
    "members": (1, 2, 4, 8),
    "series": (1, 10, 100, 1000),
}
FIGURES = ("fit s", "batch us a row", "stream us a series")
SHORTEST = 40  # rows of a series that is fitted; of more series than that leaves, only streams are timed
SECOND = np.timedelta64(1, "s")
PREDICTED = 10_000  # rows in one batch


def measure(
    *,
    threads: int,
    size: str,
    values: Sequence[int] | None = None,
    base: Mapping[str, int] = BASE,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit, predict and stream at each value of one size, each in a process of its own.

    Parameters
    ----------
    threads
        Threads of each process.
    size, values
        Which size grows, one of `GROWN`, and its values.
    base
        The sizes that stay.
    settings
        Of the model, for tests that have no time.
    """
    if settings is None:
        settings = {} if size == "rows" else {"epochs": 3}
    lines: list[Row] = []
    before: tuple[int, dict[str, float | None]] | None = None
    for value in values or GROWN[size]:
        sizes = dict(base) | {size: value}
        found = call("benchmarks.cost.growth:point", threads=threads, settings=settings, **sizes)
        line: Row = {size: f"{value:,}"}
        line |= {name: None if found[name] is None else significant(found[name]) for name in FIGURES}
        for name in FIGURES:
            column = f"{name.split()[0]}, per doubling"
            line[column] = None
            if before is not None and found[name] is not None:
                line[column] = significant(
                    per_doubling(before[0], value, before[1][name] or 0.0, found[name])
                )
        lines.append(line)
        before = (value, found)
    stays = ", ".join(f"{value:,} {name}" for name, value in base.items() if name != size)
    every = "; fit with as many epochs as the default takes" if size == "rows" else "; three epochs a member"
    measured = Measured(
        name=f"growth-default {size}",
        title=f"The default as {size} grow, with {stays}{every}",
        threads=threads,
        rows=lines,
    )
    return asdict(measured)


def per_doubling(smaller: float, larger: float, before: float, after: float) -> float:
    """Factor by which something grew each time that a size doubled.

    Examples
    --------
    >>> round(per_doubling(10, 40, 1.0, 9.0), 6)
    3.0
    """
    return float((after / before) ** (1 / math.log2(larger / smaller)))


def point(
    *, threads: int, rows: int, inputs: int, members: int, series: int, settings: dict[str, Any]
) -> dict[str, float | None]:
    """Fit once, predict rows in one batch, and make streamed steps of all series, in this process."""
    n_fitted = min(series, rows // SHORTEST)
    panel = rows_like_appliances(rows, n_series=n_fitted, inputs=inputs)
    model = VARNNRegressor(calendar=CALENDAR, ensemble=members, **settings)
    small = VARNNRegressor(calendar=CALENDAR, ensemble=1, **(settings | {"epochs": 1}))
    small.fit(rows_like_appliances(5 * SHORTEST, inputs=inputs))  # compiles, and loads what is loaded once
    seconds, _ = spent(lambda: model.fit(panel))
    batch = panel.between(0, min(len(panel), PREDICTED))
    model.predict(batch, interval=LEVEL)
    (predicted,) = interleave(
        [Contender("batch", lambda number: model.predict(batch, interval=LEVEL), steps=len(batch))],
        rounds=3,
        calls=1,
    )
    calls = max(5, 100 // series)
    (streamed,) = interleave(
        [Contender("stream", _stream(model, panel, series))], rounds=3, calls=calls, warm_up=3
    )
    whole = n_fitted == series
    return {
        "fit s": seconds if whole else None,
        "batch us a row": predicted.best * 1e6 if whole else None,
        "stream us a series": streamed.best / series * 1e6,
    }


def _stream(model: VARNNRegressor, panel: Panel, series: int) -> Callable[[int], None]:
    """Steps of so many series, all with the rows of the first one, over and over."""
    live = model.stream(n_series=None if series == 1 else series)
    shape = () if series == 1 else (series,)
    length = int(panel.lengths[0])
    x, y, times = panel.inputs.astype(np.float64), panel.target.astype(np.float64), np.asarray(panel.time)

    def step(number: int) -> None:
        at = number % length
        now = np.broadcast_to(x[at], (*shape, panel.n_inputs))
        live.predict(now, time=times[0] + number * 600 * SECOND, interval=LEVEL)
        live.observe(np.broadcast_to(y[at], shape) if shape else y[at])

    return step
