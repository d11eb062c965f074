"""Rows without labels: a model goes on, taking each of its predictions as the label.

Fed with itself a model may run away. Two things keep it near what it knows, the range of the labels it was
fitted on and goes on from ::

    prediction    within that range, widened by half of it on either side
    handed on     as the label of its row; of what lies beyond the range itself, half

Within the range nothing is changed. A loop that grows row by row is pulled back each time, and comes to rest.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray, FloatArray
from varnn.data.panel import Panel
from varnn.data.preparation import fill_gaps
from varnn.errors import ConfigError, DataError
from varnn.model.calendar import has_times
from varnn.model.fitted import Fitted, LastRows
from varnn.streaming.stream import Stream

logger = logging.getLogger(__name__)

_told: WeakSet[Fitted] = WeakSet()  # models that said so; not kept with them, as predicting changes nothing
_said: ContextVar[set[str] | None] = ContextVar("said", default=None)  # within each_warning_once
WIDENED = 0.5  # of the range of labels, to which predictions may go beyond it on either side
HANDED_ON = 0.5  # of what a prediction lies beyond it


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Say what holds for many series, or models, of the first of them only."""
    before = _said.set(_said.get() or set())
    try:
        yield
    finally:
        _said.reset(before)


def _warn(words: str, *values: object) -> None:
    said = _said.get()
    if said is not None:
        if words in said:
            return
        said.add(words)
    logger.warning(words, *values)


def without_labels(panel: Panel) -> bool:
    """Whether no row has a label: then there is nothing to predict one step ahead from.

    Examples
    --------
    >>> without_labels(Panel.from_arrays([[1.0]], None)), without_labels(Panel.from_arrays([[1.0]], [2.0]))
    (True, False)
    """
    return len(panel) > 0 and bool(np.isnan(panel.target).all())


def continue_from_training(model: Fitted, panel: Panel) -> FloatArray:
    """Predict rows that follow the training rows, with no labels: each prediction is taken as the label.

    Predictions stay within the range of the labels known, widened by half of it on either side.

    Parameters
    ----------
    model : Fitted
        A fitted model, which keeps the last training rows of each series.
    panel : Panel
        The rows; their target is not looked at.
    """
    panel, pieces = model.matched(panel), []
    for index, name in enumerate(panel.ids):
        if name not in model.last_rows and not (panel.n_series == 1 == len(model.last_rows)):
            raise DataError(
                f"without labels a prediction goes on after the training rows of its series; series "
                f"{name!r} was not trained on. Give labels: predict(X, y), or predict(panel)."
            )
        last = model.last_rows.get(name) or next(iter(model.last_rows.values()))
        rows = slice(panel.starts[index], panel.starts[index + 1])
        if last.time is not None and has_times(panel.time) and panel.time is not None:
            begun, ended = panel.time[rows][0], last.time[-1]
            if begun <= ended:
                _warn(
                    "rows without labels are predicted as if they came after the training rows, which end at "
                    "%s; these begin at %s. Give their labels to predict them where they are.",
                    ended,
                    begun,
                )
        pieces.append(
            continued(model, last, panel.inputs[rows], None if panel.time is None else panel.time[rows])
        )
    return np.concatenate(pieces)


def continued(
    model: Fitted, last: LastRows, inputs: FloatArray, time: npt.NDArray[Any] | None
) -> DoubleArray:
    """Go on after the last training rows of one series."""
    if model.pipeline.peers:
        raise ConfigError(
            "a model with peers=True predicts all series together, which going on without labels, one series "
            "after the other, does not do. Give labels; or fit with horizon=..., and use forecast."
        )
    known = len(last.target)
    least, most = model.labels_known
    low, high = np.fmin.reduce(last.target, initial=least), np.fmax.reduce(last.target, initial=most)
    room = WIDENED * (high - low)
    joined = Panel.from_arrays(np.concatenate([last.inputs, inputs]), None)
    filled = fill_gaps(joined, model.pipeline.fill, model.pipeline.initial_inputs).inputs
    times: Any = [None] * len(filled)
    if last.time is not None and time is not None:
        times = np.concatenate([last.time, time.astype(last.time.dtype)])
    live = Stream(replace(model, experts=None))  # its own predictions have nothing to teach it
    predictions = np.empty(len(filled))
    for row, (x, timestamp) in enumerate(zip(filled, times, strict=True)):
        live.last_time = None  # what follows the training rows is told by the caller, not by the clock
        found = live.predict(x, time=timestamp)
        if row < known:
            live.observe(last.target[row])
            continue
        predictions[row] = min(max(found, low - room), high + room)
        within = min(max(found, low), high)
        live.observe(within + HANDED_ON * (predictions[row] - within))
    return predictions[known:]


def say_once(model: Fitted) -> None:
    """Say, the first time for a model, that labels are missing which it would make use of."""
    if model not in _told:
        _told.add(model)
        _warn(
            "predict without labels goes on after the training rows in closed loop: errors add up. With "
            "labels, predict(X, y) is one step ahead, as are score(X, y) and evaluation.one_step_scorer()."
        )
