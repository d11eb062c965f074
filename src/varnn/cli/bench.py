"""``varnn bench``: speed against named peers, as ratios from one interleaved run."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Measure speed against named peers, interleaved in one run.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure speed against named peers, interleaved in one run."""


@app.command()
def stream(
    rounds: Annotated[int, typer.Option(help="Interleaved rounds.", min=1)] = 7,
    json_path: Annotated[Path | None, typer.Option("--json", help="Also write the figures here.")] = None,
) -> None:
    """Time one predict + observe step: 27 inputs, 128 hidden, RM, exact window of 5."""
    import json

    from rich.console import Console
    from rich.table import Table

    from varnn.bench import stream as bench
    from varnn.files import write_atomically
    from varnn.provenance import provenance

    timings, absent = bench.run(rounds=rounds)
    ours = timings[0]
    table = Table(title="One streamed step (predict + observe), one thread", title_justify="left")
    for column in ("contender", "median", "p99", "p99 / median", "time / ours"):
        table.add_column(column, justify="left" if column == "contender" else "right")
    for timing in timings:
        p99 = timing.quantile(0.99)
        table.add_row(
            timing.name,
            f"{timing.median * 1e6:.1f} us",
            f"{p99 * 1e6:.1f} us",
            f"{p99 / timing.median:.1f}",
            f"{timing.median / ours.median:.1f}x",
        )
    console = Console()
    console.print(table)
    for name in absent:
        console.print(f"not installed, so not measured: {name}")
    if json_path is not None:
        figures = {"made": provenance(), "timings": [timing.as_dict() for timing in timings]}
        write_atomically(json_path, json.dumps(figures, indent=1).encode())
