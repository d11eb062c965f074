"""The next day's 24 steps with bands, asked of a running stream, beside what a user would take instead.

A forecast is asked for after every row, as a controller would: the time is that of the question alone, with
the row before already learnt. What it costs to fit for it is `varnn`'s fit with and without a horizon.
"""

import importlib
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.cost.compiled import compiled_code, ways, without_numba, yardstick
from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.stream_peers import HISTORY, Live
from benchmarks.cost.trained import LEVEL, TRAINING, form, trained_default
from benchmarks.record import Measured, Row, significant
from benchmarks.speed.rounds import Contender, interleave
from varnn.estimator.regressor import VARNNRegressor

HORIZON = 24
SERIES = 100
SARIMAX, SNARIMAX = "statsmodels SARIMAX(2, 0, 1)", "river SNARIMAX(3, 0, 3)"
TOGETHER = "{}, {:,} series in a call"
WARM_UP, WARM_ROWS = 2, 1200  # untimed questions, and rows streamed before the first: a week and more


def measure(
    *,
    threads: int,
    rounds: int,
    calls: int,
    series: int = SERIES,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Time forecasts of 24 rows by each contender that is installed.

    Parameters
    ----------
    threads
        Threads the process was started with.
    rounds, calls
        Interleaved rounds, and forecasts of each contender in one.
    series
        Series of the fleet that is asked in one call.
    settings
        Of the model, for tests that have no time.
    """
    settings = settings or {}
    model = trained_default(**settings, horizon=HORIZON)
    trained_on = settings.get("rows", TRAINING)
    rows_streamed = settings.get("rows", WARM_ROWS)  # few of a small model, for tests
    live = Live(rows_like_appliances(trained_on + rows_streamed), trained_on, threads)
    absent = without_numba()
    everyone = [Contender(name, _ours(model, live, on)) for name, on in ways().items()]
    fleet = TOGETHER.format(yardstick(), series)
    everyone.append(Contender(fleet, _fleet(model, live, series), steps=series, calls=1))
    makers: dict[str, Callable[[Live], Callable[[int], Any]]] = {SARIMAX: _sarimax, SNARIMAX: _snarimax}
    for name, make in makers.items():
        try:
            everyone.append(Contender(name, make(live)))
        except ImportError:
            absent.append(name)
    timings = interleave(everyone, rounds=rounds, calls=calls, warm_up=WARM_UP)
    ours = next(one for one in timings if one.name == yardstick())
    rows: list[Row] = [
        {
            "contender": one.name,
            "bands": "none" if one.name == SNARIMAX else f"{100 * LEVEL:.0f} %",
            "median us": significant(one.median * 1e6),
            "best us": significant(one.best * 1e6),
            f"time / {ours.name}": significant(one.best / ours.best),
        }
        for one in timings
    ]
    measured = Measured(
        name="forecast",
        title=f"A forecast of {HORIZON} rows of one series, asked of a stream: {form(model.fitted_)}",
        threads=threads,
        rows=rows,
        checks=[
            "that of the fleet is the time of one series",
            f"every stream had seen {rows_streamed:,} rows or more, of which it keeps what a forecast needs",
            f"{SARIMAX} and {SNARIMAX} have learnt {min(HISTORY, trained_on):,} rows, and see the inputs of "
            "the last row in all coming ones, as varnn does",
        ],
        absent=absent,
    )
    return asdict(measured)


def _ours(model: VARNNRegressor, live: Live, compiled: bool) -> Callable[[int], Any]:
    with compiled_code(compiled):
        stream = model.stream(resume=True)
    times = np.asarray(live.panel.time)
    for at in range(live.first, len(live.panel)):
        stream.predict(live.panel.inputs[at], time=times[at])
        stream.observe(float(live.panel.target[at]))
    return lambda number: stream.forecast(HORIZON, interval=LEVEL).upper


def _fleet(model: VARNNRegressor, live: Live, series: int) -> Callable[[int], Any]:
    """Let many series live through the same rows, which costs what other rows would."""
    fleet = model.stream(n_series=series)
    times = np.asarray(live.panel.time)
    for at in range(live.first, len(live.panel)):
        fleet.predict(np.repeat(live.panel.inputs[at][None], series, axis=0), time=times[at])
        fleet.observe(np.full(series, live.panel.target[at]))
    return lambda number: fleet.forecast(HORIZON, interval=LEVEL).upper


def _sarimax(live: Live) -> Callable[[int], Any]:
    sarimax: Any = importlib.import_module("statsmodels.tsa.statespace.sarimax").SARIMAX
    rows = live.panel.between(max(0, live.first - HISTORY), live.first)
    centre, deviation = rows.inputs.mean(axis=0), rows.inputs.std(axis=0) + 1e-12
    inputs = (rows.inputs - centre) / deviation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of starting values, and of stopping before full convergence
        found = sarimax(rows.target, exog=inputs, order=(2, 0, 1), trend="c").fit(disp=0, cov_type="none")
    coming = np.repeat(inputs[-1:], HORIZON, axis=0)
    return lambda number: found.get_forecast(HORIZON, exog=coming).conf_int(alpha=1 - LEVEL)


def _snarimax(live: Live) -> Callable[[int], Any]:
    from river import linear_model, optim, preprocessing, time_series

    model = time_series.SNARIMAX(
        p=3,
        d=0,
        q=3,
        regressor=preprocessing.StandardScaler()
        | preprocessing.TargetStandardScaler(linear_model.LinearRegression(optimizer=optim.SGD(1e-3))),
    )
    rows = live.panel.between(max(0, live.first - HISTORY), live.first)
    named = [dict(zip(rows.input_names, x, strict=True)) for x in rows.inputs.tolist()]
    for x, y in zip(named, rows.target.tolist(), strict=True):
        model.learn_one(y, x)
    return lambda number: model.forecast(horizon=HORIZON, xs=[named[-1]] * HORIZON)
