"""What fitting produces and a file holds: everything needed to predict, and nothing else.

No torch and no scikit-learn here: a fitted model predicts and streams on NumPy alone.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.data.chunks import ROWS_AT_ONCE, Chunk, chunks
from varnn.data.panel import Panel
from varnn.data.preparation import STANDARD_LIMIT, fill_gaps
from varnn.errors import DataError
from varnn.model.adaptation import Adaptation, Adapter, corrections
from varnn.model.calendar import has_times
from varnn.model.intervals import Calibrator, Interval, Tracker, known_error_scale
from varnn.model.pipeline import FeaturePipeline, Prepared
from varnn.network.cell import Architecture, Weights
from varnn.network.engines.scoring import Scores, score

_ROWS_AT_ONCE = 1 << 13  # whose hidden layers are kept: 8 MB, for 4 members of 64 units


@dataclass(frozen=True, eq=False, kw_only=True)
class LastRows:
    """The last rows of one training series, gaps filled: where a closed-loop forecast goes on from."""

    inputs: FloatArray  # (n, D)
    target: FloatArray  # (n,)
    time: npt.NDArray[Any] | None = None  # (n,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model.

    Parameters
    ----------
    architecture, weights
        The cell; its matrices carry a leading axis of ensemble members.
    pipeline, window
        How rows are prepared, and how many of them one prediction sees.
    input_names, target_name, time_name, series_name
        Columns the model was fitted on; there may have been none for time and series.
    adaptation
        How the readout goes on learning; None if it does not.
    error_scale
        How large errors are; None if that was not asked for.
    shrinkage
        Factor of the network's output before it is added to the linear prediction, from 0 to 1.
    label_range
        Smallest and largest label that was given to fit; None in files that do not know. See `labels_known`.
    last_rows
        Last training rows of each series.
    summary
        How the training went; plain values, shown by people and kept in the file's header.
    """

    architecture: Architecture
    weights: Weights
    pipeline: FeaturePipeline
    window: int
    input_names: tuple[str, ...]
    target_name: str
    adaptation: Adaptation | None = None
    error_scale: Calibrator | None = None
    shrinkage: float = 1.0
    label_range: tuple[float, float] | None = None
    time_name: str | None = None
    series_name: str | None = None
    last_rows: dict[str, LastRows] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def n_members(self) -> int:
        """Number of networks whose predictions are averaged."""
        return len(self.weights.fusion)

    @property
    def labels_known(self) -> tuple[float, float]:
        """Smallest and largest label known from fitting; of older files, as far as their parts tell."""
        if self.label_range is not None:
            return self.label_range
        known = [one.target[~np.isnan(one.target)] for one in self.last_rows.values()]
        linear, scaling = self.pipeline.linear, self.pipeline.scaling
        if linear is not None:
            known.append(np.array([linear.low, linear.high]))
        elif scaling.input_limit == STANDARD_LIMIT:
            known.append(scaling.restore(np.array([-3.0, 3.0])))  # deviations from the mean
        elif (scaling.target_offset, scaling.target_scale) != (0, 1):
            known.append(scaling.restore(np.array([0.0, 1.0])))  # with minmax, the range itself
        values = np.concatenate(known)
        return float(values.min()), float(values.max())

    def predict(self, panel: Panel) -> FloatArray:
        """Predict each row of a panel one step ahead, in the target's units, in panel order."""
        predictions = np.empty(len(panel))
        for rows, found in self.in_parts(panel):
            predictions[rows] = found.prediction
        return predictions

    def predict_intervals(self, panel: Panel, levels: DoubleArray) -> Interval:
        """Predict each row with intervals of some levels: bounds are (N, L)."""
        shape = (len(panel), len(levels))
        whole = Interval(np.empty(len(panel)), np.empty(shape), np.empty(shape))
        for rows, found in self.in_parts(panel, levels):
            for values, some in zip(whole, found, strict=True):
                values[rows] = some
        return whole

    def in_parts(
        self, panel: Panel, levels: DoubleArray | None = None, *, most: int = ROWS_AT_ONCE
    ) -> Iterator[tuple[slice, Interval]]:
        """Predict a panel some rows at a time: what that takes does not grow with the rows.

        Parameters
        ----------
        panel
            The rows.
        levels
            Levels of intervals to give with the predictions; bounds are None without.
        most
            Rows at a time, or fewer where their hidden layers are kept.
        """
        error_scale = None if levels is None else known_error_scale(self.error_scale)
        tracker: Tracker | None = None
        for chunk, linear_predictions in self.scored(panel, keep_hidden=error_scale is not None, most=most):
            found = Interval(
                self.pipeline.restore(chunk.output, linear_predictions, self.shrinkage), None, None
            )
            if error_scale is not None and levels is not None:
                if tracker is None or not chunk.continues:
                    tracker = error_scale.tracker(len(chunk.starts) - 1)
                errors = panel.target[chunk.rows] - found.prediction
                below, above = tracker.follow(chunk.hidden[0], errors, chunk.starts, levels)
                reach = found.prediction[:, None]
                found = Interval(found.prediction, reach + below, reach + above)
            yield chunk.rows, found

    def scored(
        self, panel: Panel, *, keep_hidden: bool = False, most: int = ROWS_AT_ONCE
    ) -> Iterator[tuple["ScoredChunk", DoubleArray]]:
        """Score a panel chunk by chunk, with linear predictions; fewer rows where hidden layers are kept."""
        scoring = _Scoring(self, keep_hidden=keep_hidden or self.adaptation is not None)
        size = min(most, _ROWS_AT_ONCE) if scoring.keep_hidden else most
        matched = self.matched(panel)
        for chunk, linear_predictions in self.pipeline.in_chunks(matched, most=size, context=self.window - 1):
            yield scoring(chunk), linear_predictions

    def memory(self, panel: Panel, first: int = 0, last: int | None = None) -> npt.NDArray[np.float32]:
        """Give the residual memory each row was predicted with: (N, E * M), member by member.

        Of rows ``first:last`` alone, if they are named.
        """
        last = len(panel) if last is None else last
        memory = np.empty((last - first, self.n_members * self.architecture.memory_size), np.float32)
        size, context = _ROWS_AT_ONCE, self.window - 1
        for one, _ in self.pipeline.in_chunks(self.matched(panel), most=size, context=context):
            begin, end = max(one.rows.start, first), min(one.rows.stop, last)
            if begin < end:
                states = self.scores(one.panel, keep_memory=True).memory  # (E, n, M)
                before = one.rows.start - one.context
                memory[begin - first : end - first] = np.concatenate(
                    list(states[:, begin - before : end - before]), axis=1
                )
        return memory

    def hidden(self, rows: Panel) -> Scores:
        """Score prepared rows, and keep the hidden layer each was read from."""
        return self.scores(rows, keep_hidden=True)

    def prepared(self, panel: Panel) -> Prepared:
        """Match a panel's columns with the model's, and prepare it for the network."""
        return self.pipeline(self.matched(panel))

    @cached_property
    def fingerprint(self) -> str:
        """Give a hash of everything a prediction depends on; equal models have equal ones."""
        digest = hashlib.sha256()
        facts = [
            self.architecture.as_dict(),
            self.window,
            self.shrinkage,
            self.pipeline.facts(),
            self.input_names,
            self.target_name,
        ]
        digest.update(json.dumps(facts, sort_keys=True).encode())
        learning = [] if self.adaptation is None else [self.adaptation.gain, *self.adaptation.numbers()]
        if self.error_scale is not None:
            learning += self.error_scale.arrays().values()
        for array in (*self.weights.as_dict().values(), *self.pipeline.arrays().values(), *learning):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def matched(self, panel: Panel) -> Panel:
        """Bring a panel's columns into the model's order."""
        if panel.input_names == self.input_names:
            return panel
        missing = [name for name in self.input_names if name not in panel.input_names]
        if missing:
            raise DataError(
                f"the model was fitted on {len(self.input_names)} inputs; the data lack {missing[:5]}. "
                f"They have {list(panel.input_names)[:10]}."
            )
        columns = [panel.input_names.index(name) for name in self.input_names]
        return replace(panel, inputs=panel.inputs[:, columns], input_names=self.input_names)

    def scored_chunks(self, rows: Panel) -> Iterator["ScoredChunk"]:
        """Score prepared rows some at a time, as their hidden layers are large; adapting, if it does."""
        yield from map(_Scoring(self), chunks(rows, most=_ROWS_AT_ONCE, context=self.window - 1))

    def scores(self, rows: Panel, *, keep_memory: bool = False, keep_hidden: bool = False) -> Scores:
        """Score prepared rows."""
        return score(
            self.architecture,
            self.weights,
            rows.inputs,
            rows.target,
            rows.first_rows,
            self.window,
            keep_memory=keep_memory,
            keep_hidden=keep_hidden,
        )


def last_rows_of(panel: Panel, pipeline: FeaturePipeline, rows: int) -> dict[str, LastRows]:
    """Keep the last rows of each series, gaps in their inputs filled."""
    filled = fill_gaps(panel, pipeline.fill, pipeline.initial_inputs)
    time = filled.time if has_times(filled.time) else None
    return {
        name: LastRows(
            inputs=filled.inputs[last - kept : last].copy(),
            target=filled.target[last - kept : last].copy(),
            time=None if time is None else time[last - kept : last].copy(),
        )
        for name, last, kept in zip(
            filled.ids, filled.starts[1:], np.minimum(filled.lengths, rows), strict=True
        )
    }


class ScoredChunk(NamedTuple):
    """Some prepared rows, scored."""

    rows: slice
    continues: bool  # whether they go on with the series of the chunk before
    starts: IntArray  # of its series, within it
    hidden: Any  # (E, N, K); None unless kept
    output: DoubleArray  # (N,)


class _Scoring:
    """Scores chunks of prepared rows, one after another; adapting from one to the next, if it does."""

    def __init__(self, fitted: Fitted, *, keep_hidden: bool = True) -> None:
        self.fitted, self.keep_hidden = fitted, keep_hidden
        self.adapter: Adapter | None = None

    def __call__(self, chunk: Chunk) -> ScoredChunk:
        fitted, context, panel = self.fitted, chunk.context, chunk.panel
        scores = fitted.scores(panel, keep_hidden=self.keep_hidden)
        outputs = scores.predictions[:, context:]
        hidden: Any = scores.hidden[:, context:] if self.keep_hidden else None
        starts = (panel.starts - context).clip(0)
        output = outputs.mean(axis=0, dtype=np.float64)
        if fitted.adaptation is not None:
            if self.adapter is None or not chunk.continues:
                self.adapter = Adapter(fitted.adaptation, panel.n_series)
            output += corrections(self.adapter, hidden, outputs, panel.target[context:], starts)
        return ScoredChunk(chunk.rows, chunk.continues, starts, hidden, output)
