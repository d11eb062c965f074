"""``python -m benchmarks ablation``: every step from the paper's model to the default."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.options import DataSets, Json, kept_in, picked, words_for


def ablation(
    data: DataSets = None,
    steps: Annotated[str | None, typer.Option(help="Steps, separated by semicolons; default: all.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each step that draws.", min=1)] = 3,
    workers: Annotated[int, typer.Option(help="Fits at a time.", min=1)] = 1,
    cache: Annotated[Path, typer.Option(help="Folder where finished fits are kept.")] = Path(
        "results/ablation"
    ),
    json_path: Json = None,
) -> None:
    """Go from the paper's model to the default on the real data sets; about two hours on two cores."""
    import json

    from benchmarks.accuracy import ablation as bench
    from benchmarks.accuracy.ablation_steps import ABLATION_STEPS, DATA
    from varnn.cli.progress import counting_bar
    from varnn.data.files import write_atomically

    chosen = picked("data", data, DATA)
    wanted = None if steps is None else picked("steps", steps, [one.name for one in ABLATION_STEPS])
    with kept_in(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("starting", total=bench.count(chosen, wanted, seeds))

        def on_score(name: str, one: bench.AblationScore) -> None:
            progress.update(task, advance=1, description=f"{name}, {one.step}: {one.mse:.3g}")

        found = bench.run(chosen, wanted, seeds=seeds, workers=workers, cache=cache, on_score=on_score)
        result = bench.result(found)
        if kept is not None:
            write_atomically(kept, (json.dumps(result, indent=1) + "\n").encode())
    for line in result["lines"]:
        words_for(json_path).print(
            f"{line['data']:16} {line['step']:14} {line['mse']:.3e} ± {line['spread']:.1e}"
        )


def ablation_page(
    file: Annotated[Path, typer.Argument(help="File written by `python -m benchmarks ablation --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved scores into the page about what wins."""
    from benchmarks.accuracy.ablation_page import write

    write(file, output)
