"""``varnn bench``: speed against named peers, and robustness against trouble of known kinds."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from varnn.cli.terminal import console
from varnn.files import STANDARD, check_writable

if TYPE_CHECKING:
    from rich.console import Console

    from varnn.bench.record import Measured

app = typer.Typer(help="Measure speed against named peers, and robustness.", no_args_is_help=True)

Rounds = Annotated[int, typer.Option(help="Interleaved rounds.", min=1)]
Threads = Annotated[str, typer.Option(help="Threads of each contender; several numbers as 1,2.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the figures here; - prints them, and nothing else, as JSON."),
]
DataSets = Annotated[str | None, typer.Option(help="Data sets, separated by semicolons; default: all.")]
FitThreads = Annotated[int, typer.Option(help="Threads of a fit.", min=1)]


@app.callback()
def _bench() -> None:
    """Measure speed against named peers, interleaved in one run; and robustness."""


@app.command()
def train(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Time one training step against torch and Keras, and a whole fit."""
    _measure(["train"], rounds, threads, json_path)


@app.command()
def score(rounds: Rounds = 3, threads: Threads = "1", json_path: Json = None) -> None:
    """Time a million rows scored against windows made as copies; also the peak of memory."""
    _measure(["score"], rounds, threads, json_path)


@app.command()
def stream(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Time one predict + observe step against its peers, and 10,000 series at once."""
    _measure(["stream"], rounds, threads, json_path)


@app.command()
def growth(threads: Threads = "1", json_path: Json = None) -> None:
    """See how time and memory grow with rows, inputs, window, width and members."""
    _measure(["growth"], 1, threads, json_path)


@app.command("all")
def everything(rounds: Rounds = 9, threads: Threads = "1", json_path: Json = None) -> None:
    """Make all measurements."""
    from varnn.bench.plan import BENCHES

    _measure(BENCHES, rounds, threads, json_path)


@app.command()
def page(
    files: Annotated[list[Path], typer.Argument(help="Files written with --json.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved figures into the page about performance."""
    from varnn.bench import page as pages
    from varnn.files import write_atomically

    write_atomically(output, pages.page(files).encode())


@app.command()
def robustness(
    kinds: Annotated[
        str | None, typer.Option(help="Kinds of trouble, separated by commas; default: all.")
    ] = None,
    strengths: Annotated[str, typer.Option(help="Strengths, separated by commas.")] = "0,0.5,1,2",
    seeds: Annotated[int, typer.Option(help="Streams of each kind and strength.", min=1)] = 2,
    rows: Annotated[int, typer.Option(help="Rows of a stream.", min=200)] = 6000,
    workers: Annotated[
        int | None, typer.Option(help="Streams at a time; default: one per core.", min=1)
    ] = None,
    json_path: Json = None,
) -> None:
    """See who copes with which kind of trouble: errors over those of the best possible predictor.

    With --json, what is finished is kept after each stream.
    """
    import os

    from rich.table import Table

    from varnn.bench import robustness as bench
    from varnn.bench.record import Row, save
    from varnn.bench.robustness_page import at_strongest, by_kind
    from varnn.cli.progress import counting_bar

    chosen = _picked("kinds", kinds, bench.KINDS, separator=",")
    cases = bench.cases(chosen, _strengths(strengths), seeds=seeds, rows=rows)
    command = " ".join(["varnn", *sys.argv[1:]])
    found: dict[bench.Case, list[Row]] = {}
    with _kept(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("starting", total=len(cases))

        def on_done(case: bench.Case, measured: list[Row]) -> None:
            found[case] = measured
            progress.update(task, advance=1, description=str(case))
            if kept is not None:
                save(kept, bench.tables(found), command, complete=len(found) == len(cases))

        bench.run(cases, workers=workers or os.cpu_count() or 1, on_done=on_done)
    strongest, contenders, ratios = at_strongest(by_kind(bench.tables(found)))
    table = Table(title=f"{bench.RATIO}, at strength {strongest:g}", title_justify="left")
    for number, column in enumerate(["trouble", *contenders]):
        table.add_column(column, justify="right" if number else "left")
    for trouble, line in ratios.items():
        table.add_row(trouble, *(f"{ratio:.2f}" for ratio in line))
    _words(json_path).print(table)


@app.command("robustness-page")
def robustness_page(
    file: Annotated[Path, typer.Argument(help="File written by `varnn bench robustness --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved ratios into the page about robustness, and its figure beside it."""
    from varnn.bench.robustness_page import write

    write(file, output)


@app.command()
def ladder(
    data: DataSets = None,
    rungs: Annotated[str | None, typer.Option(help="Rungs, separated by semicolons; default: all.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each rung that draws.", min=1)] = 3,
    workers: Annotated[int, typer.Option(help="Fits at a time.", min=1)] = 1,
    cache: Annotated[Path, typer.Option(help="Folder where finished fits are kept.")] = Path(
        "results/ladder"
    ),
    json_path: Json = None,
) -> None:
    """Climb from the paper's model to the default on the real data sets; about two hours on two cores."""
    import json

    from varnn.bench import ladder as bench
    from varnn.bench.rungs import DATA, RUNGS
    from varnn.cli.progress import counting_bar
    from varnn.files import write_atomically

    chosen = _picked("data", data, DATA)
    wanted = None if rungs is None else _picked("rungs", rungs, [one.name for one in RUNGS])
    with _kept(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("starting", total=bench.count(chosen, wanted, seeds))

        def on_score(name: str, one: bench.Climbed) -> None:
            progress.update(task, advance=1, description=f"{name}, {one.rung}: {one.mse:.3g}")

        found = bench.climb(chosen, wanted, seeds=seeds, workers=workers, cache=cache, on_score=on_score)
        result = bench.result(found)
        if kept is not None:
            write_atomically(kept, (json.dumps(result, indent=1) + "\n").encode())
    for line in result["lines"]:
        _words(json_path).print(
            f"{line['data']:16} {line['rung']:14} {line['mse']:.3e} ± {line['spread']:.1e}"
        )


@app.command("ladder-page")
def ladder_page(
    file: Annotated[Path, typer.Argument(help="File written by `varnn bench ladder --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved scores into the page about what wins."""
    from varnn.bench.ladder_page import write

    write(file, output)


@app.command()
def coverage(
    data: DataSets = None,
    seeds: Annotated[int, typer.Option(help="Fits of each data set.", min=1)] = 2,
    threads: FitThreads = 1,
    json_path: Json = None,
) -> None:
    """See whether intervals hold what they promise, beside split conformal ones and MAPIE's.

    With --json, what is finished is kept after each fit.
    """
    from varnn.bench import coverage as bench
    from varnn.bench.coverage_page import lines
    from varnn.bench.record import save
    from varnn.cli.progress import counting_bar

    chosen = _picked("data", data, bench.DATA)
    cases = bench.cases(chosen, seeds=seeds)
    command = " ".join(["varnn", *sys.argv[1:]])
    found: dict[bench.Case, bench.Found] = {}
    with _kept(json_path) as kept, counting_bar() as progress:
        task = progress.add_task("starting", total=len(cases))

        def on_done(case: bench.Case, measured: bench.Found) -> None:
            found[case] = measured
            progress.update(task, advance=1, description=str(case))
            if kept is not None:
                tables = bench.tables(found, threads)
                save(kept, tables, command, complete=len(found) == len(cases))

        bench.run(cases, threads=threads, on_done=on_done)
    for line in lines(bench.tables(found, threads)):
        _words(json_path).print(" | ".join(line))


@app.command("coverage-page")
def coverage_page(
    file: Annotated[Path, typer.Argument(help="File written by `varnn bench coverage --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved coverage into the page about intervals, and its figure beside it."""
    from varnn.bench.coverage_page import write

    write(file, output)


@app.command()
def horizons(
    data: DataSets = None,
    seeds: Annotated[int, typer.Option(help="Fits of each data set.", min=1)] = 3,
    threads: FitThreads = 1,
    json_path: Json = None,
) -> None:
    """Score forecasts of up to 24 rows on real data, beside simple ones.

    With --json, what is finished is kept after each fit.
    """
    import json

    from varnn.bench import horizons as bench
    from varnn.files import write_atomically

    chosen = _picked("data", data, bench.DATA)
    command = " ".join(["varnn", *sys.argv[1:]])
    found: list[bench.Found] = []
    with _kept(json_path) as kept:

        def on_done(one: bench.Found) -> None:
            found.append(one)
            ratios = [
                ours / last for ours, last in zip(one.mse["VARNN"], one.mse["persistence"], strict=True)
            ]
            words = (f"{ratio:.3f}" for ratio in ratios)
            _words(json_path).print(f"{one.data}, seed {one.seed}:", *words)
            if kept is not None:
                text = json.dumps(bench.summed_up(found, command), indent=1)
                write_atomically(kept, f"{text}\n".encode())

        bench.run(chosen, seeds=seeds, threads=threads, on_done=on_done)


@app.command("horizons-page")
def horizons_page(
    file: Annotated[Path, typer.Argument(help="File written by `varnn bench horizons --json`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Markdown page to write.")],
) -> None:
    """Turn saved errors of forecasts into their page."""
    from varnn.bench.horizons_page import write

    write(file, output)


def _picked(what: str, names: str | None, offered: Sequence[str], separator: str = ";") -> list[str]:
    """Split names (at semicolons, where some hold commas), and refuse those that are not offered."""
    from varnn.errors import check_choice

    picked = [one.strip() for one in names.split(separator)] if names else list(offered)
    for name in picked:
        check_choice(what, name, offered)
    return picked


@contextmanager
def _kept(json_path: Path | None) -> Iterator[Path | None]:
    """Give the file to keep figures in; of standard output it is one that is printed when all is done."""
    if json_path != STANDARD:
        if json_path is not None:
            check_writable(json_path)  # now, and not after two hours
        yield json_path
        return
    with TemporaryDirectory() as folder:
        draft = Path(folder) / "figures.json"
        yield draft
        typer.echo(draft.read_text(), nl=False)


def _words(json_path: Path | None) -> "Console":
    """Give where tables are shown: nowhere, if JSON is to be alone on standard output."""
    return console(quiet=json_path == STANDARD)


def _measure(benches: Sequence[str], rounds: int, threads: str, json_path: Path | None) -> None:
    from varnn.bench.plan import plan
    from varnn.bench.record import save

    runs = [run for bench in benches for run in plan(bench, threads=_counts(threads), rounds=rounds)]
    command = " ".join(["varnn", *sys.argv[1:]])
    words, waiting = _words(json_path), console(stderr=True)
    measured = []
    with _kept(json_path) as kept:
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


def _strengths(text: str) -> list[float]:
    from varnn.errors import ConfigError

    try:
        strengths = [float(one) for one in text.split(",")]
    except ValueError:
        strengths = [-1.0]
    if not 0 <= min(strengths) <= max(strengths) < float("inf"):  # a NaN fails every comparison
        raise ConfigError(f"--strengths must be numbers from 0, separated by commas; got {text!r}.")
    return strengths


def _show(words: "Console", measured: "Measured") -> None:
    from rich.table import Table

    from varnn.bench.record import shown

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
