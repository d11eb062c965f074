"""What a forecast gives: the next rows of each series, as arrays, a table, a picture, or words."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from varnn._types import DoubleArray
from varnn.data.display import Table, cell, counted, drawn, html_card, some, text_table
from varnn.data.panel import Panel
from varnn.data.understood import written_time
from varnn.errors import ConfigError, DataError, check_choice
from varnn.model.intervals import bound_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Backend = Literal["pandas", "polars", "pyarrow"]
_SERIES, _TIME, AHEAD, PREDICTION = "series", "time", "ahead", "prediction"
_ROWS, _SERIES_SHOWN = 6, 3  # of a forecast that text and notebooks show


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Forecast:
    """Forecasts of the next H rows of S series.

    Parameters
    ----------
    ids : tuple of str
        The series.
    time : array of shape (S, H) or None
        Times of the rows; None where the data have no time.
    prediction : array of shape (S, H)
        In the target's units.
    lower, upper : array of shape (S, H) or (S, H, L), or None, default None
        Bounds, with an axis of levels for several; None where no interval was asked for.
    levels : tuple of float, default ()
        Levels of the intervals.
    target_name : str, default "y"
        What is forecast.
    time_name, series_name : str or None, default None
        Columns that times and series of the rows so far came from, if they came from columns.
    backend : {"pandas", "polars", "pyarrow"} or None, default None
        Kind of table that the rows so far came from, if they came from one.

    Examples
    --------
    >>> ahead = Forecast(ids=("0",), time=None, prediction=np.array([[1.0, 2.5]]), target_name="load")
    >>> ahead
    <Forecast of 'load': 2 rows ahead>
      ahead  prediction
      1               1
      2             2.5
    """

    ids: tuple[str, ...]
    time: npt.NDArray[Any] | None
    prediction: DoubleArray
    lower: DoubleArray | None = None
    upper: DoubleArray | None = None
    levels: tuple[float, ...] = ()
    target_name: str = "y"
    time_name: str | None = None
    series_name: str | None = None
    backend: Backend | None = None

    @classmethod
    def after(
        cls,
        panel: Panel,
        prediction: DoubleArray,
        time: npt.NDArray[Any] | None,
        *bounds: DoubleArray,
        levels: Sequence[float] = (),
    ) -> "Forecast":
        """Make the forecast of the rows after those of a panel, with its names."""
        lower, upper = bounds or (None, None)
        return cls(
            ids=panel.ids,
            time=time,
            prediction=prediction,
            lower=lower,
            upper=upper,
            levels=tuple(map(float, levels)),
            target_name=panel.target_name,
            time_name=panel.time_name,
            series_name=panel.series_name,
            backend=cast("Backend | None", panel.backend if panel.backend in get_args(Backend) else None),
        )

    @property
    def horizon(self) -> int:
        """Rows ahead."""
        return int(self.prediction.shape[1])

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of a long table, a row for each series and step: what :meth:`to_frame` and files hold.

        Series and time have the names that they had in the table of the rows so far; ``ahead`` is the step, 1
        to H. The series is there if it has a name, or there are several.

        Examples
        --------
        >>> Forecast(ids=("0",), time=None, prediction=np.array([[1.0, 2.5]])).columns()
        {'ahead': array([1, 2]), 'prediction': array([1. , 2.5])}
        """
        own: dict[str, npt.NDArray[Any]] = {}
        if self.series_name is not None or len(self.ids) > 1:
            own[self.series_name or _SERIES] = np.repeat(np.array(self.ids, str), self.horizon)
        if self.time is not None:
            # Cells of several columns may be one time together; then none of them is its name.
            several = self.time_name is None or "," in self.time_name
            own[_TIME if several else str(self.time_name)] = self.time.ravel()
        found: dict[str, npt.NDArray[Any]] = {AHEAD: np.tile(np.arange(1, self.horizon + 1), len(self.ids))}
        found[PREDICTION] = self.prediction.ravel()
        if self.lower is not None and self.upper is not None:
            for side, bounds in (("lower", self.lower), ("upper", self.upper)):
                for index, level in enumerate(self.levels):
                    found[bound_name(side, level)] = bounds.reshape(self.prediction.size, -1)[:, index]
        if taken := [name for name in own if name in found]:
            raise DataError(f"forecasts come in columns {list(found)}; rename the table's own {taken[0]!r}.")
        return {**own, **found}

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Give the forecast as a long table: a row for each series and step.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"} or None, default None
            Kind of table; None is that of the rows so far, or, if they were in none, what is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            With the columns of :meth:`columns`.

        Examples
        --------
        >>> ahead = Forecast(ids=("0",), time=None, prediction=np.array([[1.0, 2.5]]))
        >>> ahead.to_frame("polars").rows()
        [(1, 1.0), (2, 2.5)]
        """
        import narwhals as nw

        wanted = backend or self.backend or _installed()
        check_choice("backend", wanted, get_args(Backend))
        if find_spec(wanted) is None:
            raise ConfigError(
                f"a {wanted} table needs the package {wanted!r}, which is not installed. Install it, or name "
                f"another backend of {list(get_args(Backend))}."
            )
        columns = {name: _for_tables(values) for name, values in self.columns().items()}
        return nw.from_dict(columns, backend=wanted).to_native()

    def plot(self, history: Panel | None = None, series: Sequence[str] | str | None = None) -> "Figure":
        """Draw the forecast with its bands; needs matplotlib.

        Parameters
        ----------
        history : Panel or None, default None
            Rows so far, whose end is drawn before it.
        series : sequence of str, str or None, default None
            Which series; None is the first few.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn("forecast", self, history, series)

    def __repr__(self) -> str:
        shown = self._table(1)
        rest = self._rest(shown)
        table = text_table(shown.columns, shown.rows)
        return f"<{self._title()}>\n{table}" + (f"\n  {rest}" if rest else "")

    def _repr_html_(self) -> str:
        facts = {
            "series": f"{len(self.ids):,}: {some(self.ids)}" if len(self.ids) > 1 else "",
            "intervals": some([f"{level:.0%}" for level in self.levels]),
        }
        shown = self._table(_SERIES_SHOWN)
        return html_card(self._title(), facts, [shown], [rest] if (rest := self._rest(shown)) else [])

    def _rest(self, shown: Table) -> str:
        """Say how many rows are not shown; nothing where all are."""
        more = self.prediction.size - len(shown.rows)
        return f"... {counted(more, 'row')} more: to_frame() has them all" if more else ""

    def _title(self) -> str:
        of = f" of {counted(len(self.ids), 'series')}" if len(self.ids) > 1 else ""
        span = ""
        if self.time is not None and self.time.size:
            span = f", {written_time(self.time.min())} to {written_time(self.time.max())}"
        return f"Forecast of {self.target_name!r}: {counted(self.horizon, 'row')} ahead{of}{span}"

    def _table(self, series: int) -> Table:
        """Show the first rows of some series."""
        columns = self.columns()
        rows = [
            one * self.horizon + step
            for one in range(min(series, len(self.ids)))
            for step in range(min(_ROWS, self.horizon))
        ]
        cells = [[_cell(values[row]) for values in columns.values()] for row in rows]
        return Table("", list(columns), cells)


def _cell(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return written_time(value)
    return str(value) if isinstance(value, str | np.integer) else cell(float(value))


def _for_tables(values: npt.NDArray[Any]) -> Any:
    """Give a column as tables take it: polars has no times in seconds, nor texts of a fixed length."""
    if values.dtype.kind == "U":
        return values.tolist()
    finer = values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in ("ms", "us", "ns")
    return values.astype("datetime64[us]") if finer else values


def _installed() -> Backend:
    """Choose a kind of table that is there."""
    found: Backend | None = next((one for one in get_args(Backend) if find_spec(one) is not None), None)
    if found is None:
        raise ConfigError(
            f"a table needs one of the packages {list(get_args(Backend))}; none is installed. Install one, "
            "or take columns(), which needs none."
        )
    return found
