"""``python -m benchmarks other-streams``: the default out of the box, on streams it was not chosen on."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import FitThreads, Json, kept_in, picked, words_for


def other_streams(
    names: Annotated[
        str | None, typer.Option("--streams", help="Streams, separated by semicolons; default: all.")
    ] = None,
    threads: FitThreads = 2,
    seeds: Annotated[int, typer.Option(help="Seeds of VARNN.", min=1)] = 3,
    cache: Annotated[Path, typer.Option(help="Folder where finished scores of VARNN are kept.")] = Path(
        "results/other-streams"
    ),
    json_path: Json = None,
) -> None:
    """Score the default on real streams that no setting was chosen on, beside simple models.

    With --json, what is finished is kept after each stream.
    """
    import json

    from benchmarks.accuracy import other_streams as bench
    from varnn.data.files import write_atomically

    chosen = picked("streams", names, [one.name for one in bench.STREAMS])
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    found: list[bench.Found] = []
    with kept_in(json_path) as kept:

        def on_done(one: bench.Found) -> None:
            found.append(one)
            words_for(json_path).print(
                f"{one.stream}: {one.ratio:.3f} of {one.best_simple}, coverage {one.coverage:.1%}, "
                f"{one.seconds:.0f} s"
            )
            if kept is not None:
                text = json.dumps(bench.summed_up(found, command), indent=1)
                write_atomically(kept, f"{text}\n".encode())

        bench.run(chosen, threads=threads, seeds=seeds, cache=cache, on_done=on_done)
    mean = bench.summed_up(found, command)["geometric mean"]
    words_for(json_path).print(f"geometric mean over {len(found)} streams: {mean:.3f}")


def other_streams_page(
    file: Annotated[
        Path, typer.Argument(help="File written by `python -m benchmarks other-streams --json`.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved errors on other streams into their page."""
    from benchmarks.accuracy.other_streams_page import write

    write(file, output)
