"""Which jobs each table and figure of the paper needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from varnn.errors import ConfigError, nearest
from varnn.evaluation import DETERMINISTIC, ProtocolName
from varnn.network.cell import VARIANTS
from varnn.paper.jobs import FILLED_BY_PART, FORESTS, RECURRENT, STATIC, Job, job
from varnn.paper.published import DATASETS

PROTOCOLS: tuple[ProtocolName, ...] = ("paper", "honest")
LAGGED = ("arx-lr", "narx-rf", "narx-mlp")
BEYOND = ("persistence", "narx-gbm")  # not in the paper, but belong beside every score
SECONDS = ("persistence", "lr", "arx-lr")  # what takes no longer, on any data set
TABLES = ("table1", "table2", "table3", "ablations", "readings", "splits", "figures", "complexity")
WITHOUT_JOBS = ("table1", "complexity")  # which fit nothing
LAG_SETS = ("as-published", "correct")
FOREST = 100  # scikit-learn's number of trees
LARGE_FOREST = 500  # the paper's
SMALL_FOREST = 20  # of rows that are not printed, and of a quick run
SPLITS = range(1, 101)  # seeds of random orders of BIDMC's records
SPLIT_MODELS = (("persistence", ""), ("lr", ""), ("arx-lr", "as-published"), ("arx-lr", "correct"))
SPLITS_OF_RM = range(1, 11)
MANY_SEEDS = 10  # for RM on Appliances, whose seeds differ most
QUICK_EPOCHS, QUICK_SPLITS = 3, 3
QUICK_REMARK = f"Quick run: {QUICK_EPOCHS} epochs and {SMALL_FOREST} trees, not the paper's settings."
ABLATION_RATE = 1e-3  # the paper's ablations name another learning rate than its settings


@dataclass(frozen=True)
class Scope:
    """What of the paper to run.

    Parameters
    ----------
    tables, data : sequence of str
        Tables and data sets, by name.
    models : sequence of str or None, default=None
        Models to keep, by name; None keeps all.
    seeds : int, default=3
        Seeds 2025, 2026, ... for models that draw.
    quick : bool, default=False
        A slice of a few minutes: linear rows everywhere, with three random splits of BIDMC; the rest on
        Appliances alone, with 3 epochs and 20 trees, so its figures are not the paper's.
    trees : int or None, default=None
        Trees of every forest. The paper says 500, its figures look like scikit-learn's 100, and 500 take
        hours on BIDMC and Beijing: by default printed rows have 100, and the static one of Appliances 500
        as well; rows that are not printed (correct lags, honest protocol) have 20, and so has NARX on BIDMC,
        where a tree takes 40 seconds, with one seed.
    """

    tables: Sequence[str] = TABLES
    data: Sequence[str] = DATASETS
    models: Sequence[str] | None = None
    seeds: int = 3
    quick: bool = False
    trees: int | None = None

    def __post_init__(self) -> None:
        for name, values, known in (("table", self.tables, TABLES), ("dataset", self.data, DATASETS)):
            for value in values:
                if value not in known:
                    raise ConfigError(f"{name} {value!r} is not in the paper. {nearest(value, known)}")
        every = (*STATIC, *LAGGED, *RECURRENT, *BEYOND, *VARIANTS)
        for value in self.models or ():
            if value not in every:
                raise ConfigError(f"model {value!r} is not in the paper. {nearest(value, every)}")

    def jobs(self) -> list[Job]:
        """List the jobs, the longest first, so that no core idles at the end."""
        listed: list[Job] = []
        if {"table2", "table3", "figures"} & set(self.tables):
            listed += self._table2()
        if {"ablations", "figures"} & set(self.tables):
            listed += self._ablations()
        if "readings" in self.tables:
            listed += self._readings()
        if "splits" in self.tables and "bidmc" in self.data:
            listed += [one for jobs in self.splits().values() for one in jobs]
        kept = [one for one in dict.fromkeys(listed) if self.models is None or one.model in self.models]
        if self.quick:
            kept = [one for one in kept if one.model in SECONDS or one.dataset == "appliances"]
        return sorted(kept, key=_weight, reverse=True)

    def with_seeds(self, dataset: str, protocol: ProtocolName, model: str, **settings: Any) -> list[Job]:
        """List one model's jobs, one per seed."""
        seeds = 1 if self.quick or model in DETERMINISTIC else self.seeds
        if model in FORESTS:
            printed = protocol == "paper" and settings.get("lags") != "correct"
            small = not printed or self.quick or (dataset, model) == ("bidmc", "narx-rf")
            settings = {"trees": self.trees or (SMALL_FOREST if small else FOREST), **settings}
            seeds = 1 if small else seeds
        elif self.quick and (model in VARIANTS or model in (*RECURRENT, "mlp", "narx-mlp")):
            settings = {**settings, "epochs": QUICK_EPOCHS}
        if (dataset, protocol, model, settings) == ("appliances", "honest", "RM", {}):
            seeds = max(seeds, MANY_SEEDS) if self.seeds >= 3 else seeds
        return [job(dataset, protocol, model, 2025 + seed, **settings) for seed in range(seeds)]

    def large_forest(self, dataset: str, model: str) -> list[Job]:
        """List the static forest of Appliances with the paper's trees; elsewhere they take hours."""
        if (dataset, model) != ("appliances", "rf") or self.quick or self.trees is not None:
            return []
        return self.with_seeds(dataset, "paper", model, trees=LARGE_FOREST)[:1]

    def reading(self, dataset: str, model: str, *, current: bool, activation: str) -> list[Job]:
        """List the jobs of one reading of a recurrent row: with x_t or without, with relu or tanh."""
        settings: dict[str, Any] = {"current": True} if current else {}
        # What is a layer's usual activation stays unsaid, so that it is one job with the table's own.
        if activation != ("relu" if model == "rnn" else "tanh"):
            settings["activation"] = activation
        return self.with_seeds(dataset, "paper", model, **settings)

    def filled_by_part(self) -> list[Job]:
        """List the linear rows of Beijing, static and as published, with each part interpolated by itself."""
        return [
            job(FILLED_BY_PART, "paper", "lr"),
            job(FILLED_BY_PART, "paper", "arx-lr", lags="as-published"),
        ]

    def splits(self) -> dict[str, list[Job]]:
        """List the jobs of random splits of BIDMC's records, by model and lags."""
        found = {}
        for model, lags in SPLIT_MODELS:
            settings: dict[str, Any] = {"lags": lags} if lags else {}
            name = f"{model}, {lags}" if lags else model
            drawn = SPLITS[:QUICK_SPLITS] if self.quick else SPLITS
            found[name] = [job("bidmc", "paper", model, split=split, **settings) for split in drawn]
        if not self.quick:
            found["RM"] = [job("bidmc", "paper", "RM", split=split) for split in SPLITS_OF_RM]
        return found

    def _table2(self) -> list[Job]:
        listed: list[Job] = []
        for dataset in self.data:
            for protocol in PROTOCOLS:
                for model in (*STATIC, *RECURRENT, *BEYOND, *VARIANTS):
                    listed += self.with_seeds(dataset, protocol, model)
                for model in LAGGED:
                    for lags in LAG_SETS:
                        listed += self.with_seeds(dataset, protocol, model, lags=lags)
            listed += self.large_forest(dataset, "rf")
            for model in RECURRENT:
                listed += self.with_seeds(dataset, "honest", model, fair=True)
        if "beijing" in self.data:
            listed += self.filled_by_part()
        return listed

    def _readings(self) -> list[Job]:
        return [
            one
            for dataset in self.data
            for model in RECURRENT
            for current in (False, True)
            for activation in ("relu", "tanh")
            for one in self.reading(dataset, model, current=current, activation=activation)
        ]

    def _ablations(self) -> list[Job]:
        listed: list[Job] = []
        for dataset in self.data:
            for settings in ablation_settings(dataset):
                variant = settings.pop("variant")
                listed += self.with_seeds(dataset, "paper", str(variant), **settings)
        return listed


def ablation_settings(dataset: str) -> list[dict[str, Any]]:
    """List the settings of the paper's ablations on a data set; each names its variant.

    Examples
    --------
    >>> [one["memory_size"] for one in ablation_settings("beijing") if "memory_size" in one]
    [4, 8, 9, 16, 18, 32, 64]
    """
    inputs = {"appliances": 27, "bidmc": 375, "beijing": 9}[dataset]
    base: dict[str, Any] = {"learning_rate": ABLATION_RATE}
    sizes = sorted({4, 8, 16, 32, 64, min(128, 2 * inputs), inputs})
    return [
        {**base, "variant": "RM", "residual": "none"},
        {**base, "variant": "RM", "residual": "scalar"},
        {**base, "variant": "ARM"},
        {**base, "variant": "RM", "memory_activation": "tanh"},
        *({**base, "variant": "RM", "memory_size": size} for size in sizes),
    ]


def _weight(one: Job) -> float:
    """Guess how long a job takes on one core, in seconds."""
    at = {"appliances": 0, "bidmc": 1, "beijing": 2}.get(one.dataset, 2)
    settings = dict(one.settings)
    if one.model in FORESTS:
        a_tree = {"rf": (0.3, 5.0, 2.0), "narx-rf": (1.9, 43.0, 11.0)}[one.model][at]
        return a_tree * float(settings.get("trees", LARGE_FOREST))
    share = float(settings.get("epochs", 50)) / 50  # the paper's number; what does not train has no epochs
    if one.model in RECURRENT:
        return (15.0, 30.0, 250.0)[at] * (1.0 if one.model == "rnn" else 2.7) * share
    if one.model in VARIANTS:
        seconds = {"RM": (3, 20, 45), "RM+AM": (11, 54, 168), "ARM": (6, 99, 80)}
        return seconds.get(one.model, (10, 109, 174))[at] * share
    return {
        "mlp": (4.0, 49.0, 99.0),
        "narx-mlp": (5.0, 42.0, 81.0),
        "narx-gbm": (1.0, 76.0, 23.0),
        "arx-lr": (0.1, 6.0, 1.0),
    }.get(one.model, (0.1, 1.0, 1.0))[at] * share
