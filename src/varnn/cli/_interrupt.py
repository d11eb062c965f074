"""Ctrl-C while a model is trained: once to keep what there is, twice to leave at once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import typer

from varnn.cli.progress import training_bar
from varnn.cli.terminal import console
from varnn.errors import TrainingError

if TYPE_CHECKING:
    from varnn.data.panel import Panel
    from varnn.estimator.regressor import VARNNRegressor

INTERRUPTED = 130
_SHOW_CURSOR = "\x1b[?25h"  # which a progress bar hides


def fit_or_cut_short(model: "VARNNRegressor", panel: "Panel") -> str:
    """Fit a model with a progress bar; say how it was cut short, if it was.

    Where nothing was trained by then, the command ends here.
    """
    with kept_on_interrupt() as stop, training_bar("training", stop) as on_epoch:
        try:
            model.fit(panel, on_epoch=on_epoch, stop=stop)
        except (KeyboardInterrupt, TrainingError) as error:
            if isinstance(error, TrainingError) and not stop.is_set():  # of another cause
                raise
            console(stderr=True).print("nothing was trained by then: nothing is written.", markup=False)
            raise typer.Exit(INTERRUPTED) from None
    return model.fitted_.training.interrupted or ""


_ONE = (
    "training is cut short: what is trained by now is kept. Ctrl-C again leaves at once, and keeps nothing.",
    "stopped at once: nothing was written.",
)
_MANY = (
    "no more models are fitted: those that are finished are kept. Ctrl-C again leaves at once.",
    "stopped at once: models that were finished are kept.",
)


@contextmanager
def kept_on_interrupt(*, of_many: bool = False) -> Iterator[Event]:
    """An event that the first Ctrl-C sets; the second ends the process, with nothing more written."""
    stop, (first, second) = Event(), _MANY if of_many else _ONE

    def on_interrupt(*_: Any) -> None:
        if stop.is_set():
            if sys.stderr.isatty():
                sys.stderr.write(_SHOW_CURSOR)
            sys.stderr.write(f"{second}\n")
            sys.stderr.flush()
            os._exit(INTERRUPTED)  # threads that train would be waited for
        stop.set()
        console(stderr=True).print(first, markup=False)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
