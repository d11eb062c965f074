"""``python -m benchmarks fuzz``: files and snapshots damaged on purpose."""

import sys
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for


def fuzz(
    files: Annotated[int, typer.Option(help="Damaged files to read.", min=1)] = 2000,
    first: Annotated[int, typer.Option(help="Number of the first: the damage follows from it.", min=0)] = 0,
    json_path: Json = None,
) -> None:
    """Damage model files and snapshots, with checksums that fit, and see what reading them does.

    Each must be refused in words or give finite numbers, within a second and 500 MB: else the exit code is 1.
    """
    from benchmarks.record import save, shown
    from benchmarks.robustness import fuzz as bench
    from varnn.cli.progress import counting_bar

    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    with kept_in(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("damaged files", total=files)
        found = bench.run(files, first=first, on_done=lambda done: progress.update(task, completed=done))
        tables = bench.tables(found)
        if kept is not None:
            save(kept, tables, command)
    words = words_for(json_path)
    for one in tables:
        words.print(f"\n{one.title}", markup=False)
        for row in one.rows:
            words.print(" | ".join(shown(value) for value in row.values()), markup=False)
    for line in tables[0].checks:
        words.print(line, markup=False)
    if found.of(*bench.BAD):
        raise typer.Exit(1)
