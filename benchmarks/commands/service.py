"""``python -m benchmarks service-load`` and ``service-kills``: the live service under load, and killed."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmarks.commands.options import Json, kept_in, words_for
from benchmarks.commands.running import Rounds


def service_load(
    rounds: Rounds = 3,
    part: Annotated[
        float, typer.Option(help="Part of the full size, for a quick look.", min=0.0005, max=1)
    ] = 1.0,
    json_path: Json = None,
) -> None:
    """Load a service of the paper's RM and one of the default: rates, latencies, many series, memory."""
    from benchmarks.commands.running import show
    from benchmarks.record import save
    from benchmarks.service.load import Load, Size
    from varnn.cli.terminal import console

    full = Size()
    size = Size(
        rounds=rounds,
        batches=max(5, int(full.batches * part)),
        seconds=max(1.0, full.seconds * part),
        series=max(1000, int(full.series * part)),
        series_batches=max(20, int(full.series_batches * part)),
        observations=max(10_000, int(full.observations * part)),
        moving=max(10_000, int(full.moving * part)),
    )
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    words, measured = words_for(json_path), []
    with kept_in(json_path) as kept, console(stderr=True).status("training the models") as waiting:
        for one in Load(size, say=lambda what: waiting.update(f"measuring {what}")).tables():
            measured.append(one)
            show(words, one)
            if kept is not None:  # after each, so that an interrupted run leaves what it has
                save(kept, measured, command, complete=len(measured) == 4)


def service_kills(
    kills: Annotated[int, typer.Option(help="Kills.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Of what is drawn.", min=0)] = 0,
    json_path: Json = None,
) -> None:
    """Kill a service under load, and go on with it: what is lost, doubled or different.

    Two models go along with each other, and the exit code is 1 unless nothing at all is wrong.
    """
    from benchmarks.record import made
    from benchmarks.robustness.durability import fitted
    from benchmarks.service.kills import CHALLENGER, CHAMPION, killed, summed_up
    from varnn.data.files import write_atomically

    with kept_in(json_path) as kept, TemporaryDirectory(dir=".") as place:
        folder = Path(place)
        for name, kind in ((CHAMPION, "default"), (CHALLENGER, "RM")):
            fitted(kind, 3).save(folder / f"{name}.varnn")
        models = folder / f"{CHAMPION}.varnn", folder / f"{CHALLENGER}.varnn"
        found = killed(models, folder, kills=kills, seed=seed)
        told = {"command": " ".join(["python -m benchmarks", *sys.argv[1:]]), "complete": True}
        told |= {"found": summed_up(found), "made": made()}
        if kept is not None:
            write_atomically(kept, f"{json.dumps(told, indent=1)}\n".encode())
    for name, value in summed_up(found).items():
        words_for(json_path).print(f"{name}: {value}", markup=False)
    if not found.is_sound:
        raise typer.Exit(1)
