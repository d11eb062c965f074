"""``python -m benchmarks glitches``: what one wild value does to the rows after it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for


def glitches(
    rows: Annotated[int, typer.Option(help="Training rows of a stream.", min=300)] = 3000,
    members: Annotated[int, typer.Option(help="Members of a model.", min=1)] = 4,
    places: Annotated[int, typer.Option(help="Places at which things happen.", min=1)] = 12,
    before: Annotated[
        Path | None, typer.Option(help="File of an earlier version, to be kept beside these figures.")
    ] = None,
    json_path: Json = None,
) -> None:
    """See what one wild value costs, whether real shifts are followed, and how rough streams go."""
    from rich.table import Table

    from benchmarks.record import read, save, shown
    from benchmarks.robustness import glitches as bench
    from benchmarks.robustness import rough
    from benchmarks.robustness.glitches_page import with_before

    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    earlier = None if before is None else read(before)
    with kept_in(json_path) as kept:
        measured = bench.measure(members=members, rows=rows, places=places)
        measured += [rough.measure(), rough.back_again(rows=rows, members=members)]
        if kept is not None:
            save(kept, measured if earlier is None else with_before(measured, earlier), command)
    for one in measured:
        table = Table(*one.rows[0], title=one.title, title_justify="left")
        for row in one.rows:
            table.add_row(*map(shown, row.values()))
        words_for(json_path).print(table)


def glitches_page(
    file: Annotated[Path, typer.Argument(help="File written by `python -m benchmarks glitches --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved figures of wild values into their page."""
    from benchmarks.robustness.glitches_page import write

    write(file, output)
