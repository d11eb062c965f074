"""``varnn predict``: a model file and a table, or a folder of them, in; one-step predictions out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varnn.cli._options import (
    DataOrFolder,
    DuplicatesOption,
    Json,
    Levels,
    Missing,
    Model,
    Output,
    Page,
    Series,
    Sort,
    Time,
    TimeFormat,
    TimeZone,
    reading,
)

if TYPE_CHECKING:
    from varnn._types import IntArray
    from varnn.data.panel import Panel
    from varnn.model.fitted import Fitted

_LONG = 50_000  # rows that take long enough for somebody to wonder
_SHOWN = 5  # names of series in a line


def predict(
    model_path: Model,
    data: DataOrFolder,
    output: Output = Path("-"),
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column with the labels, or none; that of the model if not given."),
    ] = None,
    time: Time = None,
    series: Series = None,
    time_format: TimeFormat = None,
    time_zone: TimeZone = None,
    missing: Missing = None,
    sort: Sort = False,
    duplicates: DuplicatesOption = "error",
    interval: Levels = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Whether the rows follow the training rows; their times tell if not given.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="Files of a folder that are predicted at a time; one for each core."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="Ray cluster to predict a folder on: auto, or an address, as ray://head:10001."
        ),
    ] = None,
    report: Page = None,
    as_json: Json = False,
) -> None:
    """Predict each row of a table from its inputs and the labels before it.

    Without the target column, or any label in it, the rows are taken to follow the training rows, and are
    predicted in closed loop: each prediction is taken as the label. Time and series are the columns the
    model was fitted with, if the table has them and none are named. Rows with labels that follow the training
    rows start from the last of those, which the model keeps. With a file of many models, each series is
    predicted by its own.

    DATA may be a folder of Parquet files, with all rows of a series in one of them: OUTPUT then is a folder,
    with a file for each. What is there from a run before is kept, and files that cannot be predicted do not
    stop the others. Nothing is guessed there: --series names the column, if the model does not.
    """
    from threadpoolctl import threadpool_limits

    from varnn.cli import _packages, _pages, _table
    from varnn.cli._folders import predict_folder
    from varnn.cli._many import pieces_of_many
    from varnn.cli._predictions import pieces
    from varnn.cli.progress import counting_bar
    from varnn.cli.terminal import console
    from varnn.data.files import STANDARD, check_apart, check_writable, table_writer
    from varnn.errors import ConfigError, DataError, ModelFileError
    from varnn.model.intervals import check_levels
    from varnn.model.warm_start import rows_before
    from varnn.report import predict_page
    from varnn.scale.loading import load
    from varnn.scale.models import Models

    if as_json and output == STANDARD:
        raise ConfigError(
            "--json and the predictions cannot both go to standard output. Name a file with --output."
        )
    _packages.ask_for(tables=True, cluster=cluster is not None)
    levels = list(dict.fromkeys(check_levels(interval).tolist())) if interval else []
    columns = reading(
        target or "",
        time,
        series,
        None,
        time_format=time_format,
        time_zone=time_zone,
        missing=missing,
        sort=sort,
        duplicates=duplicates,
    )
    check_apart({"--output": output, "--report": report}, {"the table": data, "the model": model_path})
    if data.is_dir():
        _pages.check_page(report, refused="DATA is a folder")
        options: Any = {"after_training": resume, "workers": workers, "cluster": cluster, "as_json": as_json}
        predict_folder(model_path, data, output, columns, levels, **options)
        return
    if workers is not None or cluster is not None:
        raise ConfigError(
            "--workers and --cluster are for folders of files; DATA is no folder. Leave them out."
        )
    check_writable(output)
    _pages.check_page(report)
    model: Any = load(model_path)
    many: Models | None = model if isinstance(model, Models) else None
    if many is not None:
        _pages.check_page(report, refused="MODEL holds many")
        if not len(many):
            raise ModelFileError(
                f"there is no model in {str(model_path)!r}: all failed, or none is there yet."
            )
        model = many[next(iter(many))]  # the columns of all are called alike
    fitted = model.fitted_
    columns = replace(columns, target=target or fitted.target_name, inputs=fitted.input_names)
    columns_of_many = None if many is None else many.columns
    understood = _table.read(
        data,
        columns,
        must_have_target=target is not None,
        fitted=fitted,
        of_many=columns_of_many if columns_of_many and columns_of_many[0] else None,
    )
    words = console(stderr=True, quiet=as_json or output == STANDARD)
    understood.show(words)
    if many is not None and understood.panel.series_name is None:
        column = "" if fitted.series_name is None else f", as column {fitted.series_name!r} did in the fit"
        raise DataError(
            f"rows must say which series they are of{column}: each is predicted by its own model. Add that "
            "column, or name the one that does with --series."
        )
    rows, how = len(understood.panel), "one step ahead"
    if understood.in_closed_loop:
        how = "in closed loop, as there are no labels"
        if resume is False:
            raise ConfigError(
                "rows without labels are predicted as those that follow the training rows: leave out "
                "--no-resume, or give their labels."
            )
    before = 0
    if many is not None:
        how = f"{how}, each series by its own model"
    elif not understood.in_closed_loop:
        counts = rows_before(fitted, understood.panel, resume)
        before = int(counts.max())
        if started := _start_in_words(fitted, understood.panel, counts, resume):
            words.print(started, markup=False)
    # Products of a step are small: a second thread gains little, and loses much where cores are busy.
    one_thread = threadpool_limits(1, user_api="blas")
    with one_thread, table_writer(output) as write, counting_bar() as progress:
        task = progress.add_task("predicting", total=rows, visible=rows > _LONG)
        predicted = (understood, levels, resume)
        for piece in pieces(model, *predicted) if many is None else pieces_of_many(many, *predicted):
            write(piece)
            progress.update(task, advance=len(piece["prediction"]))
    words.print(f"Predicted {rows:,} rows {how}. Wrote {output}.", markup=False)
    _pages.write_page(
        report,
        words,
        lambda _: predict_page(
            model,
            understood.panel,
            resume=resume,
            title=understood.name,
            guessed=understood.roles.guessed,
        ),
    )
    if as_json:
        written = {"output": str(output), "how": how, "training_rows_before": before}
        typer.echo(json.dumps(written | {"data": understood.facts()}, indent=1))


def _start_in_words(fitted: "Fitted", panel: "Panel", counts: "IntArray", resume: bool | None) -> str:
    """Say from which training rows predictions start, and what starts from nothing that need not."""
    from varnn.data.understood import in_units
    from varnn.model.warm_start import gap_before

    cold = [name for name, count in zip(panel.ids, counts, strict=True) if not count]
    if len(cold) < panel.n_series:
        names = ", ".join(map(repr, cold[:_SHOWN])) + (", ..." if len(cold) > _SHOWN else "")
        rest = f"; {len(cold):,} of {panel.n_series:,} series from nothing: {names}" if cold else ""
        return f"Starts from the last {counts.max():,} training rows{rest}."
    gap = gap_before(fitted, panel) if resume is None else None
    if gap is None:
        return ""
    return (
        f"Starts from nothing: the rows begin {in_units(gap)} after the training rows end. "
        "--resume starts from these all the same."
    )
