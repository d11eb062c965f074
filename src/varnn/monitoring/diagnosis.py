"""The record of a diagnosis: figures for plots, and findings in words."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.data.display import Table, cell, counted, drawn, html_card
from varnn.monitoring.calibration import Calibration
from varnn.monitoring.event import Event

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Literal["autocorrelation", "hours", "calibration", "memory"]
_SHOWN = 5  # findings, events and inputs that are shown


class InputLink(NamedTuple):
    """How strongly innovations go with one input, at the lag where they do so most."""

    name: str
    lag: int  # rows by which the input is earlier
    correlation: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Hours:
    """Errors by hour of the day, from 0 to 23; NaN at an hour without rows."""

    count: DoubleArray
    bias: DoubleArray  # mean innovation
    error: DoubleArray  # root mean square innovation
    coverage: DoubleArray | None  # share of rows within their interval


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryMap:
    """The memory over time: mean state of each unit in spans of rows, most active unit first."""

    rows: IntArray  # first row of each span
    states: DoubleArray  # (n_spans, n_units)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Diagnosis:
    """What innovations still hold; made by :func:`varnn.monitoring.diagnostics.diagnose`.

    Parameters
    ----------
    n_rows, n_known : int
        Rows, and those with a known innovation.
    seconds_per_row : int or None
        Usual time between rows, or None without a calendar.
    mean, deviation : float
        Of the innovations, in the target's units.
    excess_kurtosis, tail_index, worst_share : float
        How heavy the tails are: 0 for a Gaussian; Hill's index, where moments above it do not exist; and
        the share of the squared error that one row in a hundred makes up (0.08 for a Gaussian).
    lags, autocorrelation, size_autocorrelation : array of int, array, array
        Autocorrelation of the innovations and of their absolute values, at each lag in rows. A day and a
        week are among the lags if the rows have a calendar.
    band : array
        Bound that white noise keeps to at 19 of 20 lags, for each lag.
    ljung_box, ljung_box_p : array
        Statistic and p value over all lags up to each, for the lags without a gap from 1 on.
    inputs : tuple of InputLink
        Correlation with the inputs, strongest first.
    hours : Hours or None
        By hour of the day, or None.
    memory : MemoryMap or None
        The memory over time, or None.
    calibration : Calibration or None, default=None
        What intervals kept of what they promised, or None.
    events : tuple of Event, default=()
        Changes along the rows, as :func:`varnn.monitoring.monitor.detect` finds them: 1 in 20 panels where
        nothing changes has one by chance.
    findings : tuple of str, default=()
        What is worth knowing, one sentence each.

    Examples
    --------
    >>> from varnn import Panel
    >>> from varnn.monitoring.diagnostics import diagnose
    >>> noise = np.random.default_rng(0).normal(size=500)
    >>> diagnosis = diagnose(noise, Panel.from_arrays(None, np.zeros(500)))
    >>> print(diagnosis.words())
    The innovations look like white noise: nothing is left that these checks could see.
    """

    n_rows: int
    n_known: int
    seconds_per_row: int | None
    mean: float
    deviation: float
    excess_kurtosis: float
    tail_index: float
    worst_share: float
    lags: IntArray
    autocorrelation: DoubleArray
    size_autocorrelation: DoubleArray
    band: DoubleArray
    ljung_box: DoubleArray
    ljung_box_p: DoubleArray
    inputs: tuple[InputLink, ...]
    hours: Hours | None
    memory: MemoryMap | None
    calibration: Calibration | None = None
    events: tuple[Event, ...] = ()
    findings: tuple[str, ...] = ()

    def words(self) -> str:
        """Findings as one text, a line each."""
        return "\n".join(self.findings)

    def plot(self, what: Picture = "autocorrelation") -> "Figure":
        """Draw a part of it; needs matplotlib.

        Parameters
        ----------
        what : {"autocorrelation", "hours", "calibration", "memory"}, default "autocorrelation"
            What the innovations still hold at each lag; size and mean of errors by hour of the day; what
            intervals kept; the memory over time. Those it does not have are refused.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn("diagnosis", self, what)

    def __repr__(self) -> str:
        said = [f"<{self._title()}>", *(f"  {one}" for one in self.findings[:_SHOWN])]
        if (more := len(self.findings) - _SHOWN) > 0:
            said.append(f"  ... {counted(more, 'finding')} more: words() has them all")
        return "\n".join(said)

    def _repr_html_(self) -> str:
        facts = {
            "innovations": f"mean {cell(self.mean)}, standard deviation {cell(self.deviation)}",
            "worst hundredth of rows": f"{self.worst_share:.0%} of the squared error (8% for a Gaussian)",
            "changes": f"{len(self.events):,}",
        }
        if self.calibration is not None:
            pairs = zip(self.calibration.levels, self.calibration.coverage, strict=True)
            facts["intervals"] = ", ".join(f"{level:.0%}: {kept:.1%} within" for level, kept in pairs)
        links = [[one.name, str(one.lag), f"{one.correlation:+.2f}"] for one in self.inputs[:_SHOWN]]
        columns = ["input that errors go with", "rows before", "correlation"]
        changes = [str(one) for one in self.events[:_SHOWN]]
        tables = [Table("", columns, links)] if links else []
        return html_card(self._title(), facts, tables, [*self.findings, *changes])

    def _title(self) -> str:
        return f"Diagnosis of {counted(self.n_rows, 'row')}, {self.n_known:,} of them with an innovation"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold; NaN becomes None."""
        values: dict[str, Any] = _plain(asdict(self))
        for name in ("inputs", "events"):
            values[name] = [one._asdict() for one in getattr(self, name)]
        return values


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return None if isinstance(value, float) and not np.isfinite(value) else value
