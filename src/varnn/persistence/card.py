"""What a model is, in a few lines of plain text: kept in its file, and shown by ``varnn inspect``."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn._version import VERSION
from varnn.data.in_words import figure
from varnn.data.leaks import advice
from varnn.data.rules import shown
from varnn.model.experts import LINEAR, PERSISTENCE, SEASONAL_PERSISTENCE
from varnn.model.fitted import Fitted
from varnn.model.training_record import TrainingRecord

_NAMES_SHOWN = 12
LABELS = {
    "model": "this model",
    PERSISTENCE: PERSISTENCE,
    SEASONAL_PERSISTENCE: SEASONAL_PERSISTENCE,
    LINEAR: "its linear part alone",
}


def card(fitted: Fitted, settings: Mapping[str, Any], horizon: int | None = None) -> str:
    """Write the card of a model.

    Parameters
    ----------
    fitted : Fitted
        The model; ``fitted.training`` tells how the training went, as far as it was kept.
    settings : mapping
        Constructor settings by name.
    horizon : int or None, default=None
        Rows ahead that it can forecast; None is what the settings say.

    Examples
    --------
    >>> from varnn import VARNNRegressor, datasets
    >>> model = VARNNRegressor(epochs=1, hidden_size=8).fit(datasets.load("synthetic", rows=300))
    >>> print(card(model.fitted_, {"variant": "ARM+AM"}))
    Predicts 'load' one row ahead, from the labels before it and 5 inputs: 'demand', 'temperature', ...
    Trained on 300 rows of 1 series. Rows given: 0 to 299.
    Error on rows held out (RMSE, in units of the target): this model ..., persistence ..., its linear part...
    Network: ...windows of 24 rows; 8 hidden units, memory of 48, 4 members.
    Goes on learning as labels arrive, each series by itself: linear part and readout, and how much each ...
    Limits: ...
    Settings: variant='ARM+AM'.
    Written by varnn ...
    """
    lines = [
        _purpose(fitted),
        *_categories(fitted),
        *_training(fitted.training),
        _network(fitted),
        *_learning(fitted),
    ]
    lines.append(_limits(fitted, settings.get("horizon", 1) if horizon is None else horizon))
    lines.append("Settings: " + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ".")
    return "\n".join([*lines, f"Written by varnn {VERSION}."])


def period(time: npt.NDArray[Any] | None) -> list[str] | None:
    """First and last of some times as text.

    Examples
    --------
    >>> period(np.array(["2026-11-15T07:30", "2026-11-16"], dtype="datetime64[us]"))
    ['2026-11-15T07:30', '2026-11-16']
    """
    if time is None or len(time) == 0:
        return None
    ends = (time.min(), time.max())
    if np.issubdtype(time.dtype, np.datetime64):
        return [str(np.datetime_as_string(one, "auto")) for one in ends]
    return [str(one) for one in ends]


def _purpose(fitted: Fitted) -> str:
    names = [repr(one) for one in fitted.input_names]
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    inputs = "no inputs"
    if names:
        inputs = f"{len(names)} input{'s' * (len(names) > 1)}: {shown}"
        if not fitted.pipeline.use_inputs:
            inputs += " (given, but found to be of no use)"
    clock = "".join(f", and the time of {one}" for one in fitted.pipeline.calendar)
    others = ", and what the other series just did" if fitted.pipeline.peers else ""
    seen = f"the labels before it and {inputs}{clock}{others}"
    seasons = f" Seasons: {', '.join(fitted.seasons)}." if fitted.seasons else ""
    return f"Predicts {fitted.target_name!r} one row ahead, from {seen}.{seasons}"


def _categories(fitted: Fitted) -> list[str]:
    """List the categories known of each column of texts."""
    return [
        f"Categories known of {column!r}: {', '.join(map(shown, known))}; all other texts are none of these."
        for column, known in fitted.categories.items()
    ]


def _training(record: TrainingRecord) -> list[str]:
    lines = []
    if record.rows is not None:
        when = "" if record.period is None else f" Rows given: {record.period[0]} to {record.period[1]}."
        lines.append(f"Trained on {record.trained_on:,} rows of {record.series:,} series.{when}")
    if record.leak is not None:
        lines.append(f"Look: {advice(record.leak)}.")
    if record.few_errors is not None:
        lines.append(f"Forecasts: {record.few_errors}.")
    if record.interrupted is not None:
        lines.append(f"Training was cut short {record.interrupted}.")
    if record.validation:
        listed = ", ".join(
            f"{said} {figure(math.sqrt(record.validation[name]))}"
            for name, said in LABELS.items()
            if name in record.validation
        )
        lines.append(f"Error on rows held out (RMSE, in units of the target): {listed}.")
    return lines


def _network(fitted: Fitted) -> str:
    cell = fitted.architecture
    members = f"{fitted.n_members} member{'s' * (fitted.n_members > 1)}"
    shrunk = ""
    if fitted.pipeline.linear is not None and fitted.experts is None:
        shrunk = f", {fitted.shrinkage:.0%} of its correction added to the linear part"
    trees = ""
    if fitted.experts is not None and fitted.experts.trees is not None:
        trees = f", {len(fitted.experts.trees)} trees beside it"
    return (
        f"Network: {fitted.context_in_words}; {cell.hidden_size} hidden units, memory of "
        f"{cell.memory_size}, {members}{shrunk}{trees}."
    )


def _learning(fitted: Fitted) -> list[str]:
    """Say what goes on learning, if anything does."""
    experts = fitted.experts
    if experts is None:
        return []
    both = "readout" if experts.linear is None else "linear part and readout"
    return [
        f"Goes on learning as labels arrive, each series by itself: {both}, and how much each of "
        f"{len(experts.names)} experts counts (most at first: {experts.names[experts.prior.argmax()]})."
    ]


def _limits(fitted: Fitted, horizon: int) -> str:
    ahead = "one step ahead" if horizon == 1 else f"one step ahead, and forecasts of up to {horizon} rows"
    limits = [
        f"{ahead}, at the sampling of the training rows",
        f"scaled inputs are clipped at {fitted.pipeline.scaling.input_limit:g}",
    ]
    if fitted.pipeline.linear is not None:
        low, high = fitted.pipeline.linear.low, fitted.pipeline.linear.high
        limits.append(f"labels it was trained on range from {figure(low)} to {figure(high)}")
    if fitted.positive:
        limits.append("predictions are never below zero, unless a label of the series was")
    return "Limits: " + "; ".join(limits) + "."
