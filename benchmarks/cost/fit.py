"""A fit of the default at the size of the Appliances set, beside what a user would fit instead.

Each fit has a process of its own, so that its memory is its own, too; they take turns. With a checkout of
earlier code the default of that is fitted among them: how much faster a change made it is a ratio of one run.
"""

import gc
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost.backtest import over_persistence
from benchmarks.cost.batch_peers import PEERS
from benchmarks.cost.house import APPLIANCES_ROWS, rows_like_appliances
from benchmarks.cost.trained import form
from benchmarks.fresh import call, peak_above
from benchmarks.record import Measured, Row, significant
from varnn import datasets
from varnn.errors import ConfigError
from varnn.estimator.regressor import VARNNRegressor

OURS, BEFORE = "varnn default", "varnn default, before"
MADE, APPLIANCES = "made", "appliances"
TRAINED = 0.8  # of the rows; the rest is predicted, to see that a fit was worth its time


def measure(
    *,
    threads: int,
    rounds: int,
    rows: int = APPLIANCES_ROWS,
    data: str = MADE,
    before: str | None = None,
    peers: Sequence[str] = tuple(PEERS),
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Time whole fits, each in a process of its own.

    Parameters
    ----------
    threads
        Threads of each process.
    rounds, rows
        Fits of each contender, in turn, and rows, of which the first four fifths are fitted.
    data
        ``"made"`` rows, or the published ``"appliances"``, where it is to be had.
    before
        Checkout of earlier code to fit the default of.
    peers, settings
        Who else is fitted, and settings of the model, for tests that have no time.
    """
    names = [OURS, *([BEFORE] if before else []), *peers]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    asked = {"rows": rows, "data": data, "settings": settings or {}}
    absent: list[str] = []
    for _ in range(rounds):
        for name in names:
            if name not in absent:
                ahead = Path(before) / "src" if before and name == BEFORE else None
                one = call("benchmarks.cost.fit:once", ahead, threads=threads, name=name, **asked)
                found[name].append(one)
                absent += [] if one else [name]
    best = {name: min(one["seconds"] for one in all_) for name, all_ in found.items() if name not in absent}
    lines: list[Row] = []
    for name, seconds in best.items():
        line: Row = {"contender": name, "interval": found[name][0]["interval"]}
        line |= {"median s": significant(float(np.median([one["seconds"] for one in found[name]])))}
        line |= {"best s": significant(seconds), f"time / {OURS}": significant(seconds / best[OURS])}
        if before:
            line[f"time / {BEFORE}"] = significant(seconds / best[BEFORE])
        peak = found[name][0]["peak"]
        line["peak MB"] = None if peak is None else significant(peak / 1e6)
        lines.append(line | {"error": significant(found[name][0]["error"])})
    which = "of the Appliances set" if data == APPLIANCES else "made like the Appliances set"
    measured = Measured(
        name="fit-default" if data == MADE else f"fit-default on {data}",
        title=f"One fit on {int(TRAINED * rows):,} rows {which}: {found[OURS][0]['form']}",
        threads=threads,
        rows=lines,
        checks=["error is the mean squared one over that of persistence, on the rows after those fitted"],
        absent=absent,
    )
    return asdict(measured)


def once(*, threads: int, name: str, rows: int, data: str, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Fit one contender in this process, and predict the rows after; None where it is not installed."""
    panel = rows_like_appliances(rows) if data == MADE else datasets.load(data).between(0, rows)
    training = panel.between(0, int(TRAINED * len(panel)))
    after = panel.between(len(training), len(panel))
    if name in PEERS:
        try:
            peer = PEERS[name](threads)
        except ImportError:
            return None
        seconds, peak = spent(lambda: peer.fit(training))
        predictions, interval, made_of = peer.predict(after), peer.interval, name
    else:
        model = VARNNRegressor(**settings)
        VARNNRegressor(**{"epochs": 1, **settings}).fit(training.between(0, 500))  # compiles
        seconds, peak = spent(lambda: model.fit(training))
        predictions, interval, made_of = model.predict(after), "90 %", form(model.fitted_)
    error = over_persistence(after.target, np.asarray(predictions))
    return {"seconds": seconds, "peak": peak, "error": error, "interval": interval, "form": made_of}


def spent(work: Any) -> tuple[float, float | None]:
    """Seconds of some work, and the most memory it took beyond what there was, in bytes."""

    def timed() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    gc.collect()
    return peak_above(timed)


def check_checkout(before: Path | None) -> None:
    """Refuse a folder that is no checkout of this project."""
    if before is not None and not (before / "src" / "varnn" / "__init__.py").is_file():
        raise ConfigError(
            f"--before must be a checkout of this project; {str(before)!r} has no src/varnn. "
            "Give its root folder."
        )
