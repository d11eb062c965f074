"""``python -m benchmarks horizons``: forecasts of several rows beside simple ones."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import DataSets, FitThreads, Json, kept_in, picked, words_for


def horizons(
    data: DataSets = None,
    seeds: Annotated[int, typer.Option(help="Fits of each data set.", min=1)] = 3,
    threads: FitThreads = 1,
    json_path: Json = None,
) -> None:
    """Score forecasts of up to 24 rows on real data, beside simple ones.

    With --json, what is finished is kept after each fit.
    """
    import json

    from benchmarks.accuracy import horizons as bench
    from varnn.data.files import write_atomically

    chosen = picked("data", data, bench.DATA)
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    found: list[bench.Found] = []
    with kept_in(json_path) as kept:

        def on_done(one: bench.Found) -> None:
            found.append(one)
            ratios = [
                ours / last for ours, last in zip(one.mse["VARNN"], one.mse["persistence"], strict=True)
            ]
            words = (f"{ratio:.3f}" for ratio in ratios)
            words_for(json_path).print(f"{one.data}, seed {one.seed}:", *words)
            if kept is not None:
                text = json.dumps(bench.summed_up(found, command), indent=1)
                write_atomically(kept, f"{text}\n".encode())

        bench.run(chosen, seeds=seeds, threads=threads, on_done=on_done)


def horizons_page(
    file: Annotated[Path, typer.Argument(help="File written by `python -m benchmarks horizons --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved errors of forecasts into their page."""
    from benchmarks.accuracy.horizons_page import write

    write(file, output)
