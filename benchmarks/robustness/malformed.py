"""Lines that are damaged in every way lines are: what a stream must answer, and outlive."""

import json
import random as randomness
from collections.abc import Iterator
from typing import Any

_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1e308, -1e308, 5e-324, 10**400, -(10**5000 % 10**4000), 2**63, 1e-300, 0.1),
    *("", "a", "NaN", "1", "\ud800", "\0", "x" * 5000, "2026-11-15T07:30", "now", "'; DROP TABLE series; --"),
    *([], {}, [[]], [None], [1, 2], ["1", "2"], [1e308, 1e308], [1, [2]], {"x0": 1}, {"": {}}, [1] * 5000),
]
_RAW = [
    *(
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"nul",
        b"tru",
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
    ),
    *(
        b"\xff\xfe",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\0",
        b"\xef\xbb\xbf",
        b"\\u12",
        b"//",
        b"0x10",
        b"01",
        b"+1",
    ),
    *(b"[" * 5000, b'{"x":' * 3000, b"9" * 5000, b"1e" + b"9" * 500),
]
_NAMES = ["series", "x", "y", "time", "interval", "seq", "key", "other"]


def malformed(count: int, n_inputs: int, seed: int = 0) -> Iterator[bytes]:
    """So many lines, most of which cannot be used; those that can are of series whose name has an f.

    Examples
    --------
    >>> len(list(malformed(100, 2)))
    100
    """
    random = randomness.Random(seed)
    for _ in range(count):
        kind = random.randrange(6)
        line = _message(random, n_inputs)
        if kind == 0:  # bytes that were lost, changed or put in
            raw = bytearray(json.dumps(line).encode())
            for _ in range(random.randint(1, 4)):
                at = random.randrange(len(raw) + 1)
                if raw and random.random() < 0.5:
                    del raw[at : at + random.randint(1, 9)]
                else:
                    raw[at:at] = bytes([random.randrange(256)])
            yield _one_line(bytes(raw))
        elif kind == 1:  # a piece that is no JSON
            raw_line = json.dumps(line).encode()
            at = random.randrange(len(raw_line) + 1)
            yield _one_line(raw_line[:at] + random.choice(_RAW) + raw_line[at:])
        elif kind == 2:  # values of the wrong kind
            for _ in range(random.randint(1, 3)):
                line[random.choice(_NAMES)] = random.choice(_VALUES)
            yield _dumped(line)
        elif kind == 3:  # something is missing
            for name in random.sample(sorted(line), random.randint(1, len(line))):
                del line[name]
            yield _dumped(line)
        elif kind == 4:  # lists of all kinds
            some: list[Any] = [_message(random, n_inputs), line, random.choice(_VALUES)]
            yield _dumped(random.sample(some, random.randint(1, 3)))
        else:  # something else altogether
            yield _one_line(random.choice([*_RAW, _dumped(random.choice(_VALUES))]))


def _message(random: randomness.Random, n_inputs: int) -> dict[str, Any]:
    line: dict[str, Any] = {
        "series": f"f{random.randrange(20)}",
        "x": [random.gauss(0, 1) for _ in range(n_inputs)],
        "y": random.gauss(0, 1),
    }
    if random.random() < 0.3:
        line["interval"] = random.choice([0.9, [0.5, 0.9], 90, "wide"])
    if random.random() < 0.2:
        line["seq"] = random.randrange(30)
    if random.random() < 0.2:
        line["key"] = f"k{random.randrange(30)}"
    return line


def _dumped(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except ValueError:  # Python does not write numbers of so many digits
        return b'{"x": ' + b"9" * 5000 + b"}"


def _one_line(raw: bytes) -> bytes:
    """Keep it one line, and none that is empty: such a line has no answer."""
    return raw.replace(b"\n", b" ").strip() or b"?"
