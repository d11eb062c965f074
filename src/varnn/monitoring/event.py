"""What a monitor reports: one change, in which series, noticed where, begun where, how large."""

from typing import Literal, NamedTuple

from varnn.data.in_words import figure
from varnn.data.panel import Panel
from varnn.data.understood import written_time

Kind = Literal["level shift", "variance change", "coverage lost"]


class Event(NamedTuple):
    """A change that a monitor noticed.

    Parameters
    ----------
    kind : Kind
        ``"level shift"``, ``"variance change"`` or ``"coverage lost"``.
    series : int
        Number of the series, from 0.
    row : int
        Row at which it was noticed, from 0.
    began : int
        Row at which it seems to have begun.
    size : float
        A level shift: how far the mean moved, in the innovations' units. A variance change: the ratio of
        the new spread to the old. Coverage lost: share of rows covered since it began, less the nominal one.

    Examples
    --------
    >>> print(Event("level shift", series=0, row=812, began=800, size=-1.5))
    level shift of -1.5 in series 0, noticed at row 812, begun about row 800
    >>> print(Event("variance change", series=3, row=90, began=70, size=2.0))
    variance change: spread times 2 in series 3, noticed at row 90, begun about row 70
    """

    kind: Kind
    series: int
    row: int
    began: int
    size: float

    @property
    def what(self) -> str:
        """What was noticed, in words, without where."""
        return {
            "level shift": f"level shift of {figure(self.size, 3, signed=True)}",
            "variance change": f"variance change: spread times {figure(self.size, 3)}",
            "coverage lost": f"coverage lost: {100 * self.size:+.0f} points",
        }[self.kind]

    def __str__(self) -> str:
        return f"{self.what} in series {self.series}, noticed at row {self.row}, begun about row {self.began}"


def event_in_words(event: Event, panel: Panel) -> str:
    """Say what was noticed, and when, in the panel's own times and names.

    Parameters
    ----------
    event : Event
        Its rows are those of the panel.
    panel : Panel
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> time = np.datetime64("2026-01-01T00") + np.arange(100)
    >>> panel = Panel.from_arrays(None, np.zeros(100), time=time)
    >>> event_in_words(Event("level shift", series=0, row=60, began=50, size=2.0), panel)
    'level shift of +2, noticed 2026-01-03 12:00, begun about 2026-01-03 02:00'
    """
    series = f" in series {panel.ids[event.series]}" if panel.n_series > 1 else ""
    noticed, began = time_of_row(panel, event.row), time_of_row(panel, event.began)
    return f"{event.what}{series}, noticed {'at ' * (panel.time is None)}{noticed}, begun about {began}"


def time_of_row(panel: Panel, row: int) -> str:
    """Write the time of a row; without times, its number in its series.

    Parameters
    ----------
    panel : Panel
        The rows.
    row : int
        One of them.

    Examples
    --------
    >>> time_of_row(Panel.from_arrays(None, [1.0, 2.0, 3.0], series=list("abb")), 2)
    'row 1'
    """
    return f"row {row - panel.first_rows[row]:,}" if panel.time is None else written_time(panel.time[row])
