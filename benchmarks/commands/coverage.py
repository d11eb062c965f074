"""``python -m benchmarks coverage``: whether intervals hold what they promise."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import DataSets, FitThreads, Json, kept_in, picked, words_for


def coverage(
    data: DataSets = None,
    seeds: Annotated[int, typer.Option(help="Fits of each data set.", min=1)] = 2,
    threads: FitThreads = 1,
    json_path: Json = None,
) -> None:
    """See whether intervals hold what they promise, beside split conformal ones and MAPIE's.

    With --json, what is finished is kept after each fit.
    """
    from benchmarks.accuracy import coverage as bench
    from benchmarks.accuracy.coverage_page import lines
    from benchmarks.record import save
    from varnn.cli.progress import counting_bar

    chosen = picked("data", data, bench.DATA)
    cases = bench.cases(chosen, seeds=seeds)
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    found: dict[bench.Case, bench.Found] = {}
    with kept_in(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("starting", total=len(cases))

        def on_done(case: bench.Case, measured: bench.Found) -> None:
            found[case] = measured
            progress.update(task, advance=1, description=str(case))
            if kept is not None:
                tables = bench.tables(found, threads)
                save(kept, tables, command, complete=len(found) == len(cases))

        bench.run(cases, threads=threads, on_done=on_done)
    for line in lines(bench.tables(found, threads)):
        words_for(json_path).print(" | ".join(line))


def coverage_page(
    file: Annotated[Path, typer.Argument(help="File written by `python -m benchmarks coverage --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved coverage into the page about intervals, and its figure beside it."""
    from benchmarks.accuracy.coverage_page import write

    write(file, output)
