"""DATA of a command: read, its columns' roles guessed where they are not given, and said in words.

The target is never guessed. The time is the first column with dates. The series is asked for only where
times do not increase from row to row: it then is the first text column within which they do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from varnn import columns
from varnn.cli.options import NONE
from varnn.errors import DataError
from varnn.files import STANDARD, read_table
from varnn.grouping import Coded
from varnn.panel import Panel, from_columns
from varnn.tables import Columns, columns_of

_SHOWN = 6  # names of inputs in a summary
_ROWS_AT_ONCE = 1 << 20
_LOOKED_AT = 100_000  # rows the sampling step is read from


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which columns are the time and the series of a row, and which of the two were guessed."""

    time: str | None
    series: str | None
    guessed: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A panel read from a file, and how it was understood."""

    name: str
    panel: Panel
    roles: Roles
    labelled: bool
    kept: Columns  # time and series as they were, for tables of results

    def facts(self) -> dict[str, Any]:
        """Give what was understood, as plain values."""
        panel, roles = self.panel, self.roles
        return {
            "rows": len(panel),
            "series": panel.n_series,
            "target": panel.target_name if self.labelled else None,
            "target_missing": _missing(panel.target) if self.labelled else None,
            "time": roles.time,
            "step": _step(panel),
            "series_column": roles.series,
            "guessed": sorted(roles.guessed),
            "inputs": list(panel.input_names),
            "inputs_missing": _missing(panel.inputs),
            "left_out": list(panel.ignored),
        }

    def in_words(self) -> str:
        """Say what was understood, so that a wrong guess is seen at once."""
        facts, roles = self.facts(), self.roles
        names = ", ".join(facts["inputs"][:_SHOWN]) + (", ..." if len(facts["inputs"]) > _SHOWN else "")
        hints = {role: f"  (a guess; --{role} to change it)" for role in roles.guessed}
        step = "" if facts["step"] is None else f", {facts['step']}"
        lines = {
            "rows": f"{facts['rows']:,}, in {facts['series']:,} series",
            "target": f"{facts['target']}, {facts['target_missing']:.1%} missing" if self.labelled else NONE,
            "time": f"{roles.time or NONE}{step}{hints.get('time', '')}",
            "series": f"{roles.series or NONE}{hints.get('series', '')}",
            "inputs": f"{len(facts['inputs'])}: {names}; {facts['inputs_missing']:.1%} missing"
            if names
            else NONE,
        }
        if facts["left_out"]:
            lines["left out"] = f"{', '.join(facts['left_out'][:_SHOWN])}  (no numbers)"
        return "\n".join([f"{self.name}:", *(f"  {role:9}{line}" for role, line in lines.items())])


def read(
    path: Path,
    *,
    target: str,
    time: str | None,
    series: str | None,
    inputs: Sequence[str] | None,
    must_have_target: bool = True,
) -> Table:
    """Read a table; roles of None are guessed, and the word none stands for no column."""
    table = columns_of(read_table(path))
    labelled = target != NONE and (must_have_target or target in table)
    roles = _roles(table, time, series, taken={target, *(inputs or ())})
    kept = {name: table[name] for name in (roles.time, roles.series) if name in table}
    try:
        panel = from_columns(
            table,
            target=target if labelled else None,
            time=roles.time,
            series=roles.series,
            inputs=inputs,
        )
    except DataError as error:
        if "time" not in roles.guessed or "time must increase" not in str(error):
            raise
        raise DataError(
            f"{error} The time column {roles.time!r} was guessed: --time none takes the rows as they come."
        ) from None
    return Table(
        name="standard input" if path == STANDARD else path.name,
        panel=panel,
        roles=roles,
        labelled=labelled,
        kept=kept,
    )


def _roles(table: Columns, time: str | None, series: str | None, taken: set[str]) -> Roles:
    """Guess what is not given."""
    free = [name for name in table if name not in taken]
    guessed = set()
    if time is None:
        dates = [name for name in free if isinstance(table[name].dtype, nw.Datetime | nw.Date)]
        time = dates[0] if dates else NONE
        guessed |= {"time"} if dates else set()
    if series is None:
        words = [name for name in free if columns.is_text(table[name]) and name != time]
        found = next(_series(table, words, time), NONE) if words and time in table else NONE
        guessed |= {"series"} if found != NONE else set()
        series = found
    return Roles(
        time=None if time == NONE else time,
        series=None if series == NONE else series,
        guessed=frozenset(guessed),
    )


def _series(table: Columns, words: Sequence[str], time: str) -> Iterator[str]:
    """Find text columns within which times increase, if they do not over all rows."""
    if table[time].is_null().any():
        return  # the panel says what is wrong with it
    moments = columns.times(table[time], time)
    if np.all(moments[1:] > moments[:-1]):
        return
    for name in words:
        if not table[name].is_null().any() and _increases(moments, columns.coded(table[name], name)):
            yield name


def _increases(moments: npt.NDArray[Any], series: Coded) -> bool:
    """Tell whether times increase within each series; series of a row each, as notes would make, are none."""
    if 2 * (len(moments) - len(series.names)) < len(moments) - 1:
        return False
    last, begun = np.empty(len(series.names), moments.dtype), np.zeros(len(series.names), np.bool_)
    for begin in range(0, len(moments), _ROWS_AT_ONCE):  # all at once they would be sorted
        codes, times = (one[begin : begin + _ROWS_AT_ONCE] for one in (series.codes, moments))
        order = np.argsort(codes, kind="stable")
        codes, times = codes[order], times[order]
        same = codes[1:] == codes[:-1]
        first, final = np.append(True, ~same), np.append(~same, True)
        known = begun[codes[first]]
        on = np.append(times[1:][same] > times[:-1][same], (times[first] > last[codes[first]])[known])
        if not on.all():
            return False
        last[codes[final]], begun[codes[final]] = times[final], True
    return True


def _missing(values: npt.NDArray[Any]) -> float:
    return float(np.isnan(values).mean()) if values.size else 0.0


def _step(panel: Panel) -> str | None:
    """Say how far apart rows are in time, as the first rows of the first series show it."""
    if panel.time is None or panel.lengths[0] < 2:
        return None
    steps = np.diff(panel.time[: min(int(panel.lengths[0]), _LOOKED_AT)])
    usual = np.sort(steps)[len(steps) // 2]
    shown = _duration(usual) if steps.dtype.kind == "m" else f"{usual:g}"
    return f"every {shown}" if (steps == usual).all() else f"about every {shown}, uneven"


def _duration(step: Any) -> str:
    """Write a time span in its largest whole unit: 600 s is 10 min."""
    microseconds = int(step.astype("timedelta64[us]").astype(np.int64))
    units = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
    unit = next(name for name, size in units.items() if microseconds % size == 0)
    return f"{microseconds // units[unit]:,} {unit}"
