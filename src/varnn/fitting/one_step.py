"""Panel + settings -> Fitted: what is left to be chosen, the members, and how much of them to use.

Everything that is chosen here is chosen on the validation rows: the form of the linear part
(`varnn.linear`), the cycles of the clock, the epoch each member is kept at, and the share of the
network's correction that is added to the linear part.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from varnn.adaptation import FORGETTING, Adaptation, Adapter, corrections
from varnn.fitted import Fitted, tails_of
from varnn.fitting.candidates import Candidate, Progress, candidates, stacked
from varnn.fitting.settings import Settings
from varnn.intervals import Spread
from varnn.linear import LABEL_LAGS, last_labels
from varnn.panel import Panel
from varnn.training import Epoch, one_thread, train_members

logger = logging.getLogger(__name__)

LATEST = 20_000  # training rows that adaptation and the spread of errors learn from
JUDGED = 100_000  # validation rows that they are judged on


@one_thread()
def fit(
    settings: Settings,
    training: Panel,
    validation: Panel | None,
    *,
    rows: Panel,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fitted:
    """Train a model.

    Parameters
    ----------
    settings
        How.
    training, validation
        Rows to learn from, and to choose on (None: nothing is chosen).
    rows
        All rows given, whose ends a closed-loop forecast goes on from.
    seed
        The first member's; the others have the following ones.
    on_epoch
        Called after each epoch with its line of the history, and ``progress``, the share of all done.
    """
    config = settings.config(training)
    choices = candidates(settings, training, validation)
    progress = Progress((len(choices) + settings.ensemble - 1) * config.epochs, on_epoch)
    firsts = train_members([one.member(seed) for one in choices], config, progress)
    errors = [one.error(trained) for one, trained in zip(choices, firsts, strict=True)]
    best = int(np.argmin(errors))
    chosen, members = choices[best], [firsts[best]]
    if settings.ensemble > 1:
        others = [chosen.member(seed + index) for index in range(1, settings.ensemble)]
        members += train_members(others, config, progress)
    fitted = Fitted(
        architecture=chosen.architecture,
        weights=stacked(members),
        recipe=chosen.recipe,
        window=config.window,
        input_names=training.input_names,
        target_name=training.target_name,
        tails=tails_of(rows, chosen.recipe, config.window + max(LABEL_LAGS) + 1),
        summary={
            "rows": len(training),
            "series": training.n_series,
            "epochs": [len(one.history) for one in members],
            "best_epoch": [one.best_epoch for one in members],
            "history": [
                {**line, "member": index} if len(members) > 1 else line
                for index, one in enumerate(members)
                for line in one.history
            ],
        },
    )
    if len(choices) > 1:
        fitted.summary["inputs"] = {str(one): error for one, error in zip(choices, errors, strict=True)}
    if settings.adapt is not None:
        fitted = replace(fitted, adaptation=_adaptation(settings, fitted, chosen))
    if validation is None:
        return fitted
    if chosen.recipe.linear is not None:
        fitted = replace(fitted, share=_share(fitted, validation))
    if settings.intervals:
        fitted = replace(fitted, spread=_spread(fitted, training, validation))
    fitted.summary["validation"] = _beside_simple_models(fitted, validation)
    return fitted


def _adaptation(settings: Settings, fitted: Fitted, chosen: Candidate) -> Adaptation:
    """Learn how to adapt from the latest training rows; the forgetting factor from validation rows."""
    rows = chosen.training.latest(LATEST)  # their hidden layers are held in memory
    hidden = fitted.hidden(rows).hidden
    judged = rows if chosen.validation is None else chosen.validation.latest(JUDGED)
    scores = fitted.hidden(judged)
    errors = judged.target - scores.predictions.mean(axis=0, dtype=np.float64)
    known = ~np.isnan(errors)
    first = FORGETTING[1] if settings.forgetting == "auto" else settings.forgetting
    adaptation = Adaptation.of(hidden, errors[known], float(first))
    if settings.forgetting != "auto" or chosen.validation is None:
        return adaptation

    def error(how: Adaptation) -> float:
        adapter = Adapter(how, judged.n_series)
        added = corrections(adapter, scores.hidden, scores.predictions, judged.target, judged.starts)
        return float(np.mean(np.square(errors - added)[known]))

    return min((replace(adaptation, forgetting=one) for one in FORGETTING), key=error)


def _spread(fitted: Fitted, training: Panel, validation: Panel) -> Spread:
    """Learn how large errors are: their scale from the latest training rows, quantiles from validation."""
    return Spread.of(*seen_by_spread(fitted, training), *seen_by_spread(fitted, validation, JUDGED))


def seen_by_spread(fitted: Fitted, panel: Panel, most: int = LATEST) -> tuple[Any, Any, Any]:
    """Give hidden layers (N, K), errors (N,) and starts of a panel's latest rows."""
    rows = panel.latest(most)
    hidden = fitted.hidden(fitted.recipe.rows(rows)).hidden[0].copy()  # the other members' may go
    return hidden, rows.target - fitted.predict(rows), rows.starts


def _share(fitted: Fitted, validation: Panel) -> float:
    """Fit the share of the network's correction on validation rows, between none and all of it."""
    anchors = fitted.recipe.anchors(validation)
    correction, rest = fitted.predict(validation) - anchors, validation.target - anchors
    known = ~np.isnan(rest)
    size = float(correction[known] @ correction[known])
    return float(np.clip(correction[known] @ rest[known] / size, 0, 1)) if size else 1.0


def _beside_simple_models(fitted: Fitted, validation: Panel) -> dict[str, float]:
    """Give mean squared errors on validation rows: of the model, persistence and the linear part.

    Says so in one line where the model is not the best of them.
    """
    last, _, known = last_labels(validation, 0.0)
    scored = known & ~np.isnan(validation.target)
    predictions = {"model": fitted.predict(validation), "persistence": last}
    if fitted.recipe.linear is not None:
        predictions["linear part"] = fitted.recipe.anchors(validation)
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
