"""``python -m benchmarks online``: the one-step tables of papers on online forecasting."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, picked, words_for


def online(
    data: Annotated[str | None, typer.Option(help="Tables, separated by semicolons; default: all.")] = None,
    contenders: Annotated[
        str | None, typer.Option(help="Contenders, separated by semicolons; default: all.")
    ] = None,
    channels: Annotated[
        str | None, typer.Option(help="Channels of the default's fits, separated by semicolons.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Fits of each channel.", min=1)] = 3,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one per core.", min=1)] = None,
    output: Annotated[
        Path, typer.Option(help="Folder in which finished jobs are kept, and looked for.")
    ] = Path("results") / "online",
    jobs_only: Annotated[
        bool, typer.Option("--jobs-only", help="Do the jobs, and write no results.")
    ] = False,
    json_path: Json = None,
) -> None:
    """Score the default beside published figures of online forecasting, one step ahead.

    Interrupt it and it goes on where it was.
    """
    import json

    from benchmarks.online import protocol
    from benchmarks.online import run as bench
    from varnn.data.files import write_atomically

    tables = picked("data", data, protocol.names())
    chosen = picked("contenders", contenders, bench.CONTENDERS)
    wanted = [one.strip() for one in channels.split(";")] if channels else None
    listed = bench.listed(tables, chosen, seeds, wanted)
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    words, left = words_for(json_path), len(listed)

    def on_done(one: bench.Done, kept: bool) -> None:
        nonlocal left
        left -= 1
        words.print(f"{bench.in_words(one, kept)}; {left} left", markup=False)

    with kept_in(json_path) as kept:
        done = bench.run(listed, output, workers=jobs or os.cpu_count() or 1, on_done=on_done)
        if jobs_only:
            return
        results = bench.summed_up(done, command)
        for line in results["lines"]:
            mean = sum(line["mse"]) / len(line["mse"])
            words.print(f"{line['table']}, {line['contender']}: MSE {mean:.4f}", markup=False)
        if kept is not None:
            write_atomically(kept, f"{json.dumps(results, indent=1)}\n".encode())


def online_page(
    file: Annotated[Path, typer.Argument(help="File written by `python -m benchmarks online --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved errors of the one-step tables into their page."""
    from benchmarks.online.page import write

    write(file, output)
