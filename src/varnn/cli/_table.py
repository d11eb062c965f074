"""DATA of a command: read, its columns' roles guessed where they are not given, and said in words."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn.data.categories import Categories
from varnn.data.files import STANDARD, TableFile, read_table
from varnn.data.panel import Panel, from_columns
from varnn.data.roles import NONE, Roles, guessed_roles
from varnn.data.sampling import sampling_step
from varnn.data.tables import Columns, Reading, columns_of
from varnn.errors import DataError, RowError
from varnn.model.fitted import Fitted
from varnn.model.reading import as_fitted
from varnn.streaming.closed_loop import without_labels

_SHOWN = 6  # names of inputs in a summary
_LOOKED_AT = 100_000  # rows the sampling step is read from


@dataclass(frozen=True, kw_only=True)
class Table:
    """A panel read from a file, and how it was understood."""

    name: str
    panel: Panel
    roles: Roles
    labelled: bool
    kept: Columns  # time and series as they were, for tables of results

    @property
    def in_closed_loop(self) -> bool:
        """Whether no row has a label, so that predictions go on after the training rows."""
        return without_labels(self.panel)

    def facts(self) -> dict[str, Any]:
        """What was understood, as plain values."""
        panel, roles = self.panel, self.roles
        return {
            "rows": len(panel),
            "series": panel.n_series,
            "target": panel.target_name if self.labelled else None,
            "target_missing": _missing(panel.target) if self.labelled else None,
            "time": ", ".join(roles.time) or None,
            "step": _step(panel),
            "first_time": _time_of(panel, np.min),
            "last_time": _time_of(panel, np.max),
            "series_column": roles.series,
            "guessed": sorted(roles.guessed),
            "inputs": list(panel.input_names),
            "inputs_missing": _missing(panel.inputs),
            "left_out": list(panel.ignored),
            "notes": [note.text for note in panel.notes],
        }

    def in_words(self) -> str:
        """Say what was understood, so that a wrong guess is seen at once."""
        facts, roles = self.facts(), self.roles
        names = ", ".join(facts["inputs"][:_SHOWN]) + (", ..." if len(facts["inputs"]) > _SHOWN else "")
        hints = {role: f"  (a guess; --{role} to change it)" for role in roles.guessed}
        step = "" if facts["step"] is None else f", {facts['step']}"
        span = "" if facts["first_time"] is None else f", {facts['first_time']} to {facts['last_time']}"
        lines = {
            "rows": f"{facts['rows']:,}, in {facts['series']:,} series",
            "target": f"{facts['target']}, {facts['target_missing']:.1%} missing" if self.labelled else NONE,
            "time": f"{facts['time'] or NONE}{step}{span}{hints.get('time', '')}",
            "series": f"{roles.series or NONE}{hints.get('series', '')}",
            "inputs": f"{len(facts['inputs'])}: {names}; {facts['inputs_missing']:.1%} missing"
            if names
            else NONE,
        }
        if facts["left_out"]:
            more = ", ..." if len(facts["left_out"]) > _SHOWN else ""
            lines["left out"] = f"{', '.join(facts['left_out'][:_SHOWN])}{more}"
        said = [f"  {role:9}{line}" for role, line in lines.items()]
        noted = [
            f"  {'note:' if not note.is_doubt else 'look:'}    {note.text}." for note in self.panel.notes
        ]
        return "\n".join([f"{self.name}:", *said, *noted])


def read(
    path: Path,
    reading: Reading,
    *,
    must_have_target: bool = True,
    fitted: Fitted | None = None,
    of_many: tuple[list[str], Categories] | None = None,
) -> Table:
    """Read a table; a time or series of None is guessed, and the word none stands for no column.

    With a fitted model the columns it was fitted with come before any guess, if the table has them. Of many
    models they are those of all.
    """
    file = read_table(path)
    table, file = columns_of(file.table), file._replace(table=None)  # which then is not held twice
    if fitted is not None:
        reading = as_fitted(reading, table, fitted)
    if of_many is not None:
        reading = replace(reading, inputs=of_many[0], categories=of_many[1])
    labelled = reading.target != NONE and (must_have_target or reading.target in table)
    roles = guessed_roles(table, reading)
    kept = {name: table[name] for name in (*roles.time, roles.series) if name in table}
    known = replace(
        reading, target=reading.target if labelled else None, time=roles.time or None, series=roles.series
    )
    try:
        panel = from_columns(table, known)
    except RowError as error:
        raise _placed(error, file, roles) from None
    except DataError as error:
        if "time" in roles.guessed and any(f"column {one!r}" in str(error) for one in roles.time):
            raise DataError(f"{error} (The time was guessed; --time names another column.)") from None
        raise
    if len(panel) < panel.rows.max() + 1:  # of several rows of one time, one is left
        there = np.sort(panel.rows)
        kept = {name: column[there.tolist()] for name, column in kept.items()}
    return Table(
        name="standard input" if path == STANDARD else path.name,
        panel=replace(panel, notes=(*file.notes, *panel.notes)),
        roles=roles,
        labelled=labelled,
        kept=kept,
    )


def _placed(error: RowError, file: TableFile, roles: Roles) -> DataError:
    """Say where in the file a row is, and what else may help."""
    placed = error.at(file.where(error.row))
    if "time must increase" not in str(error):
        return placed
    said = str(placed)
    if roles.candidates and roles.series is None:
        what, _, cause = said.partition(". ")
        name = roles.candidates[0]
        hint = f"Times increase within column {name!r}: if it names series, say --series {name!r}."
        said = f"{what}. {hint} {cause}"
    if "time" in roles.guessed:
        said += f" (The time {', '.join(roles.time)!r} was guessed; --time names another column.)"
    return DataError(said)


def _missing(values: npt.NDArray[Any]) -> float:
    return float(np.isnan(values).mean()) if values.size else 0.0


def _step(panel: Panel) -> str | None:
    """Say how far apart rows are in time, as the first rows of the first series show it."""
    if panel.time is None:
        return None
    times = panel.time[: min(int(panel.lengths[0]), _LOOKED_AT)]
    usual = sampling_step(times)
    if usual is None:
        return None
    shown = in_units(usual)
    return f"every {shown}" if (np.diff(times) == usual).all() else f"about every {shown}, uneven"


def _time_of(panel: Panel, which: Any) -> str | None:
    """Write the first or the last time of all rows."""
    if panel.time is None:
        return None
    if panel.time.dtype.kind != "M":
        return f"{which(panel.time):g}"
    return str(which(panel.time).astype("datetime64[s]")).replace("T", " ").removesuffix(":00")


def in_units(step: Any) -> str:
    """Write a time span in its largest whole unit: 600 s is 10 min; a mere number as it is."""
    if not isinstance(step, np.timedelta64):
        return f"{step:g}"
    microseconds = int(step.astype("timedelta64[us]").astype(np.int64))
    units = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
    unit = next(name for name, size in units.items() if microseconds % size == 0)
    return f"{microseconds // units[unit]:,} {unit}"
