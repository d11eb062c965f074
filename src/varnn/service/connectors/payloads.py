"""Payloads of MQTT as messages of a stream, each with a key where it can have one.

A broker delivers what it is not sure of a second time. A message that names its time is known by that then:
the text of its time is the key of a row, so that a label of the same time finds it, and is itself known by
its row.
"""

from typing import Any

from varnn.errors import DataError
from varnn.streaming.json_text import read

ACTIONS = {
    "step": "x",
    "observe": "y",
    "predict": "x",
}  # last level of a topic, and what its payloads must have


def message_of(payload: bytes, action: str) -> dict[str, Any]:
    """Message that a payload is, but for its series.

    Parameters
    ----------
    payload : bytes
        JSON.
    action : str
        One of ``ACTIONS``.

    Examples
    --------
    >>> message_of(b'{"x": [1.5], "time": "2026-11-16T10:00"}', "step")
    {'x': [1.5], 'time': '2026-11-16T10:00', 'key': '2026-11-16T10:00'}
    >>> message_of(b'{"y": 2, "time": "2026-11-16T10:00"}', "observe")
    {'y': 2, 'for': '2026-11-16T10:00', 'key': 'y 2026-11-16T10:00'}
    """
    try:
        message = read(payload)
    except (ValueError, RecursionError) as error:
        raise DataError(f"a payload must be JSON: {str(error)[:200]}") from None
    if not isinstance(message, dict) or ACTIONS[action] not in message:
        raise DataError(f"a payload of .../{action} must be an object with {ACTIONS[action]!r}.")
    if "series" in message:
        raise DataError("the topic names the series: a payload must not have 'series'.")
    if action == "predict" or "key" in message or "seq" in message:
        return message
    if "x" in message:
        return message | {"key": message["time"]} if isinstance(message.get("time"), str) else message
    time = message.pop("time", None)
    if "row" in message:
        return message | {"key": f"y row {message['row']}"}
    row = message.get("for", time)
    return message if row is None else message | {"for": row, "key": f"y {row}"}
