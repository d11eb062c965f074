"""Epochs so far -> seconds that a fit will still take: by their pace, and by the work that is left.

A member trains until its validation error has not fallen for some epochs (its patience), so nobody knows how
many it will take: it is taken to go on as members before it did. Later stages are counted as well, above all
the last one, in which all members are trained again, on all rows.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from varnn.fitting._procedure import Stage
from varnn.network.training import Epoch

_FURTHER = (
    1.3  # times the pace of one row ahead that an epoch of several rows ahead takes, before it is known
)
_BETWEEN = 4.0  # epochs that it takes to weigh experts and learn intervals, before that is known
_STILL = 4  # one more epoch for so many that were of use is expected beyond the patience


class StageKey(NamedTuple):
    """A stage of the model that looks so many rows ahead."""

    horizon: int
    stage: Stage


@dataclass
class _Run:
    """One member in one stage: its epochs so far, and the best of them."""

    most: int
    done: int = 0
    best: int = 0
    lowest: float = float("inf")

    def add(self, line: Epoch) -> None:
        self.done = int(line["epoch"])
        error = line.get("validation_loss", line["loss"])
        if error < self.lowest:
            self.best, self.lowest = self.done, error

    def expected(self, patience: int | None) -> int:
        """Epochs that it will take in all."""
        if patience is None or self.done - self.best >= patience:
            return self.most if patience is None else self.done
        longer = max(self.best + patience + self.best // _STILL, 2 * patience, self.done + 1)
        return min(self.most, longer)


@dataclass
class _Round:
    """One stage of one model: its members, and the seconds of their epochs."""

    members: int
    first: float  # when its first epoch ended
    last: float = 0.0
    warm: bool = False  # whether a member is through its first epoch
    runs: dict[int, _Run] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def add(self, line: Epoch, now: float) -> None:
        self.last = now
        self.runs.setdefault(int(line["member"]), _Run(int(line["epochs"]))).add(line)
        if line["epoch"] == 2:  # the first may have loaded code: it counts only while alone
            self.seconds = self.seconds if self.warm else []
            self.warm = True
        if line["epoch"] > 1 or not self.warm:
            self.seconds.append(line["seconds"])


class TimeLeft:
    """Seconds that a fit will still take.

    Parameters
    ----------
    stages : sequence of StageKey
        All stages of the fit, in order.
    ensemble : int
        Members of the model.
    patience : int or None
        Epochs without a lower validation error after which a member ends; None if it never does.
    growth : float, default=1.0
        Rows of the last training over those of the first.
    side_by_side : int, default=1
        Members that train at the same time.
    clock : callable, default=time.perf_counter
        Seconds since some moment.

    Examples
    --------
    >>> stages = [StageKey(1, Stage.CHOOSING), StageKey(1, Stage.REFIT)]
    >>> left = TimeLeft(stages, ensemble=1, patience=None, clock=lambda: 0.0)
    >>> line = {"stage": Stage.CHOOSING, "horizon": 1, "member": 0, "members": 1, "epochs": 10}
    >>> left.add({**line, "epoch": 4, "loss": 1.0, "seconds": 0.5})  # 6 more, 4 again, and what is between
    9.0
    """

    def __init__(
        self,
        stages: Sequence[StageKey],
        *,
        ensemble: int,
        patience: int | None,
        growth: float = 1.0,
        side_by_side: int = 1,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.stages, self.ensemble, self.patience = list(stages), ensemble, patience
        self.growth, self.side_by_side, self.clock = growth, side_by_side, clock
        self.rounds: dict[StageKey, _Round] = {}
        self.between: float | None = None  # seconds from the last epoch of a stage to the first of its refit

    def add(self, line: Epoch) -> float:
        """Take in an epoch; give the seconds that are left."""
        now, key = self.clock(), StageKey(int(line["horizon"]), Stage(int(line["stage"])))
        if key not in self.rounds:
            before = list(self.rounds.values())[-1:]
            if before and key.stage is Stage.REFIT:
                self.between = max(0.0, now - line["seconds"] - before[0].last)
            self.rounds[key] = _Round(int(line["members"]), now)
        found = self.rounds[key]
        found.add(line, now)
        later = self.stages[self.stages.index(key) + 1 :]
        ends = 1 + sum(one.stage is Stage.REFIT for one in later)
        pause = _BETWEEN * fmean(found.seconds) if self.between is None else self.between
        return self._rest(key) + sum(self._whole(one) for one in later) + ends * pause

    def _rest(self, key: StageKey) -> float:
        """Seconds that are left of the stage under way."""
        found = self.rounds[key]
        patience = None if key.stage is Stage.REFIT else self.patience  # a refit goes on to its last epoch
        left = [one.expected(patience) - one.done for one in found.runs.values()]
        waiting = found.members - len(left)
        left += waiting * [max(1, round(self._epochs(key)))]
        at_once = min(self.side_by_side, max(1, sum(one > 0 for one in left)))
        return fmean(found.seconds) * max(max(left), sum(left) / at_once)

    def _whole(self, key: StageKey) -> float:
        """Seconds of a stage that has not begun."""
        firsts = [one.members for at, one in self.rounds.items() if at.stage is Stage.CHOOSING]
        members = {Stage.CHOOSING: firsts[-1], Stage.MEMBERS: self.ensemble - 1, Stage.REFIT: self.ensemble}
        count = members[key.stage]
        return self._pace(key) * self._epochs(key) * count / max(1, min(count, self.side_by_side))

    def _pace(self, key: StageKey) -> float:
        """Seconds of an epoch."""
        own = [s for at, one in self.rounds.items() if at.horizon == key.horizon for s in one.seconds]
        others = [s for one in self.rounds.values() for s in one.seconds]
        pace = fmean(own) if own else _FURTHER * fmean(others)
        return pace * (self.growth if key.stage is Stage.REFIT else 1.0)

    def _epochs(self, key: StageKey) -> float:
        """Epochs that a member usually takes, of the same model if it has begun; in a refit the best ones."""
        runs = [
            (at.horizon == key.horizon, one)
            for at, found in self.rounds.items()
            if at.stage is not Stage.REFIT
            for one in found.runs.values()
        ]
        own = [one for same, one in runs if same] or [one for _, one in runs]
        if key.stage is Stage.REFIT:
            return fmean(one.best for one in own)
        return fmean(one.expected(self.patience) for one in own)
