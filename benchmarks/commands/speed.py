"""``python -m benchmarks train``, ``score``, ``stream``, ``growth`` and ``all``: speed beside named peers."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for
from varnn.cli.terminal import console

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.record import Measured

Rounds = Annotated[int, typer.Option(help="Interleaved rounds.", min=1)]
Threads = Annotated[str, typer.Option(help="Threads of each contender; several numbers as 1,2.")]


def train(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Time one training step against torch and Keras, and a whole fit."""
    _measure(["train"], rounds, threads, json_path)


def score(rounds: Rounds = 3, threads: Threads = "1", json_path: Json = None) -> None:
    """Time a million rows scored against windows made as copies; also the peak of memory."""
    _measure(["score"], rounds, threads, json_path)


def stream(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Time one predict + observe step against its peers, and 10,000 series at once."""
    _measure(["stream"], rounds, threads, json_path)


def growth(threads: Threads = "1", json_path: Json = None) -> None:
    """See how time and memory grow with rows, inputs, window, width and members."""
    _measure(["growth"], 1, threads, json_path)


def everything(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Make all measurements."""
    from benchmarks.speed.plan import BENCHES

    _measure(BENCHES, rounds, threads, json_path)


def page(
    files: Annotated[list[Path], typer.Argument(help="Files written with --json.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved figures into the page about performance."""
    from benchmarks.speed import page as pages
    from varnn.data.files import write_atomically

    write_atomically(output, pages.page(files).encode())


def _measure(benches: Sequence[str], rounds: int, threads: str, json_path: Path | None) -> None:
    from benchmarks.record import save
    from benchmarks.speed.plan import plan

    runs = [run for bench in benches for run in plan(bench, threads=_counts(threads), rounds=rounds)]
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    words, waiting = words_for(json_path), console(stderr=True)
    measured = []
    with kept_in(json_path) as kept:
        for run in runs:
            with waiting.status(f"measuring {run.title}"):
                measured.append(run.measure())
            _show(words, measured[-1])
            if kept is not None:  # after each, so that an interrupted run leaves what it has
                save(kept, measured, command, complete=len(measured) == len(runs))


def _counts(threads: str) -> list[int]:
    from varnn.errors import ConfigError

    try:
        counts = [int(one) for one in threads.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise ConfigError(f"--threads must be whole numbers from 1, separated by commas; got {threads!r}.")
    return counts


def _show(words: "Console", measured: "Measured") -> None:
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
        words.print(f"checked: {check}")
    for name in measured.absent:
        words.print(f"not installed, so not measured: {name}")
