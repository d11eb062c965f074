"""Panel + settings -> Forecaster: as `varnn.fitting.one_step`, for a network that looks ahead."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np

from varnn._types import DoubleArray
from varnn.data import allocator
from varnn.data.panel import Panel
from varnn.fitting.candidates import Candidate, Progress, candidates, stacked
from varnn.fitting.settings import Settings
from varnn.model.fitted import Fitted
from varnn.model.forecast.direct import DirectPart, HorizonFeatures
from varnn.model.forecast.forecaster import Forecaster
from varnn.model.forecast.rows import columns_of, inputs_known_before, refuse_too_far, targets_ahead
from varnn.model.intervals import Calibrator, HorizonBands, Seen
from varnn.model.intervals.few_errors import ENOUGH
from varnn.network.training import Ahead, Epoch, Member, Trained, one_thread, train_members

logger = logging.getLogger(__name__)

TARGETS = 9_000_000  # rows times steps that are learnt from: the latest
JUDGED = 5  # times fewer are judged on


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A plain candidate, its direct part, and what that leaves to the network's heads."""

    plain: Candidate
    direct: DirectPart
    ahead: Ahead

    def member(self, seed: int) -> Member:
        return replace(self.plain.member(seed), ahead=self.ahead)


@one_thread()
def fit_forecaster(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    *,
    horizon: int,
    known: Sequence[str],
    seed: int,
    rows: Panel | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    stop: Event | None = None,
    calibrator: type[Calibrator] = HorizonBands,
) -> Forecaster:
    """Train a forecaster.

    Parameters
    ----------
    settings
        How, as for a one-step model.
    training, validation
        Rows to learn from, and to choose on (None: nothing is chosen).
    horizon
        Rows ahead, at least 2.
    known
        Names of inputs that are known in the future.
    seed
        The first member's; the others have the following ones.
    rows
        All rows, to train the network on again once everything is chosen; None leaves it as it is.
    on_epoch
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    stop
        Ends training once it is set, and raises KeyboardInterrupt; during the training on all rows, that
        alone is given up.
    calibrator
        Interval method.
    """
    stop = stop or Event()
    columns_of(training, known)  # refuses names that are not there
    refuse_too_far(training, horizon)
    most = max(1, TARGETS // horizon)
    if len(training) > most:
        logger.warning(
            "looking %s rows ahead is learnt from the latest %s of %s rows.",
            horizon,
            f"{most:,}",
            f"{len(training):,}",
        )
    allocator.release()  # of whatever was before
    training, rows = training.latest(most), None if rows is None else rows.latest(most)
    validation = None if validation is None else validation.latest(max(1, most // JUDGED))
    shown = inputs_known_before(training, known)
    judged = None if validation is None else inputs_known_before(validation, known)
    config = settings.config(shown)
    choices = [_candidate(one, shown, judged, horizon, known) for one in candidates(settings, shown, judged)]
    trainings = len(choices) + settings.ensemble - 1 + (settings.ensemble if rows is not None else 0)
    progress = Progress(trainings * config.epochs, on_epoch)
    firsts = train_members([one.member(seed) for one in choices], config, progress, stop)

    def assembled(choice: _Candidate, members: list[Trained]) -> Forecaster:
        network = Fitted(
            architecture=replace(choice.plain.architecture, horizon=horizon),
            weights=stacked(members),
            pipeline=choice.plain.pipeline,
            window=config.window,
            input_names=training.input_names,
            target_name=training.target_name,
        )
        ones = np.ones(horizon)
        return Forecaster(network=network, known=tuple(known), direct=choice.direct, shrinkage=ones)

    best = 0
    if validation is not None and len(choices) > 1:
        tried = [assembled(one, [first]) for one, first in zip(choices, firsts, strict=True)]
        best = int(np.argmin([_error(one, validation) for one in tried]))
    members = [firsts[best]]
    if settings.ensemble > 1:
        more = range(1, settings.ensemble)
        others = [choices[best].member(seed + index) for index in more]
        members += [] if stop.is_set() else train_members(others, config, progress, stop)
        del others  # they hold the prepared rows
    if stop.is_set():
        raise KeyboardInterrupt
    forecaster = assembled(choices[best], members)
    ends = [one.best_epoch for one in members]
    del choices, shown, judged  # of millions of rows they are large
    allocator.release()
    if validation is not None:
        forecaster = _judged(forecaster, validation, calibrator if settings.intervals else None)
    if rows is None:
        return forecaster
    with suppress(KeyboardInterrupt):
        again = train_members(_members_again(forecaster, rows, seed, ends), config, progress, stop)
        if not stop.is_set():
            return replace(forecaster, network=replace(forecaster.network, weights=stacked(again)))
    return forecaster


def _candidate(
    plain: Candidate, training: Panel, validation: Panel | None, horizon: int, known: Sequence[str]
) -> _Candidate:
    mean = float(np.nanmean(training.target))
    look: dict[str, Any] = {"known": known, "use_inputs": plain.pipeline.use_inputs, "mean": mean}
    seen = HorizonFeatures.of(training, plain.training, **look)
    later = None
    if validation is not None and plain.validation is not None:
        later = HorizonFeatures.of(validation, plain.validation, **look)
    direct = DirectPart.fit(seen, later, horizon)
    ahead = Ahead(
        _linear_residuals(direct, seen), None if later is None else _linear_residuals(direct, later)
    )
    architecture = replace(plain.architecture, horizon=horizon)
    return _Candidate(replace(plain, architecture=architecture), direct, ahead)


def _members_again(forecaster: Forecaster, rows: Panel, seed: int, ends: list[int]) -> list[Member]:
    """Give members of the chosen form other rows to learn from, and none to be judged on."""
    allocator.release()  # of judging
    pipeline, direct, shown = (
        forecaster.network.pipeline,
        forecaster.direct,
        inputs_known_before(rows, forecaster.known),
    )
    prepared = pipeline.rows(shown)
    features = HorizonFeatures.of(
        shown, prepared, forecaster.known, use_inputs=pipeline.use_inputs, mean=direct.mean
    )
    cell, ahead = forecaster.network.architecture, Ahead(_linear_residuals(direct, features), None)
    return [
        Member(cell, prepared, None, seed + index, ahead=ahead, stop_after=end)
        for index, end in enumerate(ends)
    ]


def _linear_residuals(direct: DirectPart, features: HorizonFeatures) -> Any:
    """Give what the direct part leaves to the network's heads, scaled: (N, H - 1)."""
    horizon = 1 + len(direct.scales)
    residuals = np.empty((len(features.panel), horizon - 1), np.float32)
    for rows in features.chunks(np.arange(len(residuals))):
        residuals[rows] = (
            targets_ahead(features.panel, horizon, rows) - direct.linear_predictions(features, rows)
        ) / direct.scales
    return residuals


def _outcomes(panel: Panel, horizon: int) -> DoubleArray:
    """Give the targets of each row and those after it: (N, H)."""
    return np.column_stack([panel.target, targets_ahead(panel, horizon)])


def _error(forecaster: Forecaster, validation: Panel) -> float:
    """Give the mean squared error over all steps that were seen to the end."""
    outcomes = _outcomes(validation, forecaster.horizon)
    errors = np.square(outcomes - forecaster.historical_forecasts(validation))
    known = ~np.isnan(outcomes).all(axis=0)
    return float(np.mean(np.nanmean(errors[:, known], axis=0)))


def _judged(forecaster: Forecaster, validation: Panel, intervals: type[Calibrator] | None) -> Forecaster:
    """Fit the shrinkage of each head on validation rows, and how far off forecasts are."""
    residuals, parts = _outcomes(validation, forecaster.horizon), forecaster.parts(validation)
    residuals -= parts.linear_predictions
    shrinkage = np.ones(forecaster.horizon)
    for index, (added, wanted) in enumerate(zip(parts.added.T, residuals.T, strict=True)):
        known = ~np.isnan(wanted)
        size = float(added[known] @ added[known])
        trust = min(1.0, int(known.sum()) / (index + 1) / ENOUGH)  # few errors are little to go by
        if size > 0 or trust == 0:
            shrinkage[index] = trust * np.clip(added[known] @ wanted[known] / (size or 1.0), 0, 1)
    if forecaster.network.pipeline.linear is None:
        shrinkage[0] = 1.0  # there is nothing else to predict the first row from
    forecaster = replace(forecaster, shrinkage=shrinkage)
    if intervals is None:
        return forecaster
    residuals -= shrinkage * parts.added
    movement = parts.movement
    del parts  # which is large
    seen = Seen(movement[:, None], residuals, validation.starts)
    return replace(forecaster, bands=intervals.fit(seen))
