"""``python -m benchmarks tune``: a search for settings on a published data set."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for
from benchmarks.commands.running import show


def tune(
    data: Annotated[str, typer.Option(help="Data set.")] = "appliances",
    trials: Annotated[int, typer.Option(help="Trials, with the default.", min=1)] = 30,
    workers: Annotated[int, typer.Option(help="Trials at a time.", min=1)] = 2,
    study: Annotated[Path | None, typer.Option(help="SQLite file to keep the trials in.")] = None,
    report: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
    json_path: Json = None,
) -> None:
    """Tune on a data set: minutes, validation and test error beside the default's."""
    from benchmarks.accuracy.tune import measure
    from benchmarks.record import save
    from varnn.cli.progress import tuning_bar
    from varnn.scale.tuning.page import page

    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    with kept_in(json_path) as kept:
        with tuning_bar() as on_step:
            measured, tuner = measure(data, trials=trials, workers=workers, study=study, on_step=on_step)
        if kept is not None:
            save(kept, measured, command)
    for one in measured:
        show(words_for(json_path), one)
    if report is not None:
        page(tuner, data).write(report)
