"""``python -m benchmarks robustness``: who copes with which kind of trouble."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, picked, words_for


def robustness(
    kinds: Annotated[
        str | None, typer.Option(help="Kinds of trouble, separated by commas; default: all.")
    ] = None,
    strengths: Annotated[str, typer.Option(help="Strengths, separated by commas.")] = "0,0.5,1,2",
    seeds: Annotated[int, typer.Option(help="Streams of each kind and strength.", min=1)] = 2,
    rows: Annotated[int, typer.Option(help="Rows of a stream.", min=200)] = 6000,
    workers: Annotated[
        int | None, typer.Option(help="Streams at a time; default: one per core.", min=1)
    ] = None,
    json_path: Json = None,
) -> None:
    """See who copes with which kind of trouble: errors over those of the best possible predictor.

    With --json, what is finished is kept after each stream.
    """
    import os

    from rich.table import Table

    from benchmarks.record import Row, save
    from benchmarks.robustness import trouble as bench
    from benchmarks.robustness.trouble_page import at_strongest, by_kind
    from varnn.cli.progress import counting_bar

    chosen = picked("kinds", kinds, bench.KINDS, separator=",")
    cases = bench.cases(chosen, _strengths(strengths), seeds=seeds, rows=rows)
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    found: dict[bench.Case, list[Row]] = {}
    with kept_in(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("starting", total=len(cases))

        def on_done(case: bench.Case, measured: list[Row]) -> None:
            found[case] = measured
            progress.update(task, advance=1, description=str(case))
            if kept is not None:
                save(kept, bench.tables(found), command, complete=len(found) == len(cases))

        bench.run(cases, workers=workers or os.cpu_count() or 1, on_done=on_done)
    strongest, contenders, ratios = at_strongest(by_kind(bench.tables(found)))
    table = Table(title=f"{bench.RATIO}, at strength {strongest:g}", title_justify="left")
    for number, column in enumerate(["trouble", *contenders]):
        table.add_column(column, justify="right" if number else "left")
    for trouble, line in ratios.items():
        table.add_row(trouble, *(f"{ratio:.2f}" for ratio in line))
    words_for(json_path).print(table)


def robustness_page(
    file: Annotated[Path, typer.Argument(help="File written by `python -m benchmarks robustness --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved ratios into the page about robustness, and its figure beside it."""
    from benchmarks.robustness.trouble_page import write

    write(file, output)


def _strengths(text: str) -> list[float]:
    from varnn.errors import ConfigError

    try:
        strengths = [float(one) for one in text.split(",")]
    except ValueError:
        strengths = [-1.0]
    if not 0 <= min(strengths) <= max(strengths) < float("inf"):  # a NaN fails every comparison
        raise ConfigError(f"--strengths must be numbers from 0, separated by commas; got {text!r}.")
    return strengths
