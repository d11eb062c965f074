"""The model of the next H rows: heads of a network correct one linear model for each step of the horizon."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.context import preceded
from varnn.data.panel import Panel
from varnn.fitting import _candidates
from varnn.fitting._candidates import stacked
from varnn.fitting._procedure import Train
from varnn.fitting._shrinkage import shrinkage_of
from varnn.fitting.settings import Settings
from varnn.model.fitted import Fitted
from varnn.model.floor import floored, lifted
from varnn.model.forecast.direct import CHANGES, DirectPart, HorizonFeatures
from varnn.model.forecast.forecaster import Forecaster
from varnn.model.forecast.rows import columns_of, inputs_known_before, refuse_too_far, targets_ahead
from varnn.model.intervals import CalibrationRows, HorizonBands
from varnn.model.intervals.few_errors import ENOUGH, few_in_words
from varnn.model.intervals.methods import method_of
from varnn.network.training import Ahead, Member, TrainConfig, Trained

logger = logging.getLogger(__name__)

TARGETS = 9_000_000  # rows times steps of the horizon that are learnt from: the latest
VALIDATED = 5  # times fewer are chosen on


@dataclass(frozen=True, eq=False)
class HorizonCandidate:
    """What a network may see, its linear models, and what these leave to its heads."""

    plain: _candidates.Candidate
    direct: DirectPart
    ahead: Ahead

    def __str__(self) -> str:
        """Name what the network sees."""
        return str(self.plain)

    def member(self, seed: int) -> Member:
        """What a member of an ensemble is trained from."""
        return replace(self.plain.member(seed), ahead=self.ahead)


class Horizon:
    """Fit a model of the next H rows.

    Parameters
    ----------
    settings : Settings
        How, as for one step.
    training, validation : Panel
        Rows to learn from, and to choose on (None: nothing is chosen); of many, the latest.
    horizon : int
        Rows ahead, at least 2.
    known : sequence of str
        Names of inputs that are known in the future.
    """

    def __init__(
        self,
        settings: Settings,
        training: Panel,
        validation: Panel | None,
        *,
        horizon: int,
        known: Sequence[str],
    ) -> None:
        columns_of(training, known)  # refuses names that are not there
        refuse_too_far(training, horizon)
        self.settings, self.horizon, self.known = settings, horizon, tuple(known)
        self.most = max(1, TARGETS // horizon)
        if len(training) > self.most:
            logger.warning(
                "looking %s rows ahead is learnt from the latest %s of %s rows.",
                horizon,
                f"{self.most:,}",
                f"{len(training):,}",
            )
        self.training = training.latest(self.most)
        self.validation = None if validation is None else validation.latest(max(1, self.most // VALIDATED))
        self.config: TrainConfig = settings.config(self.training)

    def candidates(self) -> list[HorizonCandidate]:
        """What the network may see, as it looks before the rows come."""
        shown = inputs_known_before(self.training, self.known)
        later = None if self.validation is None else inputs_known_before(self.validation, self.known)
        mean = float(np.nanmean(shown.target))
        return [
            self._candidate(one, shown, later, mean)
            for one in _candidates.candidates(self.settings, shown, later)
        ]

    def errors(self, candidates: Sequence[HorizonCandidate], firsts: Sequence[Trained]) -> list[float]:
        """Mean squared errors over all steps of the horizon whose outcomes are known."""
        if self.validation is None:
            return [0.0] * len(candidates)
        outcomes = _outcomes(self.validation, self.horizon)
        known = ~np.isnan(outcomes).all(axis=0)
        errors = []
        for candidate, first in zip(candidates, firsts, strict=True):
            if not first.history:  # it was not got to
                errors.append(np.inf)
                continue
            model = self.assemble(candidate, [first])
            joined, own = preceded(self.validation, self.training, model.reach)
            squares = np.square(outcomes - model.historical_forecasts(joined)[own])[:, known]
            errors.append(float(np.mean(np.nanmean(squares, axis=0))))
        return errors

    def assemble(self, candidate: HorizonCandidate, members: list[Trained]) -> Forecaster:
        """Put the forecaster together."""
        network = Fitted(
            architecture=candidate.plain.architecture,
            weights=stacked(members),
            pipeline=candidate.plain.pipeline,
            window=self.config.window,
            input_names=self.training.input_names,
            target_name=self.training.target_name,
            positive=self.settings.positive is True,
        )
        ones = np.ones(self.horizon)
        return Forecaster(network=network, known=self.known, direct=candidate.direct, shrinkage=ones)

    def calibrate(self, model: Forecaster) -> Forecaster:
        """Choose the shrinkage of each head, and learn how far off forecasts are."""
        if self.validation is None:
            return model
        joined, own = preceded(self.validation, self.training, model.reach)
        residuals, parts = _outcomes(self.validation, self.horizon), model.parts(joined).rows(own)
        residuals -= parts.linear_predictions
        shrinkage = np.ones(self.horizon)
        for index, (corrections, left) in enumerate(zip(parts.added.T, residuals.T, strict=True)):
            separate = np.count_nonzero(~np.isnan(left)) / (index + 1)  # forecasts so far ahead overlap
            shrinkage[index] = shrinkage_of(corrections, left, min(1.0, separate / ENOUGH))
        if model.network.pipeline.linear is None:
            shrinkage[0] = 1.0  # there is nothing else to predict the first row from
        model = replace(model, shrinkage=shrinkage)
        calibrator = method_of(self.settings.intervals, HorizonBands)
        if calibrator is None:
            return model
        forecasts, movement = parts.forecasts(shrinkage), parts.movement
        del parts  # which is large
        residuals = _outcomes(self.validation, self.horizon)
        residuals -= floored(forecasts, lifted(joined)[own, None]) if model.network.positive else forecasts
        seen = CalibrationRows(movement[:, None], residuals, self.validation.starts)
        record = replace(model.network.training, few_errors=few_in_words(residuals))
        return replace(
            model, calibrator=calibrator.fit(seen), network=replace(model.network, training=record)
        )

    def refit(self, model: Forecaster, rows: Panel, epochs: list[int], seed: int, train: Train) -> Forecaster:
        """Train the network again on other rows; its linear models and its pipeline stay."""
        pipeline, shown = model.network.pipeline, inputs_known_before(rows.latest(self.most), self.known)
        prepared = pipeline.rows(shown)
        features = HorizonFeatures.of(shown, prepared, self.known, pipeline, mean=model.direct.mean)
        cell, ahead = model.network.architecture, Ahead(_linear_residuals(model.direct, features), None)
        trained = train(
            [
                Member(cell, prepared, None, seed + index, ahead=ahead, stop_after=end)
                for index, end in enumerate(epochs)
            ]
        )
        return replace(model, network=replace(model.network, weights=stacked(trained)))

    def _candidate(
        self, plain: _candidates.Candidate, shown: Panel, later: Panel | None, mean: float
    ) -> HorizonCandidate:
        """Fit the linear models of a candidate."""
        pipeline, unseen = plain.pipeline, None
        seen = HorizonFeatures.of(shown, plain.training, self.known, pipeline, mean=mean)
        if later is not None:
            joined, own = preceded(later, shown, max(CHANGES + 1, pipeline.reach))
            unseen = HorizonFeatures.of(
                joined, pipeline.rows(joined), self.known, pipeline, mean=mean, own=own
            )
        direct = DirectPart.fit(seen, unseen, self.horizon)
        ahead = Ahead(
            _linear_residuals(direct, seen), None if unseen is None else _linear_residuals(direct, unseen)
        )
        architecture = replace(plain.architecture, horizon=self.horizon)
        return HorizonCandidate(replace(plain, architecture=architecture), direct, ahead)


def _linear_residuals(direct: DirectPart, features: HorizonFeatures) -> npt.NDArray[np.float32]:
    """What the linear models leave to the network's heads of its own rows, scaled: (N, H - 1)."""
    horizon = 1 + len(direct.scales)
    residuals, done = np.empty((len(features.own_rows), horizon - 1), np.float32), 0
    for rows in features.chunks(features.own_rows):
        wanted = targets_ahead(features.panel, horizon, rows)
        left = (wanted - direct.linear_predictions(features, rows)) / direct.scales
        residuals[done : done + len(rows)], done = left, done + len(rows)
    return residuals


def _outcomes(panel: Panel, horizon: int) -> DoubleArray:
    """Targets of each row and of those after it: (N, H)."""
    return np.column_stack([panel.target, targets_ahead(panel, horizon)])
