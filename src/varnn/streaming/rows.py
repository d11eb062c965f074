"""Messages about numbered rows: what opens a row, whose label comes with it, and labels that come late.

::

    {"x": [20.5], "time": "2026-11-15T07:30"}      the next row                          predict
    {"y": 60.0}                                    the label of the row that is open     observe
    {"x": [20.9], "last_y": 60.0}                  that label, and the next row          step
    {"x": [20.9], "y": 63.0}                       a whole row: predicted, then observed
    {"y": 60.0, "row": 17}                         the label of a row that still waits; or by its "time"

A row that is open when the next one comes is left waiting for its label (`varnn.streaming.late`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from varnn.data.rules import shown
from varnn.data.timestamps import timestamp
from varnn.errors import DataError
from varnn.streaming.late import LateLabels
from varnn.streaming.messages import FIELDS_OF_ROWS, finite


class Taken(NamedTuple):
    """What a message did: the row it opened with its prediction, and the row it labelled with its label."""

    opened: int | None = None
    prediction: float | None = None
    lower: float | None = None
    upper: float | None = None
    labelled: int | None = None
    y: float | None = None
    innovation: float | None = None
    events: Sequence[Mapping[str, Any]] = ()


def check_rows(message: Mapping[str, Any]) -> None:
    """Refuse fields that contradict each other.

    Examples
    --------
    >>> check_rows({"x": [1.0], "last_y": 2.0})
    >>> check_rows({"y": 1.0, "last_y": 2.0})
    Traceback (most recent call last):
    ...
    varnn.errors.DataError: last_y comes with x, as the label of the row before; for a label alone give y.
    """
    if "last_y" in message and "x" not in message:
        raise DataError("last_y comes with x, as the label of the row before; for a label alone give y.")
    if "x" not in message and (unknown := sorted(message.keys() - FIELDS_OF_ROWS)):
        raise DataError(
            f"a label must not have the field {shown(unknown[0])}, which could mean another row than the "
            "open one. Say with row, for or time which row it belongs to."
        )
    late = "row" in message or "for" in message
    if "last_y" in message and "y" in message:
        raise DataError("a message brings one label: y is that of its own x, last_y that of the row before.")
    if late and ("x" in message or "y" not in message):
        raise DataError("row, or for, says whose label a y alone is; x always opens the next row.")
    row = message.get("row", 0)
    if type(row) is not int or row < 0:
        raise DataError(f"row must be a whole number from 0, as answers have it; got {shown(row)}.")


def respond_in_rows(
    live: LateLabels, message: Mapping[str, Any], level: float | None
) -> tuple[dict[str, Any], Taken]:
    """Predict, observe, or both; a message that was checked changes all or nothing.

    Parameters
    ----------
    live : LateLabels
        The series.
    message : mapping
        A message that `check` and :func:`check_rows` let pass.
    level : float or None
        Level of intervals that are given, and kept, always; None for none.
    """
    if "x" not in message:
        return _labelled(live, message)
    told: dict[str, Any] = {}
    labelled = y = innovation = None
    if "last_y" in message:
        labelled, y = live.open_row, _number(message["last_y"])
        if labelled is None:
            raise DataError("last_y is the label of the row that is open, and none is. Leave it out.")

        def step(x: Any, **more: Any) -> Any:
            nonlocal innovation
            innovation, answer = live.step(message["last_y"], x, **more)
            return answer

        found, lower, upper = _predicted(step, message, level)
        row, told = live.row, _innovation(live, innovation)
    elif "y" in message:

        def whole(x: Any, **more: Any) -> Any:
            nonlocal innovation
            answer, innovation = live.whole(x, message["y"], **more)
            return answer

        found, lower, upper = _predicted(whole, message, level)
        row = labelled = live.row - 1
        y, told = _number(message["y"]), _innovation(live, innovation)
    else:
        found, lower, upper = _predicted(live.predict, message, level)
        row = live.row
    events = told.get("events", ())
    taken = Taken(row, found["prediction"], lower, upper, labelled, y, _number(innovation), events)
    return {"row": row, **found, **told}, taken


def peeked(live: LateLabels, message: Mapping[str, Any], level: float | None) -> dict[str, Any]:
    """Predict a row as the next one, and change nothing."""
    return _predicted(live.peek, message, level)[0]


def _labelled(live: LateLabels, message: Mapping[str, Any]) -> tuple[dict[str, Any], Taken]:
    y, row = message["y"], message.get("row", live.open_row)
    if message.get("time") is not None and "row" not in message:
        row = live.row_at(timestamp(message["time"]))
        if row is None:
            raise DataError(
                f"no row of time {shown(message['time'])} is open or waits for its label. A time beside y "
                "alone says which row it belongs to; leave it out for the row that is open."
            )
    if row is None:
        waiting = f" These rows wait for theirs: {live.waiting[:10]}." if live.waiting else ""
        raise DataError(
            f"y is the label of the row that is open, and none is.{waiting} Open one with x first, or say "
            "with row, for or time which one is meant."
        )
    innovation = live.label(row, y)
    answer = {"row": row, **_innovation(live, innovation)}
    events = answer.get("events", ())
    return answer, Taken(labelled=row, y=_number(y), innovation=_number(innovation), events=events)


def _predicted(
    predict: Any, message: Mapping[str, Any], level: float | None
) -> tuple[dict[str, Any], float | None, float | None]:
    """The answer to an x, and the bounds of the level that is always kept."""
    asked = message.get("interval")
    levels = [] if asked is None else [*asked] if isinstance(asked, list) else [asked]
    if not all(type(one) in (int, float) and 0 < one < 1 for one in levels):
        raise DataError(f"interval must be a level between 0 and 1, or a list of them; got {shown(asked)}.")
    if level is not None:
        levels.append(level)
    if not levels:
        return {"prediction": finite(predict(message["x"], time=message.get("time")))}, None, None
    found = predict(message["x"], time=message.get("time"), interval=levels)
    answer: dict[str, Any] = {"prediction": finite(found.prediction)}
    lower, upper = finite(found.lower.tolist()), finite(found.upper.tolist())
    if asked is None:
        answer["lower"], answer["upper"] = lower[-1], upper[-1]
    elif isinstance(asked, list):
        answer["lower"], answer["upper"] = lower[: len(asked)], upper[: len(asked)]
    else:
        answer["lower"], answer["upper"] = lower[0], upper[0]
    return answer, *((None, None) if level is None else (lower[-1], upper[-1]))


def _innovation(live: LateLabels, innovation: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {"innovation": finite(innovation)}
    if live.events:
        answer["events"] = [
            {"kind": one.kind, "row": one.row, "began": one.began, "size": finite(one.size)}
            for one in live.events
        ]
    return answer


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
