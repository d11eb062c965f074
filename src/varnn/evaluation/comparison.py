"""Models on one panel, scored alike: protocols -> fits -> scores -> significance.

Where a panel is cut is in `varnn.evaluation.protocols`; what the scores say, in words and pictures, in
`varnn.report.comparison_page`.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np

from varnn import baselines
from varnn._types import BoolArray, FloatArray
from varnn.data import allocator
from varnn.data.leaks import tell_leaks
from varnn.data.panel import Panel
from varnn.data.rules import whole
from varnn.errors import ConfigError, DataError, check_choice, require
from varnn.estimator.packages import check_packages
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation._fits import Cuts, refuse_epochs, results
from varnn.evaluation.metrics import DEFAULT, check_names, of_intervals
from varnn.evaluation.protocols import Parts, ProtocolName, as_panel
from varnn.evaluation.scores import Comparison, Predicted, Score, TestBlock, score_blocks
from varnn.model.intervals import check_levels
from varnn.network.cell import VARIANTS


class Model(Protocol):
    """What a model must offer to be compared.

    Metrics of intervals are for models whose ``predict`` takes ``interval``, a level, and then gives
    predictions, lower and upper bounds, an array of one number per row each.
    """

    def fit(self, panel: Any, /, *, validation: Panel | None = None) -> Any:
        """Learn from a panel, choosing on the validation panel."""
        ...

    def predict(self, panel: Any, /) -> FloatArray:
        """Predict every row of a panel one step ahead."""
        ...


def make_model(name: str, seed: int) -> Model:
    """Make a model by name: a variant of the paper ("RM"), "varnn" (our default) or a baseline.

    Parameters
    ----------
    name : str
        ``"varnn"``, a variant such as ``"ARM+AM"``, or one of ``baselines.NAMES``.
    seed : int
        What it draws from; models that draw nothing take no notice.

    Returns
    -------
    Model
        Not fitted.

    Examples
    --------
    >>> make_model("ARM", seed=1).get_params()["variant"]
    'ARM'
    """
    if name == "varnn":
        return VARNNRegressor(random_state=seed)
    if name in VARIANTS:
        return VARNNRegressor.paper(name, random_state=seed)
    return baselines.make(name, random_state=seed)


def check_models(names: Sequence[str]) -> None:
    """Refuse names that are no models, and models whose packages are not installed: before the first fit.

    Parameters
    ----------
    names : sequence of str
        Names for :func:`make_model`.

    Examples
    --------
    >>> check_models(["persistence", "varnn"])
    """
    made = [make_model(name, 0) for name in names]
    for model in made:  # first, as what training needs brings what the others need
        if isinstance(model, VARNNRegressor):
            check_packages(model)
    for model in made:
        if not isinstance(model, VARNNRegressor):
            getattr(model, "check_packages", lambda: None)()
    require("scipy", extra="baselines", purpose="comparing models")  # the test of a difference


def compare(
    panel: Panel,
    models: Sequence[str | tuple[str, Callable[[int], Model]]] = ("persistence", "arx-lr", "varnn"),
    *,
    protocol: ProtocolName = "honest",
    seeds: int = 5,
    origins: int = 1,
    parts: Parts | None = None,
    metrics: Sequence[str] = DEFAULT,
    interval: float = 0.9,
    on_score: Callable[[Score], None] | None = None,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
    workers: int | None = None,
    cluster: str | None = None,
) -> Comparison:
    """Fit and score models on one panel under one protocol.

    Parameters
    ----------
    panel : Panel
        The rows.
    models : sequence of str or (str, callable), default ("persistence", "arx-lr", "varnn")
        Names for :func:`make_model`, or pairs of a name and a function from a seed to a model.
    protocol : {"honest", "paper"}, default "honest"
        Where to cut, and what is chosen on which part; see `varnn.evaluation.protocols`.
    seeds : int, default 5
        Seeds 2025, 2026, ...; a model that draws nothing is fitted once.
    origins : int, default 1
        With more than one, a rolling-origin backtest: every model is fitted anew at each of
        :func:`varnn.evaluation.protocols.rolling`'s origins, on the rows before it alone, and scored on the
        block of rows after it.
    parts : Parts, optional
        A cut of your own, instead of the protocol's cut in time.
    metrics : sequence of str, default ("rmse", "mae", "skill")
        What to show, by name; `varnn.evaluation.metrics` has them. Those of intervals are None for models
        that give none.
    interval : float, default 0.9
        Level of the intervals that such metrics judge.
    on_score, on_epoch : callable, optional
        Called after each fit with its score (that of one origin), and after each epoch of a VARNN, for
        progress; the latter without `workers` and `cluster` only.
    workers : int, optional
        Fits at a time, each in a process of its own on one core. If not given, one after the other in this
        process, on all cores. Scores are the same.
    cluster : str, optional
        A Ray cluster to fit on, "auto" or its address; see :func:`varnn.jobs.run`.

    Returns
    -------
    Comparison
        A score per model and seed; lines for tables, differences and their significance.

    Examples
    --------
    >>> from varnn import datasets, evaluation
    >>> panel = datasets.load("synthetic", kind="drift", rows=800)
    >>> table = evaluation.compare(panel, ["persistence", "arx-lr"], seeds=1, origins=4, metrics=["mase"])
    >>> [(line["model"], round(line["mase"], 2)) for line in table.rows()]
    [('arx-lr', 0.73), ('persistence', 0.95)]
    >>> len(table.truth), len(table.of("arx-lr")[0].mse_by_origin)
    (400, 4)
    """
    for setting, value in (("seeds", seeds), ("origins", origins)):
        if wrong := whole(1).broken(setting, value):
            raise ConfigError(wrong)
    named = _named(models)
    asked, levels = check_names(metrics), check_levels(interval)
    if len(levels) != 1:
        raise ConfigError(f"metrics of intervals are about one level; got interval={interval!r}. Give one.")
    level = float(levels[0])
    bounded = any(of_intervals(one) for one in asked)
    refuse_epochs(on_epoch, workers, cluster)
    panel = as_panel(panel)
    where = _cuts(panel, protocol, origins, parts)
    cuts = [where.at(origin) for origin in range(origins)]
    tell_leaks([one.train for one in cuts])
    blocks = [_block(one) for one in cuts]
    drawn = {name: range(2025, 2025 + (1 if name in DETERMINISTIC else seeds)) for name, _ in named}
    listed = [(name, seed, origin) for name, _ in named for seed in drawn[name] for origin in range(origins)]
    last = {name: (name, drawn[name][-1], origins - 1) for name, _ in named}
    shared = _Shared(where, dict(named), frozenset(last.values()), level if bounded else None, on_epoch)
    found: dict[_Job, _Fit] = {}
    for place, fit in results(_fit_one, listed, shared, workers=workers, cluster=cluster):
        name, seed, origin = listed[place]
        found[listed[place]] = fit
        if on_score is not None:
            one = [blocks[origin]], [fit.predicted], [fit.seconds]
            on_score(score_blocks(name, seed, *one, asked=asked, level=level))
    scores = []
    for name, seed in dict.fromkeys((name, seed) for name, seed, _ in listed):
        fits = [found[name, seed, origin] for origin in range(origins)]
        every = blocks, [fit.predicted for fit in fits], [fit.seconds for fit in fits]
        scores.append(score_blocks(name, seed, *every, asked=asked, level=level))
    truth = np.concatenate([block.truth for block in blocks])
    kept = {name: found[last[name]].model for name in last}
    return Comparison(cuts[0], scores, truth, cuts[1:], kept, asked, level)


_Job = tuple[str, int, int]  # name of a model, seed, origin


class _Fit(NamedTuple):
    predicted: Predicted
    seconds: float
    model: Model | None  # where it is the last of its name


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all fits of a comparison need."""

    cuts: Cuts
    makers: dict[str, Callable[[int], Model]]
    kept: frozenset[_Job]
    level: float | None
    on_epoch: Callable[[dict[str, float]], None] | None


def _fit_one(job: _Job, shared: _Shared) -> _Fit:
    """Fit one model from one seed at one origin, and predict the rows that are scored there."""
    name, seed, origin = job
    allocator.release()  # of the model before
    parts = shared.cuts.at(origin)
    model = shared.makers[name](seed)
    began = time.perf_counter()
    _fit(model, parts, shared.on_epoch)
    seconds = time.perf_counter() - began
    predicted = _predicted(parts, parts.scored(), model, shared.level)
    return _Fit(predicted, seconds, model if job in shared.kept else None)


# Models that draw nothing: those that take no seed, and boosting, which draws only to bin many rows.
DETERMINISTIC = frozenset(
    {
        "narx-gbm",
        "seasonal-gbm",
        *(name for name in baselines.NAMES if "random_state" not in baselines.options(name)),
    }
)


def predict_scored_rows(parts: Parts, scored: BoolArray, model: Model) -> FloatArray:
    """Predict the scored rows; a model may see every label before the row it predicts."""
    return np.asarray(model.predict(parts.lead_in)[scored], dtype=np.float64)


def _predicted(parts: Parts, scored: BoolArray, model: Model, level: float | None) -> Predicted:
    """Predictions of the scored rows; with a level, their bounds too, if the model gives any."""
    predictions = predict_scored_rows(parts, scored, model)
    if level is None or "interval" not in inspect.signature(model.predict).parameters:
        return Predicted(predictions)
    giving: Any = model
    try:
        found = giving.predict(parts.lead_in, interval=level)
    except ConfigError:  # the level is fine, so it is a model that was fitted without intervals
        return Predicted(predictions)
    rows, given = (len(parts.lead_in),), list(found) if isinstance(found, Iterable) else []
    if [np.shape(one) for one in given] != [rows] * 3:
        raise DataError(
            f"{type(model).__name__}.predict(panel, interval={level:g}) must give predictions, lower and "
            f"upper bounds, three arrays of shape {rows}; it gave {type(found).__name__} of {len(given)}. "
            "Without `interval` among the arguments of predict it is a model without intervals."
        )
    return Predicted(predictions, *(np.asarray(one, np.float64)[scored] for one in given[1:]))


def _cuts(panel: Panel, protocol: ProtocolName, origins: int, parts: Parts | None) -> Cuts:
    check_choice("protocol", protocol, get_args(ProtocolName))
    if origins > 1 and (parts is not None or protocol == "paper"):
        what = "a cut of your own" if parts is not None else "the paper's protocol"
        raise ConfigError(
            f"rolling origins are cuts of the honest protocol, and cannot go with {what}; "
            f"got origins={origins}. Leave one of the two out."
        )
    return Cuts(panel, protocol, origins, parts)


def _named(models: Any) -> list[tuple[str, Callable[[int], Model]]]:
    """Read the models of a comparison: names, or pairs of a name and what makes one from a seed."""
    found: list[tuple[str, Callable[[int], Model]]] = []
    given = [models] if isinstance(models, str) else list(models)
    for one in given:
        pair = (one, _maker(one)) if isinstance(one, str) else one
        if not (
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and callable(pair[1])
        ):
            raise ConfigError(
                "models must be names, or pairs of a name and a function from a seed to a model, such as "
                f"('mine', lambda seed: VARNNRegressor(random_state=seed)); got {type(one).__name__}."
            )
        found.append(pair)
    check_models([one for one in given if isinstance(one, str)])
    names = [name for name, _ in found]
    if not found or len(set(names)) < len(names):
        raise ConfigError(f"models must be one or more, each under a name of its own; got {names}.")
    return found


def _maker(name: str) -> Callable[[int], Model]:
    return partial(make_model, name)


def _fit(model: Model, parts: Parts, on_epoch: Callable[[dict[str, float]], None] | None) -> None:
    if isinstance(model, VARNNRegressor):
        model.fit(parts.train, validation=parts.validation, on_epoch=on_epoch)
        if model.fitted_.training.interrupted is not None:  # half a model is not to be compared
            raise KeyboardInterrupt
    else:
        model.fit(parts.train, validation=parts.validation)


def _block(parts: Parts) -> TestBlock:
    scored = parts.scored()
    return TestBlock(
        parts, scored, predict_scored_rows(parts, scored, make_model("persistence", 0).fit(parts.train))
    )
