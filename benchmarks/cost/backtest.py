"""One-step predictions of 100,000 rows of one series, each from the rows before it, with intervals."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.cost.batch_peers import PEERS
from benchmarks.cost.compiled import compiled_code, told, ways, without_numba, yardstick
from benchmarks.cost.house import WEEK, rows_like_appliances
from benchmarks.cost.lagged import WINDOW
from benchmarks.cost.trained import LEVEL, TRAINING, form, rows_after_training, trained_default
from benchmarks.record import Measured, Row, significant
from benchmarks.speed.rounds import Contender, interleave
from varnn._types import DoubleArray, FloatArray
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor

ROWS = 100_000
SLOW = 10  # who takes long predicts a tenth of the rows: its time is that of a row


def measure(
    *, threads: int, rounds: int, rows: int = ROWS, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Time predictions of all rows, by each contender that is installed.

    Parameters
    ----------
    threads
        Threads the process was started with.
    rounds, rows
        Interleaved rounds, and rows to predict.
    settings
        Of the model, for tests that have no time.
    """
    settings = settings or {}
    model = trained_default(**settings)
    trained_on = settings.get("rows", TRAINING)
    panel = rows_after_training(rows, model, trained_on=trained_on)
    few = panel.between(0, max(rows // SLOW, 4 * WINDOW))
    training = rows_like_appliances(trained_on)
    absent, contenders, intervals = without_numba(), [], {}
    answers: dict[str, DoubleArray] = {}

    def add(name: str, interval: str, some: Panel, predict: Callable[[Panel], DoubleArray]) -> None:
        def call(number: int) -> None:
            answers[name] = predict(some)

        predict(panel.between(0, 2 * WINDOW))  # compiles, and loads what is loaded on first use
        contenders.append(Contender(name, call, steps=len(some)))
        intervals[name] = interval

    for name, on in ways().items():
        add(name, f"{100 * LEVEL:.0f} %", panel, _ours(model, on))
    for name, make in PEERS.items():
        try:
            peer = make(threads)
        except ImportError:
            absent.append(name)
            continue
        peer.fit(training)
        add(name, peer.interval, few if "neuralforecast" in name else panel, peer.predict)
    timings = interleave(contenders, rounds=rounds, calls=1)
    ours = yardstick()
    best = {one.name: one.best for one in timings}
    lines: list[Row] = []
    for one in timings:
        line: Row = {"contender": one.name, "interval": intervals[one.name]}
        line |= {
            "median us a row": significant(one.median * 1e6),
            "best us a row": significant(one.best * 1e6),
        }
        line[f"time / {ours}"] = significant(one.best / best[ours])
        lines.append(line | {"error": significant(over_persistence(few.target, answers[one.name]))})
    measured = Measured(
        name="backtest",
        title=f"One-step predictions of {rows:,} rows of one series: {form(model.fitted_)}",
        threads=threads,
        rows=lines,
        checks=[
            told("predict", **settings),
            f"neuralforecast is timed on {len(few):,} of the rows",
            "error is the mean squared one over that of persistence, on the first "
            f"{len(few):,} rows less those before the longest lag",
        ],
        absent=absent,
    )
    return asdict(measured)


def over_persistence(labels: FloatArray, predictions: DoubleArray) -> float:
    """Mean squared error over that of persistence, from the row on for which everybody has all lags."""
    rows = slice(min(WEEK, len(labels) // 2), len(labels))
    before = labels[rows.start - 1 : -1]
    return float(np.mean((predictions[rows] - labels[rows]) ** 2) / np.mean((before - labels[rows]) ** 2))


def _ours(model: VARNNRegressor, compiled: bool) -> Callable[[Panel], DoubleArray]:
    def predict(panel: Panel) -> DoubleArray:
        with compiled_code(compiled):
            return np.asarray(model.predict(panel, interval=LEVEL).prediction)

    return predict
