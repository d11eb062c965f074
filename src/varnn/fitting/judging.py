"""Trained members + validation rows -> how much of them to use, how fast to forget, how large errors are.

Rows are scored some at a time, and validation rows in the target's units only once: a prediction is the
linear prediction plus a shrunk correction by the network, so that all that is judged follows from these two.
"""

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data import allocator
from varnn.data.panel import Panel
from varnn.fitting.candidates import Candidate
from varnn.fitting.settings import Settings
from varnn.model.adaptation import FORGETTING, Adaptation
from varnn.model.fitted import Fitted
from varnn.model.intervals import Calibrator, Seen
from varnn.model.linear import last_labels

logger = logging.getLogger(__name__)


LATEST = 20_000  # training rows that adaptation and the error scale learn from
JUDGED = 100_000  # validation rows that they are judged on


class Review(NamedTuple):
    """What a model makes of a panel: its predictions are ``linear_predictions + shrinkage * corrections``."""

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
        for chunk, levels in fitted.scored(panel, keep_hidden=most > 0):
            linear_predictions[chunk.rows] = levels
            corrections[chunk.rows] = fitted.pipeline.scaling.restore(chunk.output)
            if most:
                layers = chunk.hidden[0, kept[chunk.rows]]
                hidden[filled : filled + len(layers)] = layers
                filled += len(layers)
        return cls(linear_predictions, corrections, late, hidden)

    def predictions(self, shrinkage: float) -> DoubleArray:
        """Predict with a share of the corrections: (N,)."""
        return self.linear_predictions + shrinkage * self.corrections

    def seen(self, shrinkage: float) -> Seen:
        """Give hidden layers, errors and starts of the latest rows, as interval methods learn from them."""
        rows = self.late.rows
        return Seen(self.hidden, self.late.target - self.predictions(shrinkage)[rows], self.late.starts)


def adaptation(settings: Settings, fitted: Fitted, chosen: Candidate) -> Adaptation:
    """Learn how to adapt from the latest training rows; the forgetting factor from validation rows."""
    rows = chosen.training.latest(LATEST)
    judged = rows if chosen.validation is None else chosen.validation.latest(JUDGED)
    errors = judged.target - fitted.scores(judged).predictions.mean(axis=0, dtype=np.float64)
    known = ~np.isnan(errors)
    automatic = settings.forgetting == "auto"
    first = FORGETTING[1] if automatic else float(settings.forgetting)
    learnt = Adaptation.of(fitted.hidden(rows).hidden, errors[known], first)
    if not automatic or chosen.validation is None:
        return learnt

    def error(how: Adaptation) -> float:
        scored_chunks = replace(fitted, adaptation=how).scored_chunks(judged)
        squares = (
            np.square(judged.target[one.rows] - one.output)[known[one.rows]].sum() for one in scored_chunks
        )
        return float(sum(squares))

    return min((replace(learnt, forgetting=one) for one in FORGETTING), key=error)


def judged(
    fitted: Fitted, training: Panel, validation: Panel, *, intervals: type[Calibrator] | None
) -> Fitted:
    """Choose on validation rows what is left to choose, and note how the model does beside simple ones."""
    allocator.release()  # of training
    review = Review.of(fitted, validation, JUDGED if intervals else 0)
    if fitted.pipeline.linear is not None:
        fitted = replace(fitted, shrinkage=_shrinkage(review, validation))
    if intervals:
        earlier = seen_by_error_scale(fitted, training)
        fitted = replace(fitted, error_scale=intervals.fit(review.seen(fitted.shrinkage), earlier))
    fitted.summary["validation"] = _beside_simple_models(fitted, review, validation)
    return fitted


def seen_by_error_scale(fitted: Fitted, panel: Panel) -> Seen:
    """Give hidden layers (N, K), errors (N,) and starts of a panel's latest rows."""
    return Review.of(fitted, panel.latest(LATEST), LATEST).seen(fitted.shrinkage)


def _shrinkage(review: Review, validation: Panel) -> float:
    """Fit the share of the network's correction on validation rows, between none and all of it."""
    correction, residual = review.corrections, validation.target - review.linear_predictions
    known = ~np.isnan(residual)
    size = float(correction[known] @ correction[known])
    return float(np.clip(correction[known] @ residual[known] / size, 0, 1)) if size else 1.0


def _beside_simple_models(fitted: Fitted, review: Review, validation: Panel) -> dict[str, float]:
    """Give mean squared errors on validation rows: of the model, persistence and the linear part.

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
            best,
            errors[best],
            errors["model"],
        )
    return errors
