"""Which measurements a benchmark is made of, and how each is run in a process of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import fresh
from benchmarks.record import Measured
from benchmarks.speed.train import CASES

BENCHES = ("train", "score", "stream", "growth")


@dataclass(frozen=True)
class Run:
    """One measurement to make."""

    title: str
    function: str  # "module:function"
    arguments: dict[str, Any]
    threads: int

    def measure(self) -> Measured:
        """Make it, in a process of its own."""
        return Measured(**fresh.call(self.function, threads=self.threads, **self.arguments))


def plan(bench: str, *, threads: Sequence[int], rounds: int) -> Iterator[Run]:
    """List the measurements of ``"train"``, ``"score"``, ``"stream"`` or ``"growth"``.

    Parameters
    ----------
    bench
        Which benchmark.
    threads
        Numbers of threads to measure with, each in turn.
    rounds
        Interleaved rounds; the long measurements make fewer, at most three.

    Examples
    --------
    >>> [run.title for run in plan("stream", threads=[1], rounds=3)]
    ['stream, 1 thread', 'stream fleet, 1 thread']
    """
    few = min(rounds, 3)
    steps = {"rounds": rounds, "calls": 10}
    listed: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
        "train": [
            *((case, "train:measure", {"name": case, **steps}) for case in CASES),
            ("train fit", "train:measure_fit", {"rounds": few}),
        ],
        "score": [("score", "score:measure", {"rounds": few})],
        "stream": [
            ("stream", "stream:measure", {"rounds": rounds, "calls": 100}),
            ("stream fleet", "stream:measure_fleet", {"rounds": rounds, "calls": 5}),
        ],
        "growth": [("growth", "growth:measure", {}), ("growth Beijing", "growth:measure_beijing", {})],
    }
    for count in threads:
        for title, function, arguments in listed[bench]:
            many = f"{count} thread{'s' if count > 1 else ''}"
            yield Run(f"{title}, {many}", f"benchmarks.speed.{function}", arguments, count)
