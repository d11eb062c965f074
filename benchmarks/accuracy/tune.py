"""A search on a published data set: what it took, what it found, and whether that holds on new rows."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import Measured, Row, significant
from varnn import datasets
from varnn.scale import VARNNTuner
from varnn.scale.tuning.search import OnStep


def measure(
    data: str, *, trials: int, workers: int, study: Path | None = None, on_step: OnStep | None = None
) -> tuple[list[Measured], VARNNTuner]:
    """Tune on a data set; tables of the verdict and of the trials, and the tuner."""
    panel = datasets.load(data)
    tuner = VARNNTuner(trials=trials, workers=workers, study=study)
    began = time.perf_counter()
    tuner.fit(panel, on_step=on_step)
    return tables(tuner, data, workers, time.perf_counter() - began), tuner


def tables(tuner: VARNNTuner, data: str, workers: int, seconds: float) -> list[Measured]:
    """Lay a search out as tables: its outcome, the test rows, and its trials."""
    verdict, test = tuner.verdict_, tuner.verdict_.test
    outcome: dict[str, str | float] = {
        "minutes": significant(seconds / 60),
        "trials": float(sum(verdict.trials.values())),
        "through": float(verdict.trials["through"]),
        "given up": float(verdict.trials["behind"]),
        "failed": float(verdict.trials["failed"]),
        "validation ratio": significant(verdict.validation_ratio, 4),
        "test ratio": significant(verdict.test_ratio, 4),
        "kept": "default" if verdict.keeps_default else "tuned",
        "settings": _in_words(verdict.settings),
    }
    if test is not None:
        outcome |= {"p (DM)": significant(test.p, 2), "p (bootstrap)": significant(test.p_bootstrap, 2)}
    errors: list[Row] = [
        {
            "model": name,
            "RMSE": significant(float(np.mean(one)) ** 0.5, 4),
            "lowest of seeds": significant(min(one) ** 0.5, 4),
            "highest of seeds": significant(max(one) ** 0.5, 4),
            "seeds": float(len(one)),
        }
        for name, one in verdict.errors.items()
    ]
    lines: list[Row] = [
        {
            "trial": f"{line['trial']}",
            "ended": line["ended"],
            "ratio": None if line["ratio"] is None else significant(line["ratio"], 4),
            "all members": None if line["final_ratio"] is None else significant(line["final_ratio"], 4),
            "seconds": line["seconds"],
            "settings": "default" if line["default"] else _in_words(line["settings"]),
        }
        for line in tuner.trials_
    ]
    facts: list[Row] = [{"what": name, "value": value} for name, value in outcome.items()]
    about = f"{data}, {tuner.origins} origins"
    return [
        Measured(name="tune", title=f"a search on {about}", threads=workers, rows=facts),
        Measured(
            name="tune test", title=f"{verdict.rows:,} rows no choice has seen", threads=workers, rows=errors
        ),
        Measured(name="tune trials", title=f"trials on {about}", threads=workers, rows=lines),
    ]


def _in_words(settings: Any) -> str:
    parts = (
        f"{name.removeprefix('details__')} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
    )
    return ", ".join(parts).replace("details__", "") or "none"
