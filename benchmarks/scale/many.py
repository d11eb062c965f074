"""Seconds that `varnn.scale.fit_many` takes for many series, by stages; every model is read and predicts.

``python -m benchmarks.scale.many --series 1000 --rows 2000`` needs the package and what it trains with, no
more. It prints one JSON object. Series are made: hourly, with some inputs, a daily season and drifting noise.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.scale import Models, SeriesDone, fit_many


def made_series(series: int, rows: int, inputs: int, seed: int = 0) -> Panel:
    """Series whose labels are inputs, a daily season of its own phase, and an autoregressive rest.

    Examples
    --------
    >>> made_series(series=2, rows=50, inputs=3).inputs.shape
    (100, 3)
    """
    generator = np.random.default_rng(seed)
    covariates = generator.normal(size=(series, rows, inputs))
    covariates += 0.05 * np.cumsum(generator.normal(size=covariates.shape), axis=1)
    weights = generator.normal(size=(series, inputs, 1))
    phase = generator.uniform(0, 2 * np.pi, size=(series, 1))
    season = 2 * np.sin(2 * np.pi * np.arange(rows) / 24 + phase)
    rest = generator.normal(scale=0.5, size=(series, rows))
    for row in range(1, rows):
        rest[:, row] += 0.8 * rest[:, row - 1]
    labels = (covariates @ weights)[..., 0] + season + rest
    hours = np.datetime64("2024-01-01T00", "h") + np.arange(rows).astype("timedelta64[h]")
    return Panel.from_arrays(
        covariates.reshape(-1, inputs),
        labels.ravel(),
        series=np.repeat([f"meter {number}" for number in range(series)], rows),
        time=np.tile(hours, series),
    )


class Watch:
    """Notes when models are finished, and which are not."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.ends: list[float] = []
        self.reasons: dict[str, str] = {}

    def __call__(self, done: SeriesDone) -> None:
        """Take in a series."""
        self.ends.append(time.perf_counter() - self.began)
        if done.reason is not None:
            self.reasons[done.name] = done.reason
        if done.done % max(1, done.total // 20) == 0:
            sys.stderr.write(f"{self.ends[-1]:8.1f} s  {done.done:,} of {done.total:,}\n")


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit and read many models; give seconds of each stage."""
    began = time.perf_counter()
    panel = made_series(arguments.series, arguments.rows, arguments.inputs)
    stages = {"rows made": time.perf_counter() - began}
    model = VARNNRegressor(device=arguments.device, ensemble=arguments.ensemble, epochs=arguments.epochs)
    if arguments.first:
        began = time.perf_counter()
        fit_many(made_series(arguments.first, arguments.rows, arguments.inputs, seed=1), model)
        stages["a few series first, which compiles"] = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "many.varnns")
        watch = Watch()
        models = fit_many(panel, model, path=path, workers=arguments.workers, on_model=watch)
        fitted = time.perf_counter() - watch.began
        stages |= {"first model after": watch.ends[0], "half after": watch.ends[len(watch.ends) // 2]}
        stages["fit_many"] = fitted
        began = time.perf_counter()
        found = Models.open(path).predict(panel)
        stages["read and predicted by every model"] = time.perf_counter() - began
        began = time.perf_counter()
        fit_many(panel, model, path=path, workers=arguments.workers)
        stages["the same call again, nothing to do"] = time.perf_counter() - began
        size = path.stat().st_size
        seconds = [models.facts(name)["seconds"] for name in models]
        count = len(models)
    errors = panel.target - found
    cpu = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "series": arguments.series,
        "rows": arguments.rows,
        "models": count,
        "failed": watch.reasons,
        "without a prediction": int(np.isnan(found).sum()),
        "share of variance explained": round(1 - float(np.nanvar(errors) / np.nanvar(panel.target)), 4),
        "seconds": {name: round(value, 2) for name, value in stages.items()},
        "series a second": round(count / fitted, 2),
        "median seconds of one fit, several under way": float(np.median(seconds)) if seconds else None,
        "CPU seconds here, in workers": [round(one.ru_utime + one.ru_stime, 1) for one in cpu],
        "bytes a model": size // max(1, count),
        "cores": os.cpu_count(),
        "machine": platform.processor() or platform.machine(),
        "GPU": _gpu(),
    }


def _gpu() -> str:
    """Name of the GPU, or none."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--inputs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--ensemble", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--first", type=int, default=4, help="series that are fitted before, not counted")
    parser.add_argument("--device", default="auto")
    sys.stdout.write(json.dumps(measured(parser.parse_args()), indent=1) + "\n")


if __name__ == "__main__":
    main()
