"""Innovations, and whether intervals held -> events: level shift, variance change, coverage lost.

A fitted model's innovations (label less prediction) have a level near zero and a steady spread for as
long as the world is that of the training rows. A monitor watches both, row by row, one series or a
fleet in step, and says when that ends. `varnn.monitoring._page_hinkley` has the test and its thresholds.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.data.finite import LARGEST
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.monitoring._page_hinkley import (
    ARRAYS,
    FLOATS,
    Excess,
    Number,
    Track,
    accumulate,
    follow,
    threshold,
    threshold_of_misses,
)
from varnn.monitoring.event import Event, Kind

__all__ = ["Event", "Monitor", "detect"]

_SHORTEST_WARM_UP = 30
_FARTHEST = 1e50  # of an innovation
_TOO_LARGE = f"{{}} must be finite and below {LARGEST:g} in size, or NaN where missing. Correct them."


class _State(NamedTuple):
    """All that a monitor remembers; each leaf is a float, or an array with one float per series."""

    level: Track = Track()
    step: Track = Track()  # of sqrt |innovation - the one before|
    before: Number = np.nan  # the last known innovation
    misses: Excess = Excess()
    lost: Number = 0.0  # 1 from the event "coverage lost" until coverage is back


_COUNTS = Excess(total=True, rows=True, distance=False)
_SQUARES = Track(count=True, mean=False, power=True, product=False, last=False, up=_COUNTS, down=_COUNTS)
_NEVER_BELOW_ZERO = _State(_SQUARES, _SQUARES, before=False, misses=_COUNTS, lost=True)


class Monitor:
    """Watch innovations, and the coverage of intervals, for changes.

    An event of level or variance makes the series' monitor learn afresh, from the rows after it; lost
    coverage is said once, and again only after it was back. Rows without a label change nothing.

    Parameters
    ----------
    n_series : int, default=1
        Series watched in step.
    coverage : float or None, default=None
        Nominal level of the intervals, such as 0.9; None when there are none to watch.
    false_alarms : float, default=1 / 10000
        False alarms to accept per row of each series, all kinds of event together.
    warm_up : int, default=100
        Rows to learn from, at the start of a series and after an event, before it is watched.
    memory : int, default=1000
        Rows over which level and spread are forgotten. A drift slower than this passes unnoticed.
    quiet : int, default=0
        Rows at the start of a series whose intervals are not judged: those of a series that begins from
        nothing have not learnt yet how wide to be.

    Examples
    --------
    >>> import numpy as np
    >>> innovations = np.random.default_rng(0).normal(size=1000)
    >>> innovations[600:] += 2.0
    >>> monitor = Monitor()
    >>> for innovation in innovations:
    ...     for event in monitor.observe(innovation):
    ...         print(event)
    level shift of +2.29 in series 0, noticed at row 609, begun about row 602
    """

    def __init__(
        self,
        n_series: int = 1,
        *,
        coverage: float | None = None,
        false_alarms: float = 1 / 10_000,
        warm_up: int = 100,
        memory: int = 1000,
        quiet: int = 0,
    ) -> None:
        _check(n_series, coverage, false_alarms, warm_up, memory)
        if quiet < 0:
            raise ConfigError(f"quiet must be a number of rows, 0 or more; got {quiet}.")
        self.n_series, self.coverage, self.false_alarms = n_series, coverage, false_alarms
        self.warm_up, self.memory, self.quiet = warm_up, memory, quiet
        self.rows = 0  # seen so far
        share = false_alarms / (2 if coverage is None else 3)
        self._limit = threshold(share / 2)  # two sides
        if coverage is not None:
            self._miss_limit = threshold_of_misses(share, coverage)
            self._deviation = float(np.sqrt(coverage * (1 - coverage)))
        self._arithmetic = FLOATS if n_series == 1 else ARRAYS
        self._fresh = _State()
        if n_series > 1:
            self._fresh = _built(self._fresh, (np.full(n_series, leaf) for leaf in _leaves(self._fresh)))
        self._state = self._fresh

    def observe(self, innovations: npt.ArrayLike, covered: npt.ArrayLike | None = None) -> list[Event]:
        """Take in one row of each series.

        Parameters
        ----------
        innovations : array
            Label less prediction: a number, or (n_series,). NaN where the label is missing.
        covered : array or None, default=None
            Whether the label lay within its interval, likewise; NaN or None where there is none.

        Returns
        -------
        list of Event
            What was noticed at this row; nearly always empty.

        Examples
        --------
        >>> monitor = Monitor(coverage=0.9)
        >>> misses = [monitor.observe(0.0, covered=False) for _ in range(10)]
        >>> [(event.kind, event.row, round(event.size, 2)) for events in misses for event in events]
        [('coverage lost', 7, -0.9)]
        """
        # Beyond that, squares would be too large to be kept; it is an event anyway.
        values = self._arithmetic.within(self._numbers(innovations, "innovations"), _FARTHEST)
        hits = None if covered is None or self.rows < self.quiet else self._numbers(covered, "covered")
        if hits is None:
            events = self._watch_innovations(values)
        elif self.coverage is None:
            raise ConfigError(
                "whether intervals held is judged against their nominal level, which this monitor was not "
                "given. Make it with Monitor(coverage=0.9), or the level they have."
            )
        else:
            events = self._watch_innovations(values) + self._watch_coverage(hits, self.coverage)
        self.rows += 1
        return events

    def settings(self) -> dict[str, Any]:
        """Settings, all but the number of series, as keywords for another monitor.

        Examples
        --------
        >>> Monitor(coverage=0.9).settings()
        {'coverage': 0.9, 'false_alarms': 0.0001, 'warm_up': 100, 'memory': 1000, 'quiet': 0}
        """
        names = ("coverage", "false_alarms", "warm_up", "memory", "quiet")
        return {name: getattr(self, name) for name in names}

    def state(self) -> npt.NDArray[np.float64]:
        """All that is remembered as one array, for a snapshot: (1 + leaves, n_series)."""
        leaves = np.array(_leaves(self._state)).reshape(-1, self.n_series)
        return np.concatenate([np.full((1, self.n_series), float(self.rows)), leaves])

    def restore(self, state: npt.NDArray[np.float64]) -> None:
        """Go on from the state of a monitor with the same settings.

        Examples
        --------
        >>> first, second = Monitor(), Monitor()
        >>> _ = first.observe(0.5)
        >>> second.restore(first.state())
        >>> second.rows
        1
        """
        expected = self.state().shape
        if state.shape != expected:
            raise ModelFileError(
                f"the state of a monitor of {self.n_series} series has shape {expected}; got {state.shape}. "
                "Give the monitor the settings it was saved with."
            )
        if not (state[[True, *_leaves(_NEVER_BELOW_ZERO)]] >= 0).all():
            raise ModelFileError("the state of a monitor holds numbers of rows, or squares, below zero.")
        self.rows = int(state[0, 0])
        leaves = state[1:, 0].tolist() if self.n_series == 1 else state[1:].copy()
        self._state = _built(self._state, iter(leaves))

    def _watch_innovations(self, values: Number) -> list[Event]:
        level, step, before, misses, lost = self._state
        arithmetic, limit = self._arithmetic, self._limit
        known = values == values  # not NaN
        new_level = follow(level, values, self.warm_up, self.memory, arithmetic)
        # Steps from row to row tell a variance from a level: a shift of the level is a single large step.
        # The square root of their size is close to Gaussian, and thus alike upwards and downwards.
        size = arithmetic.root(abs(values - before))
        new_step = follow(step, size, self.warm_up, self.memory, arithmetic)
        level = arithmetic.choose(known, new_level, level)
        step = arithmetic.choose(size == size, new_step, step)
        before = arithmetic.choose(known, values, before)
        self._state = _State(level, step, before, misses, lost)
        shifted = (level.up.total > limit) | (level.down.total > limit)
        fired = shifted | (step.up.total > limit) | (step.down.total > limit)
        if not arithmetic.some(fired):
            return []
        events = [
            self._event("level shift" if np.atleast_1d(shifted)[series] else "variance change", series)
            for series in np.flatnonzero(fired).tolist()
        ]
        level = arithmetic.choose(fired, self._fresh.level, level)
        step = arithmetic.choose(fired, self._fresh.step, step)
        self._state = _State(level, step, before, misses, lost)
        return events

    def _watch_coverage(self, hits: Number, coverage: float) -> list[Event]:
        level, step, before, misses, lost = self._state
        arithmetic, limit = self._arithmetic, self._miss_limit
        missed = coverage - hits
        excess = accumulate(misses, missed / self._deviation, missed, arithmetic)
        total, rows, distance = arithmetic.choose(hits == hits, excess, misses)
        over = total > limit
        # A sum held at its limit falls to zero only when coverage is back, which is when to watch again.
        misses = Excess(arithmetic.within(total, limit), rows, distance)
        self._state = _State(level, step, before, misses, ((lost > 0) | over) & (total > 0))
        fired = over & (lost <= 0)
        if not arithmetic.some(fired):
            return []
        return [self._event("coverage lost", series) for series in np.flatnonzero(fired).tolist()]

    def _event(self, kind: Kind, series: int) -> Event:
        """Describe what the state of one series shows at this row."""
        one = self._state
        if self.n_series > 1:
            one = _built(one, (leaf.item(series) for leaf in _leaves(one)))
        if kind == "coverage lost":
            excess, size = one.misses, -one.misses.size
        else:
            track = one.level if kind == "level shift" else one.step
            rising = track.up.total > track.down.total
            excess = track.up if rising else track.down
            size = excess.size if rising else -excess.size
            if kind == "variance change":
                size = ((track.mean + size) / track.mean) ** 2
        return Event(kind, series, self.rows, self.rows + 1 - int(excess.rows), float(size))

    def _numbers(self, values: npt.ArrayLike, name: str) -> Number:
        """A float, or an array with one float per series."""
        if self.n_series == 1 and isinstance(values, float | bool):  # quickly, for the usual case
            if abs(values) > LARGEST:
                raise DataError(_TOO_LARGE.format(name))
            return float(values)
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{name} must hold numbers, or NaN where missing; got {values!r}.") from None
        if numbers.shape != (self.n_series,) and not (self.n_series == 1 and numbers.shape == ()):
            raise DataError(f"{name} must have shape ({self.n_series},); got {numbers.shape}.")
        if np.any(np.abs(numbers) > LARGEST):
            raise DataError(_TOO_LARGE.format(name))
        return numbers.item() if self.n_series == 1 else numbers


def detect(
    innovations: npt.NDArray[np.floating[Any]],
    starts: npt.NDArray[np.integer[Any]] | None = None,
    *,
    covered: npt.NDArray[Any] | None = None,
    coverage: float | None = None,
    false_alarms: float = 1 / 10_000,
    warm_up: int = 100,
    memory: int = 1000,
) -> list[Event]:
    """Find the events of whole series: those a monitor reports when the rows come one by one.

    Parameters
    ----------
    innovations : array
        Label less prediction of each row, series end to end, (n_rows,).
    starts : array or None, default=None
        Row at which each series begins, and the number of rows at the end, as ``panel.starts``;
        None is one series.
    covered : array or None, default=None
        Whether each row's label lay within its interval.
    coverage, false_alarms, warm_up, memory : float or None, float, int, int
        As for :class:`Monitor`.

    Returns
    -------
    list of Event
        By row; rows are those of the arrays given.

    Examples
    --------
    >>> import numpy as np
    >>> innovations = np.random.default_rng(0).normal(size=1000)
    >>> innovations[800:] *= 3
    >>> [(event.kind, event.series, event.row) for event in detect(innovations, np.array([0, 400, 1000]))]
    [('variance change', 1, 818)]
    """
    bounds = np.array([0, len(innovations)]) if starts is None else np.asarray(starts)
    first, lengths = bounds[:-1], np.diff(bounds)
    monitor = Monitor(
        len(first), coverage=coverage, false_alarms=false_alarms, warm_up=warm_up, memory=memory
    )
    values = np.asarray(innovations, dtype=np.float64)
    hits = None if covered is None else np.asarray(covered, dtype=np.float64)
    events: list[Event] = []
    for row in range(int(lengths.max(initial=0))):
        # A series that has ended is one without labels.
        there, rows = row < lengths, np.minimum(first + row, len(values) - 1)
        now = np.where(there, values[rows], np.nan)
        events += monitor.observe(now, None if hits is None else np.where(there, hits[rows], np.nan))
    offsets = first.tolist()
    placed = (
        event._replace(row=event.row + offsets[event.series], began=event.began + offsets[event.series])
        for event in events
    )
    return sorted(placed, key=lambda event: event.row)


def _check(n_series: int, coverage: float | None, false_alarms: float, warm_up: int, memory: int) -> None:
    if n_series < 1:
        raise ConfigError(f"n_series must be at least 1; got {n_series}.")
    if coverage is not None and not 0.5 <= coverage <= 0.999:
        raise ConfigError(f"coverage must lie between 0.5 and 0.999; got {coverage}.")
    if not 1e-9 <= false_alarms <= 0.01:
        raise ConfigError(f"false_alarms must lie between 1e-9 and 0.01 per row; got {false_alarms}.")
    if warm_up < _SHORTEST_WARM_UP or memory < warm_up:
        raise ConfigError(
            f"warm_up must be at least {_SHORTEST_WARM_UP} rows and memory no shorter than it; "
            f"got {warm_up} and {memory}."
        )


def _built(like: _State, leaves: Iterator[Number]) -> _State:
    """Put a list of numbers back into the shape of a state."""

    def build(part: Any) -> Any:
        return type(part)(*map(build, part)) if isinstance(part, tuple) else next(leaves)

    state: _State = build(like)
    return state


def _leaves(state: Any) -> list[Number]:
    """List the numbers of nested tuples, depth first."""
    return [leaf for part in state for leaf in _leaves(part)] if isinstance(state, tuple) else [state]
