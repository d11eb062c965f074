"""How a stream with a store stands rough use: kills, nonsense, and what that costs in speed and memory."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.fresh import call, peak_above
from benchmarks.record import Row, significant
from benchmarks.robustness.kills import BATCHES, COMMAND, Killed, killed, lines_for, lines_needed
from benchmarks.robustness.malformed import malformed
from varnn.cli._serving import answer_line
from varnn.data.files import write_atomically
from varnn.data.panel import Panel
from varnn.estimator.loading import load
from varnn.estimator.regressor import VARNNRegressor
from varnn.streaming.by_name import Streams
from varnn.streaming.store import Store

MODELS = ("RM", "default", "linked")
GROUP = 500  # lines that the command writes together
_SERIES = 2000


def fitted(name: str, n_inputs: int) -> VARNNRegressor:
    """Fit the paper's RM, the default, or the default with peers, for one epoch: speed does not tell."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, n_inputs))
    y = X[:, 0] + np.cumsum(random.normal(size=1500)) / 10
    panel = Panel.from_arrays(X, y, series=np.repeat(["a", "b", "c"], 500))
    if name == "RM":
        return VARNNRegressor.paper("RM", epochs=1, device="cpu").fit(panel)
    return VARNNRegressor(epochs=1, peers=name == "linked", device="cpu").fit(panel)


def kill_cases(kills: int, models: Sequence[str] = MODELS) -> Iterator[tuple[str, Killed]]:
    """Share kills out over models and sizes of batches; the three signals come in turn."""
    each = -(-kills // (len(models) * len(BATCHES)))
    for name in models:
        for batch in BATCHES:
            with TemporaryDirectory() as place:
                folder = Path(place)
                fitted(name, 3).save(folder / "model.varnn")
                model = load(folder / "model.varnn")
                lists = name == "linked"  # five rows in each line
                lines = lines_for(3, lines_needed(each, batch), lists=lists)
                yield (
                    f"{name}, batches of {batch:,}",
                    killed(folder / "model.varnn", model, folder, lines, kills=each, batch=batch, seed=batch),
                )


def nonsense(count: int, *, n_inputs: int = 3) -> dict[str, Any]:
    """Send so many malformed lines with good ones between them; see what became of both."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        fitted("default", n_inputs).save(folder / "model.varnn")
        good = lines_for(n_inputs, count // 100, series=1)
        bad = malformed(count, n_inputs)
        mixed = list(chain.from_iterable([*(next(bad) + b"\n" for _ in range(100)), one] for one in good))
        done = subprocess.run(
            [*COMMAND, str(folder / "model.varnn"), "--state", str(folder / "state")],
            input=b"".join(mixed),
            capture_output=True,
        )
        answers = done.stdout.splitlines()
        valid, kinds, found = 0, {"answered": 0, "refused": 0}, []
        for line, text in zip(mixed, answers, strict=False):
            answer = json.loads(text, parse_constant=_refuse)
            valid += 1
            if line.startswith(b'{"series": "s0"'):
                found.append(answer)
            else:
                kinds["refused" if isinstance(answer, dict) and "error" in answer else "answered"] += 1
        with Store(load(folder / "model.varnn")) as clean:
            different = 0
            for line, answer in zip(good, found, strict=True):
                message = json.loads(line)
                number = message.pop("seq")
                different += clean.answer(message) | {"seq": number} != answer
    return {
        "lines": len(mixed),
        "malformed": count,
        "answers": len(answers),
        "answers that are JSON": valid,
        "malformed lines answered with an error": kinds["refused"],
        "malformed lines that could be used after all, or in part": kinds["answered"],
        "good lines between them with another answer than without": different,
        "exit code": done.returncode,
        "bytes on standard error": len(done.stderr),
    }


Way = Callable[[list[str], Path], None]


def speed(
    *, rounds: int = 3, n_inputs: int = 27, lines: int = 20_000, models: Sequence[str] = MODELS[:2]
) -> list[Row]:
    """Time lines a second with and without a store and as it was before, in turn; the best round counts."""
    rows: list[Row] = []
    for name in models:
        model = fitted(name, n_inputs)
        sent = [one.decode() for one in lines_for(n_inputs, lines, series=1)]
        sent = [one.replace(f', "seq": {index}', "") for index, one in enumerate(sent, start=1)]
        ways = _ways(model)
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(rounds):
            for way, (share, go) in ways.items():
                some = sent[: max(50, lines // share)]
                with TemporaryDirectory(dir=".") as place:  # not where files may live in memory
                    began = time.perf_counter()
                    go(some, Path(place) / "state")
                    best[way] = min(best[way], (time.perf_counter() - began) / len(some))
        for way, seconds in best.items():
            rows.append(
                {
                    "model": name,
                    "way": way,
                    "lines a second": significant(1 / seconds),
                    "us a line": significant(1e6 * seconds),
                    "time / no state": significant(seconds / best["no state"]),
                }
            )
    return rows


def _ways(model: Any) -> dict[str, tuple[int, Way]]:
    """List the ways to answer lines; of the slow ones, a share of the lines is timed."""
    return {
        "no state": (1, lambda some, _: _stored(model, some, None, GROUP)),
        "store": (1, lambda some, path: _stored(model, some, path, GROUP)),
        "store, --no-sync": (1, lambda some, path: _stored(model, some, path, GROUP, synchronous=False)),
        "store, one line at a time": (40, lambda some, path: _stored(model, some, path, 1)),
        "store, one line at a time, --no-sync": (
            10,
            lambda some, path: _stored(model, some, path, 1, synchronous=False),
        ),
        "former way, a snapshot every 10,000 lines": (
            1,
            lambda some, path: _former(model, some, path, 10_000),
        ),
        "former way, a snapshot every line": (80, lambda some, path: _former(model, some, path, 1)),
    }


def costs() -> list[Row]:
    """Measure what a series takes in memory and on disk, in a process of its own for each model."""
    return [call("benchmarks.robustness.durability:cost", threads=1, name=name) for name in MODELS[:2]]


def cost(*, threads: int, name: str, n_inputs: int = 27) -> Row:
    """Measure what a series takes, with weights and scratch shared."""
    model = fitted(name, n_inputs)
    x = np.random.default_rng(0).normal(size=(_SERIES, n_inputs))
    streams = Streams(model)

    def fill() -> None:
        for index in range(_SERIES):
            live = streams[str(index)] = streams.begin()
            live.predict(x[index])
            live.observe(0.5)

    _, peak = peak_above(fill)
    live = streams["0"]
    began = time.perf_counter()
    for _ in range(20):
        blob = live.snapshot()
    write = (time.perf_counter() - began) / 20
    began = time.perf_counter()
    for _ in range(20):
        streams.bring_back(blob)
    read = (time.perf_counter() - began) / 20
    return {
        "model": name,
        "kB a series in memory": None if peak is None else significant(peak / _SERIES / 1e3),
        "kB of a state": significant(len(blob) / 1e3),
        "ms to make a state": significant(1e3 * write),
        "ms to take one up": significant(1e3 * read),
    }


def _stored(model: Any, lines: list[str], path: Path | None, group: int, *, synchronous: bool = True) -> None:
    with Store(model, path, synchronous=synchronous) as store:
        for first in range(0, len(lines), group):
            some = lines[first : first + group]
            answers = [answer_line(one.encode(), number, store)[0] for number, one in enumerate(some)]
            store.commit()
            _ = b"\n".join(answers)


def _former(model: Any, lines: list[str], path: Path, every: int) -> None:
    """Do what the command did before there was a store: a snapshot of all series every so many lines."""
    streams = Streams(model)
    for number, line in enumerate(lines, start=1):
        message = json.loads(line)
        name = json.dumps(message["series"])
        live = streams.get(name) or streams.begin()
        answer = {"series": message["series"], "prediction": live.predict(message["x"])}
        streams[name] = live
        innovation = live.observe(message["y"])
        json.dumps(answer | {"innovation": None if innovation != innovation else innovation})
        if number % every == 0:
            write_atomically(path, streams.snapshot())
    write_atomically(path, streams.snapshot())


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
