"""What a program may ask of a stream, as plain values, and what it is answered.

::

    {"series": "a", "x": {"heat": 20.5}, "time": "2026-11-15T07:30", "interval": 0.9}   predict
    {"series": "a", "y": 60.0}                                                           observe
    {"series": "a", "x": [20.9], "y": 63.0}                                              both, in that order

Everything about a message that can be wrong is found before it changes anything. Answers hold no NaN and no
infinity, which JSON does not have: None stands for them.
"""

import json
import math
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

from varnn.data.finite import LARGEST
from varnn.data.rules import shown
from varnn.errors import DataError
from varnn.streaming.json_text import write
from varnn.streaming.stream import Stream

_LONGEST_MISSPELT = 20  # characters of a field that may be misspelt; what is longer is not kept in mind
LONGEST_NAME = 200  # characters of a series' name, or of a key
_MOST_LEVELS = 20
_FIELDS = {"series", "x", "y", "time", "interval", "seq", "key"}
FIELDS_OF_ROWS = _FIELDS | {"last_y", "row", "for"}  # of streams that number rows (`varnn.streaming.rows`)
_MOST_BRACKETS = 50  # of a message that is kept as it came: what is nested takes a call each to read
_NUMBERS = {int, float, type(None)}  # not bool, which Python takes for a number


def check_name(message: Mapping[str, Any]) -> None:
    """Refuse what cannot be the name of a series.

    Examples
    --------
    >>> check_name({"series": "a"})
    """
    name = message.get("series")
    if type(name) is str and len(name) <= LONGEST_NAME:
        return
    if type(name) not in (str, int, type(None)) or len(str(name)[: LONGEST_NAME + 1]) > LONGEST_NAME:
        raise DataError(
            f"series must be a text of at most {LONGEST_NAME} characters, a whole number, or left out; "
            f"got {shown(name)}."
        )


def check(message: Mapping[str, Any], texts: Collection[str] = (), *, in_rows: bool = False) -> None:
    """Refuse a message that has something of the wrong kind in it; ``texts`` are inputs that are texts.

    ``in_rows`` is for streams that number their rows: a message may then have a few fields more.

    Examples
    --------
    >>> check({"series": "a", "x": [1.0, None], "y": 2})
    >>> check({"x": [True]})
    Traceback (most recent call last):
    ...
    varnn.errors.DataError: x must hold numbers only, by name or as a list; got [True].
    """
    fields = FIELDS_OF_ROWS if in_rows else _FIELDS
    if not message.keys() <= fields:  # what else a program has to say is no matter
        for unknown in message.keys() - fields:
            if len(unknown) <= _LONGEST_MISSPELT and (meant := _meant(unknown, in_rows)):
                raise DataError(f"a message has no field {shown(unknown)}. Did you mean {meant!r}?")
    if "x" not in message and "y" not in message:
        raise DataError("a message must be an object with 'x', 'y' or both.")
    if "x" in message:
        x = message["x"]
        values = x.values() if isinstance(x, dict) else x
        if texts and isinstance(x, dict):
            values = [value for name, value in x.items() if name not in texts]
            for name in texts:
                if type(x.get(name)) not in (str, type(None)):
                    raise DataError(f"x must hold a text, or null, as {name!r}; got {shown(x[name])}.")
        if not isinstance(x, list | dict) or not set(map(type, values)) <= _NUMBERS:
            raise DataError(f"x must hold numbers only, by name or as a list; got {shown(x)}.")
        interval = message.get("interval")
        if isinstance(interval, list) and len(interval) > _MOST_LEVELS:
            raise DataError(f"interval must hold at most {_MOST_LEVELS} levels; got {len(interval)}.")
    if "y" in message:
        _check_label("y", message["y"])
    if in_rows and "last_y" in message:
        _check_label("last_y", message["last_y"])


def _check_label(field: str, y: Any) -> None:
    if type(y) not in _NUMBERS:
        raise DataError(f"{field} must be a number, or null where the label is missing; got {shown(y)}.")
    if y is not None and abs(y) > LARGEST:
        raise DataError(f"{field} must be finite and at most {LARGEST:g} in size; got {shown(y)}.")


@lru_cache(maxsize=1000)
def _meant(name: str, in_rows: bool) -> str | None:
    """Field that a misspelt name stands for: a label in "Y" would be lost without a word."""
    close = get_close_matches(name.lower(), FIELDS_OF_ROWS if in_rows else _FIELDS, n=1, cutoff=0.8)
    return close[0] if close else None


def respond(live: Stream, message: Mapping[str, Any]) -> dict[str, Any]:
    """Predict, observe, or both in that order; a message that was checked changes all or nothing."""
    answer: dict[str, Any] = {}
    if "x" in message:
        interval = message.get("interval")
        found = live.predict(message["x"], time=message.get("time"), interval=interval)
        if interval is None:
            answer["prediction"] = finite(found)
        else:
            answer["prediction"] = finite(found.prediction)
            answer["lower"], answer["upper"] = finite(found.lower.tolist()), finite(found.upper.tolist())
    if "y" in message:
        answer["innovation"] = finite(live.observe(message["y"]))
        if live.events:
            answer["events"] = [
                {"kind": one.kind, "row": one.row, "began": one.began, "size": finite(one.size)}
                for one in live.events
            ]
    return answer


def name_of(message: Mapping[str, Any]) -> str:
    """Name of a message's series as JSON, so that the series 1 and "1" stay apart.

    Examples
    --------
    >>> name_of({"series": 1}), name_of({"series": "1"}), name_of({})
    ('1', '"1"', 'null')
    """
    name = message.get("series")
    return encode_basestring_ascii(name) if type(name) is str else json.dumps(name)


def kept_text(message: dict[str, Any], text: str | bytes | None, *, in_rows: bool = False) -> str:
    """A message that was taken, to be kept as one line: as it came, if that is at hand and is not nested.

    Examples
    --------
    >>> kept_text({"x": [1.0], "other": 5}, None)
    '{"x":[1.0]}'
    """
    if isinstance(text, bytes):
        text = text.decode()
    if text is None or text.count("[") + text.count("{") > _MOST_BRACKETS:
        return write(of_use(message, in_rows=in_rows)).decode()
    return text.replace("\n", " ")  # it stands between values: within a text it is written as two characters


def of_use(message: dict[str, Any], *, in_rows: bool = False) -> dict[str, Any]:
    """A message that was taken, without what else it holds: that may be nested beyond reading it again.

    Examples
    --------
    >>> of_use({"x": [1.0], "other": [[[[]]]]})
    {'x': [1.0]}
    """
    fields = FIELDS_OF_ROWS if in_rows else _FIELDS
    return {name: value for name, value in message.items() if name in fields}


def finite(value: Any) -> Any:
    """A number, or a list of them, with None in the place of what JSON does not have."""
    if type(value) is list:
        return [finite(one) for one in value]
    return value if math.isfinite(value) else None
