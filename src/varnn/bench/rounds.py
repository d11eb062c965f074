"""Interleaved timing: every contender runs once per round, so that a noisy minute hurts all alike."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Timing:
    """Seconds per call of one contender: all calls of all rounds."""

    name: str
    seconds: npt.NDArray[np.float64]  # (rounds, calls)

    @property
    def median(self) -> float:
        """Median seconds of one call."""
        return float(np.median(self.seconds))

    def quantile(self, share: float) -> float:
        """Give a quantile of the seconds of one call."""
        return float(np.quantile(self.seconds, share))

    def as_dict(self) -> dict[str, Any]:
        """Give the figures worth keeping, in microseconds."""
        return {
            "contender": self.name,
            "median_us": self.median * 1e6,
            "p99_us": self.quantile(0.99) * 1e6,
            "calls": int(self.seconds.size),
        }


def interleave(
    contenders: Mapping[str, Callable[[int], object]], *, rounds: int, calls: int, warm_up: int
) -> list[Timing]:
    """Time contenders in turns.

    Parameters
    ----------
    contenders
        Functions of a running call number, by name.
    rounds, calls
        Rounds, and calls of each contender per round; each call is timed on its own.
    warm_up
        Calls of each contender before the first round, not timed.
    """
    counters = dict.fromkeys(contenders, 0)
    seconds: dict[str, list[list[float]]] = {name: [] for name in contenders}
    clock = time.perf_counter
    for name, call in contenders.items():
        for _ in range(warm_up):
            call(counters[name])
            counters[name] += 1
    collecting = gc.isenabled()
    gc.disable()  # a collection would land on whoever happens to run
    try:
        for _ in range(rounds):
            for name, call in contenders.items():
                spent = []
                for number in range(counters[name], counters[name] + calls):
                    began = clock()
                    call(number)
                    spent.append(clock() - began)
                counters[name] += calls
                seconds[name].append(spent)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return [Timing(name, np.array(spent)) for name, spent in seconds.items()]
