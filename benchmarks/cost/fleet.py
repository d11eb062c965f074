"""Ten thousand series in step: the default with intervals, all in one call, beside one model for each."""

import gc
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.cost import stream_peers
from benchmarks.cost.compiled import compiled_code, told, ways, without_numba
from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.stream_peers import HISTORY, Live
from benchmarks.cost.trained import LEVEL, TRAINING, form, trained_default
from benchmarks.fresh import call, peak_above
from benchmarks.record import Measured, Row, significant
from benchmarks.speed.rounds import Contender, agree, interleave
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor

SERIES = 10_000
ALONE = 20  # series of those who take one after another; their rate does not depend on how many
SAME_STEPS, SAME_TO = 3, 1e-3
TOGETHER, ONE_BY_ONE = "{}, one call for all", "{}, a stream for each"
SNARIMAX = "river SNARIMAX(3, 0, 3), one for each"


def measure(
    *, threads: int, rounds: int, calls: int, n_series: int = SERIES, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Time steps of all series, and take what each series holds in memory, in processes of their own.

    Parameters
    ----------
    threads
        Threads the process was started with.
    rounds, calls, n_series
        Interleaved rounds, steps in one, and series.
    settings
        Of the model, for tests that have no time.
    """
    settings = settings or {}
    model = trained_default(**settings)
    rows = Rows(rows_like_appliances(settings.get("rows", TRAINING)), n_series)
    sizes: dict[str, int] = {}
    contenders: list[Contender] = []
    absent = without_numba()

    def add(name: str, size: int, step: Callable[[int], Any]) -> None:
        sizes[name] = size
        contenders.append(Contender(name, step))

    for name, on in ways().items():
        add(TOGETHER.format(name), n_series, together(model, rows, on))
        add(ONE_BY_ONE.format(name), ALONE, _one_by_one(model, rows, on))
    difference = agree(contenders, calls=SAME_STEPS, tolerance=SAME_TO)
    try:
        add(SNARIMAX, ALONE, _snarimax(rows))
    except ImportError:
        absent.append(SNARIMAX)
    timings = interleave(contenders, rounds=rounds, calls=calls, warm_up=1, first=SAME_STEPS)
    held = call("benchmarks.cost.fleet:memory", threads=threads, n_series=n_series, settings=settings)
    lines: list[Row] = []
    for one in timings:
        size = sizes[one.name]
        lines.append(
            {
                "contender": one.name,
                "interval": f"{100 * LEVEL:.0f} %" if one.name.startswith("varnn") else "none",
                "series-steps per s": significant(size / one.best),
                "median us per series": significant(one.median / size * 1e6),
                "p99 us per series": significant(one.quantile(0.99) / size * 1e6),
                "kB per series": held.get(one.name),
            }
        )
    measured = Measured(
        name="fleet",
        title=f"{n_series:,} series in step, predict + observe: {form(model.fitted_)}",
        threads=threads,
        rows=lines,
        checks=[
            f"predictions of {ALONE} series over {SAME_STEPS} steps agree to {difference:.1g}, "
            "in one call and alone",
            told("stream", **settings),
            "memory is what making the fleet and three steps took at most beyond what there was",
        ],
        absent=absent,
    )
    return asdict(measured)


class Rows:
    """Rows for a fleet: each series has another stretch of one house, all at the same times."""

    def __init__(self, panel: Panel, n_series: int) -> None:
        self.panel, self.n_series = panel, n_series
        self.offsets = np.arange(n_series) * 7 % (len(panel) // 2)
        self.times = np.asarray(panel.time)
        self.x, self.y = panel.inputs.astype(np.float64), panel.target.astype(np.float64)

    def at(self, step: int) -> tuple[Any, Any, Any]:
        """Inputs (n, D), labels (n,) and the time of a step."""
        rows = self.offsets + step
        return self.x[rows], self.y[rows], self.times[step]


def together(model: VARNNRegressor, rows: Rows, compiled: bool) -> Callable[[int], Any]:
    """One call for all series; gives the first predictions."""
    with compiled_code(compiled):
        fleet = model.stream(n_series=rows.n_series)

    def step(number: int) -> Any:
        x, y, time = rows.at(number)
        found = fleet.predict(x, time=time, interval=LEVEL)
        fleet.observe(y)
        return found.prediction[:ALONE]

    return step


def memory(*, threads: int, n_series: int, settings: dict[str, Any]) -> dict[str, float | None]:
    """Take the memory of a fleet, in kB of each series."""
    model = trained_default(**settings)
    rows = Rows(rows_like_appliances(settings.get("rows", TRAINING)), n_series)
    held: dict[str, float | None] = {}
    for name, on in ways().items():
        together(model, Rows(rows.panel, 2), on)(0)  # compiles, and loads what is loaded on first use
        gc.collect()

        def work(on: bool = on) -> None:
            step = together(model, rows, on)
            for number in range(3):
                step(number)

        peak = peak_above(work)[1]
        held[TOGETHER.format(name)] = None if peak is None else significant(peak / n_series / 1e3)
    return held


def _one_by_one(model: VARNNRegressor, rows: Rows, compiled: bool) -> Callable[[int], list[float]]:
    with compiled_code(compiled):
        streams = [model.stream() for _ in range(ALONE)]

    def step(number: int) -> list[float]:
        x, y, time = rows.at(number)
        predicted = []
        for one, row, label in zip(streams, x, y, strict=False):
            predicted.append(float(one.predict(row, time=time, interval=LEVEL).prediction))
            one.observe(label)
        return predicted

    return step


def _snarimax(rows: Rows) -> Callable[[int], list[float]]:
    """One model for each of some series, all of one house: speed does not tell."""
    live = Live(rows.panel, min(HISTORY, len(rows.panel) // 2))
    models = [stream_peers.snarimax(live, history=100) for _ in range(ALONE)]
    return lambda number: [one(number) for one in models]
