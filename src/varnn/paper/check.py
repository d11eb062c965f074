"""Thirty jobs run anew, against the figures that are kept: whether what we print comes out here and now.

The choice is fixed. On Appliances, where a job takes seconds, every kind of model and of ablation once:
static, lagged with both lag sets, recurrent in three readings, the four variants, a forest of each
kind, the two protocols in turns. On the two large data sets the linear rows and RM, and what is cut or
filled otherwise there: a random split of BIDMC, and Beijing filled part by part. Of models that draw it is
the first seed, and only configurations with several seeds in the plan, so that their spread is known.
By `plan`'s guess that is about eight minutes of one core.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from varnn.errors import ConfigError, DataError
from varnn.evaluation import DETERMINISTIC
from varnn.network.cell import VARIANTS
from varnn.paper.digits import decimals
from varnn.paper.jobs import FILLED_BY_PART, Job, Outcome, job
from varnn.paper.plan import ABLATION_RATE, Scope
from varnn.paper.records import MADE, Record, read_outcomes
from varnn.paper.runner import Cache, Outcomes, run_all

KEPT = Path("docs/reproduction/outcomes.csv")  # from the top of a checkout
SPREADS = 3  # standard deviations over seeds that another machine may be away
DETERMINISTIC_SHARE = 1e-4  # of the figure, where nothing is drawn: other libraries, other rounding
# Of the figure, for boosting: LightGBM where it is installed, else scikit-learn's. On Appliances the two are
# 0.9 to 1.9 % apart, in training and test errors of both protocols. On Beijing it is up to 18 %, so the check
# has boosting on Appliances alone.
BOOSTING, BOOSTING_SHARE = "narx-gbm", 0.03
SAME_SHARE = 1e-6  # of the figure, on the same machine: a last bit may cross the edge of a printed digit
PARTS = ("train", "test")
_MACHINE = tuple(name for name in MADE if name not in ("date", "lightgbm"))

Runner = Callable[[Sequence[Job]], Outcomes]


@dataclass(frozen=True)
class Comparison:
    """One figure of a job: what is kept, what came now, and how far apart the two may be."""

    part: str
    kept: float
    now: float
    tolerance: float
    is_spread_known: bool = True

    @property
    def texts(self) -> tuple[str, str]:
        """What is kept and what came now, both with the digits of what is kept."""
        digits = decimals(self.kept)
        return f"{self.kept:.{digits}f}", f"{self.now:.{digits}f}"

    @property
    def word(self) -> str:
        """Say ``equal`` (as printed), ``close``, ``not judged`` or ``differs``."""
        kept, now = self.texts
        if kept == now:
            return "equal"
        if abs(self.now - self.kept) <= self.tolerance:
            return "close"
        return "differs" if self.is_spread_known else "not judged"


@dataclass(frozen=True)
class Line:
    """One job that was run anew."""

    job: Job
    same_machine: bool  # and the same libraries
    seconds: float
    comparisons: tuple[Comparison, ...]

    @property
    def word(self) -> str:
        """Say the worst that holds for a figure of the job."""
        words = [one.word for one in self.comparisons]
        return next(word for word in ("differs", "not judged", "close", "equal") if word in words)


@dataclass(frozen=True)
class Check:
    """All jobs that were run anew, and those that are not kept."""

    lines: tuple[Line, ...]
    absent: tuple[Job, ...]

    @property
    def failed(self) -> tuple[Line, ...]:
        """Jobs with a figure that differs."""
        return tuple(line for line in self.lines if line.word == "differs")

    @property
    def summary(self) -> str:
        """Say in one sentence what came out."""
        words = [line.word for line in self.lines]
        counts = [f"{words.count(word)} {word}" for word in ("equal", "close", "not judged", "differs")]
        same = sum(line.same_machine for line in self.lines)
        where = {0: "another machine or other libraries", len(words): "the same machine and libraries"}
        said = f"Of {len(words)} jobs run anew: {', '.join(one for one in counts if one[:2] != '0 ')}; "
        said += f"kept figures are of {where.get(same, f'this machine for {same} of them')}"
        return said + (f"; {len(self.absent)} more are not in the file." if self.absent else ".")

    def as_dict(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        return {
            "summary": self.summary,
            "failed": len(self.failed),
            "jobs": [
                {
                    "job": str(line.job),
                    "verdict": line.word,
                    "same_machine": line.same_machine,
                    "seconds": line.seconds,
                    **{one.part: _plain(one) for one in line.comparisons},
                }
                for line in self.lines
            ],
            "absent": [str(one) for one in self.absent],
        }


def chosen() -> list[Job]:
    """List the jobs of the check, the longest first, as they stand in the plan."""
    scope = Scope()
    appliances: list[tuple[Any, str, dict[str, Any]]] = [
        ("paper", "persistence", {}),
        ("paper", "lr", {}),
        ("paper", "mlp", {}),
        ("paper", "rf", {}),
        ("paper", "arx-lr", {"lags": "as-published"}),
        ("honest", "arx-lr", {"lags": "correct"}),
        ("honest", "narx-mlp", {"lags": "correct"}),
        ("paper", "narx-rf", {"lags": "as-published"}),
        ("honest", BOOSTING, {}),
        ("paper", "rnn", {}),
        ("honest", "rnn", {"fair": True}),
        ("honest", "lstm", {}),
        ("paper", "gru", {"current": True}),
        ("paper", "RM", {}),
        ("honest", "RM", {}),
        ("paper", "RM+AM", {}),
        ("honest", "ARM", {}),
        ("paper", "ARM+AM", {}),
        ("paper", "RM", {"learning_rate": ABLATION_RATE, "residual": "none"}),
        ("paper", "RM", {"learning_rate": ABLATION_RATE, "residual": "scalar"}),
        ("paper", "RM", {"learning_rate": ABLATION_RATE, "memory_activation": "tanh"}),
        ("paper", "RM", {"learning_rate": ABLATION_RATE, "memory_size": 4}),
        ("paper", "RM", {"learning_rate": ABLATION_RATE, "memory_size": 64}),
    ]
    wanted = {
        scope.with_seeds("appliances", protocol, model, **one)[0] for protocol, model, one in appliances
    }
    wanted |= {
        job("bidmc", "paper", "lr"),
        job("bidmc", "honest", "arx-lr", lags="correct"),
        job("bidmc", "paper", "arx-lr", lags="as-published", split=1),
        job("bidmc", "paper", "RM"),
        job("beijing", "paper", "arx-lr", lags="as-published"),
        job(FILLED_BY_PART, "paper", "lr"),
        job("beijing", "honest", "RM"),
    }
    return [one for one in scope.jobs() if one in wanted]


def kept_figures(path: Path = KEPT) -> dict[Job, Record]:
    """Read the figures to compare with."""
    if not path.is_file():
        raise ConfigError(
            f"--against must name a file of outcomes that varnn reproduce wrote; {str(path)!r} is not there. "
            "Run it in a checkout, or name the file."
        )
    return read_outcomes(path)


def datasets_of(jobs: Sequence[Job]) -> list[str]:
    """Data sets that must be here for some jobs to run."""
    return list(dict.fromkeys("beijing" if one.dataset == FILLED_BY_PART else one.dataset for one in jobs))


def jobs_kept(records: Mapping[Job, Record]) -> list[Job]:
    """Of the jobs of the check, those with figures to compare with; it is an error when there are none."""
    found = [one for one in chosen() if one in records]
    if not found:
        raise DataError(
            f"the file of outcomes must hold at least one of the {len(chosen())} jobs of the check; it holds "
            f"{len(records)} others. Name the file of a whole run: varnn reproduce all."
        )
    return found


def run_fresh(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    cluster: str | None = None,
    on_done: Callable[[Job, Outcome], None] | None = None,
) -> Outcomes:
    """Run jobs whatever is in a cache."""
    with TemporaryDirectory() as folder:
        return run_all(jobs, Cache(Path(folder)), workers=workers, cluster=cluster, on_done=on_done)


def check(records: Mapping[Job, Record], run: Runner = run_fresh) -> Check:
    """Run the chosen jobs anew and compare them with what is kept.

    Parameters
    ----------
    records : mapping of Job to Record
        Kept figures; jobs of the check that are not among them are not run.
    run : callable, default=run_fresh
        From jobs to outcomes.
    """
    jobs = jobs_kept(records)
    outcomes = run(jobs)
    lines = tuple(compare(one, records, outcomes[one]) for one in jobs)
    return Check(lines, tuple(one for one in chosen() if one not in records))


def compare(job: Job, records: Mapping[Job, Record], outcome: Outcome) -> Line:
    """Compare one outcome with its record.

    On the machine and with the libraries of the record, figures must be equal as printed, or apart by no
    more than `SAME_SHARE` of the figure, where a last bit crosses the edge of a printed digit. Elsewhere
    they may be apart by one printed digit or, if that is more, by `SPREADS` standard deviations over seeds:
    those of the same configuration, or the root mean square over all configurations of the model (of all
    variants, for a variant) under the same protocol on the same data set, whichever is larger. Where nothing
    is drawn it is `DETERMINISTIC_SHARE` of the figure, and `BOOSTING_SHARE` for boosting, whose library may
    be another; where a record does not say which LightGBM made it, that holds on its own machine, too.
    Without several seeds, what is further off is not judged.
    """
    record = records[job]
    is_same = _same_machine(record.made, outcome.made)
    is_library_unknown = job.model == BOOSTING and not record.made.get("lightgbm")
    comparisons = []
    for part in PARTS:
        kept, now = getattr(record, part), getattr(outcome, part)
        if is_same and not is_library_unknown:
            comparisons.append(Comparison(part, kept, now, SAME_SHARE * kept))
            continue
        spread = _allowed(job, records, part)
        # A hair more than a digit: 0.00015 - 0.00014 is above 0.00001 in floating point.
        tolerance = max(10.0 ** -decimals(kept) * (1 + 1e-6), spread or 0.0)
        comparisons.append(Comparison(part, kept, now, tolerance, spread is not None))
    return Line(job, is_same, outcome.seconds, tuple(comparisons))


def _same_machine(kept: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether machine and libraries are the same; records from before LightGBM was named may lack it."""
    if not all(kept.get(name) for name in _MACHINE):
        return False
    names = (*_MACHINE, "lightgbm") if kept.get("lightgbm") else _MACHINE
    return all(kept[name] == now.get(name) for name in names)


def _allowed(job: Job, records: Mapping[Job, Record], part: str) -> float | None:
    """How far a figure may be off elsewhere beyond its printed digits; None where that is not known."""
    kept = float(getattr(records[job], part))
    if job.model == BOOSTING:
        return BOOSTING_SHARE * kept
    if job.model in DETERMINISTIC:
        return DETERMINISTIC_SHARE * kept
    family = VARIANTS if job.model in VARIANTS else (job.model,)
    figures: dict[Job, list[float]] = defaultdict(list)
    for other, record in records.items():
        if (other.dataset, other.protocol) == (job.dataset, job.protocol) and other.model in family:
            figures[replace(other, seed=job.seed)].append(getattr(record, part))
    spreads = {one: float(np.std(values, ddof=1)) for one, values in figures.items() if len(values) > 1}
    if not spreads:
        return None
    # Three seeds may lie close by chance, and rounding alone moves a network as far as another seed does:
    # RM on Appliances by 11 standard deviations of its three seeds, from one of our engines to another.
    pooled = float(
        np.sqrt(np.mean([(spread / np.mean(figures[one])) ** 2 for one, spread in spreads.items()]))
    )
    return SPREADS * max(spreads.get(job, 0.0), pooled * kept)


def _plain(one: Comparison) -> dict[str, Any]:
    return {"kept": one.kept, "now": one.now, "tolerance": one.tolerance, "verdict": one.word}
