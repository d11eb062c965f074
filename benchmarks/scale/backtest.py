"""A backtest of twenty origins: one worker against two, on this machine's processes and on a local Ray.

Contenders take turns, and each worker keeps to one core: a fit that has a machine for itself trains its
members on all of it, and one worker would already be as quick as two.
"""

import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cost.house import rows_like_appliances
from benchmarks.record import Measured, Row, significant
from benchmarks.scale import nothing
from benchmarks.scale.score import two_workers
from varnn import VARNNRegressor, evaluation, jobs
from varnn.evaluation import Backtest
from varnn.jobs import cores

_CONTENDERS = [("Ray", 1), ("Ray", 2), ("processes", 1), ("processes", 2)]
_SMALL_JOBS = 2000


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured.

    Parameters
    ----------
    rounds
        Turns of each contender.
    rows, origins, horizon
        Rows of the series, and of its backtest.
    """

    rounds: int = 3
    rows: int = 10_000
    origins: int = 20
    horizon: int = 6


class Backtesting:
    """The measurement.

    Parameters
    ----------
    size
        How much is measured.
    settings
        Of the default, for tests that have no time.
    say
        Whom to tell what is measured at the moment.
    """

    def __init__(
        self,
        size: Size,
        settings: dict[str, Any] | None = None,
        say: Callable[[str], Any] = lambda words: None,
    ) -> None:
        self._size, self._settings, self._say = size, settings or {}, say
        self._panel = rows_like_appliances(size.rows)

    def tables(self) -> Iterator[Measured]:
        """Measure, a table at a time."""
        yield self._parts()
        with two_workers() as start:
            yield self._workers(start)

    def _workers(self, start: float) -> Measured:
        seconds: dict[tuple[str, int], list[float]] = {one: [] for one in _CONTENDERS}
        results: list[Backtest] = []
        for turn in range(self._size.rounds):
            for way, workers in _CONTENDERS:
                self._say(f"{way}, {workers}, round {turn + 1}")
                began = time.perf_counter()
                results.append(self._once(way, workers))
                seconds[way, workers].append(time.perf_counter() - began)
        rows: list[Row] = []
        for (way, workers), found in seconds.items():
            pairs = zip(seconds[way, 1], found, strict=True)
            rows.append(
                {
                    "contender": f"{way}, {workers} worker{'s' * (workers > 1)}",
                    "s, best": significant(min(found)),
                    "s, median": significant(float(np.median(found))),
                    "1 worker / this, best": significant(min(seconds[way, 1]) / min(found)),
                    "1 worker / this, round by round": significant(
                        float(np.median([one / this for one, this in pairs]))
                    ),
                }
            )
        same = all(_same(results[0], one) for one in results)
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg()[:2])
        checks = [
            f"what all contenders found is {'the same to the last bit' if same else 'NOT the same'}",
            f"to start a local Ray of two workers took {start:.1f} s, which is not in these figures",
            "one local worker is this process on one core; two are started, and end, within what was timed",
            f"the load of the machine was {load} (1 and 5 minutes) when it was done",
        ]
        size = self._size
        what = f"Backtest of {size.origins} origins, {size.horizon} rows ahead"
        title = f"{what}, on {size.rows:,} rows of 26 inputs"
        return Measured(name="scale backtest", title=title, threads=1, rows=rows, checks=checks)

    def _once(self, way: str, workers: int) -> Backtest:
        settings: dict[str, Any] = {"horizon": self._size.horizon, "origins": self._size.origins}
        changes = self._settings

        def model(seed: int) -> VARNNRegressor:
            return VARNNRegressor(random_state=seed, device="cpu", **changes)

        if way == "Ray":
            return evaluation.backtest(self._panel, model=model, workers=workers, cluster="auto", **settings)
        if workers > 1:
            return evaluation.backtest(self._panel, model=model, workers=workers, **settings)
        with one_core():
            return evaluation.backtest(self._panel, model=model, **settings)

    def _parts(self) -> Measured:
        rows: list[Row] = []
        for way in ("processes", "Ray"):
            self._say(f"what a job costs, {way}")
            with two_workers() if way == "Ray" else nullcontext(0.0) as start:
                if way == "Ray":
                    rows.append({"part": "Ray: a cluster of this machine, s", "figure": significant(start)})
                cluster = "auto" if way == "Ray" else None
                first = _seconds(partial(_run, nothing.same, 2, cluster))
                more = _seconds(partial(_run, nothing.same, _SMALL_JOBS, cluster))
                fits = _seconds(partial(_run, nothing.ready, 2, cluster))
                if way == "Ray":
                    waiting = _seconds(partial(_run, nothing.same, _SMALL_JOBS, cluster, at_once=64))
            again = first if way == "processes" else 0.0  # which are begun for each run
            each = 1e3 * (more - again) / _SMALL_JOBS
            rows.append({"part": f"{way}: two workers, ms", "figure": significant(1e3 * first)})
            rows.append({"part": f"{way}: a job that does nothing, ms", "figure": significant(each)})
            rows.append({"part": f"{way}: what a fit imports, s", "figure": significant(fits - again)})
        each = 1e3 * waiting / _SMALL_JOBS  # what one process that gives the jobs can keep up with
        rows.append({"part": "Ray: the same, 64 under way, ms", "figure": significant(each)})
        sent = len(pickle.dumps(self._panel, protocol=5))
        rows.append({"part": "sent to each worker once: the rows, MB", "figure": significant(sent / 1e6)})
        rows.append({"part": "sent for each job, bytes", "figure": float(len(pickle.dumps((19, 2025))))})
        return Measured(name="scale backtest parts", title="What else it takes", threads=1, rows=rows)


def _run(function: Callable[[int, None], Any], count: int, cluster: str | None, at_once: int = 2) -> None:
    for one in jobs.run(function, range(count), workers=at_once, cluster=cluster):
        one.value()


@contextmanager
def one_core() -> Iterator[None]:
    """Keep fits of this process to one core, as those of a worker are."""
    before = os.environ.get(cores.SWITCH)
    os.environ[cores.SWITCH] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        if before is None:
            del os.environ[cores.SWITCH]
        else:
            os.environ[cores.SWITCH] = before


def _same(one: Backtest, other: Backtest) -> bool:
    return np.array_equal(one.coverage, other.coverage) and all(
        np.array_equal(one.mse[name], other.mse[name], equal_nan=True) for name in one.mse
    )


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
