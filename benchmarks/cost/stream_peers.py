"""Whom a user would let predict a stream instead: river, or LightGBM refitted each day.

Each has the rows before the stream to start from. None but ours gives an interval.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.cost.house import DAY
from benchmarks.cost.lagged import LABEL_LAGS, clock, lag_table
from varnn.data.panel import Panel

Step = Callable[[int], float]
HISTORY = 2000  # rows that who learns online has learnt when the stream begins
REFIT_EVERY = DAY
TREES = 100  # LightGBM's own default


@dataclass(frozen=True)
class Live:
    """Rows in time order, of which those from ``first`` on are streamed."""

    panel: Panel
    first: int
    threads: int = 1


def snarimax(live: Live, *, history: int = HISTORY) -> Step:
    """Forecast and learn with river's online ARIMA on the same inputs."""
    from river import linear_model, optim, preprocessing, time_series

    model = time_series.SNARIMAX(
        p=3,
        d=0,
        q=3,
        regressor=preprocessing.StandardScaler()
        | preprocessing.TargetStandardScaler(linear_model.LinearRegression(optimizer=optim.SGD(1e-3))),
    )
    rows, y = _named(live), live.panel.target
    for at in range(max(0, live.first - history), live.first):
        model.learn_one(float(y[at]), rows[at])

    def step(number: int) -> float:
        at = live.first + number
        (forecast,) = model.forecast(horizon=1, xs=[rows[at]])
        model.learn_one(float(y[at]), rows[at])
        return float(forecast)

    return step


def adaptive_forest(live: Live) -> Step:
    """Predict and learn with river's adaptive random forest, on the same inputs and three labels before."""
    from river import forest

    model: Any = forest.ARFRegressor(seed=0)
    rows, y = _named(live), live.panel.target.tolist()
    for at in range(3, len(rows)):
        rows[at] |= {"y1": y[at - 1], "y2": y[at - 2], "y3": y[at - 3]}
    for at in range(max(3, live.first - HISTORY), live.first):
        model.learn_one(rows[at], y[at])

    def step(number: int) -> float:
        at = live.first + number
        predicted = model.predict_one(rows[at])
        model.learn_one(rows[at], y[at])
        return float(predicted)

    return step


@dataclass
class Refitted:
    """LightGBM on lags: a step predicts one row; a refit learns all rows before the last one predicted."""

    live: Live
    table: Any = field(init=False, repr=False)
    clock: Any = field(init=False, repr=False)
    booster: Any = field(init=False, repr=False)
    last: int = 0

    def __post_init__(self) -> None:
        importlib.import_module("lightgbm")
        self.table, self.clock = lag_table(self.live.panel), clock(self.live.panel)
        self.refit(0)

    def step(self, number: int) -> float:
        """Lay out the lags of one row, and predict it."""
        at = self.last = self.live.first + number
        panel = self.live.panel
        labels = [panel.target[at - lag] for lag in LABEL_LAGS]
        row = np.concatenate([panel.inputs[at], labels, self.clock[at]])
        return float(self.booster.predict(row[None], num_threads=self.live.threads)[0])

    def refit(self, number: int) -> int:
        """Grow all trees anew."""
        lightgbm: Any = importlib.import_module("lightgbm")
        until = max(self.last, self.live.first)
        rows = lightgbm.Dataset(self.table[:until], self.live.panel.target[:until])
        settings = {"verbosity": -1, "num_threads": self.live.threads, "seed": 0}
        self.booster = lightgbm.train(settings, rows, num_boost_round=TREES)
        return int(self.booster.num_trees())


def _named(live: Live) -> list[dict[str, float]]:
    names = live.panel.input_names
    return [dict(zip(names, row.tolist(), strict=True)) for row in live.panel.inputs]
