"""How much a service takes: durable observations a second, latencies, memory and files, of two models.

The service is a process on one core, the client on the other, and both on one machine. Two services, of the
paper's RM and of the default, stand side by side and are asked in turn. Every answer is on disk before it is
sent: ``synchronous=FULL``, as it is by default.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.trained import form, trained_default
from benchmarks.record import Measured, Row, significant
from benchmarks.service.light_client import Connection, latencies
from benchmarks.service.process import Served
from benchmarks.service.rows import BATCH, Rows
from varnn.estimator.regressor import VARNNRegressor

MODELS = ("RM", "default")
_WARM = 2.0  # seconds of steps before any are timed
_RM_ROWS = 3000  # what is learnt does not change how long a step takes
_HISTORY = 2000  # rows kept of a series where memory is measured, so that the file is full early

_Way = Callable[[Rows], bytes]
WAYS: dict[str, _Way] = {
    f"{BATCH} rows of one series": lambda rows: rows.batch(["one"] * BATCH),
    f"a row of each of {BATCH} series": lambda rows: rows.batch(range(BATCH)),
    f"a row of each of {BATCH} series, with keys": lambda rows: rows.batch(range(BATCH), keys=True),
}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured.

    Parameters
    ----------
    rounds
        Turns of each model.
    batches
        Requests of a hundred messages in a turn.
    clients, rate, seconds
        Clients of single steps; steps a second of each; and how long they ask in a turn.
    series, series_batches
        Series of the measurement of many, and requests with a hundred of them each.
    observations, moving
        Of the measurement of memory; and of that where series move to disk and back all the time.
    """

    rounds: int = 3
    batches: int = 200
    clients: int = 50
    rate: float = 10.0
    seconds: float = 10.0
    series: int = 10_000
    series_batches: int = 300
    observations: int = 1_000_000
    moving: int = 100_000


class _Case(NamedTuple):
    """A measurement of memory."""

    model: str
    series: int
    in_memory: int
    observations: int


class Load:
    """Services under load.

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
        self._models: dict[str, Path] = {}

    def tables(self) -> Iterator[Measured]:
        """Measure, a table at a time."""
        with TemporaryDirectory(dir=".") as place:  # not where files may live in memory
            folder = Path(place)
            default = trained_default(**self._settings)
            default.save(folder / "default.varnn")
            RM = VARNNRegressor.paper("RM", epochs=1, device="cpu").fit(rows_like_appliances(_RM_ROWS))
            RM.save(folder / "RM.varnn")
            self._models = {name: folder / f"{name}.varnn" for name in MODELS}
            with _on_core(min(_cores())):
                yield self._rates(folder, form(default.fitted_))
                yield self._latencies(folder)
                yield self._many(folder)
                yield self._memory(folder)

    def _served(self, stack: ExitStack, folder: Path, model: str, *options: str) -> Served:
        """Start a service of a model, on the core that is not the client's."""
        own = f"import os; os.sched_setaffinity(0, {{{max(_cores())}}})" if len(_cores()) > 1 else ""
        place = folder / f"{model}.service"
        served = stack.enter_context(Served(place, [self._models[model], *options], first=own))
        served.address()
        return served

    def _rates(self, folder: Path, about: str) -> Measured:
        found: dict[tuple[str, str], list[float]] = {}
        with ExitStack() as stack:
            services = {name: self._served(stack, folder / "rates", name) for name in MODELS}
            sources = {name: Rows(name) for name in MODELS}
            for turn in range(self._size.rounds + 1):  # the first one warms up
                for way, make in WAYS.items():
                    for name in MODELS:
                        self._say(f"{way}, {name}, round {turn}")
                        asked = [make(sources[name]) for _ in range(self._size.batches)]
                        seconds = _spent(services[name], asked) / (BATCH * len(asked))
                        if turn:
                            found.setdefault((way, name), []).append(seconds)
        rows: list[Row] = [
            {
                "a batch": way,
                "model": name,
                "observations a second, best": significant(1 / min(seconds)),
                "median": significant(1 / float(np.median(seconds))),
                "us an observation, best": significant(1e6 * min(seconds)),
            }
            for (way, name), seconds in found.items()
        ]
        title = (
            f"Durable observations, {BATCH} in a request, over one connection: 26 inputs by name, label, time"
        )
        return _measured("rates", title, rows, f"the default has {about}")

    def _latencies(self, folder: Path) -> Measured:
        size = self._size
        found: dict[tuple[str, str], list[list[float]]] = {}
        ways = {f"{size.rate:g} steps a second each": size.rate, "as fast as they are answered": None}
        with ExitStack() as stack:
            services = {name: self._served(stack, folder / "latencies", name) for name in MODELS}
            sources = {name: Rows(name) for name in MODELS}
            for turn in range(size.rounds + 1):
                for way, rate in ways.items():
                    for name in MODELS:
                        self._say(f"{size.clients} clients, {way}, {name}, round {turn}")
                        steps = [sources[name].steps(f"c{one}") for one in range(size.clients)]
                        seconds = size.seconds if turn else min(size.seconds, _WARM)
                        some = latencies(services[name].address(), steps, seconds=seconds, rate=rate)
                        if turn:
                            found.setdefault((way, name), []).append(some)
        rows: list[Row] = [
            {"clients": f"{size.clients}, {way}", "model": name, **_quantiles(turns, size.seconds)}
            for (way, name), turns in found.items()
        ]
        title = (
            "Single steps, a label and a prediction with its interval, from when one was due to its answer"
        )
        return _measured("latencies", title, rows)

    def _many(self, folder: Path) -> Measured:
        size, rows = self._size, list[Row]()
        for name in MODELS:
            self._say(f"{size.series:,} series, {name}")
            with ExitStack() as stack:
                served = self._served(stack, folder / "many", name)
                before, batches = _memory_of(served), Rows(name).batches(size.series)
                begin = _spent(served, list(islice(batches, size.series // BATCH)))
                spent = _spent(served, list(islice(batches, size.series_batches)))
                after = _memory_of(served)
                row: Row = {"model": name, "series": float(size.series)}
                row["new series a second"] = significant(size.series / begin)
                row["observations a second"] = significant(BATCH * size.series_batches / spent)
                row["MB in memory"] = significant(after / 1e6)
                row["kB a series"] = significant((after - before) / size.series / 1e3)
                row["MB on disk"] = significant(_size_of(folder / "many", name) / 1e6)
                rows.append(row)
        return _measured("many", f"Many series, a row of each of {BATCH} in a request, in turn", rows)

    def _memory(self, folder: Path) -> Measured:
        size = self._size
        cases = [
            _Case("RM", BATCH, BATCH, size.observations),
            _Case("RM", 10 * BATCH, BATCH, size.moving),
            _Case("default", 10 * BATCH, BATCH, size.moving),
        ]
        rows = [row for n, one in enumerate(cases) for row in self._grown(folder / f"memory {n}", one)]
        title = f"Memory of the service as observations come; {_HISTORY:,} rows kept of each series"
        return _measured("memory", title, rows)

    def _grown(self, folder: Path, case: _Case) -> Iterator[Row]:
        """Memory and files after each tenth of some observations."""
        title = f"{case.series:,}, of which {case.in_memory:,} in memory"
        with ExitStack() as stack:
            options = ("--history", str(_HISTORY), "--in-memory", str(case.in_memory))
            served = self._served(stack, folder, case.model, *options)
            batches, each = Rows(case.model).batches(case.series), case.observations // BATCH // 10
            connection = stack.enter_context(Connection(served.address()))
            for tenth in range(10):
                self._say(f"memory, {title}, {10 * tenth} %")
                spent = 0.0
                for asked in islice(batches, each):
                    begun = time.perf_counter()
                    connection.exchange(asked)
                    spent += time.perf_counter() - begun
                yield {
                    "series": title,
                    "model": case.model,
                    "observations": float((tenth + 1) * each * BATCH),
                    "a second": significant(each * BATCH / spent),
                    "MB in memory": significant(_memory_of(served) / 1e6),
                    "MB on disk": significant(_size_of(folder, case.model) / 1e6),
                }


def _quantiles(turns: list[list[float]], seconds: float) -> Row:
    some = [one for turn in turns for one in turn]
    return {
        "p50 ms": significant(1e3 * float(np.quantile(some, 0.5))),
        "p99 ms": significant(1e3 * float(np.quantile(some, 0.99))),
        "best round, p50 ms": significant(1e3 * min(float(np.quantile(turn, 0.5)) for turn in turns)),
        "best round, p99 ms": significant(1e3 * min(float(np.quantile(turn, 0.99)) for turn in turns)),
        "largest ms": significant(1e3 * max(some)),
        "steps a second": significant(len(some) / len(turns) / seconds),
    }


def _spent(served: Served, asked: Sequence[bytes]) -> float:
    """Seconds that requests took, one after the other."""
    with Connection(served.address()) as connection:
        begun = time.perf_counter()
        for one in asked:
            connection.exchange(one)
        return time.perf_counter() - begun


def _memory_of(served: Served) -> float:
    """Bytes a service has in memory; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return float(line.split()[1]) * 1024


def _size_of(folder: Path, model: str) -> float:
    """Bytes of a stream's file, and of what lies beside it."""
    return float(sum(one.stat().st_size for one in (folder / f"{model}.service" / "streams").iterdir()))


def _measured(name: str, title: str, rows: list[Row], *checks: str) -> Measured:
    cores = "one core, and the client another" if len(_cores()) > 1 else "the client's core"
    said = [f"every answer was 200, and was on disk before it was sent; the service had {cores}", *checks]
    return Measured(name=f"service-load {name}", title=title, threads=1, rows=rows, checks=said)


def _cores() -> set[int]:
    """Cores this process may use; of systems that do not tell, one."""
    return _ALL or {0}


_ALL: set[int] = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@contextmanager
def _on_core(core: int) -> Iterator[None]:
    """Stay on one core meanwhile."""
    if len(_ALL) < 2:
        yield
        return
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, _ALL)
