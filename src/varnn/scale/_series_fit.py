"""Some series -> their models as bytes: what a worker does, with nothing shared but where to train."""

import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from varnn.data.categories import source_columns
from varnn.data.panel import Panel
from varnn.errors import TrainingError, VarnnError
from varnn.estimator.elsewhere import fitted_by
from varnn.estimator.loading import to_bytes
from varnn.estimator.regressor import VARNNRegressor
from varnn.jobs import Failure
from varnn.scale._trainings import Door

if TYPE_CHECKING:  # importing it would import torch
    from varnn.network.training import Trainer

_MOST_SAID = 20  # warnings of one fit that are kept


class Wanted(NamedTuple):
    """A series to fit."""

    name: str
    panel: Panel
    regressor: VARNNRegressor


class Outcome(NamedTuple):
    """What came of it."""

    name: str
    blob: bytes | None
    reason: str | None
    facts: dict[str, Any]


class Shared(NamedTuple):
    """What all jobs have in common."""

    door: Door | None  # to the process that owns the GPU; None trains here
    at_once: int = 1  # fits under way in a worker


def fit_chunk(job: list[Wanted], shared: Shared) -> list[Outcome]:
    """Fit the series of one job, each on its own; where the GPU is elsewhere, several are under way."""
    if shared.door is None or shared.at_once == 1:
        return [_fitted(one, None if shared.door is None else shared.door.trainer()) for one in job]
    door = shared.door
    with ThreadPoolExecutor(min(shared.at_once, len(job))) as pool:
        return list(pool.map(lambda one: _fitted(one, door.trainer()), job))


def _fitted(wanted: Wanted, trainer: "Trainer | None") -> Outcome:
    """Fit one series; an error is an outcome, too."""
    began = time.perf_counter()
    with _heard() as said:
        try:
            model = _fit(wanted, trainer)
            blob = to_bytes(model, f"the model of series {wanted.name!r}")
        except KeyboardInterrupt:
            raise
        except Exception as error:
            return failed(wanted.name, Failure.of(error), isinstance(error, VarnnError))
    record = model.fitted_.training
    facts = {
        "rows": len(wanted.panel),
        "seconds": round(time.perf_counter() - began, 3),
        "best_loss": best_loss(model.history_),
        "validation": record.validation,
        "columns": source_columns(model.fitted_.input_names, model.fitted_.categories),
        "categories": {column: list(known) for column, known in model.fitted_.categories.items()},
        "warnings": said,
    }
    return Outcome(wanted.name, blob, None, facts)


def best_loss(history: Sequence[Mapping[str, float]]) -> float | None:
    """Lowest validation loss, or loss, of a training; an epoch that was not kept may have none.

    Examples
    --------
    >>> best_loss([{"loss": 2.0, "validation_loss": math.nan}, {"loss": 1.0, "validation_loss": 1.5}])
    1.5
    """
    losses = [line.get("validation_loss", line["loss"]) for line in history]
    return min((one for one in losses if math.isfinite(one)), default=None)


def _fit(wanted: Wanted, trainer: "Trainer | None") -> VARNNRegressor:
    """Fit one series."""
    model = fitted_by(trainer, wanted.regressor, wanted.panel)
    if model.fitted_.training.interrupted:  # by a signal to this process alone
        raise TrainingError(f"training was cut short {model.fitted_.training.interrupted}.")
    return model


def failed(name: str, failure: Failure, is_ours: bool) -> Outcome:
    """A series without a model; an error that is not for users keeps its name and where it came from."""
    if is_ours:
        return Outcome(name, None, failure.message, {})
    return Outcome(name, None, f"{failure.kind}: {failure.message}", {"traceback": failure.traceback})


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Keep what the library warns of in this thread; a thousand fits would say it a thousand times."""
    said: list[str] = []
    listener = _Listener(said)
    logger = logging.getLogger("varnn")
    _quiet.enter(logger)
    logger.addHandler(listener)
    try:
        yield said
    finally:
        logger.removeHandler(listener)
        _quiet.leave(logger)


class _Listener(logging.Handler):
    """Takes warnings of the thread that made it."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.said, self.thread = said, threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning, once."""
        if record.thread == self.thread and len(self.said) < _MOST_SAID:
            text = record.getMessage()
            if text not in self.said:
                self.said.append(text)


class _Quiet:
    """Keeps the library's words from everybody else as long as any thread fits."""

    def __init__(self) -> None:
        self.lock, self.within, self.before = threading.Lock(), 0, True

    def enter(self, logger: logging.Logger) -> None:
        with self.lock:
            if self.within == 0:
                self.before = logger.propagate
                logger.propagate = False
            self.within += 1

    def leave(self, logger: logging.Logger) -> None:
        with self.lock:
            self.within -= 1
            if self.within == 0:
                logger.propagate = self.before


_quiet = _Quiet()
