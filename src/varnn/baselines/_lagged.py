"""History -> regressors made of lags; no other baseline module slices time.

Two layouts hold the same numbers: ``columns`` (B, F), one row per prediction, for regressions; and
``steps`` (B, T, C), oldest first, for recurrent networks.

Shapes: B rows, D inputs, F regressors, T steps, C channels.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from varnn.baselines._history import History
from varnn.data.panel import Panel
from varnn.data.windows import Rows, window_ends
from varnn.errors import ConfigError, DataError, check_choice
from varnn.model.calendar import Cycle, calendar_inputs, calendar_names

LagChoice = Literal["correct", "as-published"]
LAG_CHOICES: tuple[str, ...] = get_args(LagChoice)


@dataclass(frozen=True, kw_only=True)
class Lags:
    """Which past labels and which inputs a prediction sees; lag 0 is the predicted row itself.

    Parameters
    ----------
    labels : tuple of int, default=()
        Lags of the target, all at least 1.
    inputs : tuple of int, default=()
        Lags of the inputs.
    seasonal : tuple of int, default=()
        Lags of the target from far back, as a day or a week ago. Predictions do not wait for them: where
        one reaches back beyond the first row of a series, the label of that row stands in.
    cycles : tuple of {"day", "week"}, default=()
        Cycles of the calendar whose Fourier terms at the predicted row are seen.
    as_steps : bool, default=False
        Lay the numbers out as a sequence: step i holds the inputs at lag ``inputs[i]`` and, where
        there are labels, the one at lag ``labels[i]``.

    Examples
    --------
    >>> Lags.of("correct", window=5)
    Lags(labels=(1, 2, 3, 4), inputs=(0, 1, 2, 3, 4), seasonal=(), cycles=(), as_steps=False)
    >>> Lags.of("as-published", window=5).labels
    (2, 3, 4)
    """

    labels: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    seasonal: tuple[int, ...] = ()
    cycles: tuple[Cycle, ...] = ()
    as_steps: bool = False

    @classmethod
    def static(cls) -> "Lags":
        """Name the row's own inputs, and no history."""
        return cls(inputs=(0,))

    @classmethod
    def of(cls, lags: LagChoice = "correct", window: int = 5) -> "Lags":
        """Name the lags of an ARX model as it is defined, or as the paper's figures show it was run.

        ``"as-published"`` leaves out y[t-1]: with it the published rows come out to the last digit.
        """
        check_choice("lags", lags, LAG_CHOICES)
        nearest_label = 1 if lags == "correct" else 2
        check_window(window, at_least=nearest_label + 1)
        return cls(labels=tuple(range(nearest_label, window)), inputs=tuple(range(window)))

    @classmethod
    def sequence(cls, window: int = 5, *, fair: bool = False, current: bool = False) -> "Lags":
        """Lay a window out for a recurrent network.

        As published it sees the inputs of the past steps only; ``current`` adds those of the predicted row,
        which is the other reading of the paper. The fair sequence also holds these, and the label before
        each step, so it knows what ARX knows. The
        oldest step's own past label lies outside the window, and the oldest inside stands in.

        Examples
        --------
        >>> Lags.sequence(3).inputs, Lags.sequence(3, current=True).inputs
        ((2, 1), (2, 1, 0))
        >>> fair = Lags.sequence(3, fair=True)
        >>> fair.inputs, fair.labels
        ((2, 1, 0), (2, 2, 1))
        """
        check_window(window, at_least=2)
        past = tuple(range(window - 1, 0, -1))
        if not fair:
            return cls(inputs=(*past, 0) if current else past, as_steps=True)
        return cls(labels=(past[0], *past), inputs=(*past, 0), as_steps=True)

    @property
    def window(self) -> int:
        """Rows one prediction sees together, itself included; seasonal lags lie beyond."""
        return max((*self.labels, *self.inputs), default=0) + 1

    def n_columns(self, n_inputs: int) -> int:
        """Count the numbers one prediction sees."""
        n_labels = len(self.labels) + len(self.seasonal)
        return n_labels + len(self.inputs) * n_inputs + len(calendar_names(self.cycles))

    def on(self, panel: Panel) -> "Lags":
        """Give these lags: they are the same whatever the training rows are."""
        return self

    def regressors(self, history: History, rows: Rows) -> npt.NDArray[Any]:
        """Gather what the given rows see: (B, F), labels first, calendar last, or (B, T, C) as steps.

        A missing label is the last one known before it. Where a lag reaches back beyond the first
        row of the series, that row stands in; a first row itself has no label to see but the
        training mean. No row sees its own label, nor anything after it.

        Examples
        --------
        >>> from varnn.baselines._history import Preparation
        >>> from varnn.data.panel import Panel
        >>> panel = Panel.from_arrays(None, [0.0, 4.0, None, 8.0])
        >>> history = Preparation.of(panel, np.float64)(panel)
        >>> Lags(labels=(1, 2)).regressors(history, np.arange(4)).tolist()
        [[0.5, 0.5], [0.0, 0.0], [0.5, 0.0], [0.5, 0.5]]
        """
        panel = history.panel
        first = panel.starts[np.searchsorted(panel.starts, rows, side="right") - 1]
        all_labels = (*self.labels, *self.seasonal)
        labels = np.empty((len(rows), len(all_labels)), panel.inputs.dtype)
        for index, lag in enumerate(all_labels):
            labels[:, index] = history.known[np.maximum(rows - lag, first)]
        labels[rows == first] = history.unknown
        if self.as_steps:
            at = np.maximum(rows[:, None] - np.array(self.inputs), first[:, None])
            steps = panel.inputs[at]  # (B, T, D)
            return np.concatenate([steps, labels[:, :, None]], axis=2) if self.labels else steps
        # One block at a time, straight into place: the matrix is the largest thing in memory.
        columns = np.empty((len(rows), self.n_columns(panel.n_inputs)), panel.inputs.dtype)
        columns[:, : len(all_labels)] = labels
        for index, lag in enumerate(self.inputs):
            begin = len(all_labels) + index * panel.n_inputs
            columns[:, begin : begin + panel.n_inputs] = panel.inputs[np.maximum(rows - lag, first)]
        if self.cycles:
            time = None if panel.time is None else panel.time[rows]
            columns[:, -len(calendar_names(self.cycles)) :] = calendar_inputs(time, self.cycles)
        return columns

    def is_early(self, panel: Panel) -> npt.NDArray[np.bool_]:
        """Tell for each row whether its past labels reach back beyond the start of its series: (N,).

        A model has seen no such row in training, so the last known label is predicted there instead.
        Models that see no labels are left to themselves.
        """
        early = np.zeros(len(panel), dtype=bool)
        if self.labels:
            for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
                early[first : min(first + self.window - 1, last)] = True
        return early

    def complete(self, history: History) -> npt.NDArray[np.bool_]:
        """Tell for each row whether its label, and all that it sees, is there: (N,)."""
        panel = history.panel
        ends = window_ends(panel, max(self.window, max(self.seasonal, default=0) + 1))
        complete = np.zeros(len(panel), dtype=bool)
        complete[ends] = True
        for lag in (*self.labels, *self.seasonal):
            complete[ends] &= ~np.isnan(panel.target[ends - lag])
        return complete

    def training_rows(self, history: History) -> Rows:
        """List the rows to learn from: the complete ones.

        Where labels are so rare, or series so short, that no row is complete, rows with a label and a
        full window are taken, missing labels filled.
        """
        rows = self._rows_with_window(history)
        if len(rows) == 0:
            raise DataError(
                f"a row to learn from has a known target and {self.window - 1} rows of its series before it; "
                f"the {len(history.panel)} rows in {history.panel.n_series} series hold none. "
                "Lower `window`, or give longer series."
            )
        return rows

    def validation_rows(self, history: History) -> Rows:
        """List the rows to choose on: those one would learn from, or in short series all but the first.

        Examples
        --------
        >>> from varnn.baselines._history import Preparation
        >>> from varnn.data.panel import Panel
        >>> panel = Panel.from_arrays(None, [0.0, 4.0, None, 8.0])
        >>> Lags(labels=(1, 2, 3, 4)).validation_rows(Preparation.of(panel, np.float64)(panel)).tolist()
        [1, 3]
        """
        rows = self._rows_with_window(history)
        return rows if len(rows) else window_ends(history.panel, 2)

    def _rows_with_window(self, history: History) -> Rows:
        rows = np.flatnonzero(self.complete(history))
        return rows if len(rows) else window_ends(history.panel, self.window)


def last_labels(history: History) -> npt.NDArray[Any]:
    """Last label known before each row, the training mean where there is none: (N,)."""
    last = np.empty_like(history.known)
    last[1:] = history.known[:-1]
    last[history.panel.starts[:-1]] = history.unknown
    return last


def check_window(window: int, *, at_least: int) -> None:
    """Refuse a window too short to hold a past label."""
    if window < at_least:
        raise ConfigError(f"window must be at least {at_least} for this baseline; got {window}.")
