"""Measurements of a plan, made one after another: shown as they come, and kept."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.commands.options import kept_in, words_for
from varnn.cli.terminal import console

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.record import Measured
    from benchmarks.speed.plan import Run

Rounds = Annotated[int, typer.Option(help="Interleaved rounds.", min=1)]
Threads = Annotated[str, typer.Option(help="Threads of each contender; several numbers as 1,2.")]


def run_all(runs: "Sequence[Run]", json_path: Path | None) -> None:
    """Make measurements, each in a process of its own; show each, and keep what there is so far."""
    from benchmarks.record import save

    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    words, waiting = words_for(json_path), console(stderr=True)
    measured = []
    with kept_in(json_path) as kept:
        for run in runs:
            with waiting.status(f"measuring {run.title}"):
                measured.append(run.measure())
            show(words, measured[-1])
            if kept is not None:  # after each, so that an interrupted run leaves what it has
                save(kept, measured, command, complete=len(measured) == len(runs))


def thread_counts(threads: str) -> list[int]:
    """Read ``--threads``."""
    from varnn.errors import ConfigError

    try:
        counts = [int(one) for one in threads.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise ConfigError(f"--threads must be whole numbers from 1, separated by commas; got {threads!r}.")
    return counts


def show(words: "Console", measured: "Measured") -> None:
    """Show a table of figures."""
    from rich.table import Table

    from benchmarks.record import shown

    many = "one thread" if measured.threads == 1 else f"{measured.threads} threads"
    table = Table(title=f"{measured.title} ({many})", title_justify="left")
    for number, column in enumerate(measured.rows[0]):
        table.add_column(column, justify="right" if number else "left")
    for row in measured.rows:
        table.add_row(*(shown(figure) for figure in row.values()))
    words.print(table)
    for check in measured.checks:
        words.print(f"checked: {check}", markup=False)
    for name in measured.absent:
        words.print(f"not installed, so not measured: {name}", markup=False)
