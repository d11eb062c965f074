"""What is left to choose once members are trained: shrinkage, forgetting, and how large errors are.

Rows are scored some at a time, and validation rows in the target's units only once: a prediction is the
linear prediction plus a shrunk correction by the network, so that all that is chosen follows from these two.
"""

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.fitting._candidates import Candidate
from varnn.fitting._shrinkage import shrinkage_of
from varnn.fitting.settings import Settings
from varnn.model.adaptation import FORGETTING, Adaptation
from varnn.model.fitted import Fitted
from varnn.model.intervals import CalibrationRows, Calibrator
from varnn.model.linear import last_labels
from varnn.model.prediction import predict_chunks, score_chunks, score_rows

logger = logging.getLogger(__name__)


LATEST = 20_000  # training rows that adaptation and the error scale learn from
CHOSEN_ON = 100_000  # validation rows that they are chosen on


class Review(NamedTuple):
    """A panel predicted with the shrinkage left open: ``linear_predictions + shrinkage * corrections``."""

    linear_predictions: DoubleArray  # (N,)
    corrections: DoubleArray  # (N,)
    late: Panel  # the panel's latest rows, and which they are
    hidden: npt.NDArray[np.float32]  # (n, K): theirs, of the first member

    @classmethod
    def of(cls, fitted: Fitted, panel: Panel, most: int) -> "Review":
        """Look at a panel; keep the hidden layers of its ``most`` latest rows."""
        numbered = replace(panel, rows=np.arange(len(panel)))
        late = numbered.latest(most) if most else numbered.between(0, 0)
        kept = np.zeros(len(panel), np.bool_)
        kept[late.rows] = True
        hidden = np.empty((len(late), fitted.architecture.hidden_size), np.float32)
        linear_predictions, corrections, filled = np.empty(len(panel)), np.empty(len(panel)), 0
        for chunk in predict_chunks(fitted, panel, keep_hidden=most > 0):
            linear_predictions[chunk.rows], corrections[chunk.rows] = chunk.linear, chunk.correction
            if most:
                layers = chunk.hidden[0, kept[chunk.rows]]
                hidden[filled : filled + len(layers)] = layers
                filled += len(layers)
        return cls(linear_predictions, corrections, late, hidden)

    def predictions(self, shrinkage: float) -> DoubleArray:
        """Predict with a share of the corrections: (N,)."""
        return self.linear_predictions + shrinkage * self.corrections

    def seen(self, shrinkage: float) -> CalibrationRows:
        """Hidden layers, errors and starts of the latest rows, as interval methods learn from them."""
        rows = self.late.rows
        return CalibrationRows(
            self.hidden, self.late.target - self.predictions(shrinkage)[rows], self.late.starts
        )


def choose_adaptation(settings: Settings, fitted: Fitted, chosen: Candidate) -> Adaptation:
    """How the readout adapts, from the latest training rows; its forgetting factor, from validation rows."""
    rows = chosen.training.latest(LATEST)
    unseen = rows if chosen.validation is None else chosen.validation.latest(CHOSEN_ON)
    errors = unseen.target - score_rows(fitted, unseen).predictions.mean(axis=0, dtype=np.float64)
    known = ~np.isnan(errors)
    automatic = settings.forgetting == "auto"
    first = FORGETTING[1] if automatic else float(settings.forgetting)
    learnt = Adaptation.fit(score_rows(fitted, rows, keep_hidden=True).hidden, errors[known], first)
    if not automatic or chosen.validation is None:
        return learnt

    def error(how: Adaptation) -> float:
        chunks = score_chunks(replace(fitted, adaptation=how), unseen)
        squares = (np.square(unseen.target[one.rows] - one.output)[known[one.rows]].sum() for one in chunks)
        return float(sum(squares))

    return min((replace(learnt, forgetting=one) for one in FORGETTING), key=error)


def choose_on_validation(
    fitted: Fitted, training: Panel, validation: Panel, calibrator: type[Calibrator] | None
) -> Fitted:
    """Choose the shrinkage, learn how large errors are, and note how the model does beside simple ones."""
    review = Review.of(fitted, validation, 0 if calibrator is None else CHOSEN_ON)
    if fitted.pipeline.linear is not None:
        residuals = validation.target - review.linear_predictions
        fitted = replace(fitted, shrinkage=shrinkage_of(review.corrections, residuals))
    if calibrator is not None:
        earlier = seen_by_calibrator(fitted, training)
        fitted = replace(fitted, calibrator=calibrator.fit(review.seen(fitted.shrinkage), earlier))
    errors = _beside_simple_models(fitted, review, validation)
    return replace(fitted, training=replace(fitted.training, validation=errors))


def seen_by_calibrator(fitted: Fitted, panel: Panel) -> CalibrationRows:
    """Hidden layers (N, K), errors (N,) and starts of a panel's latest rows."""
    return Review.of(fitted, panel.latest(LATEST), LATEST).seen(fitted.shrinkage)


def _beside_simple_models(fitted: Fitted, review: Review, validation: Panel) -> dict[str, float]:
    """Mean squared errors on validation rows: of the model, persistence and the linear part.

    Says so in one line where the model is not the best of them.
    """
    last, _, known = last_labels(validation, 0.0)
    scored = known & ~np.isnan(validation.target)
    predictions: dict[str, Any] = {"model": review.predictions(fitted.shrinkage), "persistence": last}
    if fitted.pipeline.linear is not None:
        predictions["linear part"] = review.linear_predictions
    with np.errstate(over="ignore"):
        errors = {
            name: float(np.mean(np.square(validation.target - one)[scored])) if scored.any() else 0.0
            for name, one in predictions.items()
        }
    errors = {name: min(error, np.finfo(np.float64).max) for name, error in errors.items()}
    best = min(errors, key=lambda name: errors[name])
    if errors[best] < errors["model"]:
        logger.warning(
            "on the validation rows %s is better than the model: mean squared error %.4g against %.4g.",
            "the linear part alone" if best == "linear part" else best,
            errors[best],
            errors["model"],
        )
    return errors
