"""One wild value in a stream -> how much worse the rows after it are predicted; and shifts that are real.

A model is fitted once, and predicts the same rows with and without a glitch: the ratio of the errors on the
rows after it is what the glitch cost. Sizes are in deviations of the training labels, or of an input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.record import Measured, Row, significant
from varnn._types import BoolArray, DoubleArray
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.metrics import rmse

Change = Callable[[DoubleArray, DoubleArray, int], None]  # inputs, labels and the row: changes them in place

GLITCHES = (10.0, 100.0, 1e6)
SHIFTS = (10.0, 100.0)
SLOPES = (1.0, 10.0)
LEVEL = 0.9
_TRAINING, _LEAD, _AFTER, _PLACES = 3000, 150, 300, 12
_SOON, _COVERED = 25, 200  # rows whose errors, and whose coverage, are looked at
_STREAMS = ("arx", "walk", "pulses")
_RAMP = 50  # rows


def make(kind: str, rows: int, seed: int) -> tuple[DoubleArray, DoubleArray]:
    """Make a stream with two inputs: (rows, 2) and (rows,).

    Examples
    --------
    >>> inputs, labels = make("walk", 100, seed=0)
    >>> inputs.shape, labels.shape
    ((100, 2), (100,))
    """
    generator = np.random.default_rng(seed)
    inputs, noise = generator.normal(size=(rows, 2)), generator.normal(size=rows)
    seen = inputs[:, 0] + 0.5 * np.roll(inputs[:, 1], 1)
    if kind == "walk":
        return inputs, 0.3 * seen + np.cumsum(0.3 * noise)
    if kind == "pulses":  # as of a household: mostly still, with real jumps of many usual changes
        on = generator.random(rows) < 0.05
        return inputs, 0.2 * (seen + noise) + np.where(on, generator.exponential(5, rows), 0)
    labels = np.zeros(rows)
    for row in range(1, rows):
        labels[row] = 0.8 * labels[row - 1] + seen[row] + 0.5 * noise[row]
    return inputs, labels


def measure(*, members: int = 4, rows: int = _TRAINING, places: int = _PLACES) -> list[Measured]:
    """Fit a model for each stream and one with peers; give glitches, shifts and ramps as tables."""
    glitches: list[Row] = []
    shifts: list[Row] = []
    for seed, kind in enumerate(_STREAMS):
        lab = _Laboratory(kind, seed, members=members, training=rows, places=places)
        for size in GLITCHES:
            glitches.append(lab.glitch("label", size, partial(_wild_label, size=size * lab.unit)))
        for size in GLITCHES:
            glitches.append(lab.glitch("input", size, partial(_wild_input, size=size * lab.input_unit)))
        for size in SHIFTS:
            shifts.append(lab.shift("shift", size, partial(_rise, slope=size * lab.unit, rows=1)))
        for size in SLOPES:
            shifts.append(lab.shift("ramp", size, partial(_rise, slope=size * lab.unit, rows=_RAMP)))
    glitches += _of_peers(members=members, training=rows, places=places)
    return [
        Measured(name="glitches", title="One wild value", threads=1, rows=glitches),
        Measured(name="shifts", title="Shifts and ramps that are real", threads=1, rows=shifts),
    ]


class _Laboratory:
    """A fitted model, and places in later rows at which something happens: each place a series."""

    def __init__(self, kind: str, seed: int, *, members: int, training: int, places: int) -> None:
        self.kind, self.places = kind, places
        length = _LEAD + 1 + _AFTER
        inputs, labels = make(kind, training + places * length, seed)
        self.model = VARNNRegressor(random_state=seed, ensemble=members)
        self.model.fit(inputs[:training], labels[:training])
        self.unit, self.input_unit = float(labels[:training].std()), float(inputs[:training, 0].std())
        self.inputs = inputs[training:].reshape(places, length, 2)
        self.labels = labels[training:].reshape(places, length)
        self.quiet, _ = self._errors(lambda x, y, row: None)
        self.usual = _rmse(self.quiet)

    def glitch(self, where: str, size: float, change: Change) -> Row:
        """Score the rows after a single wild value, whose own row counts for nothing."""
        errors, covered = self._errors(change)
        return _glitch_row(self.kind, where, size, errors, self.quiet, covered)

    def shift(self, what: str, size: float, change: Change) -> Row:
        """Count rows until a change that stays is followed; the median over places."""
        errors, covered = self._errors(change, keep=True)
        calm = np.abs(errors) < 4 * self.usual
        followed = [_first_run(one, 5) for one in calm]
        return {
            "stream": self.kind,
            "what": what,
            "size": size,
            "rows until followed": float(np.median(followed)),
            "RMSE of rows 5 to 25 / usual": significant(_rmse(errors[:, 5:_SOON]) / self.usual),
            "coverage of the next 200": significant(float(covered[:, :_COVERED].mean())),
        }

    def _errors(self, change: Change, *, keep: bool = False) -> tuple[DoubleArray, BoolArray]:
        """Errors after each place, and which rows intervals cover; ``keep`` its own row too."""
        inputs, labels = self.inputs.copy(), self.labels.copy()
        for x, y in zip(inputs, labels, strict=True):
            change(x, y, _LEAD)
        names = np.repeat([f"{place:02}" for place in range(self.places)], labels.shape[1])
        panel = Panel.from_arrays(inputs.reshape(-1, 2), labels.ravel(), series=names)
        found: Any = self.model.predict(panel, interval=LEVEL)
        after = slice(_LEAD + (not keep), None)
        errors = (labels - found.prediction.reshape(labels.shape))[:, after]
        lower, upper = (one.reshape(labels.shape)[:, after] for one in (found.lower, found.upper))
        here = labels[:, after]
        return errors, (lower <= here) & (here <= upper)


def _of_peers(*, members: int, training: int, places: int) -> list[Row]:
    """Score two series after a wild label of a third that they see."""
    inputs, common = make("walk", training + places * 60 + _AFTER, seed=9)
    generator = np.random.default_rng(9)
    own = [common + 0.3 * generator.normal(size=len(common)) for _ in range(3)]
    ids = list("abc")

    def panel(first: int, last: int, labels: list[DoubleArray]) -> Panel:
        rows = last - first
        return Panel.from_arrays(
            np.tile(inputs[first:last], (3, 1)),
            np.concatenate([one[first:last] for one in labels]),
            series=np.repeat(ids, rows),
        )

    model = VARNNRegressor(random_state=9, ensemble=members, peers=True).fit(panel(0, training, own))
    unit, length, found = float(np.std(own[0][:training])), _LEAD + 1 + _AFTER, []
    for size in GLITCHES:
        quiet: list[DoubleArray] = []
        errors: list[DoubleArray] = []
        covered = []
        for place in range(places):
            first = training + place * 60 - _LEAD
            rows = panel(first, first + length, own)
            spoilt = rows.target.copy()
            spoilt[_LEAD] += size * unit
            for glitch, into in ((rows, quiet), (replace(rows, target=spoilt), errors)):
                answer: Any = model.predict(glitch, interval=LEVEL)
                misses = (rows.target - answer.prediction).reshape(3, length)[1:, _LEAD + 1 :]
                into.append(misses)
            covers = (answer.lower <= rows.target) & (rows.target <= answer.upper)
            covered.append(covers.reshape(3, length)[1:, _LEAD + 1 :])
        found.append(
            _glitch_row(
                "peers",
                "label of another",
                size,
                np.concatenate(errors),
                np.concatenate(quiet),
                np.concatenate(covered),
            )
        )
    return found


def _glitch_row(
    kind: str, where: str, size: float, errors: DoubleArray, quiet: DoubleArray, covered: BoolArray
) -> Row:
    return {
        "stream": kind,
        "where": where,
        "size": size,
        "RMSE of the next 25 / without": significant(_rmse(errors[:, :_SOON]) / _rmse(quiet[:, :_SOON])),
        "coverage of the next 200": significant(float(covered[:, :_COVERED].mean())),
    }


def _wild_label(inputs: DoubleArray, labels: DoubleArray, row: int, *, size: float) -> None:
    labels[row] += size


def _wild_input(inputs: DoubleArray, labels: DoubleArray, row: int, *, size: float) -> None:
    inputs[row, 0] += size


def _rise(inputs: DoubleArray, labels: DoubleArray, row: int, *, slope: float, rows: int) -> None:
    labels[row:] += slope * np.minimum(np.arange(1, len(labels) - row + 1), rows)


def _rmse(errors: DoubleArray) -> float:
    return rmse(np.zeros_like(errors), errors)  # in this order: an error that is no number counts


def _first_run(calm: BoolArray, length: int) -> int:
    """First place from which so many are calm in a row; all of them if there is none.

    Examples
    --------
    >>> _first_run(np.array([False, True, False, True, True]), 2)
    3
    """
    runs = np.convolve(calm, np.ones(length), mode="valid") == length
    return int(np.argmax(runs)) if runs.any() else len(calm)
