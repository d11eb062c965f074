"""Options several commands share."""

from pathlib import Path
from typing import Annotated

import typer

NONE = "none"  # said of a column: there is none, do not guess one

Data = Annotated[Path, typer.Argument(help="CSV or Parquet file, also gzipped; - is standard input.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File written by varnn fit.")]
Target = Annotated[str, typer.Option("--target", help="Column to predict.")]
Time = Annotated[
    str | None,
    typer.Option(
        "--time", help="Column with the time of each row, or none; the first with dates if not given."
    ),
]
Series = Annotated[
    str | None,
    typer.Option(
        "--series",
        help="Column that says which series a row is of, or none; if not given, the text column within "
        "which times increase, where they do not anyway.",
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs", help="Input columns, separated by commas, or none; if not given, all others with numbers."
    ),
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="CSV (also .gz) or Parquet file to write; - is standard output."),
]
Levels = Annotated[
    list[float] | None,
    typer.Option("--interval", help="Level of intervals to add, such as 0.9; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for programs.")]


def listed(names: str | None) -> list[str] | None:
    """Split a comma-separated option; the word none is an empty list.

    Examples
    --------
    >>> listed("heat, wind"), listed("none"), listed(None)
    (['heat', 'wind'], [], None)
    """
    if names is None:
        return None
    return [] if names == NONE else [one.strip() for one in names.split(",") if one.strip()]
