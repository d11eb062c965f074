"""Which jobs each table and figure of the paper needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from varnn.errors import ConfigError, nearest
from varnn.evaluation import DETERMINISTIC, ProtocolName
from varnn.network.cell import VARIANTS
from varnn.paper.jobs import STATIC, Job, job
from varnn.paper.published import DATASETS

PROTOCOLS: tuple[ProtocolName, ...] = ("paper", "honest")
LAGGED = ("arx-lr", "narx-rf", "narx-mlp")
RECURRENT = ("rnn", "lstm", "gru")
BEYOND = ("persistence", "narx-gbm")  # not in the paper, but belong beside every score
SECONDS = ("persistence", "lr", "arx-lr")  # what takes no longer, on any data set
TABLES = ("table1", "table2", "table3", "ablations", "figures", "complexity")
LAG_SETS = ("as-published", "correct")
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
        A slice of a few minutes: linear rows everywhere; the rest on Appliances alone, with 3 epochs
        and 20 trees, so its figures are not the paper's.
    trees : int, default=500
        Trees of a forest, where fewer than the paper's 500 are wanted: they take hours on BIDMC and
        Beijing. The printed rows of Appliances always have 500.
    """

    tables: Sequence[str] = TABLES
    data: Sequence[str] = DATASETS
    models: Sequence[str] | None = None
    seeds: int = 3
    quick: bool = False
    trees: int = 500

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
        kept = [one for one in dict.fromkeys(listed) if self.models is None or one.model in self.models]
        if self.quick:
            kept = [one for one in kept if one.model in SECONDS or one.dataset == "appliances"]
        return sorted(kept, key=_weight, reverse=True)

    def with_seeds(self, dataset: str, protocol: ProtocolName, model: str, **settings: object) -> list[Job]:
        """List one model's jobs, one per seed."""
        forest, printed = model.endswith("rf"), dataset == "appliances" and protocol == "paper"
        printed = printed and settings.get("lags") != "correct"
        # Models that draw nothing, and those that take a quarter of an hour each, run once.
        slow = forest or (model in RECURRENT and dataset != "appliances")
        seeds = 1 if self.quick or slow or model in DETERMINISTIC else self.seeds
        if forest:
            trees = 20 if self.quick else (500 if printed else self.trees)
            settings = {**settings, "trees": trees, "n_jobs": 1}
        elif self.quick and (model in VARIANTS or model in (*RECURRENT, "mlp", "narx-mlp")):
            settings = {**settings, "epochs": 3}
        return [job(dataset, protocol, model, 2025 + seed, **settings) for seed in range(seeds)]

    def _table2(self) -> list[Job]:
        listed: list[Job] = []
        for dataset in self.data:
            for protocol in PROTOCOLS:
                for model in (*STATIC, *RECURRENT, *BEYOND, *VARIANTS):
                    listed += self.with_seeds(dataset, protocol, model)
                for model in LAGGED:
                    for lags in LAG_SETS:
                        listed += self.with_seeds(dataset, protocol, model, lags=lags)
                for model in RECURRENT:
                    if protocol == "honest":
                        listed += self.with_seeds(dataset, protocol, model, fair=True)
        return listed

    def _ablations(self) -> list[Job]:
        listed: list[Job] = []
        for dataset in self.data:
            for settings in ablation_settings(dataset):
                variant = settings.pop("variant")
                listed += self.with_seeds(dataset, "paper", str(variant), **settings)
        return listed


def ablation_settings(dataset: str) -> list[dict[str, object]]:
    """List the settings of the paper's ablations on a data set; each names its variant.

    Examples
    --------
    >>> [one["memory_size"] for one in ablation_settings("beijing") if "memory_size" in one]
    [4, 8, 9, 16, 18, 32, 64]
    """
    inputs = {"appliances": 27, "bidmc": 375, "beijing": 9}[dataset]
    base: dict[str, object] = {"learning_rate": ABLATION_RATE}
    sizes = sorted({4, 8, 16, 32, 64, min(128, 2 * inputs), inputs})
    return [
        {**base, "variant": "RM", "residual": "none"},
        {**base, "variant": "RM", "residual": "scalar"},
        {**base, "variant": "ARM"},
        {**base, "variant": "RM", "memory_activation": "tanh"},
        *({**base, "variant": "RM", "memory_size": size} for size in sizes),
    ]


def _weight(one: Job) -> float:
    """Guess how long a job takes, in any unit: rows times what a row costs."""
    rows = {"appliances": 16, "bidmc": 20, "beijing": 337}[one.dataset]
    cost = {"rf": 25, "narx-rf": 120, "lstm": 10, "gru": 10, "rnn": 5, "mlp": 2, "narx-mlp": 3}
    wide = 4.0 if one.dataset == "bidmc" else 1.0
    forest = dict(one.settings).get("trees", 500) / 500 if one.model.endswith("rf") else 1.0
    return rows * wide * forest * (3.0 if one.model in VARIANTS else float(cost.get(one.model, 0.1)))
