"""``varnn demo``: the whole job on a stream made here, in a minute."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varnn.cli._options import Json

if TYPE_CHECKING:
    from varnn.datasets.synthetic import Synthetic
    from varnn.report.demo import Result


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the report.")] = Path(
        "report.html"
    ),
    rows: Annotated[int, typer.Option(help="Rows of the made stream.", min=500)] = 8000,
    epochs: Annotated[int | None, typer.Option(help="Epochs to train; chosen if not given.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of stream and training.", min=0)] = 7,
    as_json: Json = False,
) -> None:
    """Make a stream with drift, regime switches and volatility bursts; fit, compare, report."""
    from rich.table import Table

    from varnn.cli import _packages
    from varnn.cli.progress import training_bar
    from varnn.cli.terminal import console
    from varnn.data.files import check_writable
    from varnn.datasets import synthetic
    from varnn.report.demo import run

    _packages.ask_for(training=True, page=True)
    check_writable(output)
    words, results = console(stderr=True, quiet=as_json), console(quiet=as_json)
    made = synthetic.make("mixed", rows=rows, seed=seed)
    words.print(
        f"A stream of {rows:,} rows and {made.panel.n_inputs} inputs, with drift, "
        f"{len(made.events['regime switch'])} regime switches and volatility bursts. "
        "Fitted on the first 64 %, epoch chosen on the next 16 %, scored once on the last 20 %."
    )
    with training_bar("training VARNN") as on_epoch:
        result = run(made, epochs=epochs, seed=seed, on_epoch=on_epoch)
    table = Table(title="One step ahead on the last 20 %, which fitting never saw", title_justify="left")
    for index, column in enumerate(result.columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for line in result.lines:
        table.add_row(*line, style="bold" if line[0].startswith("VARNN") else None)
    results.print(table)
    results.print(result.summary)
    result.report.write(output)
    words.print(f"Report with plots: {output}", markup=False)
    if as_json:
        typer.echo(json.dumps(_facts(made, result) | {"report": str(output)}, indent=1))


def _facts(made: "Synthetic", result: "Result") -> dict[str, Any]:
    """What the table and the words say, as plain values."""
    panel = made.panel
    return {
        "summary": result.summary,
        "scores": result.comparison.rows(),
        "best_possible": result.best_possible,
        "data": {"rows": len(panel), "inputs": list(panel.input_names), "target": panel.target_name},
    }
