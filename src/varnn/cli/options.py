"""Options several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path, typer.Argument(help="CSV (also .gz, .tsv) or Parquet file.")]
Target = Annotated[str, typer.Option("--target", help="Column to predict.")]
Time = Annotated[str | None, typer.Option("--time", help="Column with the time of each row.")]
Series = Annotated[str | None, typer.Option("--series", help="Column that says which series a row is of.")]
Inputs = Annotated[
    str | None,
    typer.Option("--inputs", help="Input columns, separated by commas; default: all others with numbers."),
]


def listed(inputs: str | None) -> list[str] | None:
    """Split a comma-separated option."""
    return None if inputs is None else [one.strip() for one in inputs.split(",") if one.strip()]
