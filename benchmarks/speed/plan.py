"""Which measurements a benchmark is made of, and how each is run in a process of its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import fresh
from benchmarks.cost.growth import GROWN
from benchmarks.record import Measured
from benchmarks.speed.train import CASES

BENCHES = ("train", "score", "stream", "growth")  # of the paper's network alone
DEFAULT_BENCHES = (
    "stream-default",
    "stream-command",
    "fleet",
    "backtest",
    "forecast",
    "fit-default",
    "growth-default",
)


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


def plan(bench: str, *, threads: Sequence[int], rounds: int, **changes: Any) -> Iterator[Run]:
    """List the measurements of one of `BENCHES` or `DEFAULT_BENCHES`.

    Parameters
    ----------
    bench
        Which benchmark.
    threads
        Numbers of threads to measure with, each in turn.
    rounds
        Interleaved rounds; the long measurements make fewer, at most three.
    changes
        Arguments of every measurement, instead of those here.

    Examples
    --------
    >>> [run.title for run in plan("stream", threads=[1], rounds=3)]
    ['stream, 1 thread', 'stream fleet, 1 thread']
    """
    few = min(rounds, 3)
    steps = {"rounds": rounds, "calls": 10}
    listed: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
        "train": [
            *((case, "speed.train:measure", {"name": case, **steps}) for case in CASES),
            ("train fit", "speed.train:measure_fit", {"rounds": few}),
        ],
        "score": [("score", "speed.score:measure", {"rounds": few})],
        "stream": [
            ("stream", "speed.stream:measure", {"rounds": rounds, "calls": 100}),
            ("stream fleet", "speed.stream:measure_fleet", {"rounds": rounds, "calls": 5}),
        ],
        "stream-default": [("stream-default", "cost.stream:measure", {"rounds": rounds, "calls": 100})],
        "stream-command": [("stream-command", "cost.command:measure", {"rounds": few})],
        "fleet": [("fleet", "cost.fleet:measure", {"rounds": few, "calls": 3})],
        "backtest": [("backtest", "cost.backtest:measure", {"rounds": few})],
        "forecast": [("forecast", "cost.forecast:measure", {"rounds": rounds, "calls": 20})],
        "fit-default": [("fit-default", "cost.fit:measure", {"rounds": few})],
        "growth-default": [
            (f"growth-default {size}", "cost.growth:measure", {"size": size}) for size in GROWN
        ],
        "growth": [
            ("growth", "speed.growth:measure", {}),
            ("growth Beijing", "speed.growth:measure_beijing", {}),
        ],
    }
    for count in threads:
        for title, function, arguments in listed[bench]:
            many = f"{count} thread{'s' if count > 1 else ''}"
            yield Run(f"{title}, {many}", f"benchmarks.{function}", arguments | changes, count)
