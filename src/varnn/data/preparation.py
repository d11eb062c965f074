"""Panel -> parts of it, gaps filled, numbers scaled; every statistic comes from training rows.

A prepared panel is again a Panel, in float32 and scaled units, so that nothing later needs to know
where its numbers come from.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray
from varnn.data.categories import spelt_out
from varnn.data.chunks import chunks
from varnn.data.panel import Panel
from varnn.errors import ConfigError, DataError, nearest

Scale = Literal["minmax", "standard", "none"]
Fill = Literal["forward", "interpolate", "zero", "none"]
SCALES: tuple[str, ...] = get_args(Scale)
FILLS: tuple[str, ...] = get_args(Fill)

# A value a million training ranges away is taken as just that far: float32 arithmetic, squares and
# recurrences included, then cannot overflow, and no honest value comes near.
LIMIT = 1e6
# With standard scaling an input ten deviations away is taken as just that far: a network's answer to
# what it never saw anything like is no answer.
STANDARD_LIMIT = 10.0


def split_in_time(panel: Panel, *fractions: float) -> tuple[Panel, ...]:
    """Cut each series in time order, the same shares for every series.

    Parameters
    ----------
    panel : Panel
        The rows to cut.
    *fractions : float
        Share of each part; together they must make 1.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, range(10))
    >>> [len(part) for part in split_in_time(panel, 0.64, 0.16, 0.2)]
    [6, 2, 2]
    """
    if not fractions or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
        raise ConfigError(f"the shares of a split must be positive and make 1; got {fractions}.")
    # Floors of cumulated shares, so that 0.64 + 0.16 cuts where 0.8 does; 1e-9 undoes float rounding.
    ends = [
        panel.starts[:-1] + np.floor(panel.lengths * share + 1e-9).astype(np.int64)
        for share in np.cumsum(fractions)
    ]
    return tuple(
        panel.ranges(first, last) for first, last in zip([panel.starts[:-1], *ends], ends, strict=False)
    )


def split_by_series(panel: Panel, *groups: Iterable[str]) -> tuple[Panel, ...]:
    """Put whole series into parts, by their ids.

    Examples
    --------
    >>> panel = Panel.from_arrays(None, range(6), series=list("aabbcc"))
    >>> [part.ids for part in split_by_series(panel, ["c", "a"], ["b"])]
    [('a', 'c'), ('b',)]
    """
    parts = []
    seen: set[str] = set()
    for group in (set(one) for one in groups):
        for name in sorted(group - set(panel.ids)):
            raise DataError(f"series {name!r} is not in the panel. {nearest(name, panel.ids)}")
        if shared := sorted(group & seen):
            raise DataError(f"a series must be in one part only; {shared[:5]} are in two.")
        seen |= group
        kept = np.array([one in group for one in panel.ids])
        parts.append(panel.ranges(panel.starts[:-1], np.where(kept, panel.starts[1:], panel.starts[:-1])))
    return tuple(parts)


def with_learnt_inputs(panel: Panel, training: Panel) -> Panel:
    """Keep the categories that are frequent in training rows.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"sky": ["sun", "rain", "sun", "rain", "sun", "fog"], "load": range(6)})
    >>> panel = Panel.from_frame(frame, target="load")
    >>> with_learnt_inputs(panel, panel.between(0, 5)).input_names
    ('sky=sun', 'sky=rain')
    """
    made = set(spelt_out(panel.categories, panel.categories))
    plain = [name for name in panel.input_names if name not in made]
    if training.texts is None:  # then those that are there at all
        there = dict(zip(training.input_names, np.any(training.inputs, axis=0).tolist(), strict=True))
        names = [name for name in panel.input_names if name not in made or there[name]]
        return panel.with_inputs(names)
    learnt = training.texts.frequent(panel.categories)
    return panel.with_inputs([*plain, *spelt_out(learnt, learnt)])


def fill_gaps(panel: Panel, how: Fill, initial: FloatArray | None = None, *, target: bool = False) -> Panel:
    """Fill missing inputs, within each series.

    Parameters
    ----------
    panel : Panel
        Rows in any units; the panel itself is not changed.
    how : Fill
        ``"forward"`` repeats the last known value, so it uses the past alone. ``"interpolate"``
        draws a line between the known neighbours and extends the first and last: it looks ahead.
        ``"zero"`` puts 0, in the units of the panel. ``"none"`` leaves gaps, and refuses any.
    initial : array or None, default=None
        Value of each input where a series has none to repeat; zeros by default.
    target : bool, default=False
        Fill the target too, as the paper did. Otherwise missing labels stay missing.

    Examples
    --------
    >>> panel = Panel.from_arrays([[1.0], [None], [3.0], [None]], None)
    >>> [fill_gaps(panel, how).inputs[:, 0].tolist() for how in ("forward", "interpolate", "zero")]
    [[1.0, 1.0, 3.0, 3.0], [1.0, 2.0, 3.0, 3.0], [1.0, 0.0, 3.0, 0.0]]
    """
    initials = np.zeros(panel.n_inputs) if initial is None else initial
    inputs = panel.inputs
    gaps = np.isnan(np.add.reduce(inputs, axis=0, dtype=np.float64))  # no value is infinite: see Panel
    if gaps.any():
        if how == "none":
            column = int(np.argmax(gaps))
            row = int(np.argmax(np.isnan(inputs[:, column])))
            raise DataError(
                f"with fill='none' no input may be missing; {panel.input_names[column]!r} is missing "
                f"in row {panel.rows[row]}. Fill it before, or use fill='forward'."
            )
        inputs = inputs.copy()
        for index in np.flatnonzero(gaps):
            inputs[:, index] = _filled(inputs[:, index], panel, how, float(initials[index]))
    labels = panel.target
    if target and np.isnan(labels).any():
        labels = _filled(labels, panel, how, 0.0)
    return replace(panel, inputs=inputs, target=labels)


def _filled(values: FloatArray, panel: Panel, how: Fill, initial: float) -> FloatArray:
    known = ~np.isnan(values)
    if how == "zero":
        return np.where(known, values, 0).astype(values.dtype)
    if how == "forward":
        latest = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
        reachable = latest >= panel.first_rows  # otherwise the last known value is another series'
        return np.where(reachable, values[np.maximum(latest, 0)], initial).astype(values.dtype)
    filled = values.copy()
    for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        here = np.flatnonzero(known[first:last])
        part = filled[first:last]
        part[:] = np.interp(np.arange(last - first), here, part[here]) if len(here) else initial
    return filled


@dataclass(frozen=True, eq=False, kw_only=True)
class Scaling:
    """Affine maps of inputs and target, with statistics of the training rows.

    Parameters
    ----------
    input_offset, input_scale : array
        Shape (n_inputs,): scaled = (value - offset) / scale.
    initial_inputs : array
        Training mean of each input, in original units: stands in before a series' first value.
    target_offset, target_scale : float
        The same map for the target.
    input_limit : float, default=LIMIT
        Largest size of a scaled input; beyond it values are clipped.

    Examples
    --------
    >>> panel = Panel.from_arrays([[0.0, 5.0], [10.0, 5.0]], [100.0, 300.0])
    >>> scaling = Scaling.fit(panel, "minmax")
    >>> scaling.apply(panel).inputs.tolist(), float(scaling.restore(0.5))
    ([[0.0, 0.0], [1.0, 0.0]], 200.0)
    """

    input_offset: FloatArray
    input_scale: FloatArray
    initial_inputs: FloatArray
    target_offset: float
    target_scale: float
    input_limit: float = LIMIT

    @classmethod
    def fit(cls, panel: Panel, how: Scale) -> "Scaling":
        """Measure a panel of training rows, ignoring what is missing."""
        return cls.over((one.panel for one in chunks(panel)), how)

    @classmethod
    def over(cls, parts: Iterable[Panel], how: Scale) -> "Scaling":
        """Measure the training rows part by part."""
        inputs, target = _Statistics(), _Statistics()
        for part in parts:
            inputs.add(part.inputs)
            target.add(part.target[:, None])
        if (inputs.count == 0).any():
            names = [part.input_names[index] for index in np.flatnonzero(inputs.count == 0)[:5]]
            raise DataError(
                f"every input needs at least one value in the training rows; {names} have none. "
                "Leave them out with `inputs`."
            )
        if target.count[0] == 0:
            raise DataError(
                f"the target {part.target_name!r} has no value in the training rows: nothing to learn from."
            )
        offset, scale = inputs.map(how)
        target_offset, target_scale = target.map(how)
        return cls(
            input_offset=offset,
            input_scale=scale,
            initial_inputs=inputs.mean,
            target_offset=float(target_offset[0]),
            target_scale=float(target_scale[0]),
            input_limit=STANDARD_LIMIT if how == "standard" else LIMIT,
        )

    def apply(self, panel: Panel) -> Panel:
        """Bring a panel into scaled units, as float32."""
        return replace(panel, inputs=self.inputs(panel.inputs), target=self.target(panel.target))

    def inputs(self, values: FloatArray) -> npt.NDArray[np.float32]:
        """Bring inputs of any leading shape into scaled units, as float32."""
        return _scaled(values, self.input_offset, self.input_scale, self.input_limit)

    def target(self, values: FloatArray) -> npt.NDArray[np.float32]:
        """Bring targets into scaled units, as float32."""
        return _scaled(values, self.target_offset, self.target_scale, LIMIT)

    def restore(self, scaled: Any) -> Any:
        """Bring scaled predictions back into the target's own units, in float64."""
        return np.multiply(scaled, self.target_scale, dtype=np.float64) + self.target_offset


def _scaled(
    values: FloatArray, offset: FloatArray | float, scale: FloatArray | float, limit: float
) -> npt.NDArray[np.float32]:
    scaled = np.subtract(values, offset, dtype=np.float64)
    scaled /= scale
    np.maximum(scaled, -limit, out=scaled)  # np.clip in two calls: a stream feels its overhead
    np.minimum(scaled, limit, out=scaled)
    return scaled.astype(np.float32)


class _Statistics:
    """Of columns that come some rows at a time: their size, mean, sum of squared deviations and range."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = np.zeros(1), np.zeros(1), np.zeros(1)
        self.low, self.high = np.full(1, np.nan), np.full(1, np.nan)

    def add(self, values: FloatArray) -> None:
        """Take in more rows: (N, C); NaN is missing."""
        count = np.count_nonzero(~np.isnan(values), axis=0)
        total = np.maximum(self.count + count, 1)
        with np.errstate(over="ignore", invalid="ignore"):  # what a linear part leaves may be out of bounds
            mean = np.nansum(values, axis=0, dtype=np.float64) / np.maximum(count, 1)
            squares = np.nansum(np.square(values - mean), axis=0)
            apart = mean - self.mean
            self.mean = self.mean + apart * (count / total)
            self.squares = self.squares + squares + np.square(apart) * (self.count * count / total)
        self.count = self.count + count
        self.low = np.fmin(self.low, np.fmin.reduce(values, axis=0, initial=np.nan))
        self.high = np.fmax(self.high, np.fmax.reduce(values, axis=0, initial=np.nan))

    def map(self, how: Scale) -> tuple[FloatArray, FloatArray]:
        """Offset and scale of each column."""
        if how == "none":
            return np.zeros(len(self.mean)), np.ones(len(self.mean))
        if how == "minmax":
            offset, scale = self.low, self.high - self.low
        else:
            offset, scale = self.mean, np.sqrt(self.squares / self.count)
        # A constant column carries nothing: it becomes 0 instead of a division by zero. The same holds
        # where the spread is below what float32 can tell apart at that size.
        tiny = np.maximum(np.finfo(np.float32).eps * np.abs(offset), np.finfo(np.float32).tiny)
        return offset, np.where((scale > tiny) & np.isfinite(scale), scale, 1.0)
