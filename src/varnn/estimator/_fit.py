"""What users give to ``fit`` -> a fitted model: checks, rows to train and to choose on, stages."""

import logging
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

from varnn.data.categories import spelt_out
from varnn.data.leaks import exact_leak, tell_leaks
from varnn.data.preparation import split_in_time, with_learnt_inputs
from varnn.data.weights import refuse_uncounted, weighted
from varnn.errors import ConfigError, TrainingError
from varnn.estimator._reporting import reporter
from varnn.estimator._settings import checked_details
from varnn.estimator._tables import validation_of
from varnn.estimator.input import (
    RowSeries,
    RowTime,
    check_fit_arguments,
    check_parameters,
    latest_rows,
    panel_of,
    seed_of,
    split_or_take,
    warn_of_little,
)
from varnn.estimator.packages import check_packages
from varnn.model.fitted import Fitted
from varnn.model.forecast import Forecaster
from varnn.model.forecast.rows import columns_of, refuse_too_far
from varnn.persistence import card

if TYPE_CHECKING:  # importing it would import torch
    from varnn.network.training import Trainer


logger = logging.getLogger(__name__)


def fit_rows(
    estimator: Any,
    X: Any,
    y: Any,
    series: RowSeries,
    time: RowTime = None,
    sample_weight: Any = None,
    *,
    validation: Any,
    on_epoch: Callable[[dict[str, float]], None] | None,
    stop: Event | None,
    trainer: "Trainer | None" = None,
) -> tuple[Fitted, Forecaster | None]:
    """Fit a model with an estimator's settings, which gets the names of the inputs.

    Another trainer than the usual one may train members of many fits at once.
    """
    check_parameters(estimator)
    validation = validation_of(validation, y, series, time)
    check_fit_arguments(validation, on_epoch, stop)
    check_packages(estimator)  # now, not when all is trained
    from varnn import fitting  # late: it imports torch

    most = checked_details(estimator.details).max_rows
    panel = weighted(X, panel_of(estimator, X, y, series, time, fitting=True), sample_weight)
    if sample_weight is not None and estimator.horizon > 1:
        raise ConfigError(
            f"sample_weight counts in a model of the next row; horizon is {estimator.horizon}. Leave one of "
            "the two out."
        )
    panel = latest_rows(panel, most)
    held_out = estimator.validation_fraction if validation is None else 0.0
    if panel.categories or panel.texts is not None:
        panel = with_learnt_inputs(panel, split_in_time(panel, 1 - held_out, held_out)[0])
        panel_of(estimator, panel, fitting=True)  # which keeps the names of its inputs
    known = spelt_out(estimator.known_inputs or (), panel.categories)
    training, chosen_on = split_or_take(panel, validation, held_out, most)
    refuse_uncounted(training, "the training rows")
    if chosen_on is not None:
        refuse_uncounted(chosen_on, "the validation rows")
    held_out_rows = 0 if chosen_on is None else len(chosen_on)
    logger.info("learning from %s rows, choosing on %s", f"{len(training):,}", f"{held_out_rows:,}")
    warn_of_little(training, chosen_on)
    tell_leaks([training])
    refuse_too_far(training, estimator.horizon, held_out)
    columns_of(training, known)  # refuses names that are not there
    try:
        fitted, forecaster = fitting.fit(
            estimator.settings(),
            training,
            chosen_on,
            rows=panel,
            refit=estimator.refit and held_out > 0 and len(panel) > len(training),
            horizon=estimator.horizon,
            known_inputs=known,
            seed=seed_of(estimator.random_state),
            on_epoch=reporter(estimator.verbose, on_epoch),
            stop=stop,
            trainer=trainer,
        )
    except KeyboardInterrupt:
        if stop is None or not stop.is_set():  # it is one
            raise
        raise TrainingError(
            "nothing was trained: `stop` was set before the first epoch was through. Give an event that is "
            "not set, and set it later."
        ) from None
    record = replace(
        fitted.training,
        period=card.period(panel.time),
        reading=dict(panel.read_as),
        backend=panel.backend,
        leak=exact_leak(training),
        few_errors=None if forecaster is None else forecaster.network.training.few_errors,
    )
    categories = {column: known for column, known in panel.categories.items() if known}
    return replace(fitted, training=record, categories=categories), forecaster
