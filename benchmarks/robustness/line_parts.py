"""What a line of a stream takes beside the model's own step, part by part.

A line has 26 inputs by name, a time and a label. All is timed in turn, and the best round counts. What the
model takes is a step with an array of inputs, and without a time; the rest of a whole line is everything
else.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.record import Row, significant
from varnn.cli._serving import answer_line
from varnn.data.panel import Panel
from varnn.estimator.regressor import VARNNRegressor
from varnn.streaming import json_text
from varnn.streaming._values import inputs_of, later_than
from varnn.streaming.messages import check, check_name
from varnn.streaming.store import Store

_INPUTS = [f"sensor_{index}" for index in range(26)]
_GROUP = 500


def parts(*, rounds: int = 5, lines: int = 5000) -> list[Row]:
    """Time the parts of a line, by orjson where it is installed and by the standard library."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, len(_INPUTS)))
    model = VARNNRegressor.paper("RM", epochs=1, device="cpu").fit(
        Panel.from_arrays(X, X[:, 0] + random.normal(size=400), input_names=_INPUTS)
    )
    sent = list(_lines(lines))
    ways: dict[str, Any] = {"standard library": None}
    if json_text.fast is not None:
        ways["orjson"] = json_text.fast
    best: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        for way, library in ways.items():
            with _read_by(library):
                for part, work in _work(model, sent).items():
                    began = time.perf_counter()
                    work()
                    seconds = (time.perf_counter() - began) / lines
                    best[way, part] = min(best.get((way, part), seconds), seconds)
    for way in ways:
        for whole in ("whole line", "whole line, --state"):
            best[way, f"{whole}, less the model"] = best[way, whole] - best[way, "the model's step"]
    return [
        {"JSON by": way, "part": part, "us a line": significant(1e6 * seconds)}
        for (way, part), seconds in best.items()
    ]


def _lines(count: int) -> Iterator[bytes]:
    random, first = np.random.default_rng(1), np.datetime64("2026-01-01T00:00")
    for row in range(count):
        x = dict(zip(_INPUTS, random.normal(size=len(_INPUTS)).round(4).tolist(), strict=True))
        message = {"series": "a", "x": x, "time": str(first + row), "y": round(float(random.normal()), 3)}
        yield json.dumps(message).encode()


def _work(model: VARNNRegressor, sent: list[bytes]) -> dict[str, Callable[[], None]]:
    messages = [json_text.read(line) for line in sent]
    answer = {"series": "a", "seq": 12345, "prediction": 0.1234567890123, "innovation": -1.234567890123}
    names, live = model.fitted_.input_names, model.stream()
    read = [(np.array(list(one["x"].values())), one["y"]) for one in messages]

    def checked() -> None:
        for one in messages:
            check_name(one)
            check(one)

    def timed() -> None:
        last = None
        for one in messages:
            last = later_than(last, one["time"])

    def step() -> None:
        for x, y in read:
            live.predict(x)
            live.observe(y)

    return {
        "read": lambda: _each(json_text.read, sent),
        "check": checked,
        "inputs by name": lambda: _each(lambda one: inputs_of(one["x"], names, (len(names),)), messages),
        "time": timed,
        "write": lambda: _each(lambda _: json_text.write(answer), sent),
        "the model's step": step,
        "whole line": lambda: _served(model, sent, kept=False),
        "whole line, --state": lambda: _served(model, sent, kept=True),
    }


def _each(work: Callable[[Any], object], values: list[Any]) -> None:
    for value in values:
        work(value)


def _served(model: VARNNRegressor, sent: list[bytes], *, kept: bool) -> None:
    """Answer lines as the command does, but for reading and writing files of its own."""
    with TemporaryDirectory(dir=".") as place, Store(model, Path(place) / "state" if kept else None) as store:
        for first in range(0, len(sent), _GROUP):
            some = sent[first : first + _GROUP]
            answers = [answer_line(line, number, store)[0] for number, line in enumerate(some)]
            store.commit()
            _ = b"\n".join(answers)


@contextmanager
def _read_by(library: Any) -> Iterator[None]:
    before, json_text.fast = json_text.fast, library
    try:
        yield
    finally:
        json_text.fast = before
