"""Options several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from varnn.data.tables import Reading

Data = Annotated[Path, typer.Argument(help="CSV or Parquet file, also gzipped; - is standard input.")]
DataOrFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV or Parquet file, also gzipped; - is standard input; or a folder of Parquet files.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File written by varnn fit.")]
Target = Annotated[
    str | None,
    typer.Option("--target", help="Column to predict; y if not given, of a table with ds and y."),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        help="Column with the time of each row, or none; the first with dates if not given. Several columns "
        'may be one time together: "date,hour".',
    ),
]
TimeFormat = Annotated[
    str | None,
    typer.Option(
        "--time-format",
        help='day-first, month-first, year-first, codes such as "%d.%m.%Y %H:%M", or seconds '
        "(milliseconds, ...) since 1970; found out if not given.",
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option("--time-zone", help="Whose clock times are of, such as Europe/Berlin; they become UTC."),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing", help="Texts and numbers that stand for a missing value, separated by commas: -200,err."
    ),
]
Sort = Annotated[bool, typer.Option("--sort", help="Put the rows of each series in the order of time.")]
DuplicatesOption = Annotated[
    str,
    typer.Option("--duplicates", help="Several rows of one time: error, or keep the first, last or mean."),
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
        "--inputs",
        help="Input columns, separated by commas, or none; if not given, all others with numbers or few "
        "different texts.",
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
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", help="Fits at a time, each in a process of its own; default: one a core.", min=1
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Fits at a time, each in a process of its own on one core; if not given, one after the other on "
        "all cores.",
        min=1,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Ray cluster to fit on: auto (a running one, else one on this machine), or its address, such as "
        "ray://head:10001.",
    ),
]
Page = Annotated[
    Path | None, typer.Option("--report", help="HTML page to write: one file that needs nothing else.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for programs.")]


def reading(
    target: str | None,
    time: str | None,
    series: str | None,
    inputs: Sequence[str] | None,
    *,
    time_format: str | None,
    time_zone: str | None,
    missing: str | None,
    sort: bool,
    duplicates: str,
) -> "Reading":
    """Put the options that say how a table is read together."""
    from varnn.data.order import DUPLICATES
    from varnn.data.tables import Reading
    from varnn.errors import check_choice

    check_choice("--duplicates", duplicates, DUPLICATES)
    known: Any = duplicates
    return Reading(
        target=target,
        time=time,
        series=series,
        inputs=inputs,
        time_format=time_format,
        time_zone=time_zone,
        missing=tuple(listed(missing) or ()),
        sort=sort,
        duplicates=known,
    )


def listed(names: str | None) -> list[str] | None:
    """Split a comma-separated option; the word none is an empty list.

    Examples
    --------
    >>> listed("heat, wind"), listed("none"), listed(None)
    (['heat', 'wind'], [], None)
    """
    if names is None:
        return None
    return [] if names == "none" else [one.strip() for one in names.split(",") if one.strip()]
