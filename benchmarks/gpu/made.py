"""Members to train on a GPU, of made rows."""

from dataclasses import replace
from typing import Any

import numpy as np

from varnn.data.panel import Panel
from varnn.network.cell import Architecture
from varnn.network.engines.cuda.job import RowNumbers, TrainingJob
from varnn.network.training import Member, TrainConfig


def panel(rows: int, inputs: int, *, missing: float = 0.0, seed: int = 0, series: int = 1) -> Panel:
    """Rows whose target follows its first inputs and a level that wanders; some labels are missing.

    Examples
    --------
    >>> panel(20, 3, series=2).lengths.tolist()
    [10, 10]
    """
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, inputs)).astype(np.float32)
    level = np.zeros(rows)
    for begin in range(1, rows):
        level[begin] = 0.95 * level[begin - 1] + 0.3 * generator.normal()
    y = (x[:, : min(inputs, 3)].sum(axis=1) * 0.4 + level + 0.1 * generator.normal(size=rows)).astype(
        np.float32
    )
    y[generator.random(rows) < missing] = np.nan
    names = np.repeat([str(one) for one in range(series)], -(-rows // series))[:rows]
    return replace(Panel.from_arrays(x, y, series=names), inputs=x, target=y)


def member(architecture: Architecture, seed: int = 0, **settings: Any) -> Member:
    """Member that learns from made rows, and is validated on others."""
    how = {"rows": 2000, "missing": 0.0, "validated": True, "stop_after": None, "series": 1} | settings
    rows = {name: how[name] for name in ("missing", "series")}
    training = panel(how["rows"], architecture.n_inputs, seed=1, **rows)
    unseen = panel(max(200, how["rows"] // 4), architecture.n_inputs, seed=2, **rows)
    return Member(
        architecture, training, unseen if how["validated"] else None, seed, stop_after=how["stop_after"]
    )


def only(job: TrainingJob, ends: RowNumbers) -> TrainingJob:
    """The same job of one epoch, which goes through given windows."""
    first = np.array([0, len(ends)], np.int32)
    return replace(job, training=job.training._replace(ends=ends.astype(np.int32)), first=first)


def default_config(batch: int, **settings: Any) -> TrainConfig:
    """How the default trains."""
    how: dict[str, Any] = {
        "window": 24,
        "loss_rows": 12,
        "learning_rate": 4e-3,
        "schedule": "cosine",
        "patience": 5,
    }
    how |= {"gradient_clip": 1.0, "weight_ema": 0.99, "device": "auto", "engine": "auto"}
    return TrainConfig(batch_size=batch, **{**how, **settings})


DEFAULT = Architecture.of("ARM+AM", n_inputs=28, hidden_size=64, memory_size=48)
