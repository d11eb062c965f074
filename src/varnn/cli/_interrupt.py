"""Ctrl-C while a model is trained: once to keep what there is, twice to leave at once.

Where nothing can be kept, as of a comparison, once is enough.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from varnn.cli import terminal
from varnn.cli.progress import training_bar
from varnn.cli.terminal import console
from varnn.errors import TrainingError

if TYPE_CHECKING:
    from varnn.data.panel import Panel
    from varnn.estimator.regressor import VARNNRegressor

INTERRUPTED = 130
NOTHING_TRAINED = "stopped before anything was trained; nothing is written."
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
            terminal.voice.stopped = NOTHING_TRAINED
            raise typer.Exit(INTERRUPTED) from None
    terminal.voice.stopped = "stopped."
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
            _leave(second)
        stop.set()
        console(stderr=True).print(first, markup=False)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def left_on_interrupt(said: Callable[[], str]) -> Iterator[None]:
    """Leave at the first Ctrl-C, where nothing is to be kept; the fit under way is not waited for."""
    before = signal.signal(signal.SIGINT, lambda *_: _leave(said()))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(said: str) -> NoReturn:
    """End the process now."""
    shown = f"\n{_SHOW_CURSOR}" if sys.stderr.isatty() else ""
    os.write(2, f"{shown}{said}\n".encode())  # not by way of a bar, which would be drawn below it
    os._exit(INTERRUPTED)  # threads that train would be waited for
