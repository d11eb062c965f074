"""``varnn compare``: models side by side on a table of yours, honestly."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from varnn.cli._options import (
    Cluster,
    Data,
    DuplicatesOption,
    Inputs,
    Json,
    Missing,
    Parallel,
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


def compare(
    data: Data,
    target: Target = None,
    time: Time = None,
    series: Series = None,
    inputs: Inputs = None,
    time_format: TimeFormat = None,
    time_zone: TimeZone = None,
    missing: Missing = None,
    sort: Sort = False,
    duplicates: DuplicatesOption = "error",
    models: Annotated[
        str,
        typer.Option(
            help="Models by name, separated by commas: varnn, RM, ARM+AM, arx-lr, narx-gbm, seasonal-arx and "
            "seasonal-gbm (the same hour of yesterday and last week, and the calendar), rls-arx, ..."
        ),
    ] = "persistence,arx-lr,seasonal-arx,narx-gbm,seasonal-gbm,varnn",
    protocol: Annotated[
        str, typer.Option(help="honest, or paper (optimistic: it picks on the test part).")
    ] = "honest",
    seeds: Annotated[int, typer.Option(help="Seeds of each model that draws.", min=1)] = 3,
    origins: Annotated[
        int,
        typer.Option(help="Rolling-origin backtest: fit anew at so many origins, score each once.", min=1),
    ] = 1,
    metrics: Annotated[
        str,
        typer.Option(
            help="Metrics to show, separated by commas: rmse, mae, skill, r2, mase, ...; of models with "
            "intervals: coverage, width, interval_score, ..."
        ),
    ] = "rmse,mae,skill",
    interval: Annotated[float, typer.Option(help="Level of the intervals that metrics judge.")] = 0.9,
    max_rows: Annotated[int, typer.Option(help="Latest rows to compare on.", min=1)] = defaults.MAX_ROWS,
    report: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
    workers: Parallel = None,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Fit models on the first part of a table, choose on the next, score once on the last.

    With --origins N that is done N times, each time further along the rows.
    """
    from varnn.cli.terminal import console, voice

    voice.stopped = "stopped before any fit was done; nothing is written."
    from rich.table import Table

    from varnn import evaluation
    from varnn.cli import _packages, _table
    from varnn.cli._interrupt import left_on_interrupt
    from varnn.cli.progress import fits_bar
    from varnn.data.files import check_apart, check_writable
    from varnn.data.leaks import advice
    from varnn.errors import ask_all
    from varnn.evaluation.verdict import in_words
    from varnn.report import comparison_page

    names = listed(models) or []
    ask_all(  # a misspelt name, or a package that is not there, is found at once
        [
            lambda: _packages.ask_for(tables=True, page=report is not None, cluster=cluster is not None),
            lambda: evaluation.check_models(names),
        ]
    )
    check_apart({"--report": report}, {"the table": data})
    if report is not None:
        check_writable(report)
    shown = evaluation.metrics.check_names(listed(metrics) or ())
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
    title, facts, panel = understood.name, understood.facts(), understood.panel.latest(max_rows)
    if len(panel) < facts["rows"]:
        words.print(f"Comparing on the latest {len(panel):,} rows; --max-rows takes more.", markup=False)
    del understood  # and with it the rows before them
    fitted = {name: origins * (1 if name in evaluation.DETERMINISTIC else seeds) for name in names}
    alone = workers is None and cluster is None
    with fits_bar([name for name in names for _ in range(fitted[name])]) as fits, ExitStack() as watching:

        def on_score(one: evaluation.Score) -> None:
            fits.done(one.model, one.seconds, f"{one.model}: RMSE {one.rmse:.4g}")
            voice.stopped = f"stopped: {fits.so_far} were done; nothing is written."

        if alone:  # other processes are to be ended, too
            watching.enter_context(left_on_interrupt(lambda: voice.stopped))
        result = evaluation.compare(
            panel,
            names,
            protocol=protocol,  # type: ignore[arg-type]  # a word of the user's, checked by evaluation.compare
            seeds=seeds,
            origins=origins,
            metrics=shown,
            interval=interval,
            on_score=on_score,
            on_epoch=fits.epoch if alone else None,
            workers=workers,
            cluster=cluster,
        )
    voice.stopped = "stopped."
    summary = in_words(result)
    if as_json:
        level = result.level if any(map(evaluation.metrics.of_intervals, shown)) else None
        answer = {
            "summary": summary,
            "leak": result.leak,
            "level": level,
            "scores": result.rows(),
            "data": facts,
        }
        typer.echo(json.dumps(answer, indent=1))
    else:
        rolled = f", {origins} origins" if origins > 1 else ""
        heading = f"{title}: one step ahead, {protocol} protocol{rolled}"
        columns, lines = comparison_page.table(result, terse=True)
        drawn = Table(title=heading, title_justify="left")
        for index, column in enumerate(columns):
            first = index == 0
            # Where a number does not fit it goes on below: cut off, it would be another number.
            drawn.add_column(
                column,
                justify="left" if first else "right",
                no_wrap=first,
                overflow="ellipsis" if first else "fold",
            )
        for line in lines:
            drawn.add_row(*line)
        console().print(drawn)
        console().print(summary, markup=False)
        if result.leak is not None:
            console().print(f"Look: {advice(result.leak)}.", markup=False)
    if report is not None:
        comparison_page.page(result, title, panel=panel, guessed=guessed).write(report)
        words.print(f"Report: {report}", markup=False)
