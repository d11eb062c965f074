"""Scoring of partitioned Parquet: one worker against two, on this machine's processes and on a local Ray.

Contenders take turns. What they write is compared: all of it is the same, to the last bit.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from benchmarks import fresh
from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.trained import LEVEL, form, trained_default
from benchmarks.record import Measured, Row, significant
from varnn.data.panel import Panel
from varnn.scale import partition_files, score_files

_CONTENDERS = [("Ray", 1), ("Ray", 2), ("processes", 1), ("processes", 2)]
_SERIES_AT_ONCE = 50  # series that are made and written together


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured.

    Parameters
    ----------
    rounds
        Turns of each contender.
    series, rows, files
        Series, rows of each, and files they are in.
    small, large
        Rows of the two files whose scoring's memory is measured.
    long_small, long_large
        The same, of one series alone; 0 leaves that out.
    tiny
        Files of a few rows, which tell what a file costs by itself.
    """

    rounds: int = 3
    series: int = 2000
    rows: int = 400
    files: int = 16
    small: int = 100_000
    large: int = 800_000
    long_small: int = 600_000
    long_large: int = 1_200_000
    tiny: int = 200


def write(path: Path, series: int, rows: int, first: int = 0) -> None:
    """Write a file with series of made houses, some at a time."""
    writer: Any = None
    for begin in range(0, series, _SERIES_AT_ONCE):
        count = min(_SERIES_AT_ONCE, series - begin)
        table = _table(rows_like_appliances(rows * count, n_series=count), first + begin)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def _table(panel: Panel, first: int) -> Any:
    names = [f"house{first + number:07}" for number in range(panel.n_series)]
    columns: dict[str, Any] = {"house": np.repeat(names, panel.lengths), "when": panel.time}
    columns |= {name: panel.inputs[:, index] for index, name in enumerate(panel.input_names)}
    return pyarrow.table(columns | {"load": panel.target})


class Scoring:
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

    def tables(self) -> Iterator[Measured]:
        """Measure, a table at a time."""
        with TemporaryDirectory(dir=".") as place:  # not where files may live in memory
            folder = Path(place).resolve()
            model = trained_default(**self._settings)
            model.save(folder / "model.varnn")
            self._say("making rows")
            (folder / "rows").mkdir()
            series, files = self._size.series, self._size.files
            ends = [series * number // files for number in range(files + 1)]
            for number, (first, last) in enumerate(pairwise(ends)):
                write(folder / "rows" / f"{number:03}.parquet", last - first, self._size.rows, first)
            yield self._workers(folder, form(model.fitted_))
            yield self._memory(folder)
            yield self._parts(folder)

    def _workers(self, folder: Path, about: str) -> Measured:
        seconds: dict[tuple[str, int], list[float]] = {one: [] for one in _CONTENDERS}
        start: list[float] = []
        with two_workers() as started:
            start.append(started)
            for turn in range(self._size.rounds + 1):  # the first one warms up
                for way, workers in _CONTENDERS:
                    self._say(f"{way}, {workers}, round {turn}")
                    out = folder / f"{way}-{workers}"
                    began = time.perf_counter()
                    scored = score_files(
                        folder / "model.varnn",
                        folder / "rows",
                        out,
                        series="house",
                        time="when",
                        interval=LEVEL,
                        workers=workers,
                        cluster="auto" if way == "Ray" else None,
                        resume=False,
                    )
                    if turn:
                        seconds[way, workers].append(time.perf_counter() - began)
                    if scored.failures:
                        raise RuntimeError(str(scored.failures))
        rows: list[Row] = []
        total = self._size.series * self._size.rows
        for (way, workers), found in seconds.items():
            one = seconds[way, 1]
            rows.append(
                {
                    "contender": f"{way}, {workers} worker{'s' * (workers > 1)}",
                    "s, best": significant(min(found)),
                    "s, median": significant(float(np.median(found))),
                    "rows a second, best": significant(total / min(found)),
                    "1 worker / this, best": significant(min(one) / min(found)),
                    "1 worker / this, round by round": significant(
                        float(np.median([a / b for a, b in zip(one, found, strict=True)]))
                    ),
                }
            )
        same = all(
            _same(folder / "processes-1", folder / f"{way}-{workers}") for way, workers in _CONTENDERS[:-2]
        ) and _same(folder / "processes-1", folder / "processes-2")
        checks = [
            f"what all contenders wrote is {'the same to the last bit' if same else 'NOT the same'}",
            f"to start a local Ray of two workers took {start[0]:.1f} s, which is not in these figures",
            "one local worker is this process; two are started and end within what was timed",
        ]
        title = (
            f"{self._size.series:,} series of {self._size.rows} rows in {self._size.files} Parquet files "
            f"scored with {LEVEL:.0%} intervals: {about}"
        )
        return Measured(name="scale score", title=title, threads=1, rows=rows, checks=checks)

    def _memory(self, folder: Path) -> Measured:
        size = self._size
        cases = [("many series", size.small, 400), ("many series", size.large, 400)]
        if size.long_small:
            cases += [("one series", size.long_small, 0), ("one series", size.long_large, 0)]
        rows: list[Row] = []
        for what, count, length in cases:
            self._say(f"memory of {count:,} rows, {what}")
            path = folder / "memory.parquet"
            write(path, count // length if length else 1, length or count)
            found = fresh.call(
                "benchmarks.scale.score:peak_of",
                threads=1,
                model=str(folder / "model.varnn"),
                source=str(path),
                output=str(folder / "memory"),
            )
            row: Row = {
                "a file of": f"{count:,} rows, {what}",
                "MB of the file": significant(path.stat().st_size / 1e6),
                "MB at the peak": significant(found["peak"] / 1e6),
                "MB beyond the start": significant(found["beyond"] / 1e6),
                "us a row": significant(1e6 * found["seconds"] / count),
            }
            rows.append(row)
        title = "Memory of a worker: 28 columns; one that scores is a fresh process"
        return Measured(name="scale score memory", title=title, threads=1, rows=rows)

    def _parts(self, folder: Path) -> Measured:
        self._say("the parts")
        rows: list[Row] = []
        tiny = folder / "tiny"
        tiny.mkdir()
        for number in range(self._size.tiny):
            write(tiny / f"{number}.parquet", 1, 5, number)
        options: Any = {"series": "house", "time": "when", "workers": 1, "resume": False}
        first = _seconds(lambda: score_files(folder / "model.varnn", tiny, folder / "first", **options))
        again = _seconds(
            lambda: score_files(folder / "model.varnn", tiny, folder / "first", **options | {"resume": True})
        )
        rows.append({"part": "a file of 5 rows, ms", "figure": significant(1e3 * first / self._size.tiny)})
        rows.append(
            {
                "part": "a file that was scored before, ms",
                "figure": significant(1e3 * again / self._size.tiny),
            }
        )
        self._say("partitioning")
        count = self._size.series * self._size.rows
        spent = _seconds(
            lambda: partition_files(
                folder / "rows", folder / "parts", series="house", time="when", partitions=self._size.files
            )
        )
        rows.append({"part": "partition_files, rows a second", "figure": significant(count / spent)})
        for name, way in (("a process", "processes"), ("a Ray worker", "Ray")):
            self._say(f"how long {name} takes to start")
            rows.append({"part": f"{name} until it can score, s", "figure": significant(_start(way))})
        return Measured(name="scale score parts", title="What else it takes", threads=1, rows=rows)


@contextmanager
def two_workers() -> Iterator[float]:
    """Have a local Ray of two workers; gives the seconds it took to start."""
    import ray

    if ray.is_initialized():  # somebody else's, who also ends it
        yield 0.0
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    began = time.perf_counter()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield time.perf_counter() - began
    finally:
        ray.shutdown()


def peak_of(*, threads: int, model: str, source: str, output: str) -> dict[str, float]:
    """Score one file; peak memory of this process, what of it is beyond what there was, and seconds."""
    from varnn.estimator.loading import load

    loaded = load(model)
    began = time.perf_counter()
    _, beyond = fresh.peak_above(
        lambda: score_files(
            loaded, source, output, series="house", time="when", interval=LEVEL, workers=1, resume=False
        )
    )
    seconds = time.perf_counter() - began
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (float(one.split()[1]) * 1024 for one in status if one.startswith("VmHWM:"))
    return {"peak": peak, "beyond": beyond or 0.0, "seconds": seconds}


def _start(way: str) -> float:
    """Seconds until a worker that was not there has done a job that needs what scoring needs."""
    from varnn import jobs

    def imported(name: str, _: None) -> str:
        return __import__(name).__name__

    def once() -> float:
        needed, cluster = ["varnn.scale._score_file"] * 2, "auto" if way == "Ray" else None
        return _seconds(lambda: list(jobs.run(imported, needed, workers=2, cluster=cluster)))

    if way == "Ray":
        with two_workers():
            return once()
    return once()


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _same(one: Path, other: Path) -> bool:
    names = sorted(path.name for path in one.glob("*.parquet"))
    if names != sorted(path.name for path in other.glob("*.parquet")):
        return False
    return all(parquet.read_table(one / name).equals(parquet.read_table(other / name)) for name in names)
