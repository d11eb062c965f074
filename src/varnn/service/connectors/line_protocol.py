r"""Influx line protocol: a line -> a point -> a line.

::

    measurement,tag=value,tag=value field=1.5,other=2i 1556813561098000000

The grammar is the one published beside the protocol's own library (``line-protocol.ebnf``): in names a
backslash before a comma, a space or (in keys and tag values) an equals sign makes it a plain character, and
is itself one anywhere else; in strings it does so before a quote and before a backslash. A line ends at its
end: the protocol has no ends of lines within values.
"""

import math
import re
from typing import NamedTuple

from varnn.data.rules import shown
from varnn.errors import DataError

_CONTROL = r"\x00-\x1f\x7f"
_ESCAPED = rf"\\++[^\\{_CONTROL}]"
_MEASUREMENT = re.compile(rf"(?:[^\\ ,{_CONTROL}]++|{_ESCAPED})++")
_KEY = re.compile(rf"(?:[^\\ ,={_CONTROL}]++|{_ESCAPED})++")
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_NUMBER = re.compile(r"-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_BARE = re.compile(r'[^ ,"]++')  # a value without quotes
_WHOLE = re.compile(r"-?\d++", re.ASCII)
_SPACES = re.compile(r" ++")
_TRUTHS = {
    word: word[0] in "tT" for word in ["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"]
}
_SMALLEST, _LARGEST, _LARGEST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1


class Unsigned(int):
    """A whole number that is written with a ``u``.

    Examples
    --------
    >>> write(Point("m", {}, {"count": Unsigned(3)}))
    'm count=3u'
    """


class Point(NamedTuple):
    r"""What a line says.

    Parameters
    ----------
    measurement : str
        What was measured.
    tags : dict from str to str
        Which one: names and values, as they came.
    fields : dict from str to number, text or bool
        The values.
    time : int or None
        When, in the unit that sender and receiver agreed on, since 1970.

    Examples
    --------
    >>> write(Point("power", {"house": "no 5"}, {"load": 1.5, "on": True}, 60))
    'power,house=no\\ 5 load=1.5,on=true 60'
    """

    measurement: str
    tags: dict[str, str]
    fields: dict[str, float | int | str | bool]
    time: int | None = None


def read(line: str) -> Point | None:
    r"""Read a line; None for one that is empty or a comment.

    Parameters
    ----------
    line : str
        The line, without its end.

    Returns
    -------
    Point or None
        What it says.

    Raises
    ------
    DataError
        The line is none of the protocol; the message says from which character on.

    Examples
    --------
    >>> read('weather,location=us-midwest temperature=82,"wind"=3i 1465839830100400200')
    Point(measurement='weather', tags={'location': 'us-midwest'},
          fields={'temperature': 82.0, '"wind"': 3}, time=1465839830100400200)
    >>> read("weather temperature=warm")
    Traceback (most recent call last):
    ...
    varnn.errors.DataError: a number, true, false or a "text" must stand at character 21; got 'warm'.
    """
    text = line.strip(" \r")
    if not text or text.startswith("#"):
        return None
    measurement, at = _take(_MEASUREMENT, text, 0, "the name of a measurement")
    tags: dict[str, str] = {}
    while text[at : at + 1] == ",":
        key, at = _take_key(text, at + 1, "the name of a tag")
        value, at = _take(_KEY, text, at, "the value of a tag")
        if key in tags:
            raise DataError(f"a tag may come once; got {shown(key)} twice.")
        tags[key] = _plain(value)
    _, at = _take(_SPACES, text, at, "a space, and fields after it,")
    fields: dict[str, float | int | str | bool] = {}
    while True:
        key, at = _take_key(text, at, "the name of a field")
        fields[key], at = _take_value(text, at)
        if text[at : at + 1] != ",":
            break
        at += 1
    time = None
    if at < len(text):
        _, at = _take(_SPACES, text, at, "a space, a comma or the end")
        digits, at = _take(_WHOLE, text, at, "a time as a whole number")
        time = _within(digits, _SMALLEST, _LARGEST)
        if at < len(text):
            raise _wrong("the end of the line", text, at)
    return Point(_plain(measurement, keeps="="), tags, fields, time)


def write(point: Point) -> str:
    r"""Write a point as a line, without its end.

    Parameters
    ----------
    point : Point
        At least one field; numbers finite; names without control characters and with no backslash at their
        end, which the protocol has no way to write.

    Returns
    -------
    str
        The line; :func:`read` gives the point again.

    Examples
    --------
    >>> write(Point("a b", {}, {"said": 'a "word"', "n": 2}))
    'a\\ b said="a \\"word\\"",n=2i'
    """
    if not point.fields:
        raise DataError("a line must have at least one field; got none.")
    head = [_written(point.measurement, " ,")]
    head += [f"{_written(key, ' ,=')}={_written(value, ' ,=')}" for key, value in point.tags.items()]
    if head[0].startswith("#"):
        raise DataError(
            f"a measurement must not begin with #, as comments do; got {shown(point.measurement)}."
        )
    fields = ",".join(
        f"{_written(key, ' ,=')}={_written_value(value)}" for key, value in point.fields.items()
    )
    return f"{','.join(head)} {fields}" + ("" if point.time is None else f" {point.time}")


def _take(pattern: re.Pattern[str], text: str, at: int, what: str) -> tuple[str, int]:
    """Take what must stand at a place, and the place after it."""
    found = pattern.match(text, at)
    if found is None:
        raise _wrong(what, text, at)
    return found[0], found.end()


def _take_key(text: str, at: int, what: str) -> tuple[str, int]:
    key, at = _take(_KEY, text, at, what)
    if text[at : at + 1] != "=":
        raise _wrong(f"= after {shown(key)}", text, at)
    return _plain(key), at + 1


def _take_value(text: str, at: int) -> tuple[float | int | str | bool, int]:
    if found := _STRING.match(text, at):
        return re.sub(r'\\(["\\])', r"\1", found[1]), found.end()
    found = _BARE.match(text, at)
    word = found[0] if found else ""
    value = _TRUTHS.get(word)
    if value is not None:
        return value, at + len(word)
    if word[-1:] == "i" and _WHOLE.fullmatch(word[:-1]):
        return _within(word[:-1], _SMALLEST, _LARGEST), at + len(word)
    if word[-1:] == "u" and _WHOLE.fullmatch(word[:-1]):
        return Unsigned(_within(word[:-1], 0, _LARGEST_UNSIGNED)), at + len(word)
    if _NUMBER.fullmatch(word) and math.isfinite(number := float(word)):
        return number, at + len(word)
    raise _wrong('a number, true, false or a "text"', text, at)


def _within(digits: str, smallest: int, largest: int) -> int:
    if len(digits) <= 20 and smallest <= int(digits) <= largest:
        return int(digits)
    raise DataError(f"a whole number must lie between {smallest} and {largest}; got {shown(digits)}.")


def _plain(name: str, keeps: str = "") -> str:
    """A name as it is meant: without backslashes that make the next character a plain one."""
    specials = "".join(one for one in " ,=" if one not in keeps)
    return re.sub(rf"\\([{specials}])", r"\1", name) if "\\" in name else name


def _written(name: str, specials: str) -> str:
    if not name or name.endswith("\\") or re.search(f"[{_CONTROL}]", name):
        raise DataError(
            "a name or tag must have at least one character, no control characters, and no backslash at its "
            f"end; got {shown(name)}."
        )
    return re.sub(f"([{specials}])", r"\\\1", name)


def _written_value(value: float | int | str | bool) -> str:
    if isinstance(value, str):
        if "\n" in value:
            raise DataError(f"a text in a line must not have ends of lines; got {shown(value)}.")
        return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        unsigned = isinstance(value, Unsigned)
        smallest, largest = (0, _LARGEST_UNSIGNED) if unsigned else (_SMALLEST, _LARGEST)
        return f"{_within(str(int(value)), smallest, largest)}{'u' if unsigned else 'i'}"
    if not math.isfinite(value):
        raise DataError(f"a number in a line must be finite; got {value}.")
    return repr(float(value))


def _wrong(what: str, text: str, at: int) -> DataError:
    return DataError(f"{what} must stand at character {at + 1}; got {shown(text[at : at + 30])}.")
