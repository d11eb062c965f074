"""One trial: settings, fitted and scored at each origin. Runs here, in another process or on a cluster.

What makes a trial cheaper than a fit at each origin: one member, no intervals, no second training on all
rows, the calendar that the default took there, and an end as soon as it is seen to be behind (`pruning`). The
best few are measured again as they would be used; see `search`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from varnn._types import DoubleArray
from varnn.estimator.contract import unfitted
from varnn.estimator.input import seed_of
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.comparison import predict_scored_rows
from varnn.evaluation.protocols import Parts
from varnn.scale.tuning.pruning import Curve, NotWorthItError, Standing
from varnn.scale.tuning.rows import Rows

SEEDS_APART = 1000  # between seeds of the verdict: members of a model have consecutive ones

Ended = Literal["through", "behind", "out of time"]


class Common(NamedTuple):
    """What all trials of a search share, sent to each process once."""

    model: VARNNRegressor
    rows: Rows
    by_epoch: bool  # whether losses of networks can be set beside the default's


@dataclass(frozen=True)
class Default:
    """What is known of the default at each origin, from trial 0."""

    errors: tuple[float, ...]
    losses: tuple[float, ...]
    calendars: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class TrialJob:
    """A trial to run; without a default, it is the default."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    default: Default | None = None
    limits: Curve = field(default_factory=dict)
    seconds: float = math.inf  # after which it is to end


@dataclass(frozen=True, kw_only=True)
class FinalJob:
    """A trial to measure again at each origin, with all its members."""

    settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TestJob:
    """A model to fit on all rows but the test rows, and to predict these with."""

    settings: Mapping[str, Any]
    seed: int


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """What a trial came to."""

    ended: Ended
    errors: tuple[float, ...]
    losses: tuple[float, ...] = ()
    calendars: tuple[tuple[str, ...], ...] = ()
    curve: Curve = field(default_factory=dict)


class _OutOfTimeError(Exception):
    """Ends a trial when there is no time left."""


def run_trial(job: TrialJob, common: Common) -> TrialResult:
    """Fit and score a trial's settings at one origin after the other."""
    began = time.perf_counter()
    origins = common.rows.origins
    errors: list[float] = []
    losses: list[float] = []
    calendars: list[tuple[str, ...]] = []
    ended: Ended = "through"
    default = job.default
    standing = None if default is None else Standing(default.errors, default.losses, job.limits)
    try:
        for index, parts in enumerate(origins):
            changes = {"ensemble": 1, **job.settings}
            if default is not None and "calendar" not in changes:
                changes["calendar"] = list(default.calendars[index])
            lowest = math.inf

            def on_epoch(line: dict[str, float], index: int = index) -> None:
                nonlocal lowest
                lowest = min(lowest, line["validation_loss"])
                if time.perf_counter() - began > job.seconds:
                    raise _OutOfTimeError
                if standing is not None and common.by_epoch:
                    standing.epoch(index, progress=line["progress"], loss=line["validation_loss"])

            model = _fitted(common.model, changes, parts, on_epoch)
            errors.append(_error(model, parts))
            losses.append(lowest)
            calendars.append(tuple(model.fitted_.pipeline.calendar))
            if standing is not None:
                standing.origin(index, errors[-1])
    except NotWorthItError:
        ended = "behind"
    except _OutOfTimeError:
        ended = "out of time"
    return TrialResult(
        ended=ended,
        errors=tuple(errors),
        losses=tuple(losses),
        calendars=tuple(calendars),
        curve={} if standing is None else standing.curve,
    )


def run_final(job: FinalJob, common: Common) -> tuple[float, ...]:
    """Errors at each origin of a model with all its members."""
    return tuple(
        _error(_fitted(common.model, dict(job.settings), parts), parts) for parts in common.rows.origins
    )


def run_test(job: TestJob, common: Common) -> DoubleArray:
    """Squared errors of the test rows, by a model fitted as it is meant to be used."""
    seed = seed_of(common.model.random_state) + SEEDS_APART * (1 + job.seed)
    model = changed(common.model, {**job.settings, "random_state": seed, "intervals": False, "horizon": 1})
    parts = common.rows.test
    with quiet():
        model.fit(parts.train)
    return _squares(_whole(model), parts)


def run_job(job: TrialJob | FinalJob | TestJob, common: Common) -> Any:
    """Run any of the three, for processes that get all of them."""
    if isinstance(job, TrialJob):
        return run_trial(job, common)
    return run_final(job, common) if isinstance(job, FinalJob) else run_test(job, common)


def changed(model: VARNNRegressor, settings: Mapping[str, Any]) -> VARNNRegressor:
    """A model like another, not fitted, with some settings of its own."""
    found: VARNNRegressor = unfitted(model).set_params(**settings, verbose=0)
    return found


def _fitted(
    model: VARNNRegressor,
    settings: Mapping[str, Any],
    parts: Parts,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> VARNNRegressor:
    """Fit on the rows before an origin; intervals and forecasts have no part in the error."""
    one = changed(model, {**settings, "intervals": False, "refit": False, "horizon": 1})
    with quiet():
        return _whole(one.fit(parts.train, validation=parts.validation, on_epoch=on_epoch))


def _whole(model: VARNNRegressor) -> VARNNRegressor:
    if model.fitted_.training.interrupted is not None:  # Ctrl-C: half a model is not to be scored
        raise KeyboardInterrupt
    return model


def _error(model: VARNNRegressor, parts: Parts) -> float:
    return float(np.mean(_squares(model, parts)))


def _squares(model: VARNNRegressor, parts: Parts) -> DoubleArray:
    scored = parts.scored()
    errors = parts.lead_in.target[scored] - predict_scored_rows(parts, scored, model)
    with np.errstate(over="ignore"):
        return np.minimum(np.square(errors, dtype=np.float64), 1e300)


@contextmanager
def quiet() -> Iterator[None]:
    """Say of a hundred fits what they would say one by one: nothing."""
    logger = logging.getLogger("varnn")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def settled(model: VARNNRegressor, rows: Rows) -> dict[str, Any]:
    """What the rows decide where the model leaves a number open."""
    config = model.settings().config(rows.origins[-1].train)
    memory = {"memory_size": rows.origins[-1].train.n_inputs or 1}
    return {name: getattr(config, name) for name in ("window", "loss_rows", "epochs", "batch_size")} | memory
