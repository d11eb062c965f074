"""The fitted model: what fitting produces, a file holds, and `varnn.model.prediction` predicts with.

No torch and no scikit-learn here: a fitted model predicts and streams by `varnn.step`.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from varnn._types import FloatArray, IntArray
from varnn.data.categories import Categories
from varnn.data.panel import Panel
from varnn.data.preparation import STANDARD_LIMIT, fill_gaps
from varnn.data.sampling import seconds_per_row
from varnn.model.calendar import has_times
from varnn.model.experts import Experts
from varnn.model.intervals import Calibrator
from varnn.model.pipeline import FeaturePipeline, Prepared
from varnn.model.runtime import step_model
from varnn.model.seasons import in_words
from varnn.model.training_record import TrainingRecord
from varnn.network.cell import Architecture, Weights
from varnn.step.layout import StepModel

Context = Literal["window", "series"]
SETTLED = 8  # windows, after which a state that is carried has forgotten where it began


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
    architecture, weights : Architecture, Weights
        The cell; its matrices carry a leading axis of ensemble members.
    pipeline, window : FeaturePipeline, int
        How rows are prepared, and how many of them the network was trained to look back on.
    context, state_limit : {"window", "series"}, float
        What a row is predicted from: a window of that many rows, or a state that is carried through all rows
        of its series, and begins again at zero if it grows beyond the limit (`varnn.step.cell`).
    input_names, target_name, time_name, series_name : tuple of str, str, str or None, str or None
        Columns the model was fitted on; there may have been none for time and series.
    experts : Experts or None, default=None
        What goes on learning, and how much each expert is believed at first; None if nothing learns on.
    calibrator : Calibrator or None
        How large errors are; None if that was not asked for.
    shrinkage : float, default=1.0
        Factor of the network's output before it is added to the linear prediction, from 0 to 1; where
        nothing learns on.
    positive : bool, default=False
        Whether the target cannot be negative: predictions stop at zero (`varnn.model.floor`).
    label_range : tuple or None, default=None
        Smallest and largest label that was given to fit; None in files that do not know. See `labels_known`.
    categories : mapping, optional
        Columns of texts, and the categories of each that have an input; see `varnn.data.categories`.
    last_rows : dict, optional
        Last training rows of each series.
    training : TrainingRecord
        How the training went.
    before_refit : Fitted or None, default=None
        The model as it was chosen, before it was trained again on all rows: the one that validation rows can
        still tell something of. It keeps no last rows, and lives in memory alone: files and pickles are
        without it.
    """

    architecture: Architecture
    weights: Weights
    pipeline: FeaturePipeline
    window: int
    input_names: tuple[str, ...]
    target_name: str
    context: Context = "window"
    state_limit: float = np.inf
    experts: Experts | None = None
    calibrator: Calibrator | None = None
    shrinkage: float = 1.0
    positive: bool = False
    label_range: tuple[float, float] | None = None
    time_name: str | None = None
    series_name: str | None = None
    categories: Categories = field(default_factory=dict)
    last_rows: dict[str, LastRows] = field(default_factory=dict)
    training: TrainingRecord = field(default_factory=TrainingRecord)
    before_refit: "Fitted | None" = None

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "step"}
        return {**kept, "before_refit": None}

    @cached_property
    def step(self) -> StepModel:
        """Its numbers as a step takes them; they are computed when they are first asked for."""
        return step_model(self)

    @property
    def n_members(self) -> int:
        """Number of networks whose predictions are averaged."""
        return len(self.weights.fusion)

    @property
    def carried(self) -> bool:
        """Whether the network's state is carried through a series."""
        return self.context == "series"

    @property
    def context_in_words(self) -> str:
        """What the network predicts a row from."""
        windows = f"windows of {self.window} row{'s' * (self.window > 1)}"
        return f"state carried through the series, trained on {windows}" if self.carried else windows

    @property
    def reach(self) -> int:
        """How many rows before it a row's prediction is made from, but for what goes on learning.

        A state that is carried comes from further back; after so many rows, where it began is forgotten.
        """
        return (SETTLED * self.window if self.carried else self.window - 1) + self.pipeline.reach

    @property
    def seconds_per_row(self) -> int | None:
        """Usual step of the last training rows, in seconds; None where they have no times."""
        known = [one.time for one in self.last_rows.values() if one.time is not None]
        if not known:
            return None
        return seconds_per_row(np.concatenate(known), np.cumsum([0, *(len(one) for one in known)]))

    @property
    def seasons(self) -> tuple[str, ...]:
        """Seasons that the linear part looks back on, in words."""
        periods = () if self.pipeline.linear is None else self.pipeline.linear.form.periods
        return tuple(in_words(one, self.seconds_per_row) for one in periods)

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

    def prepared(self, panel: Panel) -> Prepared:
        """Match a panel's columns with the model's, and prepare it for the network."""
        return self.pipeline(self.matched(panel))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything a prediction depends on; equal models have equal ones."""
        digest = hashlib.sha256()
        facts = [
            self.architecture.as_dict(),
            self.window,
            self.shrinkage,
            *([True] if self.positive else []),  # as before there were such
            *([self.context, self.state_limit] if self.carried else []),
            self.pipeline.facts(),
            self.input_names,
            self.target_name,
        ]
        digest.update(json.dumps(facts, sort_keys=True).encode())
        learning: list[Any] = [] if self.experts is None else list(self.experts.arrays().values())
        if self.calibrator is not None:
            learning += self.calibrator.arrays().values()
        for array in (*self.weights.as_dict().values(), *self.pipeline.arrays().values(), *learning):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def matched(self, panel: Panel) -> Panel:
        """Bring a panel's columns into the model's order."""
        return panel.with_inputs(self.input_names)


def last_rows_of(panel: Panel, pipeline: FeaturePipeline, rows: int) -> dict[str, LastRows]:
    """Keep the last rows of each series, gaps in their inputs filled; the first has the last label known."""
    filled = fill_gaps(panel, pipeline.fill, pipeline.initial_inputs)
    time = filled.time if has_times(filled.time) else None
    first = np.maximum(filled.starts[1:] - rows, filled.starts[:-1])
    last_rows = {}
    for name, begin, end, label in zip(
        filled.ids, first, filled.starts[1:], labels_up_to(filled, first), strict=True
    ):
        target = filled.target[begin:end].copy()
        target[:1] = label
        last_rows[name] = LastRows(
            inputs=filled.inputs[begin:end].copy(),
            target=target,
            time=None if time is None else time[begin:end].copy(),
        )
    return last_rows


def labels_up_to(panel: Panel, rows: IntArray) -> FloatArray:
    """Last label known up to one row of each series, with its own: (S,); NaN where there is none.

    Examples
    --------
    >>> labels_up_to(Panel.from_arrays(None, [1.0, None, None, 4.0]), np.array([2])).tolist()
    [1.0]
    """
    labels = np.full(panel.n_series, np.nan, panel.target.dtype)
    for index, (begin, row) in enumerate(zip(panel.starts[:-1], rows, strict=True)):
        known = ~np.isnan(panel.target[begin : row + 1])
        if known.any():
            labels[index] = panel.target[row - np.argmax(known[::-1])]
    return labels
