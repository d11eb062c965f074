"""``python -m benchmarks kills`` and ``store``: streams in rough use, and what durability costs."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.commands.options import Json, kept_in, words_for


def kills(
    kills: Annotated[
        int, typer.Option(help="Kills, over three models and three sizes of batches.", min=9)
    ] = 500,
    malformed: Annotated[int, typer.Option(help="Malformed lines to send.", min=100)] = 50_000,
    json_path: Json = None,
) -> None:
    """Kill streams and go on with them, and send them nonsense: what is lost, doubled, torn, different.

    With --json, what is finished is kept after each case.
    """
    from benchmarks.robustness import durability
    from benchmarks.robustness.kills import Killed, summed_up

    words, cases = words_for(json_path), dict[str, Killed]()
    with _kept(json_path) as keep:
        found = durability.nonsense(malformed)
        keep(malformed=found)
        words.print(", ".join(f"{name}: {value}" for name, value in found.items()))
        for name, one in durability.kill_cases(kills):
            cases[name] = one
            words.print(f"{name}: {one}")
            keep(kills=summed_up(cases))


def store(
    rounds: Annotated[int, typer.Option(help="Rounds of timing.", min=1)] = 5,
    json_path: Json = None,
) -> None:
    """Time lines with and without a store, and measure what a series takes in memory and on disk."""
    from benchmarks.robustness import durability
    from benchmarks.robustness.line_parts import parts

    words = words_for(json_path)
    with _kept(json_path) as keep:
        of_a_line = parts(rounds=rounds)
        keep(parts=of_a_line)
        for row in of_a_line:
            words.print(f"{row['JSON by']}, {row['part']}: {row['us a line']} us a line")
        speed = durability.speed(rounds=rounds)
        keep(speed=speed)
        for row in speed:
            words.print(f"{row['model']}, {row['way']}: {row['lines a second']:,.0f} lines a second")
        costs = durability.costs()
        keep(costs=costs)
        for row in costs:
            words.print(", ".join(f"{name} {value}" for name, value in row.items()))


@contextmanager
def _kept(json_path: Path | None) -> Iterator[Callable[..., None]]:
    """A function that adds figures to the file, if there is one; at the end it is complete."""
    from benchmarks.record import made
    from varnn.data.files import write_atomically

    found: dict[str, Any] = {"command": " ".join(["python -m benchmarks", *sys.argv[1:]]), "complete": False}
    with kept_in(json_path) as kept:

        def keep(**more: Any) -> None:
            found.update(more, made=made())
            if kept is not None:
                write_atomically(kept, f"{json.dumps(found, indent=1)}\n".encode())

        yield keep
        keep(complete=True)
