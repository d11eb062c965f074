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

from varnn.adaptation import Adaptation, Adapter, corrections
from varnn.cell import Architecture, Weights
from varnn.clock import has_clock
from varnn.engine.scoring import Scores, score
from varnn.errors import DataError
from varnn.intervals import Interval, Spread, Tracker, follow, known_spread
from varnn.panel import FloatArray, Panel
from varnn.preparation import fill_gaps
from varnn.recipe import Prepared, Recipe

_ROWS_AT_ONCE = 1 << 16  # whose hidden layers are kept: 64 MB for 4 members of 64 units


@dataclass(frozen=True, eq=False, kw_only=True)
class Tail:
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
    recipe, window
        How rows are prepared, and how many of them one prediction sees.
    input_names, target_name
        Columns the model was fitted on.
    adaptation
        How the readout goes on learning; None if it does not.
    spread
        How large errors are; None if that was not asked for.
    share
        How much of the network's output is added to the linear part: 0 is none of it, 1 all.
    tails
        Last training rows of each series.
    summary
        How the training went; plain values, shown by people and kept in the file's header.
    """

    architecture: Architecture
    weights: Weights
    recipe: Recipe
    window: int
    input_names: tuple[str, ...]
    target_name: str
    adaptation: Adaptation | None = None
    spread: Spread | None = None
    share: float = 1.0
    tails: dict[str, Tail] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def n_members(self) -> int:
        """Number of networks whose predictions are averaged."""
        return len(self.weights.fusion)

    def predict(self, panel: Panel) -> FloatArray:
        """Predict each row of a panel one step ahead, in the target's units, in panel order."""
        prepared = self.prepared(panel)
        if self.adaptation is None:
            output = self._scores(prepared.panel).predictions.mean(axis=0, dtype=np.float64)
        else:
            output = np.concatenate([piece.output for piece in self.pieces(prepared.panel)])
        return np.asarray(self.recipe.restore(output, prepared.anchors, self.share))

    def predict_intervals(self, panel: Panel, levels: npt.NDArray[np.float64]) -> Interval:
        """Predict each row with intervals of some levels: bounds are (N, L)."""
        spread = known_spread(self.spread)
        prepared = self.prepared(panel)
        predictions, below, above = np.empty(len(panel)), [], []
        tracker = Tracker(spread, 1)
        for piece in self.pieces(prepared.panel):
            rows = piece.rows
            predictions[rows] = self.recipe.restore(piece.output, prepared.anchors[rows], self.share)
            if not piece.goes_on:
                tracker = Tracker(spread, len(piece.starts) - 1)
            errors = panel.target[rows] - predictions[rows]
            low, high = follow(tracker, piece.hidden[0], errors, piece.starts, levels)
            below.append(low)
            above.append(high)
        reach = predictions[:, None]
        return Interval(predictions, reach + np.concatenate(below), reach + np.concatenate(above))

    def memory(self, panel: Panel) -> npt.NDArray[np.float32]:
        """Give the residual memory each row was predicted with: (N, E * M), member by member."""
        scores = self._scores(self.prepared(panel).panel, keep_memory=True)
        return np.concatenate(list(scores.memory), axis=1)  # of (E, N, M)

    def hidden(self, rows: Panel) -> Scores:
        """Score prepared rows, and keep the hidden layer each was read from."""
        return self._scores(rows, keep_hidden=True)

    def prepared(self, panel: Panel) -> Prepared:
        """Match a panel's columns with the model's, and prepare it for the network."""
        return self.recipe(self.matched(panel))

    @cached_property
    def fingerprint(self) -> str:
        """Give a hash of everything a prediction depends on; equal models have equal ones."""
        digest = hashlib.sha256()
        facts = [
            self.architecture.as_dict(),
            self.window,
            self.share,
            self.recipe.facts(),
            self.input_names,
            self.target_name,
        ]
        digest.update(json.dumps(facts, sort_keys=True).encode())
        learning = [] if self.adaptation is None else [self.adaptation.gain, *self.adaptation.numbers()]
        if self.spread is not None:
            learning += [self.spread.weights, self.spread.quantiles, self.spread.unit]
        for array in (*self.weights.as_dict().values(), *self.recipe.arrays().values(), *learning):
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

    def pieces(self, rows: Panel) -> Iterator["Piece"]:
        """Score prepared rows some at a time, as their hidden layers are large; adapting, if it does.

        A piece is whole series side by side, or one of several stretches of one long series.
        """
        for first, last in _groups(rows.starts):
            series = slice(int(rows.starts[first]), int(rows.starts[last]))
            alone = last == first + 1
            adapter = None
            if self.adaptation is not None:
                adapter = Adapter(self.adaptation, last - first)
            for begin in range(series.start, series.stop, _ROWS_AT_ONCE if alone else len(rows)):
                end = min(begin + _ROWS_AT_ONCE, series.stop) if alone else series.stop
                lead = min(begin - series.start, self.window - 1)
                scores = score(
                    self.architecture,
                    self.weights,
                    rows.inputs[begin - lead : end],
                    rows.target[begin - lead : end],
                    np.maximum(rows.first_rows[begin - lead : end] - (begin - lead), 0),
                    self.window,
                    keep_hidden=True,
                )
                hidden, outputs = scores.hidden[:, lead:], scores.predictions[:, lead:]
                starts = np.array([0, end - begin]) if alone else rows.starts[first : last + 1] - begin
                output = outputs.mean(axis=0, dtype=np.float64)
                if adapter is not None:
                    output += corrections(adapter, hidden, outputs, rows.target[begin:end], starts)
                yield Piece(slice(begin, end), begin > series.start, starts, hidden, output)

    def _scores(self, rows: Panel, *, keep_memory: bool = False, keep_hidden: bool = False) -> Scores:
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


def tails_of(panel: Panel, recipe: Recipe, rows: int) -> dict[str, Tail]:
    """Keep the last rows of each series, gaps in their inputs filled."""
    filled = fill_gaps(panel, recipe.fill, recipe.lead)
    time = filled.time if has_clock(filled.time) else None
    return {
        name: Tail(
            inputs=filled.inputs[last - kept : last].copy(),
            target=filled.target[last - kept : last].copy(),
            time=None if time is None else time[last - kept : last].copy(),
        )
        for name, last, kept in zip(
            filled.ids, filled.starts[1:], np.minimum(filled.lengths, rows), strict=True
        )
    }


class Piece(NamedTuple):
    """Some prepared rows, scored."""

    rows: slice
    goes_on: bool  # whether it goes on with the series of the piece before
    starts: npt.NDArray[np.int64]  # of its series, within it
    hidden: npt.NDArray[np.float32]  # (E, N, K)
    output: npt.NDArray[np.float64]  # (N,)


def _groups(starts: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut a panel into runs of whole series of about `_ROWS_AT_ONCE` rows: numbers of first and last + 1."""
    first = 0
    for last in range(1, len(starts)):
        if last == len(starts) - 1 or starts[last + 1] - starts[first] > _ROWS_AT_ONCE:
            yield first, last
            first = last
