"""``varnn stream``: JSON lines in, JSON lines out, one model, any number of series.

::

    {"series": "a", "x": {"heat": 20.5}}             -> {"series": "a", "prediction": 61.2}
    {"series": "a", "y": 60.0}                       -> {"series": "a", "innovation": -1.2}
    {"series": "a", "x": {"heat": 20.9}, "y": 63.0}  -> both, in that order, on one line

``"interval": 0.9`` beside ``x`` adds ``lower`` and ``upper``. A model that sees the time of day or week
needs ``"time": "2026-11-15T07:30"`` there. ``series`` may be left out when there is only one; ``x`` may be a
list in the model's order; a ``y`` of null is a missing label. A line that cannot be used yields
``{"error": ...}`` and changes nothing. A list of such objects is answered by a list.

A model with peers sees, of the other series, what was known before the moment of the x. That moment is the
``time``; without times it is the round, and a series that comes again begins the next one. A list holds all
series that have a row at its moment; after a single x, the series of the moment before are taken to come.
"""

import contextlib
import json
import math
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from varnn.cli.options import Model

if TYPE_CHECKING:
    from varnn.stream import Stream
    from varnn.streams import Streams


_TERMINATED = 128 + signal.SIGTERM


def stream(
    model_path: Model,
    state: Annotated[
        Path | None, typer.Option(help="File to resume from, and to keep the state of all series in.")
    ] = None,
    every: Annotated[int, typer.Option(help="Lines between two writes of the state.", min=1)] = 10_000,
) -> None:
    """Predict and observe live: JSON lines on standard input, answers on standard output."""
    from varnn.companions import Companions
    from varnn.files import check_writable, write_atomically
    from varnn.regressor import load
    from varnn.streams import Streams

    if state is not None:
        check_writable(state)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that the state is kept then, too
    fitted = load(model_path).fitted_
    kind = Companions if fitted.recipe.peers else Streams
    streams = kind(fitted)
    if state is not None and state.exists():
        streams = kind.restore(fitted, state.read_bytes(), f"{str(state)!r}")
    # NumPy says that it knows no time zones, and takes 07:30+01:00 as 06:30, which is right.
    warnings.filterwarnings("ignore", message="no explicit representation of timezones")
    try:
        for number, line in enumerate(sys.stdin.buffer, start=1):  # bytes: one bad line must not end it all
            if not line.isspace():
                sys.stdout.write(json.dumps(_answer(line, number, streams)) + "\n")
                sys.stdout.flush()
            if state is not None and number % every == 0:
                write_atomically(state, streams.snapshot())
    finally:  # at the end of the input, at Ctrl-C and when nobody reads the answers any more
        if state is not None:
            write_atomically(state, streams.snapshot())


def _answer(line: bytes, number: int, streams: "Streams") -> dict[str, Any] | list[dict[str, Any]]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"error": f"line {number} is not JSON: {error}"}
    if isinstance(message, dict) and ("x" in message or "y" in message):
        return _answer_to_one(message, number, streams)
    if isinstance(message, list) and message and all(isinstance(one, dict) for one in message):
        return _answer_to_all(message, number, streams)
    return {"error": f"line {number} must be an object with 'x', 'y' or both, or a list of such"}


def _answer_to_all(
    messages: list[dict[str, Any]], number: int, streams: "Streams"
) -> dict[str, Any] | list[dict[str, Any]]:
    """Answer the rows of one moment: where series see each other, those in the list and no others."""
    from varnn.companions import Companions

    asking = [one for one in messages if "x" in one]
    together: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if isinstance(streams, Companions) and asking:
        times = {json.dumps(one.get("time")) for one in asking}
        if len(times) > 1:
            return {"error": f"line {number}: a list holds the rows of one time; this one has {len(times)}"}
        together = streams.together(_key(one) for one in asking)
    with together:
        return [_answer_to_one(one, number, streams) for one in messages]


def _answer_to_one(message: dict[str, Any], number: int, streams: "Streams") -> dict[str, Any]:
    name = message.get("series")
    answer: dict[str, Any] = {} if name is None else {"series": name}
    key = _key(message)
    live = streams.get(key) or streams.begin()
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


def _key(message: dict[str, Any]) -> str:
    """Give the name of a message's series as JSON, so that the series 1 and "1" stay apart."""
    return json.dumps(message.get("series"))


def _prediction(live: "Stream", message: dict[str, Any]) -> dict[str, Any]:
    """Predict x, with bounds where the line asks for them: numbers for a level, lists for several."""
    interval = message.get("interval")
    found = live.predict(message["x"], time=message.get("time"), interval=interval)
    if interval is None:
        return {"prediction": found}
    return {"prediction": found.prediction, "lower": found.lower.tolist(), "upper": found.upper.tolist()}
