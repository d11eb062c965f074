"""``varnn stream``: JSON lines in, JSON lines out, one model, any number of series.

::

    {"series": "a", "x": {"heat": 20.5}}             -> {"series":"a","prediction":61.2}
    {"series": "a", "y": 60.0}                       -> {"series":"a","innovation":-1.2}
    {"series": "a", "x": {"heat": 20.9}, "y": 63.0}  -> both, in that order, on one line

``"interval": 0.9`` beside ``x`` adds ``lower`` and ``upper``. A model that sees the time of day or week
needs ``"time": "2026-11-15T07:30"`` there. ``series`` may be left out when there is only one; ``x`` may be a
list in the model's order, unless texts are among its inputs, which come by name: ``{"heat": 20.5, "sky":
"rain"}``. A ``y`` of null is a missing label. A line that cannot be used yields
``{"error": ...}`` and changes nothing. A list of such objects is answered by a list.

With ``--resume`` a series starts from the last training rows of its name, which its first line follows; one
without a name from those of a model that was trained on one series. Other series start from nothing.

With ``--state`` every line is on disk before it is answered, and answers carry ``"seq"``, the number of the
line among those of its series. A line sent again with its ``"seq"``, or with a ``"key"``, gets the answer it
got.

A model with peers sees, of the other series, what was known before the time step of the x. That is the
``time``; without times it is the round, and a series that comes again begins the next one. A list holds all
series that have a row at that step; after a single x, the series of the step before are taken to come.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from varnn.cli._lines import Lines, Signals
from varnn.cli._options import Model

_GROUP = 500  # lines that are written to disk together, at most
_WATCHED_COVERAGE = 0.9


def stream(
    model_path: Model,
    state: Annotated[
        Path | None,
        typer.Option(help="File to keep every line in before it is answered, and to go on from."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Let series start from the last training rows of the same name, which they follow.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Tell level shifts, changes of variance and lost coverage.")
    ] = False,
    stats: Annotated[
        float | None, typer.Option(help="Seconds between counts on standard error; also on SIGUSR1.", min=0.1)
    ] = None,
    in_memory: Annotated[
        int, typer.Option(help="Series held in memory, with --state; others wait on disk.", min=1)
    ] = 1000,
    most_series: Annotated[
        int | None,
        typer.Option(help="Series taken, by default 100,000, or 10,000 without --state.", min=1),
    ] = None,
    answers: Annotated[
        int, typer.Option(help="Answers kept for each series, for lines that are sent again.", min=1)
    ] = 1000,
    longest_line: Annotated[
        int, typer.Option(help="Bytes of a line; longer ones are passed over.", min=100)
    ] = 1_000_000,
    longest_list: Annotated[int, typer.Option(help="Objects in a list.", min=1)] = 10_000,
    sync: Annotated[
        bool,
        typer.Option(help="Wait for the disk itself: answers then outlive a loss of power, too."),
    ] = True,
) -> None:
    """Predict and observe live: JSON lines on standard input, answers on standard output."""
    import numpy as np

    from varnn.cli._serving import serve
    from varnn.errors import ConfigError
    from varnn.persistence import model_file
    from varnn.streaming.store import Store

    if sys.stdin is None or sys.stdout is None:
        raise ConfigError(
            "a stream reads standard input and answers on standard output; one of them is closed."
        )
    fitted = model_file.read(model_path).fitted  # not by the estimator: a start does not wait for its imports
    watched = None
    if watch:
        watched = {} if fitted.calibrator is None else {"coverage": _WATCHED_COVERAGE}
    limits: dict[str, Any] = {"in_memory": in_memory, "most_series": most_series, "answers": answers}
    with Signals() as signals, np.errstate(all="ignore"):  # numbers without end are answered by null
        with Store(
            fitted,
            state,
            watch=watched,
            most_together=longest_list,
            synchronous=sync,
            resume=resume,
            **limits,
        ) as store:
            lines = Lines(sys.stdin.buffer, signals, longest=longest_line, most=_GROUP)
            serve(store, lines, signals, stats)
        if signals.stop is not None:
            raise typer.Exit(128 + signals.stop)
