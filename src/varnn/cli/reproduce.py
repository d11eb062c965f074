"""``varnn reproduce``: the whole paper from one command, with its errata."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from varnn.cli._options import Cluster, Json, Workers, listed

if TYPE_CHECKING:
    from varnn.paper.jobs import Job
    from varnn.paper.plan import Scope


def reproduce(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            help="table1, table2, table3, ablations, readings, splits, figures, complexity, or all, which "
            "judges the paper's claims, too."
        ),
    ] = "all",
    dataset: Annotated[
        list[str] | None, typer.Option(help="appliances, bidmc or beijing; may be repeated.")
    ] = None,
    models: Annotated[str | None, typer.Option(help="Models to run, separated by commas.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each model that draws.", min=1)] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help="A slice of about three minutes on two cores.")
    ] = False,
    trees: Annotated[
        int | None, typer.Option(help="Trees of every forest; default: 100 in printed rows, else 20.", min=1)
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    device: Annotated[str, typer.Option(help="Where recurrent networks are trained: cpu or cuda.")] = "cpu",
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: write the report of what is finished.")
    ] = False,
    note: Annotated[str, typer.Option(help="A remark to keep with the results.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path("results"),
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Run 30 jobs anew, in about ten minutes, and compare them with kept figures."
        ),
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="Figures to check against; default: docs/reproduction/outcomes.csv of a checkout."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the paper's tables, figures and ablations; print ours beside the published figures.

    Finished jobs are kept in OUTPUT/jobs: interrupt it, run it again, and it goes on.

    With --check nothing is written: thirty jobs of all kinds run anew, and the exit code is 1 where a figure
    is not what was kept.
    """
    _only_what_a_check_knows(context, check)
    if check:
        _check(against, workers, cluster, as_json)
        return
    from varnn.cli import _packages
    from varnn.cli.progress import jobs_bar
    from varnn.cli.terminal import console
    from varnn.errors import check_choice
    from varnn.paper import output as writer
    from varnn.paper.findings import gather
    from varnn.paper.plan import TABLES, Scope
    from varnn.paper.published import DATASETS
    from varnn.paper.runner import Cache, run_all

    _need_part(what)
    _packages.ask_for(tables=True, training=not finished, page=True, cluster=cluster is not None)
    scope = Scope(
        tables=TABLES if what == "all" else (what,),
        data=tuple(dataset) if dataset else DATASETS,
        models=listed(models),
        seeds=seeds,
        quick=quick,
        trees=trees,
    )
    check_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not finished:
        from varnn.network.training import pick_device

        pick_device(device)  # complains now, and not after hours, where there is no GPU
    jobs = scope.jobs()
    _need_jobs(scope, jobs)
    _need_data(scope.data)
    _need_folder(output)
    cache = Cache(output / "jobs")
    if finished:
        outcomes = {job: outcome for job in jobs if (outcome := cache.get(job)) is not None}
        _need_outcomes(len(jobs), len(outcomes), cache.folder)
    else:
        with jobs_bar(len(jobs)) as on_done:
            outcomes = run_all(jobs, cache, workers=workers, cluster=cluster, device=device, on_done=on_done)
    command = " ".join(
        ["varnn", *(one for one in sys.argv[1:] if one not in ("--note", note))]
    )  # it has its place
    seconds = sum(one.seconds for one in outcomes.values())  # of all jobs, those from the cache included
    findings = gather(scope, outcomes, command=command, seconds=seconds, note=note)
    paths = writer.write(findings, output)
    waiting = len(jobs) - len(outcomes)
    if as_json:
        found = json.loads((output / "results.json").read_text(encoding="utf-8"))
        facts = {"jobs": len(jobs), "jobs_not_run": waiting, "written": [str(path) for path in paths]}
        typer.echo(json.dumps(found | facts, indent=1))
        return
    words = console()
    words.print(findings.summary, markup=False)
    for erratum in findings.errata:
        words.print(erratum.title, style="bold", markup=False)
        words.print(f"  printed: {erratum.printed}\n  found:   {erratum.found}", markup=False)
    if waiting:
        words.print(f"{waiting} of {len(jobs)} jobs have not run; their cells are left out.")
    words.print(f"Written to {output}: {', '.join(path.name for path in paths)}", markup=False)


def _only_what_a_check_knows(context: typer.Context, is_check: bool) -> None:
    """Refuse options that would not do anything."""
    from varnn.errors import ConfigError

    given = [
        max(one.opts, key=len) if one.param_type_name == "option" else str(context.params[one.name])
        for one in context.command.params
        if one.name in context.params
        and getattr(context.get_parameter_source(one.name), "name", "") == "COMMANDLINE"
    ]
    known = {"--check", "--against", "--workers", "--cluster", "--json"}
    others = [one for one in given if one not in known]
    if is_check and others:
        raise ConfigError(
            "--check runs a list of jobs of its own, and takes --against, --workers, --cluster and --json "
            f"alone; got {', '.join(others)}. Leave that out, or run it without --check."
        )
    if not is_check and "--against" in given:
        raise ConfigError("--against belongs to --check, which is not there. Add --check.")


def _check(against: Path | None, workers: int | None, cluster: str | None, as_json: bool) -> None:
    """Run the jobs of the check, and show them beside the kept figures."""
    from functools import partial

    from rich.table import Column, Table

    from varnn.cli import _packages
    from varnn.cli.progress import jobs_bar
    from varnn.cli.terminal import console
    from varnn.paper import check

    _packages.ask_for(tables=True, training=True, cluster=cluster is not None)
    place = against or check.KEPT
    records = check.kept_figures(place)
    jobs = check.jobs_kept(records)
    _need_data(check.datasets_of(jobs))
    with jobs_bar(len(jobs)) as on_done:
        found = check.check(
            records, partial(check.run_fresh, workers=workers, cluster=cluster, on_done=on_done)
        )
    if as_json:
        typer.echo(json.dumps({"against": str(place), **found.as_dict()}, indent=1))
    else:
        whole = partial(Column, no_wrap=True)  # cut off, a number would be another number
        heads = [whole(one) for one in ("train: kept", "now", "test: kept", "now", "verdict")]
        table = Table(Column("job", overflow="fold"), *heads, box=None)
        for line in found.lines:
            figures = [text for part in line.comparisons for text in part.texts]
            table.add_row(str(line.job), *figures, line.word)
        console().print(table)
        console().print(found.summary, markup=False)
    if found.failed:
        raise typer.Exit(1)


def _need_part(what: str) -> None:
    """Refuse what is no part of the reproduction."""
    from varnn.errors import ConfigError, nearest
    from varnn.paper.plan import TABLES

    known = (*TABLES, "all")
    if what not in known:
        raise ConfigError(
            f"what to reproduce must be a part of the paper; got {what!r}. {nearest(what, known)} "
            "Claims are judged with all."
        )


def _need_jobs(scope: "Scope", jobs: "Sequence[Job]") -> None:
    """Refuse a choice of data sets and models that leaves no job to a table that is made of jobs."""
    from varnn.errors import ConfigError
    from varnn.paper.plan import WITHOUT_JOBS

    needing = [name for name in scope.tables if name not in WITHOUT_JOBS]
    if needing and not jobs:
        models = f" and models {', '.join(scope.models)}" if scope.models is not None else ""
        raise ConfigError(
            f"there must be something to run for {', '.join(needing)}; of the data sets "
            f"{', '.join(scope.data)}{models} there is no job. Choose others, or leave --dataset and "
            "--models out; random splits are of bidmc alone."
        )


def _need_outcomes(jobs: int, finished: int, folder: Path) -> None:
    """Refuse to write an empty report over an earlier one."""
    from varnn.errors import ConfigError

    if jobs and not finished:
        raise ConfigError(
            f"--finished writes what is finished; of {jobs} jobs nothing is finished in {str(folder)!r}, and "
            "nothing was written. Run it without --finished, or name the folder of an earlier run with -o."
        )


def _need_data(names: Sequence[str]) -> None:
    """Complain now, in one line, when a data set is not here; a long run should not start without it."""
    from varnn import datasets

    for name in names:
        datasets.load(name, download=False)


def _need_folder(path: Path) -> None:
    """Complain now, and not after hours of fitting, when nothing can be written there."""
    from varnn.errors import OutputError

    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(
            f"{str(path)!r} must be a folder that can be written into: {error.strerror}. Choose another one."
        ) from None
