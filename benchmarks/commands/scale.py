"""``python -m benchmarks scale-score`` and ``scale-keyed``: workers and actors, one against two."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for
from benchmarks.commands.running import Rounds

if TYPE_CHECKING:
    from benchmarks.record import Measured

Part = Annotated[float, typer.Option(help="Part of the full size, for a quick look.", min=0.001, max=1)]


def scale_score(rounds: Rounds = 3, part: Part = 1.0, json_path: Json = None) -> None:
    """Score 2,000 series from Parquet: Ray and processes, one worker against two; memory of a worker."""
    from benchmarks.scale.score import Scoring, Size
    from varnn.cli.terminal import console

    full = Size()
    size = Size(
        rounds=rounds,
        series=max(32, int(full.series * part)),
        small=max(4000, int(full.small * part)),
        large=max(8000, int(full.large * part)),
        long_small=int(full.long_small) if part == 1 else 0,
    )
    with console(stderr=True).status("training the model") as waiting:
        _keep(Scoring(size, say=lambda what: waiting.update(f"measuring {what}")).tables(), 3, json_path)


def scale_keyed(rounds: Rounds = 3, part: Part = 1.0, json_path: Json = None) -> None:
    """Send messages to keyed services of one actor and of two; kill processes of the second."""
    from benchmarks.scale.keyed import Keyed, Size
    from varnn.cli.terminal import console

    full = Size()
    size = Size(rounds=rounds, series=max(50, int(full.series * part)), kills=max(2, int(full.kills * part)))
    with console(stderr=True).status("training the model") as waiting:
        _keep(Keyed(size, say=lambda what: waiting.update(f"measuring {what}")).tables(), 2, json_path)


def _keep(tables: "Iterator[Measured]", count: int, json_path: Path | None) -> None:
    from benchmarks.commands.running import show
    from benchmarks.record import save

    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    words, measured = words_for(json_path), list["Measured"]()
    with kept_in(json_path) as kept:
        for one in tables:
            measured.append(one)
            show(words, one)
            if kept is not None:  # after each, so that an interrupted run leaves what it has
                save(kept, measured, command, complete=len(measured) == count)
