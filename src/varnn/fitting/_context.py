"""What rows are predicted from: a state carried through the series, or a window.

A network is trained on windows. Carried on, its state takes a fraction of the time, and as a rule gives the
same; whether it does is seen on the validation rows.
"""

import logging
from dataclasses import replace
from typing import Literal

import numpy as np

from varnn._types import BoolArray
from varnn.data.context import preceded
from varnn.data.panel import Panel
from varnn.data.weights import mean_by_weight
from varnn.model.fitted import Fitted
from varnn.model.prediction import predict_chunks

logger = logging.getLogger(__name__)

LATEST = 20_000  # rows that are looked at
TOLERATED = 1.01  # times the validation error with windows
LARGEST = 1e6  # state, in scaled units, that is no runaway
TIMES = 10.0  # the largest state that training rows gave rise to: beyond it a state begins anew


def with_context(
    fitted: Fitted, training: Panel, validation: Panel | None, wanted: Literal["auto", "series", "window"]
) -> Fitted:
    """Choose what rows are predicted from.

    Parameters
    ----------
    fitted : Fitted
        A model that predicts from windows.
    training, validation : Panel, Panel or None
        Rows it was trained on, and rows it was not.
    wanted : {"auto", "series", "window"}
        "auto" chooses, and takes the series where there is nothing to choose on.
    """
    if wanted == "window":
        return fitted
    carried = with_limit(replace(fitted, context="series"), training)
    if wanted == "series" and not carried.carried:
        logger.warning("context='series' cannot be had: the state of this network grows without end.")
    if wanted == "series" or validation is None or not carried.carried:
        return carried
    # So many rows before that the state has left where it began, even if the validation rows are few.
    if not validation.latest(LATEST).counted.any():  # nothing to choose on
        return carried
    rows, own = preceded(validation.latest(LATEST), training, carried.reach)
    errors = [_error(model, rows, own) for model in (carried, fitted)]
    if errors[0] <= TOLERATED * errors[1]:
        return carried
    logger.info(
        "a state carried through the series is worse than windows on the validation rows, a mean squared "
        "error of %.3g against %.3g: rows are predicted from windows, which takes longer.",
        *errors,
    )
    return fitted


def with_limit(fitted: Fitted, training: Panel) -> Fitted:
    """Measure how large carried states are on training rows; where they grow without end, take windows."""
    if not fitted.carried:
        return fitted
    endless, largest = replace(fitted, state_limit=np.inf, experts=None), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for chunk in predict_chunks(endless, training.latest(LATEST), wanted=("hidden", "memory")):
            for states in (chunk.taps.memory, chunk.taps.hidden):
                largest = np.maximum(largest, np.abs(states).max(initial=0.0))  # keeps NaN
    if not largest <= LARGEST:
        logger.info("a state carried through the series grows without end: windows are taken instead.")
        return replace(fitted, context="window")
    return replace(fitted, state_limit=TIMES * max(float(largest), 1.0))


def _error(fitted: Fitted, rows: Panel, own: BoolArray) -> float:
    """Mean square of the network's errors, in its own units."""
    squares = np.empty(len(rows))
    for chunk in predict_chunks(replace(fitted, experts=None), rows, wanted=("output", "target")):
        squares[chunk.rows] = np.square(chunk.taps.target - chunk.taps.output)
    return mean_by_weight(squares[own], None if rows.weights is None else rows.weights[own])
