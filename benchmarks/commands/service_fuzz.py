"""``python -m benchmarks service-fuzz``: a service asked all kinds of things."""

import sys
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for


def service_fuzz(
    requests: Annotated[int, typer.Option(help="Requests to send.", min=1)] = 100_000,
    first: Annotated[int, typer.Option(help="Number of the first: each follows from it.", min=0)] = 0,
    slow: Annotated[int, typer.Option(help="Callers that send a byte now and then.", min=0)] = 40,
    json_path: Json = None,
) -> None:
    """Send good, nearly good and wild requests, and bytes that are none, to a service.

    Each must be answered in time, in words and as the OpenAPI document says, never by 500, and what is
    refused must change nothing: else the exit code is 1.
    """
    from benchmarks.record import save, shown
    from benchmarks.service import fuzz as bench
    from varnn.cli.progress import counting_bar

    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    with kept_in(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("requests", total=requests)
        found = bench.measure(
            requests, first=first, slow=slow, on_done=lambda done: progress.update(task, completed=done)
        )
        tables = bench.tables(found)
        if kept is not None:
            save(kept, tables, command)
    words = words_for(json_path)
    for one in tables:
        words.print(f"\n{one.title}", markup=False)
        words.print(" | ".join(one.rows[0]), markup=False)
        for row in one.rows:
            words.print(" | ".join(shown(value) for value in row.values()), markup=False)
        for line in one.checks:
            words.print(line, markup=False)
    if found.wrongs:
        raise typer.Exit(1)
