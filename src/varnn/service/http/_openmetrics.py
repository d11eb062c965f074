"""Counters, gauges and histograms, and their text as OpenMetrics 1.0 has it.

References
----------
OpenMetrics, a cloud-native, highly scalable metrics protocol. The Prometheus Authors, 2022, version 1.0.0.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from varnn.errors import ConfigError

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Family:
    """One metric under a name, with a value for each set of labels.

    Parameters
    ----------
    name : str
        Its name, with its unit at the end, and without the ``_total`` of a counter.
    words : str
        What it is.
    labels : sequence of str, default=()
        Names of its labels.
    unit : str, default=""
        The unit its name ends with.
    most : int, default=1000
        Sets of labels that are told apart; what comes after them is counted together, under "other".
    """

    kind: ClassVar[str]

    def __init__(
        self, name: str, words: str, labels: Sequence[str] = (), *, unit: str = "", most: int = 1000
    ) -> None:
        if unit and not name.endswith("_" + unit):
            raise ConfigError(f"the name of a metric must end with its unit {unit!r}; got {name!r}.")
        self.name, self.words, self.labels, self.unit = name, words, tuple(labels), unit
        self._most, self._lock = most, threading.Lock()

    def samples(self) -> Iterator[str]:
        """Lines of the metric's values."""
        raise NotImplementedError

    def text(self) -> Iterator[str]:
        """Lines of the metric, from what it is to its values."""
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {self.words.translate(_ESCAPES)}"
        yield from self.samples()

    def _key(self, known: Mapping[tuple[str, ...], object], values: tuple[str, ...]) -> tuple[str, ...]:
        """Give the labels to count under, which are others where there are too many."""
        if values in known:
            return values
        if len(values) != len(self.labels):
            raise ConfigError(f"{self.name} has the labels {self.labels}; got {values}.")
        return values if len(known) < self._most else ("other",) * len(values)

    def _labelled(self, values: tuple[str, ...], **more: str) -> str:
        pairs = {**dict(zip(self.labels, values, strict=True)), **more}
        inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs.items())
        return f"{{{inside}}}" if inside else ""


class _Valued(Family):
    """A metric with one number for each set of labels."""

    _suffix: ClassVar[str] = ""

    def __init__(
        self, name: str, words: str, labels: Sequence[str] = (), *, unit: str = "", most: int = 1000
    ) -> None:
        super().__init__(name, words, labels, unit=unit, most=most)
        self._values: dict[tuple[str, ...], float] = {}

    def samples(self) -> Iterator[str]:
        """Lines of the metric's values."""
        with self._lock:
            values = list(self._values.items())
        for key, value in values:
            yield f"{self.name}{self._suffix}{self._labelled(key)} {_number(value)}"


class Counter(_Valued):
    """A number that only grows.

    Examples
    --------
    >>> rows = Counter("rows", "Rows taken.", ["stream"])
    >>> rows.add("house", by=3)
    >>> list(rows.samples())
    ['rows_total{stream="house"} 3']
    """

    kind = "counter"
    _suffix = "_total"

    def add(self, *labels: str, by: float = 1) -> None:
        """Add to it."""
        with self._lock:
            key = self._key(self._values, labels)
            self._values[key] = self._values.get(key, 0) + by

    def reach(self, total: float, *labels: str) -> None:
        """Let it be as large as what is counted elsewhere; it never shrinks."""
        with self._lock:
            key = self._key(self._values, labels)
            self._values[key] = max(total, self._values.get(key, 0))


class Gauge(_Valued):
    """A number that goes up and down."""

    kind = "gauge"

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()

    def set(self, value: float | None, *labels: str) -> None:
        """Set it; None takes it away until it is known again."""
        with self._lock:
            key = self._key(self._values, labels)
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value


class Info(_Valued):
    """Facts as labels, of a 1 that says nothing."""

    kind = "info"
    _suffix = "_info"

    def tell(self, *labels: str) -> None:
        """Set the facts."""
        with self._lock:
            self._values = {labels: 1}


class Histogram(Family):
    """How many values were at most so large, for each of some bounds.

    Examples
    --------
    >>> seconds = Histogram("seconds", "Time taken.", bounds=(0.1, 1.0))
    >>> seconds.observe(0.25)
    >>> print(*seconds.samples(), sep=chr(10))
    seconds_bucket{le="0.1"} 0
    seconds_bucket{le="1.0"} 1
    seconds_bucket{le="+Inf"} 1
    seconds_count 1
    seconds_sum 0.25
    """

    kind = "histogram"

    def __init__(
        self,
        name: str,
        words: str,
        labels: Sequence[str] = (),
        *,
        unit: str = "",
        most: int = 1000,
        bounds: Sequence[float],
    ) -> None:
        super().__init__(name, words, labels, unit=unit, most=most)
        self._bounds = tuple(sorted(float(one) for one in bounds))
        self._counts: dict[tuple[str, ...], list[float]] = {}  # one for each bound, one above, and the sum

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        with self._lock:
            counts = self._counts.get(labels)
            if counts is None:
                key = self._key(self._counts, labels)
                counts = self._counts.setdefault(key, [0.0] * (len(self._bounds) + 2))
            counts[bisect_left(self._bounds, value)] += 1
            counts[-1] += value

    def samples(self) -> Iterator[str]:
        """Lines of the metric's values."""
        with self._lock:
            every = [(key, tuple(counts)) for key, counts in self._counts.items()]
        for key, (*counts, total) in every:
            below = 0.0
            for bound, count in zip([*self._bounds, float("inf")], counts, strict=True):
                below += count
                yield f"{self.name}_bucket{self._labelled(key, le=_bound(bound))} {_number(below)}"
            yield f"{self.name}_count{self._labelled(key)} {_number(below)}"
            yield f"{self.name}_sum{self._labelled(key)} {_number(total)}"


def text(families: Sequence[Family]) -> bytes:
    """Write metrics as one document."""
    lines = [line for one in families for line in one.text()]
    return "\n".join([*lines, "# EOF", ""]).encode()


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _bound(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(value)
