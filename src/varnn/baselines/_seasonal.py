"""Times of the training rows -> lags of a day and a week, and the calendar.

A stream that comes back every day or week is half known to whoever looks there: a model that is to be
called good has to beat a plain one that does.
"""

from dataclasses import dataclass

import numpy as np

from varnn.baselines._lagged import Lags, check_window
from varnn.data.panel import Panel
from varnn.data.sampling import seconds_per_row
from varnn.model.calendar import offered_cycles

PERIODS = (86_400, 604_800)  # seconds of a day and of a week
SHORTEST_PERIOD = 4  # rows: of fewer, the lags of the period and its neighbours are those of the last rows
LEAST_PERIODS = 3  # in the longest training series: two to compare, and one to learn from
INPUT_ROWS = 5  # rows whose inputs are seen, as `arx-lr` has it
LEAST_WINDOWS = 5  # in the longest training series, or the window is shortened


@dataclass(frozen=True, kw_only=True)
class SeasonalLags:
    """Lags that training rows decide on: the last rows, a day and a week ago, and the calendar.

    Parameters
    ----------
    window : int, default=25
        Rows whose labels are seen, the predicted one included; fewer where the longest training series
        does not hold five windows. Inputs are seen at the last five of them.

    Examples
    --------
    >>> hourly = np.datetime64("2026-01-01T00") + np.arange(24 * 30)
    >>> panel = Panel.from_arrays(None, np.zeros(len(hourly)), time=hourly)
    >>> lags = SeasonalLags(window=4).on(panel)
    >>> lags.labels, lags.seasonal, lags.cycles
    ((1, 2, 3), (23, 24, 25, 167, 168, 169), ('day',))
    """

    window: int = 25

    def on(self, panel: Panel) -> Lags:
        """Choose the lags for a model of these training rows; without times, those of the last rows alone."""
        check_window(self.window, at_least=2)
        window = max(2, min(self.window, _longest(panel) // LEAST_WINDOWS))
        recent = range(1, window)
        around = {period + near for period in periods(panel) for near in (-1, 0, 1)}
        return Lags(
            labels=tuple(recent),
            seasonal=tuple(sorted(around.difference(recent))),
            inputs=tuple(range(min(window, INPUT_ROWS))),
            cycles=offered_cycles(panel.time),
        )


def periods(panel: Panel) -> tuple[int, ...]:
    """List the rows of a day and of a week, where these are whole numbers and the rows hold three of them.

    Examples
    --------
    >>> every_8_hours = np.datetime64("2026-01-01T00") + 8 * np.arange(100)
    >>> periods(Panel.from_arrays(None, np.zeros(100), time=every_8_hours))
    (21,)
    """
    step = seconds_per_row(panel.time, panel.starts)
    if not step:  # no times, or steps finer than a second
        return ()
    rows = [seconds // step for seconds in PERIODS if seconds % step == 0]
    most = _longest(panel) // LEAST_PERIODS
    return tuple(one for one in rows if SHORTEST_PERIOD <= one <= most)


def _longest(panel: Panel) -> int:
    """Count the rows of the longest series up to its last label: what follows teaches nothing."""
    labelled = np.flatnonzero(~np.isnan(panel.target))
    return int(np.max(labelled - panel.first_rows[labelled], initial=-1)) + 1
