"""The search: the default first, then trials until the budget is spent, then the best few again, as used.

The default is measured in this process, with all its cores, before anything else begins: what every trial is
compared with, and where rows or settings cannot be used, that is said at once.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any, NamedTuple

from varnn.errors import TrainingError
from varnn.jobs import run
from varnn.scale.tuning.pruning import limits, mean_ratio
from varnn.scale.tuning.study import Study
from varnn.scale.tuning.trial import (
    Common,
    Default,
    FinalJob,
    TestJob,
    TrialJob,
    run_job,
    run_trial,
    settled,
)

logger = logging.getLogger(__name__)

FINALISTS = 3  # trials that are measured again, beside the default
HOPELESS = 20  # trials that fail one after the other, after which no more are begun
_MANY = 1_000_000  # trials where only minutes are given


class Step(NamedTuple):
    """What is under way, for those who watch: a stage, how much of it is done, and the latest in words."""

    stage: str  # "trials", "finals", "test" or "refit"
    done: float
    total: float | None
    words: str


OnStep = Callable[[Step], None]


class Workers(NamedTuple):
    """Where jobs run."""

    workers: int | None
    cluster: str | None

    def run(self, jobs: Sequence[Any], common: Common, stop: Event | None = None) -> Iterator[Any]:
        """Run jobs, and leave none behind."""
        workers = None if self.cluster is not None and self.workers == 1 else self.workers
        with contextlib.closing(
            run(run_job, jobs, shared=common, workers=workers, cluster=self.cluster, stop=stop)
        ) as outcomes:
            yield from outcomes


def measure_default(study: Study, common: Common, on_step: OnStep) -> Default:
    """What the default comes to at each origin: from the study, or measured now."""
    known = study.default
    if known is not None:
        return known
    on_step(Step("trials", 0, None, "the default"))
    number, _ = study.ask(study.space.own(common.model, settled(common.model, common.rows)))
    began = time.perf_counter()
    result = run_trial(TrialJob(), common)
    study.tell(number, result, None, time.perf_counter() - began)
    return Default(result.errors, result.losses, result.calendars)


class Trials(Sequence[TrialJob]):
    """Jobs of a search, each asked for when a worker is free for it: it learns from those told by then."""

    def __init__(self, study: Study, default: Default, most: int, ends: float) -> None:
        self.study, self.default, self.most, self.ends = study, default, most, ends
        self.numbers: dict[int, int] = {}  # of the study's trials
        self._asked: dict[int, TrialJob] = {}

    def __len__(self) -> int:
        return self.most

    def __getitem__(self, index: Any) -> Any:
        if index not in self._asked:  # it is asked again for one whose worker died
            self.numbers[index], settings = self.study.ask()
            self._asked[index] = TrialJob(
                settings=settings,
                default=self.default,
                limits=limits(self.study.curves()),
                seconds=self.ends - time.perf_counter(),
            )
        return self._asked[index]

    def told(self, index: int) -> int:
        """Forget a job that is done; the number of its trial."""
        del self._asked[index]
        return self.numbers.pop(index)


def search(
    study: Study, common: Common, where: Workers, *, trials: int | None, seconds: float, on_step: OnStep
) -> None:
    """Run trials until there are enough, or time is up.

    Parameters
    ----------
    study : Study
        What is known by now; trials that it holds count.
    common : Common
        Model and rows.
    where : Workers
        Where trials run.
    trials : int or None
        How many, with the default; None is as many as there is time for.
    seconds : float
        Time to spend, from now on; the default is measured in any case.
    on_step : callable
        Called after each.
    """
    ends = time.perf_counter() + seconds
    default = measure_default(study, common, on_step)
    left = _MANY if trials is None else trials - study.finished
    if left <= 0 or time.perf_counter() >= ends:
        return
    jobs, stop = Trials(study, default, left, ends), Event()
    best, failures = min((one.value for one in study.best(1)), default=1.0), 0
    for done in where.run(jobs, common, stop):
        if done.index not in jobs.numbers and done.failure is not None:  # not even asked for
            raise TrainingError(f"no trial could be begun: {done.failure.kind}: {done.failure.message}")
        number = jobs.told(done.index)
        study.tell(number, done.result, done.failure, done.seconds)
        line = study.table()[number]
        failures = failures + 1 if done.failure is not None else 0
        if line["ended"] == "through":
            best = min(best, line["ratio"])
        words = f"trial {number}: {_in_words(line)}; best {best:.4f}"
        on_step(Step("trials", study.finished, trials, words))
        if failures >= HOPELESS:
            logger.warning(
                "the last %d trials all failed, so no more are begun: %s", failures, line["reason"]
            )
            stop.set()
        if time.perf_counter() >= ends:
            stop.set()
    study.end_open()


def _in_words(line: dict[str, Any]) -> str:
    return {"through": f"{line['ratio'] or math.nan:.4f} of the default's error", "behind": "given up"}.get(
        line["ended"], f"failed ({line['reason']})"
    )


def finals(study: Study, common: Common, where: Workers, on_step: OnStep) -> tuple[Any | None, float]:
    """The trial that is best with all its members, and its mean ratio to the default; None is the default.

    With one member, chance has more to say: the best of thirty is in part the luckiest.
    """
    finalists = study.best(FINALISTS)
    if not finalists:
        return None, 1.0
    jobs = [
        FinalJob(settings={}),
        *(FinalJob(settings=study.space.settings(one.params)) for one in finalists),
    ]
    errors: dict[int, tuple[float, ...]] = {}
    on_step(Step("finals", 0, len(jobs), "the best trials again, with all members"))
    for done in where.run(jobs, common):
        if done.failure is None:
            errors[done.index] = done.result
        elif done.index == 0:
            raise TrainingError(
                f"the default could not be fitted: {done.failure.kind}: {done.failure.message}"
            )
        on_step(Step("finals", len(errors), len(jobs), "the best trials again, with all members"))
    best, lowest, ratios = None, 1.0, {}
    for index, trial in enumerate(finalists, start=1):
        if index in errors:
            found = mean_ratio(errors[index], errors[0])
            ratios[trial.number] = found
            if found < lowest:
                best, lowest = trial, found
    study.note_finals(ratios)
    return best, lowest


def tested(
    settings: Sequence[Mapping[str, Any]], seeds: int, common: Common, where: Workers, on_step: OnStep
) -> list[list[Any]]:
    """Squared errors of the test rows, for each of several settings and each seed."""
    jobs = [TestJob(settings=one, seed=seed) for seed in range(seeds) for one in settings]
    found: list[list[Any]] = [[None] * seeds for _ in settings]
    on_step(Step("test", 0, len(jobs), "tuned and default on the test rows"))
    for done in where.run(jobs, common):
        if done.failure is not None:
            raise TrainingError(
                f"a model could not be fitted for the verdict: {done.failure.kind}: {done.failure.message}"
            )
        found[done.index % len(settings)][done.index // len(settings)] = done.result
        count = sum(one is not None for line in found for one in line)
        on_step(Step("test", count, len(jobs), "tuned and default on the test rows"))
    return found
