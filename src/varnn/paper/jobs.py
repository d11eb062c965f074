"""One job: a data set, a protocol, a model with all its settings, a seed -> train and test error.

A job is plain data, so its hash can name a file in a cache and a process can be handed it.
"""

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from varnn import baselines, datasets, evaluation
from varnn.data.panel import Panel
from varnn.data.preparation import fill_gaps, split_by_series
from varnn.data.windows import window_ends
from varnn.datasets import beijing, bidmc
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation import Parts, ProtocolName
from varnn.network.cell import VARIANTS
from varnn.report.provenance import provenance

STATIC = ("lr", "rf", "mlp")
FORESTS = ("rf", "narx-rf")
RECURRENT = ("rnn", "lstm", "gru")
FILLED_BY_PART = "beijing, filled by part"  # a data set of jobs beside the paper's three


@dataclass(frozen=True)
class Job:
    """What to fit and score.

    Parameters
    ----------
    dataset, protocol, model, seed : str, ProtocolName, str, int
        A data set and a protocol by name, a variant or baseline by name, and its seed.
    settings : tuple, default=()
        Further settings of the model, as sorted pairs.
    split : int, default=2025
        Seed of the order in which BIDMC's records are split; the paper does not print its own.
    """

    dataset: str
    protocol: ProtocolName
    model: str
    seed: int = 2025
    settings: tuple[tuple[str, Any], ...] = ()
    split: int = 2025

    @property
    def key(self) -> str:
        """Name the job by everything its result depends on: configuration and numerical code."""
        text = json.dumps([asdict(self), code_fingerprint()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def __str__(self) -> str:
        split = [("split", self.split)] if self.split != 2025 else []
        said = ", ".join(f"{name}={value}" for name, value in [*self.settings, *split])
        return f"{self.dataset}/{self.protocol}/{self.model}{f' ({said})' if said else ''} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a job gives: mean squared errors in the paper's unit (see ``Parts.unit``).

    Squared errors row by row are kept under the honest protocol only, for tests of significance. ``made``
    says on which machine and with which libraries it came about.
    """

    train: float
    test: float
    seconds: float
    epochs: list[list[float]] = field(default_factory=list)  # [epoch, training loss, validation loss]
    squared: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    made: dict[str, str] = field(default_factory=dict)


def job(
    dataset: str, protocol: ProtocolName, model: str, seed: int = 2025, *, split: int = 2025, **settings: Any
) -> Job:
    """Make a job with settings in a fixed order.

    Examples
    --------
    >>> print(job("appliances", "paper", "arx-lr", lags="as-published"))
    appliances/paper/arx-lr (lags=as-published) seed 2025
    """
    return Job(dataset, protocol, model, seed, tuple(sorted(settings.items())), split)


def run(job: Job, *, threads: int = 1, device: str = "cpu") -> Outcome:
    """Fit the model of a job and score it on its training and test rows.

    Parameters
    ----------
    job : Job
        What to fit.
    threads : int, default=1
        Threads on which a forest grows; they change no tree.
    device : {"cpu", "cuda"}, default="cpu"
        Where recurrent networks are trained. Everything else is trained on the CPU.
    """
    parts = cut_dataset(job.dataset, job.protocol, job.split)
    model = _model(job, threads, device)
    began = time.perf_counter()
    model.fit(parts.train, validation=parts.validation)
    seconds = time.perf_counter() - began
    squared = _squared(job, model, parts.test, parts.unit)
    return Outcome(
        train=float(np.mean(_squared(job, model, parts.train, parts.unit))),
        test=float(np.mean(squared)),
        seconds=seconds,
        epochs=[
            [line["epoch"], line["loss"], line["validation_loss"]] for line in getattr(model, "history_", [])
        ],
        squared=squared.astype(np.float32) if job.protocol == "honest" else np.empty(0, np.float32),
        made=_made(device if job.model in RECURRENT else "cpu"),
    )


@lru_cache(maxsize=2)
def cut_dataset(dataset: str, protocol: ProtocolName, split: int = 2025) -> Parts:
    """Cut a data set in the paper's preparation: in time, and BIDMC by whole records.

    Honest parts are 64 / 16 / 20 in time, and 34 / 8 / 11 records, the same 11 test records as in the
    paper's protocol; `split` is the seed of their order. All windows lie inside their part.
    """
    if dataset == FILLED_BY_PART:
        return _filled_by_part(protocol)
    panel = datasets.load(dataset, paper=True, download=False)
    if dataset != "bidmc":
        return evaluation.cut(panel, protocol)
    if protocol == "paper":
        train, test = split_by_series(panel, *bidmc.paper_records(split))
        return Parts(train, test, test, test, protocol)
    train, validation, test = split_by_series(panel, *bidmc.honest_records(split))
    return Parts(train, validation, test, test, protocol)


def _filled_by_part(protocol: ProtocolName) -> Parts:
    """Cut Beijing first and interpolate each part by itself: nothing then comes from another part."""
    panel = datasets.load("beijing", download=False)
    kept = [panel.input_names.index(name) for name in beijing.PAPER_INPUTS]
    panel = replace(panel, inputs=panel.inputs[:, kept], input_names=beijing.PAPER_INPUTS)
    parts = evaluation.cut(panel, protocol)
    train, validation, test = (
        fill_gaps(part, "interpolate", target=True) for part in (parts.train, parts.validation, parts.test)
    )
    return Parts(train, validation, test, test, protocol)


def _model(job: Job, threads: int, device: str) -> evaluation.Model:
    settings = dict(job.settings)
    if job.model in VARIANTS:
        return VARNNRegressor.paper(**settings, variant=job.model, random_state=job.seed)
    if job.model in FORESTS:
        settings |= {"n_jobs": threads}
    if job.model in RECURRENT:
        settings |= {"device": device}
    return baselines.make(job.model, random_state=job.seed, **settings)


def _made(device: str) -> dict[str, str]:
    facts = provenance()
    if device != "cpu":
        import torch

        facts["machine"] += f", {torch.cuda.get_device_name()}"
    return facts


def _squared(job: Job, model: evaluation.Model, panel: Panel, unit: float) -> npt.NDArray[np.float64]:
    """Squared errors in the paper's unit, of rows with a full window.

    The paper's static rows come out to the digit only when every row is scored, so that is what its
    protocol means for them; the honest protocol scores all models on the same rows.
    """
    every_row = job.protocol == "paper" and job.model in STATIC
    rows = window_ends(panel, 1 if every_row else evaluation.PAPER_WINDOW)
    return np.asarray(((panel.target - model.predict(panel))[rows] / unit) ** 2)


@lru_cache(maxsize=1)
def code_fingerprint() -> str:
    """Hash the rooms that a number can depend on, whole, so that a cache never outlives the code.

    What is left out makes no figure: files of models, monitors, streams, pages, the command, and of this
    room what lists jobs and draws tables.
    """
    package = Path(__file__).parent.parent
    rooms = ("data", "network", "model", "fitting", "estimator", "baselines", "datasets", "evaluation")
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(path for room in rooms for path in (package / room).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
