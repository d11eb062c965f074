"""What wins and why: the steps from the paper's model to the default, one step each, on real data.

Every step is fitted on the training part, chooses on the validation part and is scored once on the test
part (`varnn.evaluation`, honest protocol), beside persistence, correct ARX and boosting on lags.
"""

import io
import json
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.ablation_steps import ABLATION_STEPS, DATA, DRAW_NOTHING
from varnn import datasets, evaluation
from varnn._types import BoolArray, FloatArray
from varnn.data.files import write_atomically
from varnn.data.preparation import split_by_series
from varnn.datasets import bidmc
from varnn.evaluation import Parts, metrics
from varnn.evaluation.significance import diebold_mariano
from varnn.report.provenance import provenance

MORE_SEEDS = {("appliances", "RM"): 10}  # its seeds differ more than those of any other step


def cut_dataset(name: str) -> Parts:
    """Cut a data set for the ablation: in time, BIDMC by records.

    ``beijing`` is in the paper's preparation, which looks ahead when it fills gaps; ``beijing, causal``
    leaves missing targets missing and unscored.
    """
    if name == "bidmc":
        panel = datasets.load("bidmc", paper=True, download=False)
        train, validation, test = split_by_series(panel, *bidmc.honest_records())
        return Parts(train, validation, test, test, "honest")
    if name == "beijing, causal":
        panel = datasets.load("beijing", download=False)
        kept = [index for index, column in enumerate(panel.input_names) if column != "PM10"]
        names = tuple(panel.input_names[index] for index in kept)
        return evaluation.cut(replace(panel, inputs=panel.inputs[:, kept], input_names=names))
    panel = datasets.load(name, download=False, **({"paper": True} if name == "beijing" else {}))
    return evaluation.cut(panel)


@dataclass(frozen=True, eq=False)
class AblationScore:
    """How one step did from one seed: error in the paper's unit, predictions of the scored rows.

    ``memory`` is the largest size of the process that fitted it, in MB, data and libraries included.
    """

    step: str
    seed: int
    mse: float
    seconds: float
    memory: float
    predictions: FloatArray


def scored_rows(parts: Parts) -> BoolArray:
    """Mark the rows of ``lead_in`` that are scored: test rows with a label and four rows before them.

    Only BIDMC's records, which begin in the test part, have rows without; the paper leaves them out too.
    """
    place = np.arange(len(parts.lead_in)) - parts.lead_in.first_rows
    return parts.scored() & (place >= evaluation.PAPER_WINDOW - 1)


def score(data: str, step: str, seed: int) -> AblationScore:
    """Fit one step from one seed, and score it."""
    (one,) = (each for each in ABLATION_STEPS if each.name == step)
    parts = cut_dataset(data)
    rows = scored_rows(parts)
    model = one.make(seed)
    began = time.perf_counter()
    model.fit(parts.train, validation=parts.validation)
    seconds = time.perf_counter() - began
    predictions = evaluation.predict_scored_rows(parts, rows, model)
    mse = metrics.mse(parts.lead_in.target[rows], predictions) / parts.unit**2
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return AblationScore(step, seed, mse, seconds, memory, predictions)


def run(
    data: Sequence[str] = DATA,
    steps: Sequence[str] | None = None,
    *,
    seeds: int = 3,
    workers: int = 2,
    cache: Path | None = None,
    on_score: Callable[[str, AblationScore], None] | None = None,
) -> dict[str, list[AblationScore]]:
    """Score steps on data sets from several seeds, as many at a time as there are workers.

    Parameters
    ----------
    data, steps
        By name; all steps that fit a data set by default.
    seeds
        2025, 2026, ..; a step that draws nothing runs once, RM on Appliances ten times at least.
    workers
        Processes, of one thread each.
    cache
        Folder in which finished scores are kept, so that a second run goes on where the first ended.
    on_score
        Called with the data set and each score.
    """
    jobs = _jobs(data, steps, seeds)
    done: dict[str, list[AblationScore]] = {name: [] for name in data}

    def keep(job: tuple[str, str, int], one: AblationScore) -> None:
        done[job[0]].append(one)
        if on_score is not None:
            on_score(job[0], one)

    open_jobs = []
    for job in jobs:
        found = _recall(cache, job)
        if found is None:
            open_jobs.append(job)
        else:
            keep(job, found)
    # A process for each: its largest size is then that of one job.
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_one_thread, max_tasks_per_child=1
    ) as pool:
        futures = {pool.submit(score, *job): job for job in open_jobs}
        for future in as_completed(futures):
            _remember(cache, futures[future], future.result())
            keep(futures[future], future.result())
    return done


def count(data: Sequence[str], steps: Sequence[str] | None, seeds: int) -> int:
    """Count the fits of a run."""
    return len(_jobs(data, steps, seeds))


def _jobs(data: Sequence[str], steps: Sequence[str] | None, seeds: int) -> list[tuple[str, str, int]]:
    return [
        (name, step.name, 2025 + number)
        for name in data
        for step in ABLATION_STEPS
        if name in step.only and (steps is None or step.name in steps)
        for number in range(
            1 if step.name in DRAW_NOTHING else max(seeds, MORE_SEEDS.get((name, step.name), 0))
        )
    ]


def result(scores: dict[str, list[AblationScore]]) -> dict[str, Any]:
    """Turn scores into what is kept: a line per data set and step, and where it was measured."""
    lines = []
    for name, every in scores.items():
        parts = cut_dataset(name)
        truth = parts.lead_in.target[scored_rows(parts)]
        naive = next((one.mse for one in every if one.step == "persistence"), np.nan)
        squares = {(one.step, one.seed): np.square(truth - one.predictions) / parts.unit**2 for one in every}
        for step in ABLATION_STEPS:
            ours = sorted((one for one in every if one.step == step.name), key=lambda one: one.seed)
            if not ours:
                continue
            errors = np.array([one.mse for one in ours])
            timed = any(np.isfinite(one.seconds) for one in ours)
            line: dict[str, Any] = {
                "data": name,
                "step": step.name,
                "adds": step.adds,
                "seeds": len(ours),
                "mse": float(errors.mean()),
                "spread": float(errors.std(ddof=1)) if len(errors) > 1 else 0.0,
                "by seed": errors.tolist(),
                "skill": float(1 - errors.mean() / naive),
                # Nothing is said of fits that ran on another machine.
                "seconds": float(np.nanmean([one.seconds for one in ours])) if timed else None,
                "memory": max(one.memory for one in ours if np.isfinite(one.seconds)) if timed else None,
            }
            for other in ("ARX", "boosting"):
                beside = squares.get((other, 2025), squares.get((f"{other}, 4 lags", 2025)))
                if beside is None or other == step.name:
                    continue
                line[f"against {other}"] = float(errors.mean() / beside.mean() - 1)
                every_seed = np.stack([squares[step.name, one.seed] for one in ours])
                line[f"p against {other}"] = diebold_mariano(every_seed, beside)
            lines.append(line)
    facts = {"command": "python -m benchmarks ablation", **provenance(), "p values count": "rows and seeds"}
    return {**facts, "lines": lines}


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _place(cache: Path, job: tuple[str, str, int]) -> Path:
    return cache / ("-".join(str(part).replace(" ", "_").replace(",", "") for part in job) + ".npz")


def _recall(cache: Path | None, job: tuple[str, str, int]) -> AblationScore | None:
    if cache is None or not _place(cache, job).exists():
        return None
    with np.load(_place(cache, job)) as kept:
        return AblationScore(**json.loads(str(kept["facts"])), predictions=kept["predictions"])


def _remember(cache: Path | None, job: tuple[str, str, int], one: AblationScore) -> None:
    if cache is None:
        return
    facts = {field.name: getattr(one, field.name) for field in fields(one) if field.name != "predictions"}
    buffer = io.BytesIO()
    np.savez(buffer, facts=np.array(json.dumps(facts)), predictions=one.predictions)
    cache.mkdir(parents=True, exist_ok=True)
    write_atomically(_place(cache, job), buffer.getvalue())
