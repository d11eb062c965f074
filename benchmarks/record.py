"""What a benchmark leaves: tables of figures, and a JSON file that says how they were made."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.speed.rounds import Timing
from varnn.data.files import write_atomically
from varnn.errors import DataError
from varnn.report.provenance import provenance

FORMAT = 1
PEERS = (
    "numba",
    "lightgbm",
    "tensorflow-cpu",
    "tensorflow",
    "keras",
    "river",
    "statsmodels",
    "onnxruntime",
    "neuralforecast",
)
Row: TypeAlias = dict[str, str | float | None]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One table of figures.

    Parameters
    ----------
    name
        What the table is known by, such as ``"train RM"``.
    title
        What was measured, in a sentence's words.
    threads
        Threads each contender was given.
    rows
        One line per contender, each with the same columns; the first column names the line.
    checks
        What was found to agree before anything was timed.
    absent
        Contenders that are not installed, and so were not measured.
    """

    name: str
    title: str
    threads: int
    rows: list[Row]
    checks: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


def significant(figure: float, digits: int = 3) -> float:
    """Round to digits that can be trusted; what is saved is what is shown.

    Examples
    --------
    >>> significant(1234.5), significant(0.0123456)
    (1230.0, 0.0123)
    """
    return float(f"{figure:.{digits}g}")


def shown(figure: str | float | None) -> str:
    """Write a figure for people.

    Examples
    --------
    >>> shown(1230.0), shown(0.0123), shown(None)
    ('1,230', '0.0123', '-')
    """
    if figure is None:
        return "-"
    if isinstance(figure, str):
        return figure
    return f"{figure:,.0f}" if float(figure).is_integer() else f"{figure:,}"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Lay cells out as a table, names to the left and figures to the right.

    Examples
    --------
    >>> markdown_table(["who", "s"], [["we", "1.5"]])
    '| who | s |\n| --- | ---: |\n| we | 1.5 |\n'
    """
    ruler = ["---", *["---:"] * (len(columns) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, ruler, *rows))


def timed_rows(timings: Sequence[Timing], ratios_to: Sequence[str], *, p99: bool = False) -> list[Row]:
    """Lay timings out as rows in microseconds: medians of all calls and of the best round.

    Ratios to contenders by name are those of the best rounds.
    """
    best = {one.name: one.best for one in timings}
    rows: list[Row] = []
    for one in timings:
        row: Row = {"contender": one.name, "median us": significant(one.median * 1e6)}
        row["best us"] = significant(one.best * 1e6)
        if p99:
            row["p99 us"] = significant(one.quantile(0.99) * 1e6)
        for name in ratios_to:
            if name in best:
                row[f"time / {name}"] = significant(one.best / best[name])
        rows.append(row)
    return rows


def made() -> dict[str, Any]:
    """Say where the figures come from: machine, versions, and how busy the machine was."""
    facts: dict[str, Any] = dict(provenance())
    for package in PEERS:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    if hasattr(os, "getloadavg"):  # not on Windows
        facts["load average at the end"] = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return facts


def save(path: str | Path, measured: Sequence[Measured], command: str, *, complete: bool = True) -> None:
    """Write tables to a JSON file, one figure per line; incomplete while more is to be measured."""
    document = {
        "format": FORMAT,
        "command": command,
        "complete": complete,
        "made": made(),
        "measured": [asdict(one) for one in measured],
    }
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode())


@dataclass(frozen=True)
class Saved:
    """A results file, read back."""

    command: str
    complete: bool
    made: dict[str, Any]
    measured: list[Measured]


def read(path: str | Path) -> Saved:
    """Read a results file."""
    try:
        document = json.loads(Path(path).read_text())
        if document["format"] != FORMAT:
            raise DataError(f"{str(path)!r} must have format {FORMAT}; it has {document['format']}.")
        measured = [Measured(**one) for one in document["measured"]]
        saved = Saved(document["command"], document["complete"], document["made"], measured)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{str(path)!r} must be a file written by `python -m benchmarks ... --json`; reading it gave "
            f"{type(error).__name__}: {error}. Give another file."
        ) from None
    for one in measured:
        if len({tuple(row) for row in one.rows}) != 1:
            raise DataError(f"every row of {one.name!r} in {str(path)!r} must have the same columns.")
    return saved
