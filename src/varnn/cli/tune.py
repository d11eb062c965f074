"""``varnn tune``: a table in, a model file out whose settings were searched for."""

import json
from pathlib import Path
from typing import Annotated

import typer

from varnn.cli._options import (
    Data,
    DuplicatesOption,
    Inputs,
    Json,
    Missing,
    Series,
    Sort,
    Target,
    Time,
    TimeFormat,
    TimeZone,
    listed,
    reading,
)
from varnn.estimator import defaults


def tune(
    data: Data,
    target: Target = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Model file to write.")] = None,
    time: Time = None,
    series: Series = None,
    inputs: Inputs = None,
    time_format: TimeFormat = None,
    time_zone: TimeZone = None,
    missing: Missing = None,
    sort: Sort = False,
    duplicates: DuplicatesOption = "error",
    trials: Annotated[
        int | None, typer.Option(help="Trials in all, with the default; 30 without --minutes.", min=1)
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time for trials; the verdict and the last fit come after it.")
    ] = None,
    origins: Annotated[int, typer.Option(help="Origins that a trial is scored at.", min=1)] = 3,
    study: Annotated[
        Path | None,
        typer.Option(help="SQLite file that keeps the trials; with one that is there, the search goes on."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Trials at a time, each in a process of its own.", min=1)] = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Ray cluster to run trials on: auto, or an address.")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            help='What to search, as JSON: {"window": [6, 12, 24], "learning_rate": {"low": 0.001, "high": '
            "0.02}}; chosen if not given."
        ),
    ] = None,
    max_rows: Annotated[int, typer.Option(help="Latest rows to tune on.", min=1)] = defaults.MAX_ROWS,
    seed: Annotated[int, typer.Option(help="Seed of what trials are drawn from.", min=0)] = 0,
    report: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
    as_json: Json = False,
) -> None:
    """Search for settings, and keep them only if they beat the default on rows that no choice has seen.

    Ctrl-C ends the search; with --study, the same command goes on with what was finished.
    """
    from varnn.cli import _packages, _table
    from varnn.cli.progress import tuning_bar
    from varnn.cli.terminal import console
    from varnn.data.files import check_apart, check_writable
    from varnn.estimator.input import latest_rows
    from varnn.persistence.model_file import check_replaceable
    from varnn.scale.tuning.page import page
    from varnn.scale.tuning.space import read_space
    from varnn.scale.tuning.tuner import VARNNTuner

    _packages.ask_for(
        tables=True, training=True, tuning=True, page=report is not None, cluster=cluster is not None
    )
    check_apart({"--output": output, "--report": report}, {"the table": data, "the study": study})
    for path in (output, report):
        if path is not None:
            check_writable(path)
    if output is not None:
        check_replaceable(output)
    tuner = VARNNTuner(
        trials=trials,
        minutes=minutes,
        origins=origins,
        study=study,
        workers=workers,
        cluster=cluster,
        random_state=seed,
        space=None if space is None else read_space(space),
    )
    understood = _table.read(
        data,
        reading(
            target,
            time,
            series,
            listed(inputs),
            time_format=time_format,
            time_zone=time_zone,
            missing=missing,
            sort=sort,
            duplicates=duplicates,
        ),
    )
    words = console(stderr=True, quiet=as_json)
    understood.show(words)
    guessed = understood.roles.guessed
    name, facts, panel = understood.name, understood.facts(), latest_rows(understood.panel, max_rows)
    try:
        with tuning_bar() as on_step:
            tuner.fit(panel, on_step=on_step)
    except KeyboardInterrupt:
        kept = (
            "nothing is kept; --study FILE keeps trials" if study is None else f"trials are kept in {study}"
        )
        console(stderr=True).print(f"the search was cut short: {kept}.", markup=False)
        raise
    if output is not None:
        tuner.save(output)
    if report is not None:
        page(tuner, name, panel=panel, guessed=guessed).write(report)
    if as_json:
        answer = {
            **tuner.verdict_.as_dict(),
            "model": None if output is None else str(output),
            "trial_table": tuner.trials_,
            "importances": tuner.importances_,
            "data": facts,
        }
        typer.echo(json.dumps(answer, indent=1))
    else:
        console().print(str(tuner.verdict_), markup=False)
    for what, path in (("Saved", output), ("Report:", report)):
        if path is not None:
            words.print(f"{what} {path}", markup=False)
