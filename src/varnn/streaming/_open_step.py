"""One step of n series: x in, a prediction out, a label in; units, gaps, the blocks a fleet is cut into."""

import math
from typing import Any

import numpy as np

from varnn._types import DoubleArray, FloatArray
from varnn.data.preparation import LIMIT
from varnn.errors import DataError
from varnn.model.experts import LiveExperts
from varnn.model.fitted import Fitted
from varnn.model.floor import floored
from varnn.model.forecast import Forecaster
from varnn.model.forecast.recent import Recent
from varnn.model.intervals import Interval, Tracker
from varnn.model.linear import LinearRows
from varnn.model.pipeline import PipelineStream
from varnn.streaming._cell import Workspace
from varnn.streaming._values import without_gaps

_BLOCK = 128  # series at a time: with a window of 5 and 128 hidden units they fit into 1 MB of cache


class OpenStep:
    """The step under way, and all that carries over to the next one.

    Parameters
    ----------
    model : Fitted
        The model.
    n_series : int or None
        None for one series: x is (D,), y a number. Otherwise n series in step: (n, D) and (n,).
    forecaster : Forecaster or None
        What looks several rows ahead, and wants to know the latest rows.
    workspace : Workspace or None
        Weights and buffers to share; None for its own.
    """

    def __init__(
        self,
        model: Fitted,
        n_series: int | None,
        forecaster: Forecaster | None,
        workspace: Workspace | None,
    ) -> None:
        self.model, self.n_series, self.forecaster = model, n_series, forecaster
        self._open = False  # whether an x was predicted and waits for its label
        self._answer: Any = math.nan
        self._workspace = workspace or Workspace(model.architecture, model.weights, model.window)
        self._lay_out()

    @property
    def n_inputs(self) -> int:
        """Length of one x."""
        return len(self.model.input_names)

    def _lay_out(self) -> None:
        """Make the blocks of series, and buffers for what they take and give."""
        model, width = self.model, 1 if self.n_series is None else self.n_series
        architecture, scaling = model.architecture, model.pipeline.scaling
        self._rows = [slice(first, min(first + _BLOCK, width)) for first in range(0, width, _BLOCK)]
        sizes = [rows.stop - rows.start for rows in self._rows]  # all alike, but for the last
        self._blocks = [self._workspace.block(size) for size in sizes]
        self._shape = (self.n_inputs,) if self.n_series is None else (width, self.n_inputs)
        self._x: FloatArray = np.zeros(self._shape)  # of the open step, gaps filled
        self._given: FloatArray = self._x  # as it came
        self._known = np.broadcast_to(model.pipeline.initial_inputs, self._shape).astype(np.float64)  # before
        self._time: np.datetime64 | None = None
        # A model that takes x as it is needs no pipeline, and a stream feels what it does not have to do.
        plain = model.pipeline.takes_rows_as_they_are
        self._pipeline = None if plain else self._pipeline_stream(width)
        self._experts = None if model.experts is None else LiveExperts(model.experts, scaling, width)
        self._tracker = None if model.calibrator is None else model.calibrator.tracker(width)
        self._lifted = np.zeros(width, dtype=bool)  # whether a label was below zero
        self._recent = None
        if self.forecaster is not None:
            ahead = self.forecaster
            self._recent = Recent(ahead.rows_kept, width, self.n_inputs, ahead.rows_followed)
        layers = (model.n_members, width, architecture.hidden_size)
        self._hidden, self._outputs = np.zeros(layers), np.zeros(layers[:-1])  # of the last x
        self._wide = np.zeros(self._shape if plain else (width, architecture.n_inputs))
        self._wide_flat = self._wide.reshape(-1)
        self._scaling, self._offset, self._scale = scaling, scaling.input_offset, scaling.input_scale

    def _pipeline_stream(self, width: int) -> PipelineStream:
        """Make what prepares the rows of so many series."""
        return PipelineStream(self.model.pipeline, width, self.n_inputs)

    def _scaled(self, values: FloatArray) -> DoubleArray:
        """Bring x into scaled units as `Scaling.inputs` does, in a buffer."""
        wide, flat, limit = self._wide, self._wide_flat, self._scaling.input_limit
        np.subtract(values, self._offset, out=wide)
        np.divide(wide, self._scale, out=wide)
        if not flat.dot(flat) <= limit * limit:  # one sum of squares tells that none is beyond the limit
            np.clip(wide, -limit, limit, out=wide)
        return wide

    def _advance(self, given: FloatArray, time: Any) -> None:
        """Prepare x, (D,) or (n, D), hand it to the blocks, and read their predictions."""
        pipeline, scaling = self._pipeline, self._scaling
        try:
            x = without_gaps(given, self._known, self.model.pipeline.fill)
            scaled = self._scaled(x if pipeline is None else pipeline.prepare(x, time))
        except DataError:
            self._reopen()
            raise
        self._x, self._given, self._time, self._open = x, given, time, True
        if self.n_series is None:
            block = self._blocks[0]
            block.inputs[0, :-1] = scaled
            block.advance()
            if self._experts is not None or self._tracker is not None:
                hidden, outputs = block.members()
                if self._tracker is not None:
                    self._tracker.expect(hidden[0])
                if self._experts is not None:
                    found = self._experts.predict(self._linear_rows(pipeline, 1), hidden, outputs, scaled)
                    self._answer = self._floored(found).item(0)
                    return
            self._answer = block.read() * scaling.target_scale + scaling.target_offset
            if pipeline is not None:
                linear = self._linear_rows(pipeline, 1)
                correction = self.model.shrinkage * self._answer
                self._answer = (linear.predictions + correction + linear.doubt).item(0)
            if self.model.positive and not self._lifted[0]:
                self._answer = max(self._answer, 0.0)
            return
        answer = np.empty(self.n_series)
        for block, rows in zip(self._blocks, self._rows, strict=True):
            block.inputs[:, :-1] = scaled[rows]
            block.advance()
            answer[rows] = block.read()
            if self._experts is not None or self._tracker is not None:
                # Now: the next block computes in the same buffers.
                self._hidden[:, rows], self._outputs[:, rows] = block.members()
        if self._tracker is not None:
            self._tracker.expect(self._hidden[0])
        linear = self._linear_rows(pipeline, self.n_series)
        if self._experts is not None:
            found = self._experts.predict(linear, self._hidden, self._outputs, scaled)
        else:
            found = linear.predictions + self.model.shrinkage * scaling.restore(answer) + linear.doubt
        self._answer = self._floored(found)

    def _linear_rows(self, pipeline: PipelineStream | None, n_series: int) -> LinearRows:
        """What the linear part says of the open row of each series."""
        if pipeline is None:
            nothing = np.zeros(n_series)
            return LinearRows(nothing, nothing, nothing)
        return pipeline.linear_rows(n_series)

    def _floored(self, predictions: DoubleArray) -> DoubleArray:
        """Stop at zero where a target cannot be negative."""
        return floored(predictions, self._lifted) if self.model.positive else predictions

    def _reopen(self) -> None:
        """Prepare the open x again: another one, which could not be used, has taken its place."""
        if self._open and self._pipeline is not None:
            self._pipeline.prepare(self._x, self._time)

    def _interval(self, tracker: Tracker, levels: DoubleArray, *, several: bool) -> Interval:
        """Put bounds around the answer: one level loses its axis, and one series too."""
        answer = np.atleast_1d(self._answer)[:, None]
        lower, upper = (answer + reach for reach in tracker.bounds(levels))  # (n, L)
        if self.model.positive:
            lower = floored(lower, self._lifted[:, None])
        if not several:
            lower, upper = lower[:, 0], upper[:, 0]
        if self.n_series is None:
            return Interval(self._answer, lower[0], upper[0])
        return Interval(self._answer.copy(), lower, upper)

    def _remember(self, labels: Any, *, learn: bool = True) -> None:
        """Hand the labels to the blocks, in scaled units and less their linear predictions."""
        scaling, residuals = self._scaling, np.atleast_1d(labels)
        below = residuals < 0
        if self._pipeline is not None:
            targets = self._pipeline.observe(residuals)
            labels = targets.item(0) if self.n_series is None else targets
            residuals = self._pipeline.residuals(len(residuals))
        if self.model.positive:
            self._lifted |= below & ~np.isnan(residuals)  # a label that is not plausible does not count
        if self.n_series is None:
            label = None
            if not math.isnan(labels):  # as `Scaling.target`, in Python: quicker for one number
                label = (labels - scaling.target_offset) / scaling.target_scale
                label = min(max(label, -LIMIT), LIMIT)
            if self._experts is not None and learn:
                self._experts.learn(np.array([math.nan if label is None else label]), residuals)
            self._blocks[0].remember(label)
            return
        missing = np.isnan(labels)
        some = missing.any()
        scaled = scaling.target(np.where(missing, scaling.target_offset, labels) if some else labels)
        if self._experts is not None and learn:
            self._experts.learn(np.where(missing, np.nan, scaled), residuals)
        for block, rows in zip(self._blocks, self._rows, strict=True):
            block.remember(scaled[rows], missing[rows] if some else None)
