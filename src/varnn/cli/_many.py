"""What commands do with many models: fit one to each series, predict with them, and say what is in a file."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from varnn.cli._interrupt import INTERRUPTED, kept_on_interrupt
from varnn.cli.progress import counting_bar
from varnn.cli.terminal import console, printable
from varnn.errors import ConfigError, DataError, check_choice

if TYPE_CHECKING:
    from varnn.cli._table import Table
    from varnn.data.panel import Panel
    from varnn.estimator.regressor import VARNNRegressor
    from varnn.scale import Models, SeriesDone

OF_ONE, OF_MANY = ".varnn", ".varnns"  # how files end
SERIES = "series"  # the one thing there can be a model of each of
_SHOWN = 5  # failures that are printed
_ROWS_AT_ONCE = 1 << 16


def check_each(each: str | None, output: Path, **only_with_it: Any) -> None:
    """Refuse what there is no model of each of, names that say otherwise, and options without meaning."""
    if each is not None:
        check_choice("--each", each, [SERIES])
        if output.suffix == OF_ONE and not output.is_dir():
            raise ConfigError(
                f"files of one model end in {OF_ONE}, and here there are many: name a file "
                f"{printable(str(output.with_suffix(OF_MANY)))!r}, or a folder."
            )
        return
    for name, (value, default) in only_with_it.items():
        if value != default:
            raise ConfigError(f"--{name} is for --each series: one model is fitted here. Leave it out.")
    if output.suffix == OF_MANY:
        raise ConfigError(
            f"one model is fitted here, and files of many end in {OF_MANY}. Call it "
            f"{printable(str(output.with_suffix(OF_ONE)))!r}, or fit one to each series: --each series."
        )


def fit_each(
    panel: "Panel",
    model: "VARNNRegressor",
    output: Path,
    *,
    workers: int | None,
    cluster: str | None,
    resume: bool,
    facts: dict[str, Any],
    as_json: bool,
) -> None:
    """Fit one model to each series of a panel, with a bar; say what failed."""
    from varnn.scale import fit_many

    words, total = console(stderr=True, quiet=as_json), panel.n_series
    if panel.n_series == 1 and panel.series_name is None:
        raise DataError(
            "--each series needs a column that says which series a row is of: name it with --series COLUMN."
        )
    began, fitted = time.perf_counter(), 0
    with kept_on_interrupt(of_many=True) as stop, counting_bar() as progress:
        task = progress.add_task("starting", total=total)

        def on_model(done: "SeriesDone") -> None:
            nonlocal fitted
            fitted += done.reason is None
            said = printable(done.name if done.reason is None else f"{done.name} failed")
            progress.update(task, completed=done.done, description=said)

        models = fit_many(
            panel,
            model,
            path=output,
            workers=workers,
            cluster=cluster,
            on_model=on_model,
            resume=resume,
            stop=stop,
        )
    failures = {name: reason for name, reason in models.failures.items() if name in set(panel.ids)}
    lacking = sum(name not in models and name not in failures for name in panel.ids)
    there = total - lacking - len(failures)
    words.print(_in_words(output, there, total, fitted, time.perf_counter() - began), markup=False)
    _tell(words, failures, total)
    if as_json:
        result: dict[str, Any] = {"models": str(output), "fitted": there, "of": total, "failed": failures}
        typer.echo(
            json.dumps(result | ({"not_fitted_yet": lacking} if lacking else {}) | {"data": facts}, indent=1)
        )
    if stop.is_set() and lacking:
        words.print(f"{lacking:,} are not fitted yet: the same command goes on with them.", markup=False)
        raise typer.Exit(INTERRUPTED)
    if len(failures) == total:
        raise DataError(f"all {total:,} series failed; the first: {next(iter(failures.values()))}")


def _in_words(output: Path, there: int, total: int, fitted: int, seconds: float) -> str:
    before = f", {there - fitted:,} of them before" if fitted < there else ""
    return f"{there:,} models of {total:,} series are in {output}{before}. It took {seconds:,.0f} s."


def _tell(words: Any, failures: dict[str, str], total: int) -> None:
    """Name what failed, the first ones with their reason."""
    if not failures:
        return
    what = "model" if total == 1 else "models"
    words.print(f"{len(failures):,} of {total:,} {what} failed:", markup=False)
    for name, reason in list(failures.items())[:_SHOWN]:
        words.print(f"  {printable(name)!r}: {printable(reason)}", markup=False)
    if len(failures) > _SHOWN:
        words.print(f"  and {len(failures) - _SHOWN:,} more, which varnn inspect --json lists", markup=False)


def pieces_of_many(
    models: "Models", table: "Table", levels: Sequence[float], resume: bool | None
) -> Iterator[dict[str, Any]]:
    """Predict a table, each series by its own model; give the columns to write, in the order of its rows."""
    from varnn.cli._predictions import named, plain
    from varnn.model.intervals import Interval

    panel = table.panel
    found = models.predict(panel, interval=levels or None, resume=resume)
    whole = found if levels else Interval(found, None, None)
    ordered = [None if one is None else panel.in_caller_order(one) for one in whole]
    target = panel.in_caller_order(panel.target) if table.labelled else None
    for begin in range(0, len(panel), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        columns = {name: plain(column[rows].to_arrow()) for name, column in table.kept.items()}
        if target is not None:
            columns[panel.target_name] = target[rows]
        some = Interval(*(None if one is None else one[rows] for one in ordered))
        yield {**columns, **named(some, levels)}


def show_many(models: "Models", path: Path, *, as_json: bool) -> None:
    """Say what is in a file of many models: how many, their settings once, which failed."""
    from rich.table import Table

    from varnn.cli.terminal import voice
    from varnn.estimator.details import Details, flattened
    from varnn.report.settings import changed_settings

    failures, settings = models.failures, models.settings
    size = path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in path.iterdir())
    facts: dict[str, Any] = {
        "models": len(models),
        "failed": failures,
        "not fitted yet": models.waiting,
        "size": f"{size / 1e6:,.1f} MB",
        "settings": [{"models": count, **found} for found, count in settings],
    }
    if as_json:
        typer.echo(json.dumps(facts | {"names": list(models)}, indent=1))
        return
    shown = Table(title=printable(str(path)), title_justify="left", show_header=False)
    shown.add_row("models", f"{len(models):,}: {_some(list(models))}")
    shown.add_row("failed", f"{len(failures):,}")
    if models.waiting:
        shown.add_row("not fitted yet", f"{models.waiting:,}; the command that made it goes on with them")
    shown.add_row("size", facts["size"])
    for found, count in settings[:_SHOWN]:
        details = Details(**found["details"]) if found.get("details") else None
        given = {**found, "experts": tuple(found.get("experts") or ()), "details": details}
        listed = flattened(given) if voice.verbose else changed_settings(given)
        said = ", ".join(f"{name}={value!r}" for name, value in listed.items()) or "the default"
        shown.add_row(f"settings of {count:,}", printable(said))
    console().print(shown)
    _tell(console(), failures, len(models) + len(failures))
    sys.stdout.flush()


def _some(names: list[str]) -> str:
    return printable(", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else ""))
