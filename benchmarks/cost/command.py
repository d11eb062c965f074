"""``varnn stream`` as a program: JSON lines in, answers with intervals out, lines a second."""

import json
import os
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.cost.compiled import VARIABLE
from benchmarks.cost.house import rows_like_appliances
from benchmarks.cost.trained import LEVEL, TRAINING, form, trained_default
from benchmarks.record import Measured, Row, significant
from benchmarks.robustness.kills import COMMAND
from varnn.data.panel import Panel
from varnn.errors import VarnnError

LINES, MANY = 10_000, 100
ONE = "one series"


@dataclass(frozen=True)
class Way:
    """How the command is used."""

    series: int = 1
    state: bool = False
    arguments: tuple[str, ...] = ()
    compiled: bool = True


WAYS = {
    ONE: Way(),
    "one series, NumPy only": Way(compiled=False),
    "one series, --state": Way(state=True),
    "one series, --state --no-sync": Way(state=True, arguments=("--no-sync",)),
    f"{MANY} series": Way(MANY),
    f"{MANY} series, --state": Way(MANY, state=True),
}


def measure(
    *, threads: int, rounds: int, lines: int = LINES, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Time lines a second of each way to use the command, in turn.

    Parameters
    ----------
    threads
        Threads the process was started with; the command has as many.
    rounds, lines
        Rounds, and lines sent in one.
    settings
        Of the model, for tests that have no time.
    """
    settings = settings or {}
    model = trained_default(**settings)
    panel = rows_like_appliances(settings.get("rows", TRAINING) + lines)
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    starts: dict[str, list[float]] = {name: [] for name in WAYS}
    with TemporaryDirectory(dir=".") as place:  # not where files may live in memory
        path = Path(place) / "model.varnn"
        model.save(path)
        for turn in range(rounds):
            for name, way in WAYS.items():
                state = Path(place) / f"{turn} {name}" if way.state else None
                start, spent = answered(path, lines_of(panel, way.series, lines), way, state)
                starts[name].append(start)
                seconds[name].append(spent)
    best = {name: min(spent) / lines for name, spent in seconds.items()}
    rows: list[Row] = [
        {
            "contender": name,
            "lines a second": significant(1 / best[name]),
            "us a line": significant(1e6 * best[name]),
            f"time / {ONE}": significant(best[name] / best[ONE]),
            "s to the first answers": significant(min(starts[name])),
        }
        for name in WAYS
    ]
    measured = Measured(
        name="stream-command",
        title=f"`varnn stream`, {lines:,} lines with x by name, y, time and a {100 * LEVEL:.0f} % interval: "
        + form(model.fitted_),
        threads=threads,
        rows=rows,
        checks=["every line was answered with a prediction, both bounds and the innovation"],
    )
    return asdict(measured)


def lines_of(panel: Panel, series: int, count: int) -> list[bytes]:
    """Make lines of some series in turn, and before them one for each."""
    times = np.datetime_as_string(np.asarray(panel.time).astype("datetime64[s]"))
    made = []
    for number in range(count + series):
        at = number // series
        message: dict[str, Any] = {"series": f"house{number % series}"}
        message["x"] = dict(zip(panel.input_names, panel.inputs[at].tolist(), strict=True))
        message |= {"y": float(panel.target[at]), "time": str(times[at]), "interval": LEVEL}
        made.append(json.dumps(message).encode() + b"\n")
    return made


def answered(model: Path, lines: list[bytes], way: Way, state: Path | None) -> tuple[float, float]:
    """Start the command and send it lines: seconds to the first answers, and of all those after."""
    arguments = [*COMMAND, str(model), *way.arguments]
    arguments += [] if state is None else ["--state", str(state)]
    environment = dict(os.environ) | ({} if way.compiled else {VARIABLE: "0"})
    began = time.perf_counter()
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        start = _exchange(process, lines[: way.series], began)
        spent = _exchange(process, lines[way.series :], time.perf_counter())
    return start, spent


def _exchange(process: "subprocess.Popen[bytes]", lines: list[bytes], began: float) -> float:
    """Send lines from a thread of their own, read all answers here; seconds since it began."""
    if process.stdin is None or process.stdout is None:
        raise VarnnError("the command must be started with pipes for lines and answers.")
    sent = threading.Thread(target=_send, args=(process.stdin, b"".join(lines)))
    sent.start()
    answers = [process.stdout.readline() for _ in lines]
    spent = time.perf_counter() - began
    sent.join()
    for answer in answers:
        if not answer or not {"prediction", "lower", "upper", "innovation"} <= json.loads(answer).keys():
            raise VarnnError(f"every line must be answered in full; an answer was {answer[:200]!r}.")
    return spent


def _send(pipe: Any, blob: bytes) -> None:
    pipe.write(blob)
    pipe.flush()
