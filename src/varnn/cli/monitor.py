"""``varnn monitor``: a model file and a table in; what changed along its rows out."""

import json
from typing import Annotated

import typer

from varnn.cli._options import (
    Data,
    DuplicatesOption,
    Json,
    Missing,
    Model,
    Page,
    Series,
    Sort,
    Time,
    TimeFormat,
    TimeZone,
    reading,
)


def monitor(
    model_path: Model,
    data: Data,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column with the labels; that of the model if not given."),
    ] = None,
    time: Time = None,
    series: Series = None,
    time_format: TimeFormat = None,
    time_zone: TimeZone = None,
    missing: Missing = None,
    sort: Sort = False,
    duplicates: DuplicatesOption = "error",
    false_alarms: Annotated[float, typer.Option(help="False alarms to accept per row of each series.")] = 1
    / 10_000,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Whether the rows follow the training rows; their times tell if not given.",
        ),
    ] = None,
    report: Page = None,
    as_json: Json = False,
) -> None:
    """Run a model through the rows of a table, and list where its errors or its intervals changed.

    Each row is predicted from its inputs and the labels before it, as in a stream. A level shift is a mean
    error that moved, a variance change errors that grew or shrank, coverage lost intervals that hold less
    than they promise. The exit code is 0 whether something changed or not.
    """
    from dataclasses import replace

    from varnn.cli import _packages, _table
    from varnn.cli.terminal import console
    from varnn.data.files import check_apart, check_writable
    from varnn.errors import DataError
    from varnn.estimator.loading import load
    from varnn.monitoring import watch
    from varnn.report import monitor_page

    _packages.ask_for(tables=True)
    check_apart({"--report": report}, {"the table": data, "the model": model_path})
    if report is not None:
        check_writable(report)
    model = load(model_path)
    fitted = model.fitted_
    how = reading(
        target or fitted.target_name,
        time,
        series,
        None,
        time_format=time_format,
        time_zone=time_zone,
        missing=missing,
        sort=sort,
        duplicates=duplicates,
    )
    understood = _table.read(data, replace(how, inputs=fitted.input_names), fitted=fitted)
    words = console(stderr=True, quiet=as_json)
    understood.show(words)
    if understood.in_closed_loop:
        raise DataError(
            "a monitor watches errors, so rows need labels; column "
            f"{understood.panel.target_name!r} holds none. Give rows with labels."
        )
    found = watch(fitted, understood.panel, false_alarms=false_alarms, resume=resume)
    if as_json:
        facts = {"summary": found.in_words(), "events": found.lines(), "data": understood.facts()}
        typer.echo(json.dumps(facts, indent=1))
    else:
        for line in found.lines():
            console().print(line["words"], markup=False)
        console().print(found.in_words(last=False), markup=False)
    if report is not None:
        guessed = understood.roles.guessed
        page = monitor_page(
            model, understood.panel, watched=found, resume=resume, title=understood.name, guessed=guessed
        )
        page.write(report)
        words.print(f"Report: {report}", markup=False)
