"""Forecasts of several rows on real data -> errors at each step, beside simple forecasts."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks import fresh
from benchmarks.accuracy import ablation
from benchmarks.accuracy.ablation_steps import joined
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation.backtesting import LEVEL, backtest
from varnn.report.provenance import provenance

DATA = ("appliances", "beijing, causal")
STEPS = (1, 3, 6, 12, 24)
SEED = 2025  # of the first model


@dataclass(frozen=True)
class Found:
    """What one fit showed: mean squared errors and coverage at `STEPS`, by name of the forecast."""

    data: str
    seed: int
    rows: int
    seconds: float
    mse: dict[str, list[float]]
    coverage: list[float]


def run(
    data: Sequence[str] = DATA, *, seeds: int = 3, threads: int = 1, on_done: Callable[[Found], None]
) -> None:
    """Measure one fit after the other, each in a process of its own."""
    for name in data:
        for seed in range(SEED, SEED + seeds):
            facts = fresh.call("benchmarks.accuracy.horizons:measure", threads=threads, data=name, seed=seed)
            on_done(Found(**facts))


def measure(*, threads: int, data: str, seed: int) -> dict[str, Any]:
    """Fit one forecaster and score it; gives the fields of `Found`."""
    import torch

    torch.set_num_threads(threads)
    parts = ablation.cut_dataset(data)
    panel = joined(joined(parts.train, parts.validation), parts.test)
    peers = data.startswith("beijing")  # stations stand in one city, and see the same air
    result = backtest(
        panel,
        horizon=max(STEPS),
        first_seed=seed,
        model=lambda one: VARNNRegressor(random_state=one, peers=peers),
    )
    kept = [one - 1 for one in STEPS]
    return asdict(
        Found(
            data=data,
            seed=seed,
            rows=result.rows,
            seconds=result.seconds,
            mse={name: errors[0, kept].tolist() for name, errors in result.mse.items()},
            coverage=result.coverage[0, kept].tolist(),
        )
    )


def summed_up(found: Sequence[Found], command: str) -> dict[str, Any]:
    """Turn fits into what is kept: a line per data set and forecast, and where it was measured.

    Examples
    --------
    >>> errors = {"persistence": [2.0] * 5, "VARNN": [1.0] * 5}
    >>> fits = [Found("appliances", seed, 10, 1.0, errors, [0.9] * 5) for seed in (1, 2)]
    >>> line = summed_up(fits, "python -m benchmarks horizons")["lines"][1]
    >>> line["forecast"], line["of persistence"][0], line["spread"][0], line["seeds"]
    ('VARNN', 0.5, 0.0, 2)
    """
    lines = []
    for data in dict.fromkeys(one.data for one in found):
        fits = [one for one in found if one.data == data]
        for name in fits[0].mse:
            errors = np.array([one.mse[name] for one in fits])
            ratios = errors / np.array([one.mse["persistence"] for one in fits])
            drawn = name == "VARNN"  # the others give the same from every seed
            line = {
                "data": data,
                "forecast": name,
                "rows": fits[0].rows,
                "seeds": len(fits) if drawn else 1,
                "mse": errors.mean(axis=0).tolist(),
                "of persistence": ratios.mean(axis=0).tolist(),
                "spread": ratios.std(axis=0, ddof=1).tolist() if drawn and len(fits) > 1 else [0.0] * 5,
            }
            if drawn:
                line["coverage"] = np.mean([one.coverage for one in fits], axis=0).tolist()
                line["seconds"] = float(np.mean([one.seconds for one in fits]))
            lines.append(line)
    facts = {"steps": list(STEPS), "level": LEVEL}
    return {"command": command, **provenance(), **facts, "lines": lines}
