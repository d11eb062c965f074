"""Guesses of the time left -> what a bar shows: smooth, counting down, and silent where nobody knows."""

import math
import time
from collections.abc import Callable, Sequence
from statistics import fmean

Clock = Callable[[], float]
_WEIGHT = 0.25  # of the newest guess: a bar that jumps is not believed
_CHOOSING, _MEMBERS = 1, 2  # of `varnn.fitting.Stage`, which comes with torch; then comes the refit


class Remaining:
    """The time that is left of one piece of work.

    Parameters
    ----------
    clock : callable, default=time.monotonic
        Seconds since some moment.

    Examples
    --------
    >>> now = [0.0]
    >>> left = Remaining(lambda: now[0])
    >>> str(left)
    ''
    >>> left.update(100.0)
    >>> now[0] = 10.0
    >>> str(left)
    '1 min 30 s left'
    >>> left.update(50.0)  # less than 90, but it may be wrong
    >>> str(left)
    '1 min 20 s left'
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock, self.began = clock, clock()
        self._left: float | None = None
        self._told = 0.0  # when
        self._share = 0.0

    def update(self, seconds: float) -> None:
        """Take in a guess."""
        now = self.now()
        self._left = seconds if now is None else now + _WEIGHT * (seconds - now)
        self._told = self.clock()

    def now(self) -> float | None:
        """Seconds that are left; None where nobody knows."""
        return None if self._left is None else max(0.0, self._left - (self.clock() - self._told))

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.began

    def share(self) -> float:
        """Share of the time that has passed; it never falls."""
        left, spent = self.now(), self.elapsed()
        if left is not None:
            self._share = max(self._share, spent / max(spent + left, 1e-9))
        return self._share

    def __str__(self) -> str:
        left = self.now()
        return "" if left is None else f"{in_words(left)} left"


class FitsLeft:
    """The time that is left of several fits, of models that take a second or an hour.

    How long a model takes is known once it was fitted once. While one that was not is still to come, nobody
    knows how long all will take, and nothing is said.

    Parameters
    ----------
    names : sequence of str
        The model of each fit, in order.
    clock : callable, default=time.monotonic
        Seconds since some moment.

    Examples
    --------
    >>> left = FitsLeft(["persistence", "varnn", "varnn"], lambda: 0.0)
    >>> left.done("persistence", 0.1)
    >>> str(left), left.next
    ('', 'varnn')
    >>> left.under_way(60.0)  # of the first; the second will take as long
    >>> str(left)
    '2 min left'
    """

    def __init__(self, names: Sequence[str], clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.names, self.seconds = list(names), list[tuple[str, float]]()
        self.shown, self._began = Remaining(clock), clock()

    @property
    def next(self) -> str:
        """Model of the fit under way; nothing where all are done."""
        waiting = self._waiting()
        return waiting[0] if waiting else ""

    def done(self, name: str, seconds: float) -> None:
        """Take in a fit that is done."""
        self.seconds.append((name, seconds))
        self._began = self.clock()
        self._tell(0.0, {})

    def under_way(self, left: float) -> None:
        """Take in how long the fit under way will still take."""
        self._tell(left, {self.next: self.clock() - self._began + left}, self._waiting()[1:])

    def _tell(self, first: float, guessed: dict[str, float], later: list[str] | None = None) -> None:
        known = guessed | {name: self._mean(name) for name, _ in self.seconds}
        names = self._waiting() if later is None else later
        if all(name in known for name in names):
            self.shown.update(first + sum(known[name] for name in names))

    def _mean(self, name: str) -> float:
        return fmean(seconds for one, seconds in self.seconds if one == name)

    def _waiting(self) -> list[str]:
        waiting = list(self.names)
        for name, _ in self.seconds:  # of several at a time, one that began later may be done before
            waiting.remove(name)
        return waiting

    def __str__(self) -> str:
        return str(self.shown)


def stage_in_words(line: dict[str, float]) -> str:
    """Say what an epoch, as ``on_epoch`` is given it, is part of.

    Examples
    --------
    >>> stage_in_words({"stage": 1, "member": 0, "members": 3, "horizon": 1})
    'choosing, 1 of 3'
    >>> stage_in_words({"stage": 2, "member": 1, "members": 3, "horizon": 24})
    'member 2 of 4, 24 rows ahead'
    >>> stage_in_words({"stage": 3, "member": 2, "members": 4, "horizon": 1})
    'refit, member 3 of 4'
    """
    stage, member, count = int(line["stage"]), int(line["member"]) + 1, int(line["members"])
    if stage == _CHOOSING:
        said = f"choosing, {member} of {count}" if count > 1 else "choosing"
    elif stage == _MEMBERS:
        said = f"member {member} of {count + 1}"
    else:
        said = f"refit, member {member} of {count}" if count > 1 else "refit"
    ahead = int(line.get("horizon", 1))
    return said + (f", {ahead} rows ahead" if ahead > 1 else "")


def in_words(seconds: float) -> str:
    """Write a time span as people say it.

    Examples
    --------
    >>> [in_words(one) for one in (0.4, 42.3, 90, 300, 7300)]
    ['1 s', '43 s', '1 min 30 s', '5 min', '2 h 1 min']
    """
    whole = max(1, math.ceil(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        rest = rest // 10 * 10 if minutes < 5 else 0  # more would not be true
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, rest = divmod(whole // 60, 60)
    return f"{hours} h" + (f" {rest} min" if rest else "")
