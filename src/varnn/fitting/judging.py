"""Trained members + validation rows -> how much of them to use, how fast to forget, how large errors are.

Rows are scored some at a time, and validation rows in the target's units only once: a prediction is an
anchor plus a share of the network's correction, so that all that is judged follows from these two.
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
from varnn.model.intervals import Seen, Spread
from varnn.model.linear import last_labels

logger = logging.getLogger(__name__)


LATEST = 20_000  # training rows that adaptation and the spread of errors learn from
JUDGED = 100_000  # validation rows that they are judged on


class Review(NamedTuple):
    """What a model makes of a panel: its predictions are ``anchors + share * corrections``."""

    anchors: DoubleArray  # (N,)
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
        anchors, corrections, filled = np.empty(len(panel)), np.empty(len(panel)), 0
        for piece, levels in fitted.scored(panel, keep_hidden=most > 0):
            anchors[piece.rows] = levels
            corrections[piece.rows] = fitted.recipe.scaling.restore(piece.output)
            if most:
                layers = piece.hidden[0, kept[piece.rows]]
                hidden[filled : filled + len(layers)] = layers
                filled += len(layers)
        return cls(anchors, corrections, late, hidden)

    def predictions(self, share: float) -> DoubleArray:
        """Predict with a share of the corrections: (N,)."""
        return self.anchors + share * self.corrections

    def seen(self, share: float) -> Seen:
        """Give hidden layers, errors and starts of the latest rows, as `Spread` learns from them."""
        rows = self.late.rows
        return self.hidden, self.late.target - self.predictions(share)[rows], self.late.starts


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
        pieces = replace(fitted, adaptation=how).pieces(judged)
        squares = (np.square(judged.target[one.rows] - one.output)[known[one.rows]].sum() for one in pieces)
        return float(sum(squares))

    return min((replace(learnt, forgetting=one) for one in FORGETTING), key=error)


def judged(fitted: Fitted, training: Panel, validation: Panel, *, intervals: bool) -> Fitted:
    """Choose on validation rows what is left to choose, and note how the model does beside simple ones."""
    allocator.release()  # of training
    review = Review.of(fitted, validation, JUDGED if intervals else 0)
    if fitted.recipe.linear is not None:
        fitted = replace(fitted, share=_share(review, validation))
    if intervals:
        earlier = seen_by_spread(fitted, training)
        fitted = replace(fitted, spread=Spread.of(*earlier, *review.seen(fitted.share)))
    fitted.summary["validation"] = _beside_simple_models(fitted, review, validation)
    return fitted


def seen_by_spread(fitted: Fitted, panel: Panel) -> Seen:
    """Give hidden layers (N, K), errors (N,) and starts of a panel's latest rows."""
    return Review.of(fitted, panel.latest(LATEST), LATEST).seen(fitted.share)


def _share(review: Review, validation: Panel) -> float:
    """Fit the share of the network's correction on validation rows, between none and all of it."""
    correction, rest = review.corrections, validation.target - review.anchors
    known = ~np.isnan(rest)
    size = float(correction[known] @ correction[known])
    return float(np.clip(correction[known] @ rest[known] / size, 0, 1)) if size else 1.0


def _beside_simple_models(fitted: Fitted, review: Review, validation: Panel) -> dict[str, float]:
    """Give mean squared errors on validation rows: of the model, persistence and the linear part.

    Says so in one line where the model is not the best of them.
    """
    last, _, known = last_labels(validation, 0.0)
    scored = known & ~np.isnan(validation.target)
    predictions: dict[str, Any] = {"model": review.predictions(fitted.share), "persistence": last}
    if fitted.recipe.linear is not None:
        predictions["linear part"] = review.anchors
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
