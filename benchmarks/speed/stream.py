"""One streamed step, predict + observe: ours against its peers; and a fleet of series in one call."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.record import Measured, significant, timed_rows
from benchmarks.speed import stream_peers
from benchmarks.speed.model import untrained
from benchmarks.speed.rounds import Contender, agree, interleave
from benchmarks.speed.stream_peers import Step
from varnn._types import DoubleArray
from varnn.model.fitted import Fitted
from varnn.streaming.stream import Stream

INPUTS, HIDDEN, WINDOW = 27, 128, 5
SETTLE = 30  # untimed steps at the start of a turn
SAME_STEPS, SAME_TO = 20, 1e-4
FLEET = 10_000
OURS = "varnn Stream"
PEERS: dict[str, tuple[Callable[[Fitted, DoubleArray, DoubleArray], Step], bool, int | None]] = {
    # name: how to make it, whether it computes what ours does, most calls in a round
    "torch, eager": (stream_peers.eager, True, None),
    "onnxruntime": (stream_peers.onnx, True, None),
    "river SNARIMAX(3, 0, 3)": (stream_peers.river, False, None),
    "statsmodels SARIMAX.extend": (stream_peers.statsmodels, False, 20),
}


def measure(*, threads: int, rounds: int, calls: int) -> dict[str, Any]:
    """Time one predict + observe of each contender that is installed.

    Parameters
    ----------
    threads
        Threads the process was started with; the products are too small for a second one.
    rounds, calls
        Interleaved rounds, and steps of each contender in one.
    """
    rows = 500 + rounds * (calls + SETTLE)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, INPUTS))
    y = X[:, 0] + np.cumsum(generator.normal(size=rows)) / 10
    fitted = untrained("RM", INPUTS, HIDDEN, WINDOW)
    same = [Contender(OURS, _ours(fitted, X, y))]
    others: list[Contender] = []
    absent = []
    for name, (make, comparable, most) in PEERS.items():
        try:
            contender = Contender(name, make(fitted, X, y), calls=most)
        except ImportError:
            absent.append(name)
            continue
        (same if comparable else others).append(contender)
    difference = agree(same, calls=SAME_STEPS, tolerance=SAME_TO)
    timings = interleave(
        [*same, *others], rounds=rounds, calls=calls, warm_up=200, settle=SETTLE, first=SAME_STEPS
    )
    measured = Measured(
        name="stream",
        title=f"One streamed step, predict + observe: RM, {INPUTS} inputs, {HIDDEN} hidden, "
        f"exact window of {WINDOW}",
        threads=threads,
        rows=timed_rows(timings, [OURS], p99=True),
        checks=[
            f"predictions of the first {SAME_STEPS} rows agree to {difference:.1g} of the largest: "
            + ", ".join(one.name for one in same)
        ],
        absent=absent,
    )
    return asdict(measured)


def measure_fleet(*, threads: int, rounds: int, calls: int, n_series: int = FLEET) -> dict[str, Any]:
    """Time one step of many series at once, and of the same series one after another.

    Parameters
    ----------
    threads
        Threads the process was started with.
    rounds, calls
        Rounds, and steps in one.
    n_series
        Series stepped in one call.
    """
    fitted = untrained("RM", INPUTS, HIDDEN, WINDOW)
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(16, n_series, INPUTS)), generator.normal(size=(16, n_series))
    few = 20  # series stepped one by one; the rate does not depend on how many
    fleet, singles = Stream(fitted, n_series), [Stream(fitted) for _ in range(few)]

    def together(step: int) -> Any:
        predicted = fleet.predict(X[step % 16])
        fleet.observe(y[step % 16])
        return predicted[:few]

    def one_by_one(step: int) -> list[float]:
        predicted = []
        for index, single in enumerate(singles):
            predicted.append(single.predict(X[step % 16, index]))
            single.observe(y[step % 16, index])
        return predicted

    contenders = [Contender("one call for all", together), Contender("a Stream for each", one_by_one)]
    difference = agree(contenders, calls=2 * WINDOW, tolerance=SAME_TO)
    timings = interleave(contenders, rounds=rounds, calls=calls, first=2 * WINDOW)
    measured = Measured(
        name="stream fleet",
        title=f"{n_series:,} series stepped: RM, {INPUTS} inputs, {HIDDEN} hidden, exact window of {WINDOW}",
        threads=threads,
        rows=[
            {
                "contender": one.name,
                "series-steps per s": significant(size / one.best),
                "median us per series": significant(one.median / size * 1e6),
                "p99 us per series": significant(one.quantile(0.99) / size * 1e6),
            }
            for one, size in zip(timings, (n_series, few), strict=True)
        ],
        checks=[f"predictions of {few} series over {2 * WINDOW} steps agree to {difference:.1g}"],
    )
    return asdict(measured)


def _ours(fitted: Fitted, X: DoubleArray, y: DoubleArray) -> Step:
    live = Stream(fitted)

    def step(row: int) -> float:
        predicted = live.predict(X[row])
        live.observe(y[row])
        return float(predicted)

    return step
