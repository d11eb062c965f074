"""What fitting produces and a file holds: everything needed to predict, and nothing else.

No torch and no scikit-learn here: a fitted model predicts and streams on NumPy alone.
"""

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.cell import Architecture, Weights
from varnn.engine.scoring import Scores, score
from varnn.errors import DataError
from varnn.panel import FloatArray, Panel
from varnn.preparation import Fill, Scaling, fill_gaps


@dataclass(frozen=True, eq=False, kw_only=True)
class Tail:
    """The last rows of one training series, scaled: where a closed-loop forecast goes on from."""

    inputs: npt.NDArray[np.float32]  # (window - 1, D)
    target: npt.NDArray[np.float32]  # (window - 1,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A trained model.

    Parameters
    ----------
    architecture, weights
        The cell; its matrices carry a leading axis of ensemble members.
    scaling, fill, window
        How rows are prepared, and how many of them one prediction sees.
    input_names, target_name
        Columns the model was fitted on.
    tails
        Last training rows of each series.
    summary
        How the training went; plain values, shown by people and kept in the file's header.
    """

    architecture: Architecture
    weights: Weights
    scaling: Scaling
    fill: Fill
    window: int
    input_names: tuple[str, ...]
    target_name: str
    tails: dict[str, Tail] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def predict(self, panel: Panel) -> FloatArray:
        """Predict each row of a panel one step ahead, in the target's units, in panel order."""
        return self._restored(self._scores(self.prepared(panel)))

    def memory(self, panel: Panel) -> npt.NDArray[np.float32]:
        """Give the residual memory each row was predicted with: (N, E * M), member by member."""
        scores = self._scores(self.prepared(panel), keep_memory=True)
        return np.concatenate(list(scores.memory), axis=1)  # of (E, N, M)

    def continue_from_training(self, panel: Panel) -> FloatArray:
        """Predict rows that follow the training rows, with no labels: each error is taken as zero."""
        prepared = self.prepared(replace(panel, target=np.full(len(panel), np.nan)))
        pieces = []
        for index, name in enumerate(panel.ids):
            if name not in self.tails and not (panel.n_series == 1 == len(self.tails)):
                raise DataError(
                    f"without labels a prediction goes on after the training rows of its series; series "
                    f"{name!r} was not trained on. Give labels: predict(X, y), or predict(panel)."
                )
            tail = self.tails.get(name) or next(iter(self.tails.values()))
            rows = slice(panel.starts[index], panel.starts[index + 1])
            joined = replace(
                prepared,
                inputs=np.concatenate([tail.inputs, prepared.inputs[rows]]),
                target=np.concatenate([tail.target, prepared.target[rows]]),
                starts=np.array([0, len(tail.target) + panel.lengths[index]]),
            )
            scores = self._scores(joined, closed_loop=True)
            pieces.append(self._restored(scores)[len(tail.target) :])
        return np.concatenate(pieces)

    def prepared(self, panel: Panel) -> Panel:
        """Match a panel's columns with the model's, fill its gaps and scale it."""
        return self.scaling.apply(fill_gaps(self._matched(panel), self.fill, self.scaling.input_lead))

    @cached_property
    def fingerprint(self) -> str:
        """Give a hash of everything a prediction depends on; equal models have equal ones."""
        digest = hashlib.sha256()
        facts = [
            self.architecture.as_dict(),
            self.window,
            self.fill,
            self.input_names,
            self.target_name,
        ]
        digest.update(json.dumps(facts, sort_keys=True).encode())
        scaling = self.scaling
        for array in (
            *self.weights.as_dict().values(),
            scaling.input_offset,
            scaling.input_scale,
            scaling.input_lead,
            np.array([scaling.target_offset, scaling.target_scale]),
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _matched(self, panel: Panel) -> Panel:
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

    def _scores(self, prepared: Panel, *, closed_loop: bool = False, keep_memory: bool = False) -> Scores:
        return score(
            self.architecture,
            self.weights,
            prepared.inputs,
            prepared.target,
            prepared.first_rows,
            self.window,
            closed_loop=closed_loop,
            keep_memory=keep_memory,
        )

    def _restored(self, scores: Scores) -> FloatArray:
        return np.asarray(self.scaling.restore(scores.predictions.mean(axis=0, dtype=np.float64)))
