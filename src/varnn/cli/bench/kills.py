"""``varnn bench kills``: streams in rough use, and what it costs that nothing is lost."""

import json
import sys
from typing import Annotated, Any

import typer

from varnn.cli.bench.options import Json, kept_in, words_for


def kills(
    kills: Annotated[
        int, typer.Option(help="Kills, over three models and three sizes of batches.", min=9)
    ] = 500,
    malformed: Annotated[int, typer.Option(help="Malformed lines to send.", min=100)] = 50_000,
    rounds: Annotated[int, typer.Option(help="Rounds of timing.", min=1)] = 3,
    json_path: Json = None,
) -> None:
    """Kill streams and go on with them, send them nonsense, and time them with and without a store.

    With --json, what is finished is kept after each case.
    """
    from varnn.bench import durability
    from varnn.bench.kills import Killed, summed_up
    from varnn.bench.record import made
    from varnn.files import write_atomically

    words, cases = words_for(json_path), dict[str, Killed]()
    found: dict[str, Any] = {"command": " ".join(["varnn", *sys.argv[1:]]), "complete": False, "made": made()}
    with kept_in(json_path) as kept:

        def keep(**more: Any) -> None:
            found.update(more)
            if kept is not None:
                write_atomically(kept, f"{json.dumps(found, indent=1)}\n".encode())

        keep(speed=durability.speed(rounds=rounds))
        for row in found["speed"]:
            words.print(f"{row['model']}, {row['way']}: {row['lines a second']:,.0f} lines a second")
        keep(costs=durability.costs())
        for row in found["costs"]:
            words.print(", ".join(f"{name} {value}" for name, value in row.items()))
        keep(malformed=durability.nonsense(malformed))
        words.print(", ".join(f"{name}: {value}" for name, value in found["malformed"].items()))
        for name, one in durability.kill_cases(kills):
            cases[name] = one
            words.print(f"{name}: {one}")
            keep(kills=summed_up(cases))
        keep(complete=True, made=made())
