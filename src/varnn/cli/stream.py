"""``varnn stream``: JSON lines in, JSON lines out, one model, any number of series.

::

    {"series": "a", "x": {"heat": 20.5}}             -> {"series": "a", "prediction": 61.2}
    {"series": "a", "y": 60.0}                       -> {"series": "a", "innovation": -1.2}
    {"series": "a", "x": {"heat": 20.9}, "y": 63.0}  -> both, in that order, on one line

``series`` may be left out when there is only one; ``x`` may be a list in the model's order; a ``y`` of
null is a missing label. A line that cannot be used yields ``{"error": ...}`` and changes nothing.
"""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from varnn.stream import Stream


def stream(
    model_path: Annotated[Path, typer.Argument(metavar="MODEL", help="File written by varnn fit.")],
) -> None:
    """Predict and observe live: JSON lines on standard input, answers on standard output."""
    from varnn.regressor import load

    fitted = load(model_path).fitted_
    streams: dict[str, Stream] = {}
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            sys.stdout.write(json.dumps(_answer(line, number, fitted, streams)) + "\n")
            sys.stdout.flush()


def _answer(line: str, number: int, fitted: Any, streams: "dict[str, Stream]") -> dict[str, Any]:
    from varnn.errors import VarnnError
    from varnn.stream import Stream

    try:
        message = json.loads(line)
    except json.JSONDecodeError as error:
        return {"error": f"line {number} is not JSON: {error}"}
    if not isinstance(message, dict) or not {"x", "y"} & message.keys():
        return {"error": f"line {number} must be an object with 'x', 'y' or both"}
    name = message.get("series")
    answer: dict[str, Any] = {} if name is None else {"series": name}
    key = json.dumps(name)
    live = streams.get(key) or Stream(fitted)
    try:
        if "x" in message:
            answer["prediction"] = live.predict(message["x"])
            streams[key] = live
        if "y" in message:
            innovation = live.observe(message["y"])
            answer["innovation"] = None if math.isnan(innovation) else innovation
    except VarnnError as error:
        answer["error"] = f"line {number}: {error}"
    return answer
