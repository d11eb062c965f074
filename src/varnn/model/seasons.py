"""Seasonal lags: which periods, in rows, a stream may come back after.

Rows with times have the periods of the calendar: rows of a day, a week and a year, by the usual step from
row to row. Rows without have what their labels show: the lag at which the changes of the label are most alike
(the highest local maximum of their autocorrelation [1]_), and seven of it where that is a peak, too. Whether
a period is of use is chosen on validation rows, with the rest of the linear part (`varnn.model.linear`).

References
----------
.. [1] G. E. P. Box, G. M. Jenkins, G. C. Reinsel and G. M. Ljung, "Time Series Analysis: Forecasting and
   Control", 5th edition, Wiley, 2015.
"""

import numpy as np

from varnn._types import DoubleArray, IntArray
from varnn.data.panel import Panel
from varnn.data.sampling import seconds_per_row

SHORTEST = 4  # rows of a period
LONGEST = 2100  # each series of a stream keeps as many labels: a week of rows of five minutes
REPEATED = 3  # times that a period comes in the training rows of a series
_CYCLES = (86_400.0, 604_800.0, 365.25 * 86_400)  # seconds of a day, a week and a year
_REGULAR = 0.95  # of the steps from row to row must be the usual one: a lag of rows then is one of time
_ROUND = 0.02  # rows of a period must be a whole number, but for so many: a year of days is 365
_PEAK = 0.1  # least autocorrelation of the changes at a period
_NEARLY = 0.8  # of the highest autocorrelation: a shorter period with as much is the period
_ROWS = 1 << 17  # of a series that its autocorrelation is taken from: the latest


def offered_periods(training: Panel) -> tuple[int, ...]:
    """List periods in rows, the shortest first, that training rows may be chosen to look back on.

    Examples
    --------
    >>> hours = np.datetime64("2026-01-01T00") + np.arange(24 * 60)
    >>> panel = Panel.from_arrays(None, np.zeros(len(hours)), time=hours)
    >>> offered_periods(panel)
    (24, 168)
    >>> noise = np.random.default_rng(0).normal(size=900)
    >>> offered_periods(Panel.from_arrays(None, noise + 9 * (np.arange(900) % 31 < 5)))
    (31, 217)
    """
    longest = min(LONGEST, int(training.lengths.max(initial=0)) // REPEATED)
    step = seconds_per_row(training.time, training.starts)
    if step is None:
        return tuple(one for one in _from_labels(training, longest) if SHORTEST <= one <= longest)
    if not _is_regular(training, step):
        return ()
    periods = []
    for seconds in _CYCLES:
        rows = seconds / step
        period = round(rows)
        if SHORTEST <= period <= longest and abs(rows - period) <= _ROUND * min(rows, 15):
            periods.append(period)
    return tuple(periods)


def in_words(period: int, step: int | None) -> str:
    """Name a period, given the usual step from row to row in seconds.

    Examples
    --------
    >>> in_words(24, 3600), in_words(365, 86_400), in_words(31, None)
    ('24 rows (a day)', '365 rows (a year)', '31 rows')
    """
    rows = f"{period} rows"
    for seconds, name in zip(_CYCLES, ("a day", "a week", "a year"), strict=True):
        if step is not None and period == round(seconds / step):
            return f"{rows} ({name})"
    return rows


def _is_regular(training: Panel, step: int) -> bool:
    """Whether rows nearly always follow each other at the usual step."""
    time = np.asarray(training.time).astype("datetime64[s]").astype(np.int64)
    steps = np.diff(time)
    within = np.ones(len(steps), dtype=bool)
    within[training.starts[1:-1] - 1] = False
    near = np.abs(steps[within] - step) <= 0.1 * step  # months are not all of a length
    return bool(near.mean() >= _REGULAR) if len(near) else False


def _from_labels(training: Panel, longest: int) -> tuple[int, ...]:
    """The lag at which changes of the label are most alike, and seven of it where that is a peak, too."""
    if longest < SHORTEST:
        return ()
    correlation = _autocorrelation(training, longest + 1)
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:]))
    rows = int(training.lengths.sum())
    peaks = peaks[(peaks >= SHORTEST) & (correlation[peaks] > max(_PEAK, 4 / np.sqrt(max(rows, 1))))]
    if not len(peaks):
        return ()
    period = _shortest(int(peaks[correlation[peaks].argmax()]), peaks, correlation)
    week = 7 * period
    return (period, week) if week in peaks.tolist() else (period,)


def _shortest(period: int, peaks: IntArray, correlation: DoubleArray) -> int:
    """The shortest period that this one is a multiple of: twice a period is nearly as high a peak."""
    for parts in range(period // SHORTEST, 1, -1):
        near = peaks[np.abs(peaks * parts - period) <= parts]
        if len(near) and correlation[near].max() >= _NEARLY * correlation[period]:
            return int(near[correlation[near].argmax()])
    return period


def _autocorrelation(training: Panel, lags: int) -> DoubleArray:
    """Autocorrelation of changes of the label, pooled over series: (lags + 1,); gaps count for nothing."""
    products = np.zeros(lags + 1)
    for first, last in zip(training.starts[:-1], training.starts[1:], strict=True):
        labels = training.target[max(first, last - _ROWS) : last].astype(np.float64)
        change = np.diff(labels)
        known = ~np.isnan(change)
        if known.sum() < 2:
            continue
        centred = np.where(known, change - change[known].mean(), 0.0)
        size = 1 << int(np.ceil(np.log2(len(centred) + lags + 1)))  # so that no end meets the other
        spectrum = np.abs(np.fft.rfft(centred, size)) ** 2
        found = np.fft.irfft(spectrum, size)[: lags + 1]
        products[: len(found)] += found
    return np.asarray(products / products[0]) if products[0] > 0 else products
