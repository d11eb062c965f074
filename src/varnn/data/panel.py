"""arrays, frame or file -> Panel: the one record everything after it works on.

All checks of user data live here and run once. Later stages trust a Panel: its rows are grouped by
series and in time order, its numbers are finite or NaN (missing), its shapes agree.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from varnn._types import BoolArray, FloatArray, IntArray
from varnn.data._grouped import grouped
from varnn.data._notes import Note
from varnn.data.array_times import array_times
from varnn.data.categories import Categories, Inputs, Texts
from varnn.data.display import drawn
from varnn.data.files import read_table
from varnn.data.finite import floats
from varnn.data.grouping import Coded, RowNumbers, row_numbers
from varnn.data.names import checked_names, default_names
from varnn.data.odd_input import series_names
from varnn.data.order import Duplicates
from varnn.data.panel_in_words import html_of, one_line
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError, RowError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from narwhals.typing import IntoDataFrame

    from varnn.data.frames import Target
    from varnn.data.tables import Columns, Reading

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Panel:
    """One or many series, end to end, with the rows where each begins.

    Make one with :meth:`from_arrays`, :meth:`from_frame` or :meth:`read`.

    Parameters
    ----------
    inputs : array
        Covariates known when a row is predicted, shape (n_rows, n_inputs); NaN is missing.
    target : array
        What is predicted, shape (n_rows,); NaN is missing.
    starts : array of int
        Row at which each series begins, and the number of rows at the end: (n_series + 1,).
    ids : tuple of str
        Name of each series.
    input_names, target_name : tuple of str, str
        Column names, kept with a model so that a later table can be matched by name.
    time : array or None, default=None
        Time of each row, or None; increasing within each series.
    rows : array of int, optional
        Position of each row in the caller's table, whose series may have been interleaved.
    ignored : tuple of str, default=()
        Columns of the caller's table that hold no numbers and were left out.
    notes : tuple of Note, default=()
        What is worth saying of how a table was read.
    time_name, series_name : str or None, default=None
        Columns that time and series of the rows came from, if they came from columns.
    read_as : mapping, optional
        How a table was read, as far as it was said: formats of times, what stands for missing, and so on.
    categories : mapping, optional
        Columns of texts, and the categories of each that have an input, such as ``sky=sun``: 1 or 0.
    texts : Texts or None, default=None
        Texts of all rows, from which a model's own inputs are made; see `varnn.data.categories`.
    weights : array or None, default=None
        How much the error of each row counts in a fit, (n_rows,); None: all alike. See `varnn.data.weights`.
    backend : {"pandas", "polars", "pyarrow"} or None, default=None
        Kind of table that the rows came from, in which forecasts are given back.
    name, licence, citation : str, default=""
        Where the data come from, for the data sets of :mod:`varnn.datasets`.

    Examples
    --------
    >>> import numpy as np
    >>> panel = Panel.from_arrays(np.zeros((5, 2)), np.arange(5.0), series=list("aabbb"))
    >>> len(panel), panel.n_series, panel.ids, panel.starts.tolist()
    (5, 2, ('a', 'b'), [0, 2, 5])
    """

    inputs: FloatArray
    target: FloatArray
    starts: IntArray
    ids: tuple[str, ...]
    input_names: tuple[str, ...]
    target_name: str = "y"
    time: npt.NDArray[Any] | None = None
    rows: RowNumbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    ignored: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    name: str = ""
    licence: str = ""
    citation: str = ""
    time_name: str | None = None
    series_name: str | None = None
    read_as: Mapping[str, Any] = field(default_factory=dict)
    categories: Categories = field(default_factory=dict)
    texts: Texts | None = None
    weights: FloatArray | None = None
    backend: str | None = None

    @classmethod
    def from_arrays(
        cls,
        X: npt.ArrayLike | None,
        y: npt.ArrayLike | None,
        *,
        series: Iterable[object] | None = None,
        time: Iterable[object] | None = None,
        input_names: Sequence[str] | None = None,
        target_name: str = "y",
    ) -> "Panel":
        """Make a panel from arrays; the caller's arrays are never modified.

        Parameters
        ----------
        X : array or None
            Inputs of shape (n_rows, n_inputs), or None for a stream with no inputs.
        y : array or None
            Target of shape (n_rows,); NaN where missing, None when no label is known.
        series : array_like or None, default=None
            Which series each row belongs to; None means one series.
        time : array_like or None, default=None
            Time of each row, increasing within each series: dates of any kind, texts, or plain numbers.
        input_names, target_name : sequence of str or None, str
            Names to keep; inputs are called x0, x1, ... by default.

        Examples
        --------
        >>> Panel.from_arrays([[1.0], [2.0]], [3.0, None]).target
        array([ 3., nan])
        """
        if X is None and y is None:
            raise DataError("a panel needs inputs or a target; both are None. Give `X`, `y` or both.")
        target = None if y is None else floats(y, "the target")
        inputs = np.empty((len(target), 0)) if X is None and target is not None else floats(X, "the inputs")
        if inputs.ndim != 2:
            raise DataError(
                f"the inputs must be two-dimensional, (rows, inputs); they have shape {inputs.shape}. "
                "Reshape one column with X.reshape(-1, 1)."
            )
        if target is None:
            target = np.full(len(inputs), np.nan)
        if target.shape != (len(inputs),):
            raise DataError(
                f"the target must hold one number per row, shape ({len(inputs)},); "
                f"it has shape {target.shape}."
            )
        names = default_names(inputs.shape[1]) if input_names is None else checked_names(input_names)
        if not isinstance(target_name, str):
            raise DataError(f"target_name must be a text; got {shown(target_name)}.")
        return cls(
            **grouped(
                {"inputs": inputs, "target": target, "time": None if time is None else array_times(time)},
                series=None if series is None else Coded.of(series_names(series)),
                input_names=names,
                target_name=target_name,
            )
        )

    @classmethod
    def from_frame(
        cls,
        frame: "IntoDataFrame",
        *,
        target: "Target" = ...,
        time: str | Sequence[str] | None = None,
        series: str | None = None,
        inputs: Sequence[str] | None = None,
        time_format: str | None = None,
        time_zone: str | None = None,
        missing: Sequence[object] = (),
        sort: bool = False,
        duplicates: Duplicates = "error",
    ) -> "Panel":
        """Make a panel from a table: pandas, polars, pyarrow, a DuckDB relation, an Arrow stream.

        Parameters
        ----------
        frame : IntoDataFrame
            The table; it is never modified. A lazy one is computed, a stream is read.
        target : str or None, default=...
            Column to predict; None when the table holds inputs only. It need not be said of a long frame
            with columns ``ds`` and ``y``.
        time : str or sequence of str or None, default=None
            Column with the time of each row: dates, texts or numbers. Several columns whose cells are one
            time together may be named: ["date", "hour"], or ["year", "month", "day", "hour"]. None is
            ``ds`` of a long frame, or an index of dates.
        series : str or None, default=None
            Column with the series of each row. None is ``unique_id`` of a long frame, or the other level of
            an index that holds series and time.
        inputs : sequence of str or None, default=None
            Input columns. By default all other columns that hold numbers or categories: texts of few
            different values, of which the most frequent become inputs of 0 and 1. Those left out are in
            ``panel.ignored``.
        time_format : str or None, default=None
            How times are written, where that is not to be found out: "day-first", "month-first" or
            "year-first", codes of ``strptime`` such as "%d.%m.%Y %H:%M", or "seconds" ("milliseconds", ...)
            since 1970.
        time_zone : str or None, default=None
            Whose clock the times are of, such as "Europe/Berlin": they become UTC, and the hour that comes
            twice when summer time ends is told apart. Times that name their own zone become UTC anyway.
        missing : sequence of object, default=()
            Texts and numbers that stand for a missing value, such as -200, beside the usual NA.
        sort : bool, default=False
            Put the rows of each series in the order of time.
        duplicates : Duplicates, default="error"
            What to do with several rows of one time: refuse them ("error"), or keep the "first", the "last"
            or the "mean" of their numbers.

        Examples
        --------
        >>> import polars
        >>> frame = polars.DataFrame({"day": [1, 2], "heat": [20.5, None], "load": [7, 9]})
        >>> panel = Panel.from_frame(frame, target="load", time="day")
        >>> panel.input_names, panel.target.tolist()
        (('heat',), [7.0, 9.0])
        >>> frame = polars.DataFrame({"when": ["31/1/2024 5:00", "1/2/2024 5:00"], "load": [7, -999]})
        >>> panel = Panel.from_frame(frame, target="load", time="when", missing=[-999])
        >>> panel.time.astype(str).tolist(), panel.target.tolist()
        (['2024-01-31T05:00:00', '2024-02-01T05:00:00'], [7.0, nan])
        """
        from varnn.data.frames import backend_of, read_frame  # narwhals: only for those who have tables
        from varnn.data.tables import Reading

        reading = Reading(
            target=None if target is ... else target,
            time=time,
            series=series,
            inputs=inputs,
            time_format=time_format,
            time_zone=time_zone,
            missing=missing,
            sort=sort,
            duplicates=duplicates,
        )
        columns, reading = read_frame(frame, reading, find_target=target is ...)
        backend = backend_of(columns)
        return replace(from_columns(columns, reading), backend=backend).logged()

    @classmethod
    def read(cls, path: str | Path, *, target: "Target" = ..., **reading: Any) -> "Panel":
        r"""Read a panel from a CSV (also .gz, .tsv) or Parquet file.

        Delimiter, decimal mark and encoding of a CSV are found in the file. All other arguments are those of
        :meth:`from_frame`. What is worth knowing of how the file was read is in ``panel.notes``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "house.csv")
        >>> _ = path.write_text("date;heat;load\n31.12.2025;20,5;7\n1.1.2026;NA;9\n")
        >>> panel = Panel.read(path, target="load", time="date")
        >>> panel.inputs.tolist(), panel.time.astype(str).tolist()
        ([[20.5], [nan]], ['2025-12-31T00:00:00', '2026-01-01T00:00:00'])
        """
        from varnn.data.frames import read_frame
        from varnn.data.tables import Reading

        file = read_table(Path(path))
        try:
            how = Reading(target=None if target is ... else target, **reading)
        except TypeError as error:
            raise ConfigError(f"Panel.read takes the arguments of Panel.from_frame: {error}.") from None
        columns, how = read_frame(file.table, how, find_target=target is ...)
        file = file._replace(table=None)  # which then is not held twice
        try:
            panel = from_columns(columns, how)
        except RowError as error:
            raise error.at(file.where(error.row)) from None
        return replace(panel, notes=(*file.notes, *panel.notes)).logged()

    def logged(self) -> "Panel":
        """Log what was read, and what calls for a second look."""
        logger.info("read %s", one_line(self))
        for note in self.notes:
            logger.log(logging.WARNING if note.is_doubt else logging.INFO, "%s.", note.text)
        return self

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.target):
            object.__setattr__(self, "rows", row_numbers(len(self.target)))
        if len(self.input_names) != self.inputs.shape[1]:
            raise DataError(
                f"there must be one name per input; {self.inputs.shape[1]} inputs came with "
                f"{len(self.input_names)} names: {list(self.input_names)[:5]}."
            )

    def __len__(self) -> int:
        return len(self.target)

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    def plot(self, series: Sequence[str] | str | None = None) -> "Figure":
        """Draw the target over time, of some series or the first few; needs matplotlib."""
        return drawn("panel", self, series)

    @property
    def n_series(self) -> int:
        """Number of series."""
        return len(self.ids)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.inputs.shape[1])

    @property
    def lengths(self) -> IntArray:
        """Rows of each series, shape (n_series,)."""
        return np.diff(self.starts)

    @property
    def counted(self) -> BoolArray:
        """Whether the label of a row is known and its error counts in a fit, shape (n_rows,)."""
        known: BoolArray = ~np.isnan(self.target)
        return known if self.weights is None else known & (self.weights > 0)

    @property
    def first_rows(self) -> IntArray:
        """For each row, the row at which its series begins, shape (n_rows,)."""
        return np.repeat(self.starts[:-1], self.lengths)

    def ranges(self, first: IntArray, last: IntArray) -> "Panel":
        """Keep rows ``first[i]:last[i]`` of the whole panel for each series i.

        A series left with no row is dropped. One series is a view; several are copied once.

        Examples
        --------
        >>> import numpy as np
        >>> panel = Panel.from_arrays(None, np.arange(6.0), series=list("aaabbb"))
        >>> panel.ranges(np.array([1, 3]), np.array([3, 4])).target
        array([1., 2., 3.])
        """
        kept = [index for index in range(self.n_series) if last[index] > first[index]]
        if len(kept) == 1:
            take: Any = slice(int(first[kept[0]]), int(last[kept[0]]))
        else:
            spans = [np.arange(first[index], last[index]) for index in kept]
            take = np.concatenate(spans) if spans else np.empty(0, dtype=np.int64)
        lengths = [int(last[index] - first[index]) for index in kept]
        return replace(
            self,
            inputs=self.inputs[take],
            target=self.target[take],
            time=None if self.time is None else self.time[take],
            rows=self.rows[take],
            weights=None if self.weights is None else self.weights[take],
            texts=None if self.texts is None else self.texts.at(take),
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            ids=tuple(self.ids[index] for index in kept),
        )

    def latest(self, rows: int) -> "Panel":
        """Keep the last rows of each series, about so many in all; copied, so that the others may go.

        Examples
        --------
        >>> panel = Panel.from_arrays(None, range(6), series=list("aaabbb"))
        >>> panel.latest(4).target.tolist()
        [1.0, 2.0, 4.0, 5.0]
        """
        if len(self) <= rows:
            return self
        each = max(1, rows // self.n_series)
        kept = self.ranges(np.maximum(self.starts[1:] - each, self.starts[:-1]), self.starts[1:])
        time = None if kept.time is None else kept.time.copy()
        inputs, target, numbers = kept.inputs.copy(), kept.target.copy(), kept.rows.copy()
        return replace(kept, inputs=inputs, target=target, rows=numbers, time=time)

    def between(self, first: int, last: int) -> "Panel":
        """Keep rows ``first:last`` of the whole panel, as views.

        Examples
        --------
        >>> panel = Panel.from_arrays(None, range(6), series=list("aaabbb"))
        >>> part = panel.between(2, 5)
        >>> part.ids, part.starts.tolist(), part.target.tolist()
        (('a', 'b'), [0, 1, 3], [2.0, 3.0, 4.0])
        """
        begun = int(np.searchsorted(self.starts, first, side="right")) - 1
        ended = int(np.searchsorted(self.starts, last, side="left"))
        return replace(
            self,
            inputs=self.inputs[first:last],
            target=self.target[first:last],
            time=None if self.time is None else self.time[first:last],
            rows=self.rows[first:last],
            weights=None if self.weights is None else self.weights[first:last],
            texts=None if self.texts is None else self.texts.at(slice(first, last)),
            starts=self.starts[begun : ended + 1].clip(first, last) - first,
            ids=self.ids[begun:ended],
        )

    def with_inputs(self, names: Sequence[str], rows: str = "the data") -> "Panel":
        """Keep the inputs a model was fitted on, in its order; refuse ``rows`` that lack some by name.

        Examples
        --------
        >>> panel = Panel.from_arrays([[1.0, 2.0]], None, input_names=["wind", "heat"])
        >>> panel.with_inputs(["heat", "wind"]).inputs.tolist()
        [[2.0, 1.0]]
        """
        if self.input_names == tuple(names):
            return self if self.texts is None else replace(self, texts=None)
        here = Inputs(self.inputs, self.input_names, self.categories)
        return self._with(here.matched(tuple(names), self.texts, rows), texts=None)

    def _with(self, inputs: Inputs, texts: Texts | None) -> "Panel":
        return replace(
            self, inputs=inputs.values, input_names=inputs.names, categories=inputs.categories, texts=texts
        )

    @property
    def is_in_caller_order(self) -> bool:
        """Whether the rows are in the order of the caller's table."""
        return bool(np.all(self.rows[1:] > self.rows[:-1]))

    def in_caller_order(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put one value per panel row back into the order of the caller's table.

        Examples
        --------
        >>> panel = Panel.from_arrays(None, [1.0, 2.0, 3.0], series=["a", "b", "a"])
        >>> panel.target, panel.in_caller_order(panel.target)
        (array([1., 3., 2.]), array([1., 2., 3.]))
        """
        if self.is_in_caller_order:  # a long table need not be sorted
            return values.copy()
        ordered = np.empty_like(values)
        whole = self.rows.max() == len(self.rows) - 1  # else some rows of the table were left out
        ordered[self.rows if whole else np.argsort(np.argsort(self.rows))] = values
        return ordered


def from_columns(table: "Columns", reading: "Reading") -> Panel:
    """Make a panel from columns, which are taken out of the mapping one by one.

    A file's columns then are not in memory twice.
    """
    from varnn.data.tables import gathered

    found = gathered(table, reading)
    names = ",".join(reading.times_in([*table, *found.input_names])) or None
    panel = Panel(**grouped(**found._asdict(), sort=reading.sort, duplicates=reading.duplicates))
    if panel.texts is not None:
        columns = [one for one in panel.texts.values if one not in panel.ignored]
        known = panel.texts.frequent(columns) if reading.categories is None else reading.categories
        numbers = Inputs(panel.inputs, panel.input_names, {})
        panel = panel._with(numbers.with_categories(panel.texts, known), panel.texts)
    return replace(panel, time_name=names, series_name=reading.series, read_as=reading.kept())
