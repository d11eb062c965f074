"""Intervals on rows that nothing was chosen on -> coverage, width and score, beside two other methods.

Every data set is cut as the honest protocol says. The default model is fitted once from each seed, and
three methods put intervals around its predictions of the same test rows: its own, split conformal ones of
constant width, and MAPIE's adaptive ones. The other two learn from the errors on the validation rows of
the same series, or of all series where it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from typing import Any

import numpy as np

from benchmarks import fresh
from benchmarks.accuracy import ablation
from benchmarks.accuracy import ablation_steps as steps
from benchmarks.accuracy.coverage_peers import Bounds, Predicted, adaptive, best_gamma, constant
from benchmarks.record import Measured, Row, significant
from varnn import evaluation
from varnn._types import BoolArray, FloatArray, IntArray
from varnn.data.panel import Panel
from varnn.datasets import synthetic
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation import Parts, metrics

OURS, CONSTANT, ADAPTIVE = "VARNN", "split conformal", "MAPIE, adaptive"
LEVELS = (0.8, 0.9, 0.95)
MADE = {f"synthetic, {kind}": kind for kind in synthetic.KINDS}
DATA = (*steps.DATA, *MADE)
SHOWN = "beijing, causal"  # data set that a week is drawn of
WEEK = 7 * 24
SEED = 2025  # of the first model

Mask = BoolArray


@dataclass(frozen=True)
class Case:
    """One fit: a data set, and the number of the seed."""

    data: str
    seed: int

    def __str__(self) -> str:
        return f"{self.data}, seed {self.seed}"


@dataclass(frozen=True)
class Found:
    """What one fit showed: a line per contender and level, and a week of rows where one is drawn."""

    rows: list[Row]
    week: list[Row]


def cases(data: Sequence[str] = DATA, *, seeds: int = 2) -> list[Case]:
    """List the fits of a bench, all data sets from one seed before the next.

    Examples
    --------
    >>> [str(one) for one in cases(["appliances", "bidmc"], seeds=1)]
    ['appliances, seed 0', 'bidmc, seed 0']
    """
    return [Case(name, seed) for seed, name in product(range(seeds), data)]


def run(fits: Iterable[Case], *, threads: int, on_done: Callable[[Case, Found], None]) -> None:
    """Measure one fit after the other, each in a process of its own with so many threads."""
    for case in fits:
        on_done(
            case, Found(**fresh.call("benchmarks.accuracy.coverage:measure", threads=threads, **asdict(case)))
        )


def measure(*, threads: int, data: str, seed: int) -> dict[str, list[Row]]:
    """Fit one model and measure the intervals around its predictions; gives the fields of `Found`."""
    import torch

    torch.set_num_threads(threads)
    made = MADE.get(data)
    parts = evaluation.cut(synthetic.panel(made, seed=seed)) if made else ablation.cut_dataset(data)
    # Stations stand in one city, and see the same air.
    model = VARNNRegressor(peers=data.startswith("beijing"), random_state=SEED + seed)
    model.fit(parts.train, validation=parts.validation)
    week = data == SHOWN and seed == 0
    return asdict(measure_intervals(model, parts, seed=seed, week=week))


def measure_intervals(model: VARNNRegressor, parts: Parts, *, seed: int = 0, week: bool = False) -> Found:
    """Put intervals of every contender around a model's predictions of the test rows, and score them.

    Parameters
    ----------
    model
        Fitted on the training and validation parts.
    parts
        A data set, cut.
    seed
        To be noted with the figures.
    week
        Whether to keep rows to draw.
    """
    rows = ablation.scored_rows(parts)
    ours = model.predict(parts.lead_in, interval=LEVELS)
    labels = parts.lead_in.target[rows].astype(np.float64)
    bounds = {OURS: Bounds(ours.lower[rows], ours.upper[rows])}
    bounds |= _peers(parts, rows, model.predict(parts.validation), ours.prediction)
    tenths = _tenths(parts, rows)
    found: list[Row] = []
    for name, one in bounds.items():
        for index, level in enumerate(LEVELS):
            lower, upper = one.lower[:, index], one.upper[:, index]
            by_tenth = [
                metrics.coverage(labels[mine], lower[mine], upper[mine])
                for mine in (tenths == tenth for tenth in np.unique(tenths))
            ]
            found.append(
                {
                    "contender": name,
                    "level": level,
                    "seed": float(seed),
                    "rows": float(len(labels)),
                    "coverage": significant(metrics.coverage(labels, lower, upper), 4),
                    "worst tenth": significant(min(by_tenth), 4),
                    "width": significant(metrics.width(labels, lower, upper), 4),
                    "score": significant(metrics.interval_score(labels, lower, upper, level), 4),
                }
            )
    return Found(found, _liveliest_week(parts, ours) if week else [])


def tables(found: Mapping[Case, Found], threads: int = 1) -> list[Measured]:
    """Lay out what was measured as one table per data set, and one of the rows to draw."""
    measured = [
        Measured(
            name=f"coverage {data}",
            title=f"Intervals on {data}",
            threads=threads,
            rows=[
                row
                for case in sorted(found, key=lambda one: one.seed)
                if case.data == data
                for row in found[case].rows
            ],
            checks=[f"MAPIE {_mapie()}"] if _mapie() else [],
            absent=[] if _mapie() else [ADAPTIVE],
        )
        for data in DATA
        if any(case.data == data for case in found)
    ]
    measured += [
        Measured(name=f"week {case.data}", title="A week of test rows", threads=threads, rows=one.week)
        for case, one in found.items()
        if one.week
    ]
    return measured


def _mapie() -> str | None:
    """MAPIE's version, or None where it is not installed."""
    try:
        return version("mapie")
    except PackageNotFoundError:
        return None


def _peers(parts: Parts, rows: Mask, past: FloatArray, now: FloatArray) -> dict[str, Bounds]:
    """Bound the scored rows by the other methods, from predictions of validation rows and of ``lead_in``."""
    validation, judged = parts.validation, parts.lead_in
    settled = np.arange(len(validation)) - validation.first_rows >= evaluation.PAPER_WINDOW - 1
    known = settled & ~np.isnan(validation.target)
    everything = _predicted(validation, past, known)
    of_series = {
        name: _predicted(validation, past, mine)
        for name, mine in ((name, known & _of(validation, name)) for name in validation.ids)
        if mine.any()
    }
    methods: dict[str, Callable[..., Bounds]] = {CONSTANT: constant}
    if _mapie():
        # Of one series: choosing on each of many would take longer than all the rest.
        gamma = best_gamma(next(iter(of_series.values())))
        methods[ADAPTIVE] = partial(adaptive, gamma=gamma)
    pieces: dict[str, list[Bounds]] = {name: [] for name in methods}
    for name in judged.ids:
        later = _predicted(judged, now, rows & _of(judged, name))
        for method, bound in methods.items():
            pieces[method].append(bound(of_series.get(name, everything), later, LEVELS))
    return {
        method: Bounds(*(np.concatenate(sides) for sides in zip(*some, strict=True)))
        for method, some in pieces.items()
    }


def _predicted(panel: Panel, predictions: FloatArray, rows: Mask) -> Predicted:
    """Take some rows of a panel, all with known labels."""
    return Predicted(predictions[rows].astype(np.float64), panel.target[rows].astype(np.float64))


def _of(panel: Panel, name: str) -> Mask:
    """Mark the rows of one series."""
    index = panel.ids.index(name)
    marked = np.zeros(len(panel), dtype=bool)
    marked[panel.starts[index] : panel.starts[index + 1]] = True
    return marked


def _tenths(parts: Parts, rows: Mask) -> IntArray:
    """Tenth of its series' test part that each scored row lies in, 0 to 9."""
    judged = parts.lead_in
    tested = np.isin(judged.rows, parts.test.rows)
    tenths = np.zeros(len(judged), dtype=np.int64)
    for name in judged.ids:
        mine = tested & _of(judged, name)
        tenths[mine] = np.arange(mine.sum()) * 10 // max(1, mine.sum())
    return tenths[rows]


def _liveliest_week(parts: Parts, ours: Any) -> list[Row]:
    """Week of the first series' test part in which labels vary most, with 90 % intervals."""
    judged = parts.lead_in
    mine = np.flatnonzero(np.isin(judged.rows, parts.test.rows) & _of(judged, judged.ids[0]))
    weeks = [mine[first : first + WEEK] for first in range(0, len(mine) - WEEK + 1, WEEK)]
    complete = [week for week in weeks if np.isnan(judged.target[week]).mean() < 0.1]
    week = max(complete or [mine[:WEEK]], key=lambda rows: float(np.nanstd(judged.target[rows])))
    level = LEVELS.index(0.9)
    columns = {
        "truth": judged.target[week],
        "prediction": ours.prediction[week],
        "lower": ours.lower[week, level],
        "upper": ours.upper[week, level],
    }
    times = week if judged.time is None else judged.time[week].astype("datetime64[m]")
    return [
        {"time": str(time)}
        | {
            name: None if np.isnan(values[row]) else significant(float(values[row]), 4)
            for name, values in columns.items()
        }
        for row, time in enumerate(times)
    ]
