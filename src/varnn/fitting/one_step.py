"""The model of the next row: what is chosen for it, and on which rows.

Everything is chosen on the validation rows: the form of the linear part (`varnn.model.linear`), the cycles of
the calendar, the epoch each member is kept at, how much each expert is believed at first
(`varnn.model.experts`), and how large errors are.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from varnn.data import allocator
from varnn.data.panel import Panel
from varnn.fitting._candidates import Candidate, candidates, stacked
from varnn.fitting._context import with_context, with_limit
from varnn.fitting._learning import learn_experts, relearn_experts
from varnn.fitting._procedure import Train
from varnn.fitting._validation import choose_on_validation, seen_by_calibrator
from varnn.fitting.settings import Settings
from varnn.model.experts import BOOSTING, FORGETTING
from varnn.model.fitted import SETTLED, Fitted, last_rows_of
from varnn.model.intervals import CalibrationRows, ErrorScale
from varnn.model.intervals.methods import method_of
from varnn.network.training import Member, TrainConfig, Trained

logger = logging.getLogger(__name__)

KEPT = 25  # rows before a window that are kept, at least


class OneStep:
    """Fit a model of the next row.

    Parameters
    ----------
    settings : Settings
        How.
    training, validation : Panel
        Rows to learn from, and to choose on (None: nothing is chosen).
    rows : Panel
        All rows given, whose ends a closed-loop forecast goes on from.
    seed : int, default=0
        Of what is drawn beside the members.
    """

    def __init__(
        self, settings: Settings, training: Panel, validation: Panel | None, rows: Panel, seed: int = 0
    ) -> None:
        self.settings, self.training, self.validation, self.rows = settings, training, validation, rows
        self.seed = seed
        self.config: TrainConfig = settings.config(training)
        self._seen: CalibrationRows | None = None  # what the calibrator saw of the training rows

    def candidates(self) -> list[Candidate]:
        """What the network may see."""
        return candidates(self.settings, self.training, self.validation)

    def errors(self, candidates: Sequence[Candidate], firsts: Sequence[Trained]) -> list[float]:
        """Validation errors, in the target's units."""
        window = self.config.window
        return [one.error(trained, window) for one, trained in zip(candidates, firsts, strict=True)]

    def assemble(self, candidate: Candidate, members: list[Trained]) -> Fitted:
        """Put the model together."""
        labels = self.rows.target
        return Fitted(
            architecture=candidate.architecture,
            weights=stacked(members),
            pipeline=candidate.pipeline,
            window=self.config.window,
            input_names=self.training.input_names,
            target_name=self.training.target_name,
            time_name=self.training.time_name,
            series_name=self.training.series_name,
            label_range=(float(np.nanmin(labels)), float(np.nanmax(labels))),
            positive=self.settings.positive is True,
            last_rows=last_rows_of(self.rows, candidate.pipeline, self._kept(candidate.pipeline.reach)),
        )

    def _kept(self, reach: int) -> int:
        """Rows of each series to keep, for a pipeline that reaches back on so many."""
        windows = 1 if self.settings.context == "window" else SETTLED
        return windows * self.config.window + max(KEPT, reach)

    def calibrate(self, model: Fitted) -> Fitted:
        """Choose what rows are predicted from; go on learning; choose shrinkage and error scale."""
        model = with_context(model, self.training, self.validation, self.settings.context)
        if self.settings.adapt is not None:
            given = self.settings.forgetting
            forgetting = FORGETTING if given == "auto" else (float(given),)
            boosting = BOOSTING in self.settings.experts
            model = learn_experts(
                model, self.training, self.validation, forgetting, boosting=boosting, seed=self.seed
            )
        if self.validation is None:
            return model
        calibrator = method_of(self.settings.intervals, ErrorScale)
        model, self._seen = choose_on_validation(model, self.training, self.validation, calibrator)
        _tell_choices(model)
        return model

    def refit(self, model: Fitted, rows: Panel, epochs: list[int], seed: int, train: Train) -> Fitted:
        """Learn anew from other rows, in the form that was chosen."""
        pipeline = model.pipeline.refitted(rows, self.settings.scale)
        prepared = pipeline.rows(rows)
        trained = train(
            [
                Member(model.architecture, prepared, None, seed + index, stop_after=end)
                for index, end in enumerate(epochs)
            ]
        )
        del prepared  # of millions of rows it is large
        allocator.release()
        kept = max(len(one.target) for one in model.last_rows.values())
        again = replace(
            model,
            pipeline=pipeline,
            weights=stacked(trained),
            last_rows=last_rows_of(rows, pipeline, kept),
            experts=None,
        )
        again = with_limit(again, rows)
        again = relearn_experts(again, model, rows, seed=seed)
        if model.calibrator is not None and self._seen is not None:
            after = seen_by_calibrator(again, rows)
            again = replace(again, calibrator=model.calibrator.refitted(self._seen, after))
        return again


def _tell_choices(model: Fitted) -> None:
    """Log what was chosen on validation rows, and the errors there that say so."""
    seasons, experts, errors = ", ".join(model.seasons), model.experts, model.training.validation
    logger.info("seasons that the linear part looks back on: %s", seasons or "none, as none lowers the error")
    logger.info("rows are predicted from: %s", model.context_in_words)
    if experts is not None:
        listed = zip(experts.names, experts.prior.tolist(), strict=True)
        said = "; ".join(f"{name} {weight:.0%}" for name, weight in listed)
        logger.info("weights of the experts at first, by their errors on validation rows: %s", said)
    elif model.pipeline.linear is not None:
        logger.info("%.0f %% of the network's correction is added to the linear part", 100 * model.shrinkage)
    if errors:
        said = "; ".join(f"{name} {error**0.5:.4g}" for name, error in errors.items())
        logger.info("root mean squared errors on validation rows: %s", said)
