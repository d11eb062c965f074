"""Lines over time -> a chart of a page that people zoom, with a still picture of it for paper and no script.

How to put one on a page::

    chart = TimeChart(
        [
            ChartSeries(
                places=chart_places(panel),               # times, or numbers of rows; never decreasing
                truth=panel.target,                       # drawn on top of everything, in ink
                lines={"VARNN": prediction, "linear ARX": other},    # at most six, the first stands out
                bands={"90 % interval": (lower, upper)},
                marks=marks_of(events, places),           # changes, from where they began to where noticed
                views={"the hardest week": (places[800], places[967])},    # buttons; the first is shown first
                name="north",                             # in the picker, where there are several series
            )
        ],
        unit="load",
        errors=True,                                      # truth less the first line, in a panel below
    )
    report.add_chart("Truth and predictions", chart, "What there is to see, for those who cannot.")

All values of a series have the length of its places, and NaN where they are missing: a forecast, for one, has
truth before now and a line with a band after it. Each series may have its own lines, marks and views; the
reader picks one series at a time. `stacked` draws lines as areas on top of each other: shares that sum to 1.

The page holds the values themselves, to one part in ten thousand of their range, packed (`_packing.py`).
Where even so they are too many, rows are thinned: the lowest and highest of each span stay; the page says so.
The browser's half is `assets/timeline.js`; the still picture is `_picture.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from varnn.data.panel import Panel
from varnn.errors import DataError
from varnn.model.calendar import has_times
from varnn.monitoring.event import Event

Values = npt.NDArray[Any]
MOST_LINES = 6  # besides truth: there are no more colours that can be told apart


class Mark(NamedTuple):
    """A change to mark on a chart: what it is, and the places where it began and was noticed.

    Examples
    --------
    >>> Mark("regime switch", 40, 40).noticed
    40
    """

    kind: str
    began: Any
    noticed: Any


def marks_of(events: Sequence[Event], places: Values | None = None) -> list[Mark]:
    """Marks of events, at the places where their rows stand: row numbers, if none are given.

    Parameters
    ----------
    events : sequence of Event
        As a monitor gives them.
    places : array or None, default=None
        Places of the rows that events count.

    Examples
    --------
    >>> marks_of([Event("level shift", series=0, row=60, began=50, size=2.0)])
    [Mark(kind='level shift', began=50, noticed=60)]
    """
    if places is None:
        return [Mark(event.kind, event.began, event.row) for event in events]
    return [Mark(event.kind, places[event.began], places[event.row]) for event in events]


def chart_places(panel: Panel) -> Values:
    """Where each row of a panel stands on a time axis: at its time, or at its number where it has none.

    Parameters
    ----------
    panel : Panel
        Rows of one series, or of several, end to end; the rows of each are counted from its first.

    Examples
    --------
    >>> chart_places(Panel.from_arrays(None, np.zeros(5), series=list("aaabb"))).tolist()
    [0, 1, 2, 0, 1]
    """
    if has_times(panel.time) and not np.isnat(np.asarray(panel.time)).any():
        times = np.asarray(panel.time)
        falls = times[1:] < times[:-1]
        falls[panel.starts[1:-1] - 1] = False  # where the next series begins
        if not falls.any():
            return times
    return np.arange(len(panel)) - np.repeat(panel.starts[:-1], panel.lengths)


@dataclass(frozen=True, eq=False, kw_only=True)
class ChartSeries:
    """What one series of a chart shows; the module says what each part is for.

    Parameters
    ----------
    places : array
        Times (``datetime64``) or numbers of rows, never decreasing: (n,).
    truth : array or None, default=None
        Labels, NaN where missing: (n,).
    lines : mapping
        Name -> values, (n,) each; at most six.
    bands : mapping
        Name -> lower and upper bounds, (n,) each; the widest first.
    marks : sequence of Mark, default=()
        Changes, at places.
    views : mapping
        Name of a stretch worth a look -> its first and last place.
    name : str, default=""
        Of the series.

    Examples
    --------
    >>> one = ChartSeries(places=np.arange(3), truth=np.zeros(3), lines={"model": np.ones(3)})
    >>> one.columns
    ['truth', 'model']
    """

    places: Values
    truth: Values | None = None
    lines: Mapping[str, Values] = field(default_factory=dict)
    bands: Mapping[str, tuple[Values, Values]] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    views: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self.named_values().items()}
        wrong = [name for name, length in lengths.items() if length != len(self.places)]
        if wrong:
            raise DataError(
                f"all values of a chart need the length of its places, {len(self.places)}; of series "
                f"{self.name!r} these differ: {wrong[:5]}. Give NaN where a value is missing."
            )
        if not len(self.places) or not lengths:
            raise DataError(
                f"a chart needs rows, and truth or a line; series {self.name!r} has none. Leave it out."
            )
        if len(self.lines) > MOST_LINES:
            raise DataError(
                f"a chart draws at most {MOST_LINES} lines besides truth; {len(self.lines)} came. "
                "Leave some out."
            )
        if np.isnat(self.places).any() if self.timed else not np.isfinite(self.places).all():
            raise DataError(f"every row of a chart needs a place; series {self.name!r} has rows without one.")
        if (np.diff(self.places) < np.zeros(1, dtype=np.diff(self.places[:1]).dtype)).any():
            raise DataError(
                f"places of a chart never decrease; those of series {self.name!r} do. Sort its rows, or give "
                "one ChartSeries per series."
            )

    @property
    def timed(self) -> bool:
        """Whether places are times."""
        return has_times(self.places)

    @property
    def columns(self) -> list[str]:
        """Names of truth and lines, in the order they are told."""
        return (["truth"] if self.truth is not None else []) + list(self.lines)

    def named_values(self) -> dict[str, Values]:
        """All columns by name: truth, lines, and bounds as ``lower`` and ``upper`` of their band."""
        named = {} if self.truth is None else {"truth": self.truth}
        named |= {f"line {name}": values for name, values in self.lines.items()}
        for name, (lower, upper) in self.bands.items():
            named |= {f"lower {name}": lower, f"upper {name}": upper}
        return {name: np.asarray(values, dtype=float) for name, values in named.items()}

    def part(self, rows: npt.NDArray[np.int64] | slice) -> ChartSeries:
        """The same with some of its rows only; marks and views stay."""
        return ChartSeries(
            places=self.places[rows],
            truth=None if self.truth is None else self.truth[rows],
            lines={name: values[rows] for name, values in self.lines.items()},
            bands={name: (lower[rows], upper[rows]) for name, (lower, upper) in self.bands.items()},
            marks=self.marks,
            views=self.views,
            name=self.name,
        )


@dataclass(frozen=True, eq=False)
class TimeChart:
    """Truth, predictions and intervals over time, of one series or of several behind a picker.

    Parameters
    ----------
    series : sequence of ChartSeries
        In the order of the picker; the first is shown first, and is the still picture.
    unit : str, default=""
        What the values are: the name of the target.
    errors : bool, default=False
        Draw truth less the first line in a panel below.
    stacked : bool, default=False
        Draw lines as areas on top of each other: shares of one whole.

    Examples
    --------
    >>> chart = TimeChart([ChartSeries(places=np.arange(3), truth=np.array([1.0, 2.0, 1.0]))], unit="load")
    >>> chart.timed
    False
    """

    series: Sequence[ChartSeries]
    unit: str = ""
    errors: bool = False
    stacked: bool = False

    def __post_init__(self) -> None:
        if not self.series:
            raise DataError("a chart needs at least one series; none came.")
        if len({one.timed for one in self.series}) > 1:
            raise DataError("all series of a chart have times, or none has: some have, some have not.")

    @property
    def timed(self) -> bool:
        """Whether the axis has dates."""
        return self.series[0].timed
