"""``varnn predict``: a model file and a table in, a table of one-step predictions out."""

import json
from pathlib import Path
from typing import Annotated

import typer

from varnn.cli._options import (
    Data,
    DuplicatesOption,
    Json,
    Levels,
    Missing,
    Model,
    Output,
    Series,
    Sort,
    Time,
    TimeFormat,
    TimeZone,
    reading,
)

_LONG = 50_000  # rows that take long enough for somebody to wonder


def predict(
    model_path: Model,
    data: Data,
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
    as_json: Json = False,
) -> None:
    """Predict each row of a table from its inputs and the labels before it.

    Without the target column, or any label in it, the rows are taken to follow the training rows, and are
    predicted in closed loop: each prediction is taken as the label. Time and series are the columns the
    model was fitted with, if the table has them and none are named. Rows with labels that follow the training
    rows start from the last of those, which the model keeps.
    """
    from threadpoolctl import threadpool_limits

    from varnn.cli import _table
    from varnn.cli._predictions import pieces
    from varnn.cli.progress import counting_bar
    from varnn.cli.terminal import console
    from varnn.data.files import STANDARD, check_writable, table_writer
    from varnn.errors import ConfigError
    from varnn.estimator.loading import load
    from varnn.model.intervals import check_levels
    from varnn.model.warm_start import rows_before

    if as_json and output == STANDARD:
        raise ConfigError(
            "--json and the predictions cannot both go to standard output. Name a file with --output."
        )
    check_writable(output)
    levels = list(dict.fromkeys(check_levels(interval).tolist())) if interval else []
    model = load(model_path)
    fitted = model.fitted_
    columns = reading(
        target or fitted.target_name,
        time,
        series,
        fitted.input_names,
        time_format=time_format,
        time_zone=time_zone,
        missing=missing,
        sort=sort,
        duplicates=duplicates,
    )
    understood = _table.read(data, columns, must_have_target=target is not None, fitted=fitted)
    words = console(stderr=True, quiet=as_json or output == STANDARD)
    words.print(understood.in_words(), markup=False)
    rows, how = len(understood.panel), "one step ahead"
    if understood.in_closed_loop:
        how = "in closed loop, as there are no labels"
        if resume is False:
            raise ConfigError(
                "rows without labels are predicted as those that follow the training rows: leave out "
                "--no-resume, or give their labels."
            )
    before = 0 if understood.in_closed_loop else int(rows_before(fitted, understood.panel, resume).max())
    if before:
        words.print(f"Starts from the last {before:,} training rows.", markup=False)
    # Products of a step are small: a second thread gains little, and loses much where cores are busy.
    one_thread = threadpool_limits(1, user_api="blas")
    with one_thread, table_writer(output) as write, counting_bar() as progress:
        task = progress.add_task("predicting", total=rows, visible=rows > _LONG)
        for piece in pieces(model, understood, levels, resume):
            write(piece)
            progress.update(task, advance=len(piece["prediction"]))
    words.print(f"Predicted {rows:,} rows {how}. Wrote {output}.", markup=False)
    if as_json:
        written = {"output": str(output), "how": how, "training_rows_before": before}
        typer.echo(json.dumps(written | {"data": understood.facts()}, indent=1))
