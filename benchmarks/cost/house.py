"""Rows to time with: made here, in the form of the Appliances set, so that anybody can run every bench.

26 inputs (a sensor of temperature and one of humidity in each of nine rooms, the weather, the light, one
of pure noise), a row every ten minutes, and a load that is never negative, comes back after a day and a
week, and has bursts that no input shows. The default chooses there what it chooses on the published set:
seasons of a day and a week, and the time of day and week as inputs.
"""

from itertools import count

import numpy as np
from scipy.signal import lfilter

from varnn._types import DoubleArray
from varnn.data.panel import Panel

APPLIANCES_ROWS = 19_735  # of the published set
DAY, WEEK = 144, 1008  # rows
ROOMS = 9
FIRST = np.datetime64("2016-01-11T17:00", "s")
WEATHER = ("T_out", "Press_mm_hg", "RH_out", "Windspeed", "Visibility", "Tdewpoint")
INPUT_NAMES = (
    "lights",
    *(f"{kind}{room}" for room in range(1, ROOMS + 1) for kind in ("T", "RH_")),
    *WEATHER,
    "rv",
)


def rows_like_appliances(
    rows: int = APPLIANCES_ROWS, *, n_series: int = 1, inputs: int = len(INPUT_NAMES)
) -> Panel:
    """Make rows.

    Parameters
    ----------
    rows
        In all; each series has the same share of them.
    n_series
        Houses, all at the same times.
    inputs
        Inputs of a row; more than 26 are further sensors, fewer leave the last ones out.

    Examples
    --------
    >>> panel = rows_like_appliances(300)
    >>> panel.n_inputs, panel.input_names[:3], bool(panel.target.min() >= 0)
    (26, ('lights', 'T1', 'RH_1'), True)
    """
    each = rows // n_series
    houses = [_house(each, inputs, seed) for seed in range(n_series)]
    time = FIRST + np.arange(each) * np.timedelta64(600, "s")
    names = [*INPUT_NAMES, *(f"sensor{index}" for index in range(inputs))][:inputs]
    return Panel.from_arrays(
        np.concatenate([one for one, _ in houses]),
        np.concatenate([load for _, load in houses]),
        series=np.repeat([f"house{index}" for index in range(n_series)], each),
        time=np.tile(time, n_series),
        input_names=names,
        target_name="load",
    )


def _house(rows: int, inputs: int, seed: int) -> tuple[DoubleArray, DoubleArray]:
    """Inputs (N, D) and load (N,) of one house; more rows of it begin with the same ones."""
    draws = count()

    def random() -> np.random.Generator:  # one for each thing that is drawn, so that rows do not shift others
        return np.random.default_rng([seed, next(draws)])

    # What runs by a timer, at slots of the day and of the week that no smooth curve of the clock shows.
    by_day, by_week = (25 * random().exponential(size=slots) for slots in (DAY, WEEK))
    now = np.arange(rows)
    hour, weekend = now % DAY / DAY, now % WEEK >= 5 * DAY
    outside = 8 + 5 * np.sin(2 * np.pi * (hour - 0.4)) + 4 * _wandering(rows, 0.999, random())
    lit = (hour > 0.7) * np.maximum(0, 10 * np.round(1.5 + _wandering(rows, 0.95, random())))
    columns: list[DoubleArray] = [lit.astype(np.float64)]
    for _ in range(ROOMS):
        columns.append(20 + 0.2 * (outside - 8) + _wandering(rows, 0.998, random()))
        columns.append(40 + 3 * _wandering(rows, 0.995, random()) - 0.3 * (outside - 8))
    columns += [outside, 755 + 7 * _wandering(rows, 0.999, random())]
    columns += [80 - 1.5 * (outside - 8) + 4 * _wandering(rows, 0.99, random())]
    columns += [np.abs(4 + 2 * _wandering(rows, 0.98, random())), 38 + 10 * _wandering(rows, 0.98, random())]
    columns += [outside - 5 + _wandering(rows, 0.99, random())]
    columns += [50 * random().random(rows)]
    columns += [_wandering(rows, 0.99, random()) for _ in range(inputs - len(columns))]
    habit = 60 * np.exp(-(((hour - 0.35) / 0.05) ** 2)) + 110 * np.exp(-(((hour - 0.78) / 0.07) ** 2))
    home = np.where(weekend, 3.0, 1.0)  # what light and cold cost depends on the day of the week
    timer = by_day[now % DAY] + by_week[now % WEEK]
    burst = np.exp(0.7 * _wandering(rows, 0.85, random()))
    heated = home * (1.5 * lit + 3 * np.maximum(0, 8 - outside))
    load = 40 + heated + timer + habit * burst + 6 * random().normal(size=rows)
    return np.column_stack(columns[:inputs]), 10 * np.round(np.maximum(load, 10) / 10)


def _wandering(rows: int, persistence: float, random: np.random.Generator) -> DoubleArray:
    """An AR(1) of unit variance."""
    steps = random.normal(size=rows) * np.sqrt(1 - persistence**2)
    steps[0] /= np.sqrt(1 - persistence**2)
    return np.asarray(lfilter([1.0], [1.0, -persistence], steps))
