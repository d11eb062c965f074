"""``python -m benchmarks train``, ``score``, ``stream``, ``growth`` and ``all``: the network beside peers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import Json
from benchmarks.commands.running import Rounds, Threads, run_all, thread_counts


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
    """Make all measurements of the network alone."""
    from benchmarks.speed.plan import BENCHES

    _measure(BENCHES, rounds, threads, json_path)


def page(
    files: Annotated[list[Path], typer.Argument(help="Files written with --json.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved figures into the page about performance, and the page of every table beside it."""
    from benchmarks.speed import page as pages
    from varnn.data.files import write_atomically

    write_atomically(output, pages.page(files).encode())
    write_atomically(output.with_stem(f"{output.stem}-tables"), pages.tables_page(files).encode())


def _measure(benches: Sequence[str], rounds: int, threads: str, json_path: Path | None) -> None:
    from benchmarks.speed.plan import plan

    counts = thread_counts(threads)
    run_all([run for bench in benches for run in plan(bench, threads=counts, rounds=rounds)], json_path)
