"""Rows without labels: a model goes on, taking each of its predictions as the label."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.errors import DataError
from varnn.fitted import Fitted, Tail
from varnn.panel import FloatArray, Panel
from varnn.preparation import fill_gaps
from varnn.stream import Stream


def continue_from_training(model: Fitted, panel: Panel) -> FloatArray:
    """Predict rows that follow the training rows, with no labels: each prediction is taken as the label.

    Parameters
    ----------
    model
        A fitted model, which keeps the last training rows of each series.
    panel
        The rows; their target is not looked at.
    """
    pieces = []
    for index, name in enumerate(panel.ids):
        if name not in model.tails and not (panel.n_series == 1 == len(model.tails)):
            raise DataError(
                f"without labels a prediction goes on after the training rows of its series; series "
                f"{name!r} was not trained on. Give labels: predict(X, y), or predict(panel)."
            )
        tail = model.tails.get(name) or next(iter(model.tails.values()))
        rows = slice(panel.starts[index], panel.starts[index + 1])
        pieces.append(
            continued(model, tail, panel.inputs[rows], None if panel.time is None else panel.time[rows])
        )
    return np.concatenate(pieces)


def continued(
    model: Fitted, tail: Tail, inputs: FloatArray, time: npt.NDArray[Any] | None
) -> npt.NDArray[np.float64]:
    """Go on after the last training rows of one series."""
    known = len(tail.target)
    joined = Panel.from_arrays(np.concatenate([tail.inputs, inputs]), None)
    filled = fill_gaps(joined, model.recipe.fill, model.recipe.lead).inputs
    times: Any = [None] * len(filled)
    if tail.time is not None and time is not None:
        times = np.concatenate([tail.time, time.astype(tail.time.dtype)])
    live = Stream(replace(model, adaptation=None))  # its own predictions have nothing to teach it
    predictions = np.empty(len(filled))
    for row, (x, moment) in enumerate(zip(filled, times, strict=True)):
        live.last_time = None  # what follows the training rows is told by the caller, not by the clock
        predictions[row] = live.predict(x, time=moment)
        live.observe(tail.target[row] if row < known else predictions[row])
    return predictions[known:]
