"""``varnn predict``: a model file and a table in, a table of one-step predictions out."""

from pathlib import Path
from typing import Annotated, Any

import typer

from varnn.cli.options import Data, Series, Time


def predict(
    model_path: Annotated[Path, typer.Argument(metavar="MODEL", help="File written by varnn fit.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file to write.")],
    time: Time = None,
    series: Series = None,
) -> None:
    """Predict each row of a table from its inputs and the labels before it.

    Without the target column the rows are taken to follow the training rows, and are predicted in
    closed loop: errors taken as zero.
    """
    from rich.console import Console

    from varnn.panel import Panel, read_table
    from varnn.regressor import load
    from varnn.stream import continue_from_training

    model = load(model_path)
    fitted = model.fitted_
    table = read_table(data)
    labelled = fitted.target_name in table.column_names
    panel = Panel.from_frame(
        table,
        target=fitted.target_name if labelled else None,
        time=time,
        series=series,
        inputs=fitted.input_names,
    )
    predictions = model.predict(panel) if labelled else continue_from_training(fitted, panel)
    columns = {name: table[name] for name in (time, series) if name is not None}
    if labelled:
        columns[fitted.target_name] = table[fitted.target_name]
    columns["prediction"] = panel.in_caller_order(predictions)
    _write(output, columns)
    how = "one step ahead" if labelled else "in closed loop, as the table has no labels"
    Console(stderr=True).print(f"Predicted {len(panel):,} rows {how}. Wrote {output}.")


def _write(path: Path, columns: dict[str, Any]) -> None:
    import io

    import pyarrow
    from pyarrow import csv, parquet

    from varnn.files import write_atomically

    buffer = io.BytesIO()
    writer = parquet.write_table if path.suffix in (".parquet", ".pq") else csv.write_csv
    writer(pyarrow.table(columns), buffer)
    write_atomically(path, buffer.getvalue())
