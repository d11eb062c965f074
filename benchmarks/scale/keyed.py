"""A keyed service of one actor against one of two: durable messages a second, and how long a crash costs."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.trained import form, trained_default
from benchmarks.record import Measured, Row, significant
from benchmarks.scale.score import two_workers
from varnn.scale import KeyedService

_SHARDS = (1, 2)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is measured.

    Parameters
    ----------
    rounds
        Turns of each service.
    series, batches
        Series, a row of each in a batch; and batches in a turn.
    kills
        Kills of the second table.
    """

    rounds: int = 3
    series: int = 1000
    batches: int = 15
    kills: int = 10


class Keyed:
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
        model = trained_default(**self._settings)
        with TemporaryDirectory(dir=".") as place, two_workers(), ExitStack() as stack:
            folder = Path(place).resolve()
            services = {
                shards: stack.enter_context(KeyedService(model, folder / str(shards), shards=shards))
                for shards in _SHARDS
            }
            yield self._rates(services, form(model.fitted_))
            yield self._crashes(services[2])

    def _batches(self, count: int, first: int) -> list[list[dict[str, Any]]]:
        """A row of each series in each batch."""
        inputs = self._settings.get("inputs", 26)
        panel = rows_like_appliances(first + count, inputs=inputs)
        times = np.asarray(panel.time)
        return [
            [
                {
                    "series": f"house{series}",
                    "x": panel.inputs[row].tolist(),
                    "y": float(panel.target[row]),
                    "time": str(times[row]),
                }
                for series in range(self._size.series)
            ]
            for row in range(first, first + count)
        ]

    def _rates(self, services: dict[int, KeyedService], about: str) -> Measured:
        size, done = self._size, dict.fromkeys(services, 0)
        found: dict[int, list[float]] = {shards: [] for shards in services}
        sender: dict[int, list[float]] = {shards: [] for shards in services}
        answers: dict[int, list[Any]] = {shards: [] for shards in services}
        for turn in range(size.rounds + 1):  # the first one warms up
            for shards, service in services.items():
                self._say(f"{shards} actors, round {turn}")
                batches = self._batches(size.batches, done[shards])
                done[shards] += size.batches
                began, used = time.perf_counter(), time.process_time()
                for batch in batches:
                    answers[shards] += service.send(batch)
                if turn:
                    count = size.batches * size.series
                    found[shards].append((time.perf_counter() - began) / count)
                    sender[shards].append((time.process_time() - used) / count)
        rows: list[Row] = [
            {
                "actors": str(shards),
                "messages a second, best": significant(1 / min(seconds)),
                "median": significant(1 / float(np.median(seconds))),
                "1 actor / this, best": significant(min(found[1]) / min(seconds)),
                "us of the sender's own a message, best": significant(1e6 * min(sender[shards])),
            }
            for shards, seconds in found.items()
        ]
        same = answers[1] == answers[2] and not any("error" in one for one in answers[1])
        title = (
            f"Durable messages of {size.series:,} series, {size.series:,} in a call, from one thread: x as a "
            f"list, label and time: {about}"
        )
        checks = [f"answers of both are {'the same to the last bit' if same else 'NOT the same'}"]
        return Measured(name="scale keyed", title=title, threads=1, rows=rows, checks=checks)

    def _crashes(self, service: KeyedService) -> Measured:
        """Kill the process of a shard, and see how long the next call takes."""
        first, seconds = (self._size.rounds + 1) * self._size.batches, []
        batches = self._batches(self._size.kills, first)
        lost = 0
        for number, batch in enumerate(batches):
            self._say(f"kill {number + 1}")
            os.kill(service.processes()[number % 2], signal.SIGKILL)
            began = time.perf_counter()
            answers = service.send(batch)
            seconds.append(time.perf_counter() - began)
            lost += sum(one.get("row") != first + number for one in answers)
        rows: list[Row] = [
            {
                "kills": str(len(seconds)),
                "s of the call, median": significant(float(np.median(seconds))),
                "s of the call, most": significant(max(seconds)),
                "rows lost or doubled": lost,
            }
        ]
        title = "A process of two is killed; the call after it"
        return Measured(name="scale keyed kills", title=title, threads=1, rows=rows)
