"""Models on one panel, judged alike: protocols, metrics, significance.

``honest`` (the default) cuts 64 / 16 / 20 in time order, fits on the first part, chooses on the second
and reads the third once. ``paper`` cuts 80 / 20 and picks the best epoch on the test part, as
published; it exists to compare with the paper's tables, and its scores are optimistic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from varnn import baselines
from varnn.cell import VARIANTS
from varnn.errors import ConfigError, DataError, check_choice
from varnn.panel import FloatArray, Panel
from varnn.preparation import split_in_time
from varnn.regressor import VARNNRegressor
from varnn.significance import diebold_mariano
from varnn.windows import window_ends

ProtocolName = Literal["honest", "paper"]
PAPER_WINDOW = 5


class Model(Protocol):
    """What a model must offer to be judged."""

    def fit(self, panel: Any, /, *, validation: Panel | None = None) -> Any:
        """Learn from a panel, choosing on the validation panel."""
        ...

    def predict(self, panel: Any, /) -> FloatArray:
        """Predict every row of a panel one step ahead."""
        ...


@dataclass(frozen=True, eq=False)
class Parts:
    """A panel cut for evaluation.

    Parameters
    ----------
    train, validation, test
        The parts; under the paper's protocol validation is test.
    lead_in
        Rows that end with the test rows: a model predicts all of them, so that the first test rows
        have a past. Only predictions of test rows are scored.
    """

    train: Panel
    validation: Panel
    test: Panel
    lead_in: Panel
    protocol: ProtocolName

    @property
    def unit(self) -> float:
        """Range of the target over all rows before the test part: the paper's unit of error.

        Both protocols thereby print in the same unit, whatever they train on.
        """
        known = self.train.target
        if self.protocol != "paper":
            known = np.concatenate([known, self.validation.target])
        return float(np.nanmax(known) - np.nanmin(known)) or 1.0

    def scored(self) -> npt.NDArray[np.bool_]:
        """Mark the rows of ``lead_in`` that are scored: test rows with a known target.

        The paper scores only test rows with a full window of 5 inside the test part.
        """
        if self.protocol == "paper":
            marked = np.zeros(len(self.lead_in), dtype=bool)
            marked[window_ends(self.test, PAPER_WINDOW)] = True
            return marked
        return np.isin(self.lead_in.rows, self.test.rows) & ~np.isnan(self.lead_in.target)


def cut(panel: Panel, protocol: ProtocolName = "honest") -> Parts:
    """Cut each series in time order as a protocol says.

    Examples
    --------
    >>> parts = cut(Panel.from_arrays(None, range(100)))
    >>> len(parts.train), len(parts.validation), len(parts.test), int(parts.scored().sum())
    (64, 16, 20, 20)
    """
    check_choice("protocol", protocol, get_args(ProtocolName))
    if protocol == "paper":
        train, test = split_in_time(panel, 0.8, 0.2)
        parts = Parts(train, test, test, test, protocol)
    else:
        train, validation, test = split_in_time(panel, 0.64, 0.16, 0.2)
        parts = Parts(train, validation, test, split_in_time(panel, 0.64, 0.36)[1], protocol)
    return checked(parts)


def checked(parts: Parts) -> Parts:
    """Refuse parts that leave nothing to learn from or to score."""
    for name in ("train", "validation", "test"):
        if len(getattr(parts, name)) == 0 or np.isnan(getattr(parts, name).target).all():
            raise DataError(
                f"each part of a split needs rows with a known target; the {name} part has none. "
                "Give more rows."
            )
    return parts


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """How one fitted model did on the test rows.

    Parameters
    ----------
    model, seed
        Which model, from which seed.
    mse, rmse, mae
        In the target's own units.
    scaled_mse
        Mean squared error in units of the target's range before the test part, as the paper prints.
    median_series_mse
        Median over series of each series' own mean squared error, own units.
    skill
        1 - mse / mse of persistence.
    seconds
        Time to fit.
    predictions
        Of the scored rows.
    """

    model: str
    seed: int
    mse: float
    rmse: float
    mae: float
    scaled_mse: float
    median_series_mse: float
    skill: float
    seconds: float
    predictions: FloatArray


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of several models on the same rows; :meth:`rows` summarises them over seeds."""

    parts: Parts
    scores: list[Score]
    truth: FloatArray

    def of(self, model: str) -> list[Score]:
        """Give the scores of one model, one per seed."""
        return [score for score in self.scores if score.model == model]

    def rows(self) -> list[dict[str, Any]]:
        """Give one line per model, best first: means over seeds, spread, p against the best other."""
        names = list(dict.fromkeys(score.model for score in self.scores))
        lines = []
        for name in names:
            scores = self.of(name)
            values = np.array([score.scaled_mse for score in scores])
            lines.append(
                {
                    "model": name,
                    "seeds": len(scores),
                    "rmse": float(np.mean([score.rmse for score in scores])),
                    "mae": float(np.mean([score.mae for score in scores])),
                    "skill": float(np.mean([score.skill for score in scores])),
                    "scaled_mse": float(values.mean()),
                    "spread": float(values.std(ddof=1)) if len(values) > 1 else 0.0,
                    "median_series_mse": float(np.mean([one.median_series_mse for one in scores])),
                    "seconds": float(np.mean([score.seconds for score in scores])),
                }
            )
        return sorted(lines, key=lambda line: float(line["scaled_mse"]))

    def errors(self, model: str) -> FloatArray:
        """Give truth minus the mean prediction over seeds, for the scored rows."""
        return np.asarray(self.truth - np.mean([score.predictions for score in self.of(model)], axis=0))

    def against(self, model: str, other: str) -> tuple[float, float]:
        """Compare two models' squared errors: relative difference of their means, and its p value."""
        first, second = (np.square(self.errors(name)) for name in (model, other))
        return float(first.mean() / second.mean() - 1), diebold_mariano(first, second)


def make_model(name: str, seed: int) -> Model:
    """Make a model by name: a variant of the paper ("RM"), "varnn" (our default) or a baseline.

    Examples
    --------
    >>> make_model("ARM", seed=1).get_params()["variant"]
    'ARM'
    """
    if name == "varnn":
        return VARNNRegressor(random_state=seed)
    if name in VARIANTS:
        return VARNNRegressor.paper(name, random_state=seed)  # type: ignore[arg-type]  # one of VARIANTS
    return baselines.make(name, random_state=seed)


def compare(
    panel: Panel,
    models: Sequence[str | tuple[str, Callable[[int], Model]]] = ("persistence", "arx-lr", "varnn"),
    *,
    protocol: ProtocolName = "honest",
    seeds: int = 5,
    parts: Parts | None = None,
    on_score: Callable[[Score], None] | None = None,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> Comparison:
    """Fit and score models on one panel under one protocol.

    Parameters
    ----------
    panel
        The rows.
    models
        Names for :func:`make_model`, or pairs of a name and a function from a seed to a model.
    protocol
        ``"honest"`` or ``"paper"``.
    seeds
        Seeds 2025, 2026, ...; a model that draws nothing is fitted once.
    parts
        A cut of your own, instead of the protocol's cut in time.
    on_score, on_epoch
        Called after each fit, and after each epoch of a VARNN, for progress.

    Examples
    --------
    >>> from varnn import datasets, evaluation
    >>> panel = datasets.load("synthetic", kind="drift", rows=800)
    >>> table = evaluation.compare(panel, ["persistence", "arx-lr"], seeds=1)
    >>> [line["model"] for line in table.rows()]
    ['arx-lr', 'persistence']
    """
    if seeds < 1:
        raise ConfigError(f"seeds must be at least 1; got {seeds}.")
    parts = cut(panel, protocol) if parts is None else parts
    scored = parts.scored()
    truth = parts.lead_in.target[scored]
    naive = judge(parts, scored, make_model("persistence", 0).fit(parts.train))
    reference = float(np.mean(np.square(truth - naive)))
    scores = []
    for model in models:
        name, make = model if isinstance(model, tuple) else (model, _maker(model))
        for seed in range(2025, 2025 + (1 if name in DETERMINISTIC else seeds)):
            fitted = make(seed)
            began = time.perf_counter()
            if isinstance(fitted, VARNNRegressor):
                fitted.fit(parts.train, validation=parts.validation, on_epoch=on_epoch)
            else:
                fitted.fit(parts.train, validation=parts.validation)
            seconds = time.perf_counter() - began
            predictions = judge(parts, scored, fitted)
            score = _score(name, seed, parts, scored, predictions, reference, seconds)
            scores.append(score)
            if on_score is not None:
                on_score(score)
    return Comparison(parts, scores, truth)


DETERMINISTIC = frozenset(
    {"persistence", "lr", "arx-lr", "narx-gbm", "rls-arx", "armax"}
)  # these draw nothing


def _maker(name: str) -> Callable[[int], Model]:
    return lambda seed: make_model(name, seed)


def judge(parts: Parts, scored: npt.NDArray[np.bool_], model: Model) -> FloatArray:
    """Predict the scored rows; a model may see every label before the row it predicts."""
    return np.asarray(model.predict(parts.lead_in)[scored], dtype=np.float64)


def _score(
    name: str,
    seed: int,
    parts: Parts,
    scored: npt.NDArray[np.bool_],
    predictions: FloatArray,
    reference: float,
    seconds: float,
) -> Score:
    errors = parts.lead_in.target[scored] - predictions
    series = np.repeat(np.arange(parts.lead_in.n_series), parts.lead_in.lengths)[scored]
    counts = np.bincount(series, minlength=parts.lead_in.n_series)
    sums = np.bincount(series, weights=errors**2, minlength=parts.lead_in.n_series)
    mse = float(np.mean(errors**2))
    return Score(
        model=name,
        seed=seed,
        mse=mse,
        rmse=mse**0.5,
        mae=float(np.mean(np.abs(errors))),
        scaled_mse=mse / parts.unit**2,
        median_series_mse=float(np.median(sums[counts > 0] / counts[counts > 0])),
        skill=1 - mse / reference if reference else 0.0,
        seconds=seconds,
        predictions=predictions,
    )
