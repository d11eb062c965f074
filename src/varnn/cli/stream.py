"""``varnn stream``: JSON lines in, JSON lines out, one model, any number of series.

::

    {"series": "a", "x": {"heat": 20.5}}             -> {"series": "a", "prediction": 61.2}
    {"series": "a", "y": 60.0}                       -> {"series": "a", "innovation": -1.2}
    {"series": "a", "x": {"heat": 20.9}, "y": 63.0}  -> both, in that order, on one line

``"interval": 0.9`` beside ``x`` adds ``lower`` and ``upper``. A model that sees the time of day or week
needs ``"time": "2026-11-15T07:30"`` there. ``series`` may be left out when there is only one; ``x`` may be a
list in the model's order; a ``y`` of null is a missing label. A line that cannot be used yields
``{"error": ...}`` and changes nothing.
"""

import json
import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varnn.cli.options import Model

if TYPE_CHECKING:
    from varnn.fitted import Fitted
    from varnn.stream import Stream


_TERMINATED = 128 + signal.SIGTERM


def stream(
    model_path: Model,
    state: Annotated[
        Path | None, typer.Option(help="File to resume from, and to keep the state of all series in.")
    ] = None,
    every: Annotated[int, typer.Option(help="Lines between two writes of the state.", min=1)] = 10_000,
) -> None:
    """Predict and observe live: JSON lines on standard input, answers on standard output."""
    from varnn.files import check_writable
    from varnn.regressor import load
    from varnn.stream import Stream

    if state is not None:
        check_writable(state)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that the state is kept then, too
    fitted = load(model_path).fitted_
    Stream(fitted)  # a model that cannot stream one series says so now
    streams = _resumed(fitted, state)
    try:
        for number, line in enumerate(sys.stdin.buffer, start=1):  # bytes: one bad line must not end it all
            if not line.isspace():
                sys.stdout.write(json.dumps(_answer(line, number, fitted, streams)) + "\n")
                sys.stdout.flush()
            if state is not None and number % every == 0:
                _keep(state, fitted, streams)
    finally:  # at the end of the input, at Ctrl-C and when nobody reads the answers any more
        if state is not None:
            _keep(state, fitted, streams)


def _answer(line: bytes, number: int, fitted: "Fitted", streams: "dict[str, Stream]") -> dict[str, Any]:
    from varnn.stream import Stream

    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"error": f"line {number} is not JSON: {error}"}
    if not isinstance(message, dict) or not {"x", "y"} & message.keys():
        return {"error": f"line {number} must be an object with 'x', 'y' or both"}
    name = message.get("series")
    answer: dict[str, Any] = {} if name is None else {"series": name}
    key = json.dumps(name)  # so that the series 1 and "1" stay apart
    live = streams.get(key) or Stream(fitted)
    try:
        if "x" in message:
            answer |= _prediction(live, message)
            streams[key] = live
        if "y" in message:
            innovation = live.observe(message["y"])
            answer["innovation"] = None if math.isnan(innovation) else innovation
    except (ValueError, OverflowError) as error:  # our own errors about data, and numbers without end
        answer["error"] = f"line {number}: {error}"
    return answer


def _prediction(live: "Stream", message: dict[str, Any]) -> dict[str, Any]:
    """Predict x, with bounds where the line asks for them: numbers for a level, lists for several."""
    interval = message.get("interval")
    found = live.predict(message["x"], time=message.get("time"), interval=interval)
    if interval is None:
        return {"prediction": found}
    return {"prediction": found.prediction, "lower": found.lower.tolist(), "upper": found.upper.tolist()}


def _keep(path: Path, fitted: "Fitted", streams: "dict[str, Stream]") -> None:
    """Write the snapshots of all series into one file, in one step."""
    import numpy as np

    from varnn import model_file
    from varnn.files import write_atomically

    snapshots = {
        str(index): np.frombuffer(live.snapshot(), np.uint8) for index, live in enumerate(streams.values())
    }
    header = {"format": model_file.FORMAT, "series": list(streams), "model": fitted.fingerprint}
    write_atomically(path, model_file.to_bytes(snapshots, header))


def _resumed(fitted: "Fitted", path: Path | None) -> "dict[str, Stream]":
    from varnn import model_file
    from varnn.errors import ModelFileError
    from varnn.stream import Stream

    if path is None or not path.exists():
        return {}
    snapshots, header = model_file.from_bytes(path.read_bytes(), f"{str(path)!r}")
    if header.get("model") != fitted.fingerprint:
        raise ModelFileError(
            f"{str(path)!r} holds the state of another model. Give that model, or another --state file."
        )
    return {
        key: Stream.restore(fitted, snapshots[str(index)].tobytes())
        for index, key in enumerate(header["series"])
    }
