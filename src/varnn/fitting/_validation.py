"""What is left to choose once members are trained: shrinkage, what learns on, and how large errors are."""

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.context import preceded
from varnn.data.in_words import figure
from varnn.data.panel import Panel
from varnn.data.weights import mean_by_weight
from varnn.fitting._shrinkage import shrinkage_of
from varnn.model.fitted import Fitted
from varnn.model.intervals import CalibrationRows, Calibrator
from varnn.model.linear import last_labels
from varnn.model.prediction import predict_chunks

logger = logging.getLogger(__name__)


LATEST = 20_000  # training rows that the error scale learns from
CHOSEN_ON = 100_000  # validation rows that it is chosen on
_CLEARLY = 0.98  # of the model's error: a simple model with less is worth a word


class Review(NamedTuple):
    """A panel predicted, with the parts that predictions are made of."""

    linear_predictions: DoubleArray  # (N,)
    corrections: DoubleArray  # (N,): of the network, as trained
    combined: DoubleArray | None  # (N,): what the experts predict together; None where nothing learns on
    squares: dict[str, float]  # mean squared error of each expert, where its label is known
    late: Panel  # the panel's latest rows, and which they are
    hidden: npt.NDArray[np.float32]  # (n, K): theirs, of the first member

    @classmethod
    def of(cls, fitted: Fitted, panel: Panel, most: int, *, after: Panel | None = None) -> "Review":
        """Look at a panel, which may follow others; keep the hidden layers of its ``most`` latest rows."""
        numbered = replace(panel, rows=np.arange(len(panel)))
        late = numbered.latest(most) if most else numbered.between(0, 0)
        joined, own = (panel, np.ones(len(panel), dtype=bool))
        if after is not None:
            joined, own = preceded(panel, after, fitted.reach)
        kept = np.zeros(len(joined), np.bool_)
        kept[np.flatnonzero(own)[late.rows]] = True
        hidden = np.empty((len(late), fitted.architecture.hidden_size), np.float32)
        found, filled = np.empty((3, len(joined))), 0
        names = () if fitted.experts is None else fitted.experts.names
        sums, count = np.zeros(len(names)), 0
        wanted = {
            "linear",
            "output",
            *(["first hidden"] if most else []),
            *(["experts", "weights"] if names else []),
        }
        for chunk in predict_chunks(fitted, joined, wanted=wanted, teach=own):
            taps = chunk.taps
            corrections = fitted.pipeline.scaling.restore(taps.output)
            found[:, chunk.rows] = taps.linear, corrections, chunk.prediction
            if names:
                errors = joined.target[chunk.rows, None] - taps.linear[:, None] - taps.experts
                scored = own[chunk.rows] & ~np.isnan(joined.target[chunk.rows])
                with np.errstate(over="ignore"):
                    sums += np.square(errors[scored]).sum(axis=0)
                count += int(scored.sum())
            if most:
                layers = taps.hidden[0, kept[chunk.rows]]
                hidden[filled : filled + len(layers)] = layers
                filled += len(layers)
        linear, corrections, predictions = found[:, own]
        return cls(
            linear,
            corrections,
            None if fitted.experts is None else predictions,
            dict(zip(names, (sums / max(count, 1)).tolist(), strict=True)),
            late,
            hidden,
        )

    def predictions(self, shrinkage: float) -> DoubleArray:
        """Predict: the experts together, or else with a share of the corrections: (N,)."""
        if self.combined is not None:
            return self.combined
        return self.linear_predictions + shrinkage * self.corrections

    def seen(self, shrinkage: float) -> CalibrationRows:
        """Hidden layers, errors and starts of the latest rows, as interval methods learn from them."""
        rows = self.late.rows
        return CalibrationRows(
            self.hidden, self.late.target - self.predictions(shrinkage)[rows], self.late.starts
        )


def choose_on_validation(
    fitted: Fitted, training: Panel, validation: Panel, calibrator: type[Calibrator] | None
) -> tuple[Fitted, CalibrationRows | None]:
    """Choose the shrinkage, learn how large errors are, and note how the model does beside simple ones.

    With a calibrator, what it saw of the training rows is given too.
    """
    review = Review.of(fitted, validation, 0 if calibrator is None else CHOSEN_ON, after=training)
    if fitted.pipeline.linear is not None:
        residuals = validation.target - review.linear_predictions
        shrinkage = shrinkage_of(review.corrections, residuals, weights=validation.weights)
        fitted = replace(fitted, shrinkage=shrinkage)
    earlier = None
    if calibrator is not None:
        earlier = seen_by_calibrator(fitted, training)
        fitted = replace(fitted, calibrator=calibrator.fit(review.seen(fitted.shrinkage), earlier))
    errors = _beside_simple_models(fitted, review, validation)
    return replace(fitted, training=replace(fitted.training, validation=errors)), earlier


def seen_by_calibrator(fitted: Fitted, panel: Panel) -> CalibrationRows:
    """Hidden layers (N, K), errors (N,) and starts of a panel's latest rows, which were trained on.

    Errors are the network's own: they say as well as those of the experts, whom it takes long to follow,
    which hidden units go with large ones.
    """
    return Review.of(replace(fitted, experts=None), panel.latest(LATEST), LATEST).seen(fitted.shrinkage)


def _beside_simple_models(fitted: Fitted, review: Review, validation: Panel) -> dict[str, float]:
    """Mean squared errors on validation rows: of the model, persistence and the linear part.

    Says so in one line where one of these is clearly better.
    """
    last, _, known = last_labels(validation, 0.0)
    scored = known & validation.counted
    weights = None if validation.weights is None else validation.weights[scored]
    predictions: dict[str, Any] = {"model": review.predictions(fitted.shrinkage), "persistence": last}
    if fitted.pipeline.linear is not None:
        predictions["linear part"] = review.linear_predictions
    with np.errstate(over="ignore"):
        errors = {
            name: mean_by_weight(np.square(validation.target - one)[scored], weights) if scored.any() else 0.0
            for name, one in predictions.items()
        }
    simple = set(errors)
    errors |= {name: error for name, error in review.squares.items() if name not in simple}
    errors = {name: min(error, np.finfo(np.float64).max) for name, error in errors.items()}
    best = min(simple, key=lambda name: errors[name])
    if errors[best] < _CLEARLY * errors["model"]:
        logger.warning(
            "on the validation rows %s is better than the model: mean squared error %s against %s.",
            "the linear part alone" if best == "linear part" else best,
            figure(errors[best]),
            figure(errors["model"]),
        )
    return errors
