"""The default, out of the box, on streams that no setting was chosen on -> errors beside simple models'.

Each stream is a column of the Appliances or the Beijing file taken as a target of its own, picked by name
before anything was fitted to it. Missing targets stay missing. Every model gets the
first 80 % of the rows and nothing else: what it wants to hold out to choose on is its own business, as it is
for a user who calls ``fit``.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fresh
from varnn import baselines, datasets, evaluation
from varnn._types import BoolArray
from varnn.data.files import write_atomically
from varnn.data.panel import Panel
from varnn.data.preparation import split_in_time
from varnn.errors import ConfigError
from varnn.estimator.regressor import VARNNRegressor
from varnn.evaluation import metrics
from varnn.report.provenance import provenance

LEVEL = 0.9  # of the intervals whose coverage is counted
OURS = "VARNN"
FIRST_SEED = 2025


def _stopped_early(known: Panel, name: str = "narx-gbm") -> Any:
    """Boosting whose number of trees is chosen on the last fifth of its rows, which it does not learn."""
    training, validation = split_in_time(known, 0.8, 0.2)
    return baselines.make(name, window=25).fit(training, validation=validation)


SIMPLE: dict[str, Callable[[Panel], evaluation.Model]] = {
    "persistence": lambda known: baselines.make("persistence").fit(known),
    "ARX, 4 lags": lambda known: baselines.make("arx-lr").fit(known),
    "ARX, 24 lags": lambda known: baselines.make("arx-lr", window=25).fit(known),
    "boosting, 24 lags": _stopped_early,
    "boosting, all rows": lambda known: baselines.make("narx-gbm", window=25).fit(known),
    "seasonal ARX": lambda known: baselines.make("seasonal-arx").fit(known),
    "seasonal boosting": lambda known: _stopped_early(known, "seasonal-gbm"),
}


@dataclass(frozen=True)
class Stream:
    """One column as a target, and the columns that are its inputs."""

    data: str
    target: str
    inputs: tuple[str, ...] = ()
    series: str | None = None

    @property
    def name(self) -> str:
        """As people read it.

        Examples
        --------
        >>> Stream("beijing", "O3", series="Huairou").name
        'O3, Huairou'
        """
        return f"{self.target}, {self.series or self.data}"

    def panel(self) -> Panel:
        """Load it."""
        whole = datasets.load(self.data, download=False)
        index = 0 if self.series is None else whole.ids.index(self.series)
        rows = slice(whole.starts[index], whole.starts[index + 1])
        columns = dict(zip(whole.input_names, whole.inputs[rows].T, strict=True))
        columns[whole.target_name] = whole.target[rows]
        return Panel.from_arrays(
            np.column_stack([columns[one] for one in self.inputs]) if self.inputs else None,
            columns[self.target],
            time=None if whole.time is None else whole.time[rows],
            input_names=self.inputs,
            target_name=self.target,
        )


_WEATHER = ("TEMP", "PRES", "DEWP", "RAIN", "WSPM")
STREAMS = (
    Stream("beijing", "PM10", _WEATHER, "Gucheng"),
    Stream("beijing", "PM10", (), "Changping"),
    Stream("beijing", "PM2.5", ("PM10", "CO"), "Dingling"),
    Stream("beijing", "SO2", _WEATHER, "Huairou"),
    Stream("beijing", "NO2", ("O3", *_WEATHER), "Guanyuan"),
    Stream("beijing", "CO", ("PM2.5", "SO2", "NO2", *_WEATHER), "Wanshouxigong"),
    Stream("beijing", "O3", _WEATHER, "Nongzhanguan"),
    Stream("beijing", "O3", (), "Huairou"),
    Stream("beijing", "TEMP", ("PRES", "WSPM"), "Wanliu"),
    Stream("beijing", "DEWP", (), "Shunyi"),
    Stream("appliances", "lights", ("T1", "RH_1", "T2")),
    Stream("appliances", "RH_6", ("T_out", "RH_out", "Windspeed")),
    Stream("appliances", "T8", ("T_out", "RH_8")),
    Stream("appliances", "T_out"),
    Stream("appliances", "Tdewpoint"),
    Stream("appliances", "RH_out", ("T_out", "Press_mm_hg")),
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one stream showed."""

    stream: str
    inputs: int
    rows: int
    scored: int
    missing: float  # share of the targets
    mse: dict[str, float]  # by model
    coverage: float
    seconds: float  # to fit VARNN
    draws: list[float] = field(default_factory=list)  # errors of VARNN, one for each seed

    @property
    def best_simple(self) -> str:
        """Name of the best of the simple models."""
        return min((name for name in self.mse if name != OURS), key=lambda name: self.mse[name])

    @property
    def ratio(self) -> float:
        """Error of VARNN over that of the best simple model."""
        return self.mse[OURS] / self.mse[self.best_simple]


def run(
    names: Sequence[str] | None = None,
    *,
    threads: int = 2,
    seeds: int = 3,
    cache: Path | None = None,
    on_done: Callable[[Found], None],
) -> None:
    """Measure one stream after the other, each in a process of its own."""
    for one in STREAMS:
        if names is None or one.name in names:
            found = fresh.call(
                "benchmarks.accuracy.other_streams:measure",
                threads=threads,
                name=one.name,
                seeds=seeds,
                cache=None if cache is None else str(cache),
            )
            on_done(Found(**found))


def measure(
    *,
    threads: int,
    name: str,
    seeds: int = 1,
    cache: str | None = None,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit all models to one stream and score them; gives the fields of `Found`.

    Scores of VARNN that a folder ``cache`` holds are taken from there.
    """
    import torch

    torch.set_num_threads(threads)
    stream = _stream(name)
    panel, known, scored = _cut(stream)
    truth = panel.target[scored]
    errors = {one: metrics.mse(truth, fitted(known).predict(panel)[scored]) for one, fitted in SIMPLE.items()}
    ours = [_recalled(stream, FIRST_SEED + draw, cache, settings) for draw in range(seeds)]
    return asdict(
        Found(
            stream=name,
            inputs=panel.n_inputs,
            rows=len(panel),
            scored=int(scored.sum()),
            missing=float(np.isnan(panel.target).mean()),
            mse={**errors, OURS: float(np.mean([one["mse"] for one in ours]))},
            draws=[one["mse"] for one in ours],
            coverage=float(np.mean([one["coverage"] for one in ours])),
            seconds=float(np.mean([one["seconds"] for one in ours])),
        )
    )


def score_ours(stream: Stream, seed: int, settings: dict[str, Any] | None = None) -> dict[str, float]:
    """Fit VARNN from one seed; its error on the last rows, the coverage of its intervals, and its seconds."""
    panel, known, scored = _cut(stream)
    model = VARNNRegressor(random_state=seed, **(settings or {}))
    began = time.perf_counter()
    model.fit(known)
    seconds = time.perf_counter() - began
    prediction, lower, upper = model.predict(panel, interval=LEVEL)
    truth = panel.target[scored]
    return {
        "mse": metrics.mse(truth, prediction[scored]),
        "coverage": metrics.coverage(truth, lower[scored], upper[scored]),
        "seconds": seconds,
    }


def place(cache: str | Path, stream: Stream, seed: int) -> Path:
    """File in which a score of VARNN is kept."""
    return Path(cache) / f"{stream.name.replace(', ', '-').replace(' ', '-')}-{seed}.json"


def _recalled(
    stream: Stream, seed: int, cache: str | None, settings: dict[str, Any] | None
) -> dict[str, float]:
    kept = None if cache is None else place(cache, stream, seed)
    if kept is not None and kept.is_file():
        return dict(json.loads(kept.read_text()))
    found = score_ours(stream, seed, settings)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, json.dumps(found).encode())
    return found


def _stream(name: str) -> Stream:
    stream = next((one for one in STREAMS if one.name == name), None)
    if stream is None:
        raise ConfigError(f"there is no stream {name!r}. There are {[one.name for one in STREAMS]}.")
    return stream


def _cut(stream: Stream) -> tuple[Panel, Panel, BoolArray]:
    """All rows, those that models see, and which of all are scored."""
    panel = stream.panel()
    known, test = split_in_time(panel, 0.8, 0.2)
    return panel, known, np.isin(panel.rows, test.rows) & ~np.isnan(panel.target)


def summed_up(found: Sequence[Found], command: str) -> dict[str, Any]:
    """Turn what was found into what is kept: a line per stream, their mean, and where it was measured.

    Examples
    --------
    >>> errors = {"persistence": 2.0, "ARX, 4 lags": 1.0, "VARNN": 0.5}
    >>> one = Found(stream="O3, Huairou", inputs=0, rows=10, scored=2, missing=0.1, mse=errors,
    ...             coverage=0.9, seconds=1.0)
    >>> kept = summed_up([one], "python -m benchmarks other-streams")
    >>> kept["geometric mean"], kept["lines"][0]["best simple"]
    (0.5, 'ARX, 4 lags')
    """
    mean = float(np.exp(np.mean(np.log([one.ratio for one in found]))))
    lines = [{**asdict(one), "best simple": one.best_simple, "of best simple": one.ratio} for one in found]
    return {
        "command": command,
        **provenance(),
        "level": LEVEL,
        "geometric mean": mean,
        "worst": max(one.ratio for one in found),
        "lines": lines,
    }
