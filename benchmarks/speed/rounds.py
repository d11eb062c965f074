"""Interleaved timing: every contender runs once per round, so that a noisy minute hurts all alike."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.errors import VarnnError


@dataclass(frozen=True, eq=False)
class Contender:
    """One way to do the work.

    Parameters
    ----------
    name
        As people read it.
    call
        Does the work of one call, given the number of its first step; what it returns can be compared.
    steps
        Steps one call makes; times are given per step.
    calls
        Most calls in a round, for one whose calls are too slow to make as many as the others.
    """

    name: str
    call: Callable[[int], Any]
    steps: int = 1
    calls: int | None = None


@dataclass(frozen=True, eq=False)
class Timing:
    """Seconds per step of one contender: all calls of all rounds."""

    name: str
    seconds: npt.NDArray[np.float64]  # (rounds, calls)

    @property
    def median(self) -> float:
        """Median seconds of one step."""
        return float(np.median(self.seconds))

    @property
    def best(self) -> float:
        """Median seconds of one step in the contender's best round.

        On a busy machine long calls are interrupted and short ones are not, which would flatter whoever
        is fast. The best round of each is the one that came closest to having the processor to itself.
        """
        return float(np.median(self.seconds, axis=1).min())

    def quantile(self, share: float) -> float:
        """Quantile of the seconds of one step."""
        return float(np.quantile(self.seconds, share))


def agree(contenders: Sequence[Contender], *, calls: int, tolerance: float) -> float:
    """Make the first calls of each contender, and refuse to go on when their answers differ.

    Parameters
    ----------
    contenders
        Those that must answer alike; the first is the measure of the others.
    calls
        Calls to compare, numbered from 0.
    tolerance
        Largest difference allowed, as a share of the largest answer of the first contender.

    Returns
    -------
    float
        Largest difference found, as such a share.

    Examples
    --------
    >>> agree([Contender("a", float), Contender("b", lambda n: n + 1e-6)], calls=3, tolerance=1e-3) < 1e-6
    True
    """
    first, *others = contenders
    expected = np.array([first.call(number) for number in range(calls)], np.float64)
    largest = 0.0
    for other in others:
        answers = np.array([other.call(number) for number in range(calls)], np.float64)
        difference = float(np.abs(answers - expected).max() / np.abs(expected).max())
        if not difference <= tolerance:  # also when it is NaN
            raise VarnnError(
                f"contenders must compute the same thing, to {tolerance:g}; {other.name!r} differs from "
                f"{first.name!r} by {difference:.3g}. Times of different answers mean nothing: repair one."
            )
        largest = max(largest, difference)
    return largest


def interleave(
    contenders: Sequence[Contender],
    *,
    rounds: int,
    calls: int,
    warm_up: int = 0,
    settle: int = 0,
    first: int = 0,
) -> list[Timing]:
    """Time contenders in turns.

    Parameters
    ----------
    contenders
        Who takes part, in the order of their turns.
    rounds, calls
        Rounds, and calls of each contender per round; each call is timed on its own.
    warm_up
        Calls of each contender before the first round, not timed.
    settle
        Calls at the beginning of each turn, not timed: the contender before has left the processor's
        caches full of its own data, which no steady use would meet.
    first
        Number of the first step.

    Examples
    --------
    >>> [timing] = interleave([Contender("sum", lambda n: sum(range(n)))], rounds=2, calls=3)
    >>> timing.seconds.shape
    (2, 3)
    """
    at = {one.name: first for one in contenders}
    seconds: dict[str, list[list[float]]] = {one.name: [] for one in contenders}

    def untimed(one: Contender, count: int) -> None:
        for _ in range(_calls(one, count)):
            one.call(at[one.name])
            at[one.name] += one.steps

    for one in contenders:
        untimed(one, warm_up)
    clock = time.perf_counter
    collecting = gc.isenabled()
    gc.disable()  # a collection would land on whoever happens to run
    try:
        for _ in range(rounds):
            for one in contenders:
                untimed(one, settle)
                spent = []
                for _ in range(max(1, _calls(one, calls))):
                    began = clock()
                    one.call(at[one.name])
                    spent.append((clock() - began) / one.steps)
                    at[one.name] += one.steps
                seconds[one.name].append(spent)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return [Timing(name, np.array(spent)) for name, spent in seconds.items()]


def _calls(one: Contender, steps: int) -> int:
    """Calls that make about so many steps, within what the contender allows."""
    calls = -(-steps // one.steps)
    return calls if one.calls is None else min(calls, one.calls)
