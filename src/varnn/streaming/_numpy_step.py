"""One step on NumPy alone, for every model; the oracle of `varnn.streaming._compiled_step`."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, DoubleArray, FloatArray
from varnn.data.preparation import LIMIT
from varnn.errors import ConfigError
from varnn.model.experts import LiveExperts
from varnn.model.fitted import Fitted
from varnn.model.floor import floored
from varnn.model.intervals import Tracker
from varnn.model.linear import LinearRows
from varnn.model.pipeline import PipelineStream
from varnn.streaming._cell import Workspace
from varnn.streaming._step import Levels, Step, missing_where
from varnn.streaming._values import without_gaps

_BLOCK = 128  # series at a time: with a window of 5 and 128 hidden units they fit into 1 MB of cache
_ZERO = np.array(0.0)  # quicker to compare with than a number


class NumpyStep(Step):
    """A step whose series are cut into blocks, each of them advanced at once.

    Parameters
    ----------
    model, n_series : Fitted, int or None
        As of :class:`Step`.
    workspace : Workspace
        Weights and buffers to share.
    pipeline : PipelineStream or None, default=None
        What prepares rows; None makes one.
    """

    def __init__(
        self,
        model: Fitted,
        n_series: int | None,
        workspace: Workspace,
        pipeline: PipelineStream | None = None,
    ) -> None:
        super().__init__(model, n_series)
        width, architecture, scaling = self.width, model.architecture, self.scaling
        self.rows = [slice(first, min(first + _BLOCK, width)) for first in range(0, width, _BLOCK)]
        # All blocks are alike, but for the last.
        self.blocks = [workspace.block(rows.stop - rows.start) for rows in self.rows]
        self.answer: Any = math.nan
        self.x = np.zeros(self.shape)
        self._known = np.broadcast_to(model.pipeline.initial_inputs, self.shape).astype(np.float64)  # before
        # A model that takes x as it is needs no pipeline, and a stream feels what it does not have to do.
        plain = model.pipeline.takes_rows_as_they_are
        self.pipeline = pipeline
        if pipeline is None and not plain:
            self.pipeline = PipelineStream(model.pipeline, width, len(model.input_names))
        self._experts = None if model.experts is None else LiveExperts(model.experts, scaling, width)
        self._tracker = None if model.calibrator is None else model.calibrator.tracker(width)
        self._lifted = np.zeros(width, dtype=bool)
        layers = (model.n_members, width, architecture.hidden_size)
        self._hidden, self._outputs = np.zeros(layers), np.zeros(layers[:-1])  # of the last x
        self._wide = np.zeros(self.shape if plain else (width, architecture.n_inputs))
        self._wide_flat = self._wide.reshape(-1)
        # As many axes as x has: NumPy takes twice as long where they differ.
        axes = (1,) * (self._wide.ndim - 1)
        self._offset = scaling.input_offset.reshape(*axes, -1)
        self._scale = scaling.input_scale.reshape(*axes, -1)
        self._limit = scaling.input_limit
        self._answers, self._labels, self._targets = np.zeros(width), np.zeros(width), np.zeros(width)

    def advance(self, given: FloatArray, time: Any, levels: Levels = ()) -> None:
        """Prepare x, hand it to the blocks, and read their predictions."""
        x = without_gaps(given, self._known, self.model.pipeline.fill)
        scaled = self._scaled(x if self.pipeline is None else self.pipeline.prepare(x, time))
        self.x = x
        if self.n_series is None:
            self.answer = self._advance_one(scaled)
        else:
            self.answer = self._advance_fleet(scaled, self.n_series)
        self._answers[...] = self.answer

    def _advance_one(self, scaled: DoubleArray) -> float:
        block, pipeline, scaling = self.blocks[0], self.pipeline, self.scaling
        block.x[...] = scaled
        block.advance()
        if self._experts is not None or self._tracker is not None:
            hidden, outputs = block.members()
            if self._tracker is not None:
                self._tracker.expect(hidden[0])
            if self._experts is not None:
                found = self._experts.predict(self._linear_rows(1), hidden, outputs, scaled)
                return float(self._floored(found).item(0))
        answer: float = block.read() * scaling.target_scale + scaling.target_offset
        if pipeline is not None:
            linear = self._linear_rows(1)
            answer = (linear.predictions + self.model.shrinkage * answer + linear.doubt).item(0)
        if self.model.positive and not self._lifted[0]:
            answer = max(answer, 0.0)
        return answer

    def _advance_fleet(self, scaled: DoubleArray, n_series: int) -> DoubleArray:
        answer = np.empty(n_series)
        for block, rows in zip(self.blocks, self.rows, strict=True):
            block.x[...] = scaled[rows]
            block.advance()
            answer[rows] = block.read()
            if self._experts is not None or self._tracker is not None:
                # Now: the next block computes in the same buffers.
                self._hidden[:, rows], self._outputs[:, rows] = block.members()
        if self._tracker is not None:
            self._tracker.expect(self._hidden[0])
        linear = self._linear_rows(n_series)
        if self._experts is not None:
            found = self._experts.predict(linear, self._hidden, self._outputs, scaled)
        else:
            found = linear.predictions + self.model.shrinkage * self.scaling.restore(answer) + linear.doubt
        return self._floored(found)

    def _scaled(self, values: FloatArray) -> DoubleArray:
        """Bring x into scaled units as `Scaling.inputs` does, in a buffer."""
        wide, flat, limit = self._wide, self._wide_flat, self._limit
        np.subtract(values, self._offset, out=wide)
        np.divide(wide, self._scale, out=wide)
        if not flat.dot(flat) <= limit * limit:  # one sum of squares tells that none is beyond the limit
            np.clip(wide, -limit, limit, out=wide)
        return wide

    def _linear_rows(self, n_series: int) -> LinearRows:
        """What the linear part says of the open row of each series."""
        if self.pipeline is None:
            nothing = np.zeros(n_series)
            return LinearRows(nothing, nothing, nothing)
        return self.pipeline.linear_rows(n_series)

    def _floored(self, predictions: DoubleArray) -> DoubleArray:
        """Stop at zero where a target cannot be negative."""
        return floored(predictions, self._lifted) if self.model.positive else predictions

    def bounds(self, levels: Levels) -> tuple[DoubleArray, DoubleArray]:
        """Put bounds around the answer."""
        answer = self._answers[:, None]
        below, above = self._reach(levels)
        lower = answer + below
        if self.model.positive:
            lower = floored(lower, self._lifted[:, None])
        return lower, answer + above

    def covered(self, level: float, innovation: Any) -> DoubleArray:
        """Compare the innovation with how far the interval reaches."""
        below, above = self._reach((level,))
        errors = np.atleast_1d(innovation)
        return missing_where(errors, (below[:, 0] <= errors) & (errors <= above[:, 0]))

    def _reach(self, levels: Levels) -> tuple[DoubleArray, DoubleArray]:
        return known_tracker(self._tracker).bounds(_as_array(levels))

    def observe(self, labels: Any, *, learn: bool = True) -> None:
        """Hand the labels to the blocks, in scaled units and less their linear predictions."""
        self._labels[...] = labels
        residuals = self._labels
        if self._tracker is not None and learn:
            self._tracker.observe(residuals - self._answers)
        below = residuals < _ZERO
        if self.pipeline is not None:
            targets = self.pipeline.observe(residuals)
            labels = targets.item(0) if self.n_series is None else targets
            residuals = self.pipeline.residuals(len(residuals))
        if self.model.positive and np.count_nonzero(below):
            self._lifted |= below & ~np.isnan(residuals)  # a label that is not plausible does not count
        if self.n_series is None:
            self._remember_one(labels, residuals, learn=learn)
        else:
            self._remember_fleet(labels, residuals, learn=learn)
        np.copyto(self._known, self.x)

    def _remember_one(self, target: float, residuals: DoubleArray, *, learn: bool) -> None:
        label, scaling = None, self.scaling
        if not math.isnan(target):  # as `Scaling.target`, in Python: quicker for one number
            label = (target - scaling.target_offset) / scaling.target_scale
            label = min(max(label, -LIMIT), LIMIT)
        if self._experts is not None and learn:
            self._targets[0] = math.nan if label is None else label
            self._experts.learn(self._targets, residuals)
        self.blocks[0].remember(label)

    def _remember_fleet(self, targets: DoubleArray, residuals: DoubleArray, *, learn: bool) -> None:
        scaling, missing = self.scaling, np.isnan(targets)
        some = missing.any()
        scaled = scaling.target(np.where(missing, scaling.target_offset, targets) if some else targets)
        if self._experts is not None and learn:
            self._experts.learn(np.where(missing, np.nan, scaled), residuals)
        for block, rows in zip(self.blocks, self.rows, strict=True):
            block.remember(scaled[rows], missing[rows] if some else None)

    @property
    def weights(self) -> DoubleArray:
        """Weights of the experts in the next prediction: (n, K)."""
        return np.empty((self.width, 0)) if self._experts is None else self._experts.aggregator.weights

    @property
    def lifted(self) -> BoolArray:
        """Whether a label of each series was below zero: (n,)."""
        return self._lifted

    def states(self) -> dict[str, npt.NDArray[Any]]:
        """All that later steps depend on, as arrays of a snapshot."""
        tensors = {"states": np.concatenate([block.state() for block in self.blocks], axis=-2)}
        if self.pipeline is not None:
            tensors["recipe"] = self.pipeline.state()
        if self._experts is not None:
            tensors["learning"] = self._experts.state()
        if self._tracker is not None:
            tensors["tracker"] = self._tracker.state()
        if self.model.positive:
            tensors["lifted"] = self._lifted.astype(np.float64)
        return {**tensors, "known": self._known}

    def restore(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what :meth:`states` gave."""
        for block, rows in zip(self.blocks, self.rows, strict=True):
            block.restore(tensors["states"][..., rows, :])
        if self.pipeline is not None:
            self.pipeline.restore(tensors["recipe"])
        if self._experts is not None:
            self._experts.restore(tensors["learning"])
        if self._tracker is not None:
            self._tracker.restore(tensors["tracker"])
        if self.model.positive:
            self._lifted = tensors["lifted"].astype(bool)
        if "known" in tensors:  # not in snapshots of streams that refused gaps
            self._known[...] = tensors["known"]


@lru_cache(maxsize=64)
def _as_array(levels: Levels) -> DoubleArray:
    """Levels as trackers take them, which from row to row are the same."""
    return np.array(levels)


def known_tracker(tracker: Tracker | None) -> Tracker:
    """Give a tracker that is there, as whoever asks for levels has made sure of."""
    if tracker is None:
        raise ConfigError("this model knows nothing of how large its errors are.")
    return tracker
