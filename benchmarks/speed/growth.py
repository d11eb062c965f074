"""How time and memory grow with rows, inputs, window, width and members; one process for each point."""

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.fresh import call, peak_above
from benchmarks.record import Measured, Row, significant

BASE = {"rows": 20_000, "inputs": 27, "window": 5, "width": 128, "members": 1}
GROWN: Mapping[str, Sequence[int]] = {
    "rows": (20_000, 80_000, 320_000),
    "inputs": (9, 27, 375),
    "window": (5, 20, 80),
    "width": (32, 128, 512),
    "members": (1, 2, 4),
}
BEIJING = {"rows": 420_768, "inputs": 9}  # 12 stations, four years of hours
MB = 1e6


def measure(
    *,
    threads: int,
    variants: Sequence[str] = ("RM", "ARM+AM"),
    grown: Mapping[str, Sequence[int]] = GROWN,
    base: Mapping[str, int] = BASE,
) -> dict[str, Any]:
    """Fit and score at each point, changing one size at a time.

    Parameters
    ----------
    threads
        Threads of each point's process.
    variants, grown, base
        Cells, values of each size, and the sizes that stay.
    """
    rows: list[Row] = []
    for variant in variants:
        for size, values in grown.items():
            for value in values:
                sizes = dict(base) | {size: value}
                figures = call(
                    "benchmarks.speed.growth:point",
                    threads=threads,
                    variant=variant,
                    **sizes,
                )
                rows.append({"cell": variant, "grown": size, "to": float(value), **figures})
    start = ", ".join(f"{value:,} {size}" for size, value in base.items())
    measured = Measured(
        name="growth",
        title=f"One epoch of fit and one predict over all rows, from {start}; memory beyond that of the data",
        threads=threads,
        rows=rows,
    )
    return asdict(measured)


def measure_beijing(
    *, threads: int, windows: Sequence[int] = (5, 24, 48), rows: int = BEIJING["rows"]
) -> dict[str, Any]:
    """Take the memory of training on data of the Beijing set's size, for several windows.

    Parameters
    ----------
    threads
        Threads of each point's process.
    windows, rows
        Windows to try, and rows.
    """
    lines: list[Row] = []
    for window in windows:
        sizes = BASE | BEIJING | {"rows": rows, "window": window}
        figures = call("benchmarks.speed.growth:point", threads=threads, variant="RM", **sizes)
        lines.append({"window": str(window), **figures})
    measured = Measured(
        name="growth Beijing",
        title=f"One epoch of fit and one predict, RM on {rows:,} rows of {BEIJING['inputs']} inputs; "
        "memory beyond that of the data",
        threads=threads,
        rows=lines,
    )
    return asdict(measured)


def point(
    *, threads: int, variant: str, rows: int, inputs: int, window: int, width: int, members: int
) -> dict[str, float | None]:
    """Fit for one epoch and predict every row, once each, in this process.

    Parameters
    ----------
    threads
        Threads the process was started with.
    variant, rows, inputs, window, width, members
        The sizes.
    """
    from varnn.data.panel import Panel
    from varnn.estimator.regressor import VARNNRegressor

    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (rows, inputs))
    panel = Panel.from_arrays(X, X[:, 0] + np.sin(np.arange(rows) / 300))
    del X
    model = VARNNRegressor.paper(
        variant,  # type: ignore[arg-type]  # a name from the command line; the estimator checks it
        epochs=1,
        window=window,
        hidden_size=width,
        ensemble=members,
        validation_fraction=0.0,
    )
    small = Panel.from_arrays(panel.inputs[: 2 * window + 200], panel.target[: 2 * window + 200])
    model.fit(small).predict(small)  # compiles, and loads what is loaded on first use
    gc.collect()
    (fit_seconds, fit_peak), (predict_seconds, predict_peak) = (
        _spent(lambda: model.fit(panel)),
        _spent(lambda: model.predict(panel)),
    )
    return {
        "fit s": significant(fit_seconds),
        "fit MB": None if fit_peak is None else significant(fit_peak / MB),
        "predict s": significant(predict_seconds),
        "predict MB": None if predict_peak is None else significant(predict_peak / MB),
    }


def _spent(work: Any) -> tuple[float, float | None]:
    def timed() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return peak_above(timed)
