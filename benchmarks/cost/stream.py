"""One predict + observe of the default with a 90 % interval, beside what a user would take instead."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.cost import stream_peers
from benchmarks.cost.compiled import compiled_code, told, ways, without_numba, yardstick
from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.stream_peers import REFIT_EVERY, TREES, Live, Refitted, Step
from benchmarks.cost.trained import LEVEL, TRAINING, form, trained_default
from benchmarks.record import Measured, Row, significant
from benchmarks.speed.rounds import Contender, Timing, agree, interleave
from varnn._types import DoubleArray
from varnn.estimator.regressor import VARNNRegressor

SETTLE, WARM_UP = 30, 200  # untimed steps at the start of a turn, and of all
SAME_STEPS, SAME_TO = 20, 1e-3  # the network computes in single precision
SNARIMAX, FOREST = "river SNARIMAX(3, 0, 3)", "river ARFRegressor"
PREDICTED, REFIT = "LightGBM, predict a row", "LightGBM, refit"
REFITTED = f"LightGBM refitted every {REFIT_EVERY} rows"


def measure(
    *, threads: int, rounds: int, calls: int, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Time one predict + observe of each contender that is installed.

    Parameters
    ----------
    threads
        Threads the process was started with.
    rounds, calls
        Interleaved rounds, and steps of each contender in one.
    settings
        Of the model, for tests that have no time.
    """
    settings = settings or {}
    model = trained_default(**settings)
    trained_on = settings.get("rows", TRAINING)
    rows = WARM_UP + rounds * (calls + SETTLE)
    live = Live(rows_like_appliances(trained_on + rows), trained_on, threads)
    found: dict[str, dict[int, float]] = {}

    def noted(name: str, step: Step, most: int | None = None) -> Contender:
        answers = found.setdefault(name, {})

        def call(number: int) -> float:
            answers[number] = answer = step(number)
            return answer

        return Contender(name, call, calls=most)

    same = [Contender(name, _ours(model, live, on, resume=False)) for name, on in ways().items()]
    absent = without_numba()
    difference = agree(same, calls=SAME_STEPS, tolerance=SAME_TO)
    everyone = [noted(name, _ours(model, live, on)) for name, on in ways().items()]
    makers: dict[str, Callable[[], Step]] = {
        SNARIMAX: lambda: stream_peers.snarimax(live),
        FOREST: lambda: stream_peers.adaptive_forest(live),
    }
    for name, make in makers.items():
        try:
            everyone.append(noted(name, make()))
        except ImportError:
            absent.append(name)
    try:
        trees = Refitted(live)
        everyone += [noted(PREDICTED, trees.step), Contender(REFIT, trees.refit, calls=1)]
    except ImportError:
        absent.append(REFITTED)
    timings = interleave(everyone, rounds=rounds, calls=calls, warm_up=WARM_UP, settle=SETTLE)
    labels = live.panel.target[trained_on - 1 :].astype(np.float64)
    errors = {name: over_persistence(labels, answers) for name, answers in found.items()}
    measured = Measured(
        name="stream-default",
        title=f"One streamed step, predict + observe, the default's with a {100 * LEVEL:.0f} % interval: "
        + form(model.fitted_),
        threads=threads,
        rows=_rows(timings, errors),
        checks=[
            f"predictions of {SAME_STEPS} rows, from nothing, agree to {difference:.1g} of the largest: "
            + "; ".join(one.name for one in same),
            told("stream", **settings),
            f"LightGBM grows {TREES} trees from about {trained_on:,} rows at each refit; "
            "its line is that of a prediction and of a refit's share of one row",
            "error is the mean squared one over that of persistence, on the rows that were streamed",
        ],
        absent=absent,
    )
    return asdict(measured)


def over_persistence(labels: DoubleArray, answers: dict[int, float]) -> float:
    """Mean squared error of answers by row, over that of persistence; labels begin one row before.

    Examples
    --------
    >>> over_persistence(np.array([0.0, 2.0, 4.0]), {0: 1.0, 1: 3.0})
    0.25
    """
    at = np.array(list(answers))
    predicted = np.array(list(answers.values()))
    now, before = labels[at + 1], labels[at]
    return float(np.mean((predicted - now) ** 2) / np.mean((before - now) ** 2))


def _ours(model: VARNNRegressor, live: Live, compiled: bool, *, resume: bool = True) -> Step:
    with compiled_code(compiled):
        stream = model.stream(resume=resume)
    x, y = live.panel.inputs, live.panel.target.tolist()
    times = np.asarray(live.panel.time)

    def step(number: int) -> float:
        at = live.first + number
        found = stream.predict(x[at], time=times[at], interval=LEVEL)
        stream.observe(y[at])
        return float(found.prediction)

    return step


def _rows(timings: list[Timing], errors: dict[str, float]) -> list[Row]:
    """Lay timings out, LightGBM's prediction and refit as one line more."""
    by_name = {one.name: one for one in timings}
    ours = yardstick()
    rows: list[Row] = []

    def add(name: str, median: float, best: float, p99: float | None, error: float | None) -> None:
        row: Row = {
            "contender": name,
            "interval": f"{100 * LEVEL:.0f} %" if name in ways() else "none",
            "median us": significant(median * 1e6),
            "best us": significant(best * 1e6),
            "p99 us": None if p99 is None else significant(p99 * 1e6),
            "p99 / median": None if p99 is None else significant(p99 / median),
        }
        row[f"time / {ours}"] = significant(best / by_name[ours].best)
        rows.append(row | {"error": None if error is None else significant(error)})

    for name, one in by_name.items():
        if name != REFIT:
            add(name, one.median, one.best, one.quantile(0.99), errors.get(name))
        else:
            add(name, one.median, one.best, None, None)
    if REFIT in by_name:
        predicted, refit = by_name[PREDICTED], by_name[REFIT]
        add(
            REFITTED,
            predicted.median + refit.median / REFIT_EVERY,
            predicted.best + refit.best / REFIT_EVERY,
            None,
            errors[PREDICTED],
        )
    return rows
