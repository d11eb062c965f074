"""``varnn compare``: models side by side on a table of yours, honestly."""

import json
from pathlib import Path
from typing import Annotated

import typer

from varnn.cli.options import Data, Inputs, Series, Target, Time, listed


def compare(
    data: Data,
    target: Target,
    time: Time = None,
    series: Series = None,
    inputs: Inputs = None,
    models: Annotated[
        str,
        typer.Option(help="Models by name, separated by commas: varnn, RM, ARM+AM, arx-lr, narx-gbm, ..."),
    ] = "persistence,arx-lr,narx-gbm,varnn",
    protocol: Annotated[
        str, typer.Option(help="honest, or paper (optimistic: it picks on the test part).")
    ] = "honest",
    seeds: Annotated[int, typer.Option(help="Seeds of each model that draws.", min=1)] = 3,
    origins: Annotated[
        int,
        typer.Option(help="Rolling-origin backtest: fit anew at so many origins, score each once.", min=1),
    ] = 1,
    report: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Fit models on the first part of a table, choose on the next, score once on the last.

    With --origins N that is done N times, each time further along the rows.
    """
    from rich.console import Console
    from rich.table import Table

    from varnn import comparison, evaluation
    from varnn.cli.progress import fits_bar
    from varnn.panel import Panel

    panel = Panel.read(data, target=target, time=time, series=series, inputs=listed(inputs))
    names = listed(models) or []
    for name in names:
        evaluation.make_model(name, 0)  # a misspelt name is found before the first hour of fitting
    fits = origins * sum(1 if name in evaluation.DETERMINISTIC else seeds for name in names)
    with fits_bar(fits) as on_score:
        result = evaluation.compare(
            panel,
            names,
            protocol=protocol,  # type: ignore[arg-type]  # checked there
            seeds=seeds,
            origins=origins,
            on_score=on_score,
        )
    if as_json:
        typer.echo(json.dumps({"summary": comparison.in_words(result), "scores": result.rows()}, indent=1))
    else:
        console = Console()
        rolled = f", {origins} origins" if origins > 1 else ""
        table = Table(title=f"{data.name}: one step ahead, {protocol} protocol{rolled}", title_justify="left")
        columns, lines = comparison.table(result, terse=True)
        for index, column in enumerate(columns):
            table.add_column(column, justify="left" if index == 0 else "right", no_wrap=index == 0)
        for line in lines:
            table.add_row(*line)
        console.print(table)
        console.print(comparison.in_words(result), markup=False)
    if report is not None:
        comparison.page(result, data.name).write(report)
        Console(stderr=True).print(f"Report: {report}")
