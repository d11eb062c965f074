"""Panel -> what was understood of the data, so that a wrong guess is seen at once.

The command prints it, pages begin with it, and programs get it as plain values: target, time and its step,
series, inputs, what was left out, and what is worth a second look.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.data._notes import Note
from varnn.data.display import SHOWN, some
from varnn.data.sampling import sampling_step

Panel = Any  # a panel speaks in the words that are made here: to import it would be a circle
NONE = "none"
_LOOKED_AT = 100_000  # rows the sampling step is read from


class Understood(NamedTuple):
    """What was understood of the data; made by :func:`understood`."""

    rows: int
    series: int
    target: str | None  # None: no labels are looked for
    target_missing: float | None  # share of rows without a label
    time: str | None  # column, or columns with commas between them
    step: str | None  # such as "every 10 min"
    first_time: str | None
    last_time: str | None
    series_column: str | None
    inputs: list[str]
    inputs_missing: float  # share of cells
    left_out: list[str]  # columns
    notes: tuple[Note, ...]

    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {**self._asdict(), "notes": [note.text for note in self.notes]}

    def lines(self, hints: Mapping[str, str] | None = None, *, names: int = SHOWN) -> dict[str, str]:
        """One line for each role, for people to read.

        Parameters
        ----------
        hints : mapping or None, default=None
            What to say after the line of a role.
        names : int, default=6
            Names of columns to list in a line, at most.
        """
        said = hints or {}
        step = "" if self.step is None else f", {self.step}"
        span = "" if self.first_time is None else f", {self.first_time} to {self.last_time}"
        target = NONE if self.target is None else f"{self.target}, {self.target_missing:.1%} missing"
        inputs = NONE
        if self.inputs:
            inputs = f"{len(self.inputs)}: {some(self.inputs, names)}; {self.inputs_missing:.1%} missing"
        lines = {
            "rows": f"{self.rows:,}, in {self.series:,} series",
            "target": target,
            "time": f"{self.time or NONE}{step}{span}{said.get('time', '')}",
            "series": f"{self.series_column or NONE}{said.get('series', '')}",
            "inputs": inputs,
        }
        return lines | ({"left out": some(self.left_out, names)} if self.left_out else {})


def understood(panel: Panel, *, labelled: bool = True) -> Understood:
    """Say what a panel is taken to be.

    Parameters
    ----------
    panel : Panel
        The rows.
    labelled : bool, default=True
        Whether its target is looked at at all.

    Examples
    --------
    >>> from varnn import Panel
    >>> time = np.datetime64("2026-01-01T00") + np.arange(48)
    >>> panel = Panel.from_arrays(np.ones((48, 2)), np.arange(48.0), time=time, target_name="load")
    >>> for role, line in understood(panel).lines().items():
    ...     print(f"{role}: {line}")
    rows: 48, in 1 series
    target: load, 0.0% missing
    time: given, every 1 h, 2026-01-01 00:00 to 2026-01-02 23:00
    series: none
    inputs: 2: x0, x1; 0.0% missing
    """
    given = None if panel.time is None else "given"  # as an array, without a name
    return Understood(
        rows=len(panel),
        series=panel.n_series,
        target=panel.target_name if labelled else None,
        target_missing=_missing(panel.target) if labelled else None,
        time=given if panel.time_name is None else panel.time_name.replace(",", ", "),
        step=_step(panel),
        first_time=_time_of(panel, np.min),
        last_time=_time_of(panel, np.max),
        series_column=panel.series_name or ("given" if panel.n_series > 1 else None),
        inputs=list(panel.input_names),
        inputs_missing=_missing(panel.inputs),
        left_out=list(panel.ignored),
        notes=panel.notes,
    )


def in_units(step: Any) -> str:
    """Write a time span in its largest whole unit; a mere number as it is.

    Examples
    --------
    >>> in_units(np.timedelta64(600, "s")), in_units(0.5)
    ('10 min', '0.5')
    """
    if not isinstance(step, np.timedelta64):
        return f"{step:g}"
    microseconds = int(step.astype("timedelta64[us]").astype(np.int64))
    units = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
    unit = next(name for name, size in units.items() if microseconds % size == 0)
    return f"{microseconds // units[unit]:,} {unit}"


def written_time(time: Any) -> str:
    """Write the time of a row: a date without a time of day that all have, a number as it is.

    Examples
    --------
    >>> written_time(np.datetime64("2026-11-15T07:30:00")), written_time(np.float64(12.0))
    ('2026-11-15 07:30', '12')
    """
    if not isinstance(time, np.datetime64):
        return f"{time:g}"
    return str(time.astype("datetime64[s]")).replace("T", " ").removesuffix(":00")


def _missing(values: npt.NDArray[Any]) -> float:
    return float(np.isnan(values).mean()) if values.size else 0.0


def _step(panel: Panel) -> str | None:
    """Say how far apart rows are in time, as the first rows of the first series show it."""
    if panel.time is None or not len(panel):
        return None
    times = panel.time[: min(int(panel.lengths[0]), _LOOKED_AT)]
    usual = sampling_step(times)
    if usual is None:
        return None
    shown = in_units(usual)
    return f"every {shown}" if (np.diff(times) == usual).all() else f"about every {shown}, uneven"


def _time_of(panel: Panel, which: Any) -> str | None:
    """Write the first or the last time of all rows."""
    return None if panel.time is None or not len(panel) else written_time(which(panel.time))
