"""Requests of all kinds over the OpenAPI document: good ones, nearly good ones, and wild ones.

Each follows from a number alone, so that what went wrong can be asked for again.
"""

import json
import random as randomness
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from benchmarks.robustness.malformed import malformed
from varnn.service.http.openapi import document

Random = randomness.Random
_BEGINNING = datetime(2026, 1, 1)

HOST = b"127.0.0.1"
STREAMS = ["house"] * 12 + ["spare"] * 3 + ["none", "", ".", "..", "HOUSE", "h" * 100, "a b", "%00", "ü"]
MODELS = ["house", "rival", "rival", "narrow", "third", "none", "", "..", "m" * 65, ".hidden", "a%2Fb", "ü"]
NAMES: list[Any] = [
    *(
        "a",
        "b",
        "c",
        "d",
        "north",
        "1",
        "",
        "~",
        "a/b",
        "a/history",
        "ü",
        "\u2028",
        "\ud800",
        "\0",
        "n" * 200,
    ),
    *(1, 7, -5, 10**30, None, "'; DROP TABLE series; --", "..", "%2e", "{}"),
]
WILD: list[Any] = [
    *(None, True, False, 0, -1, 1e308, -1e308, 5e-324, 10**400, -(10**300), 2**63, 2**64, 1e-300, 0.1, 1.5),
    *("", "a", "NaN", "1", "\ud800", "\0", "x" * 5000, "2026-11-15T07:30", "now", "'; DROP TABLE series; --"),
    *([], {}, [[]], [None], [1, 2], ["1", "2"], [1e308, 1e308], [1, [2]], {"heat": 1}, {"": {}}, [1] * 5000),
    *({"heat": "warm", "wind": 1}, {"heat": 1, "wind": 2, "more": 3}, [float("nan"), float("inf")]),
]
TEXTS = [
    *(
        "",
        "0",
        "-1",
        "1.5",
        "1e9",
        "9" * 400,
        "abc",
        "null",
        "true",
        "NaN",
        "inf",
        "ü",
        "\0",
        "%",
        "2026-01-01",
    ),
    *(
        "2026-01-01T00:00Z",
        "2026-01-01 00:00",
        "0001-01-01",
        "9999-12-31T23:59:59.999999999",
        "1" * 5000,
        "~",
    ),
]
TYPES = [
    *(b"application/json",) * 6,
    *(b"application/x-ndjson",) * 3,
    *(b"application/x-ndjson; charset=utf-16", b"text/plain", b"", b"a/b;c", b"\xff", b"multipart/form-data"),
    *(
        b"application/x-www-form-urlencoded",
        b"application/octet-stream",
        b"application/json; charset=latin-1",
    ),
]
ODD_HEADERS: list[tuple[bytes, bytes]] = [
    (b"X-Request-ID", b"my.own:id-1"),
    (b"X-Request-ID", b"x" * 500),
    (b"X-Request-ID", b'"><script>'),
    (b"Authorization", b"Bearer varnn_0_0"),
    (b"Authorization", b"\xff\xfe"),
    (b"Cookie", b"varnn_session=\xff; a=b"),
    (b"Origin", b"https://evil.example"),
    (b"Sec-Fetch-Site", b"cross-site"),
    (b"Accept", b"text/html"),
    (b"Accept-Encoding", b"gzip, br"),
    (b"Content-Encoding", b"gzip"),
    (b"Range", b"bytes=5-2"),
    (b"If-None-Match", b"*"),
    (b"Expect", b"100-continue"),
    (b"Upgrade", b"h2c"),
    (b"X-HTTP-Method-Override", b"DELETE"),
    (b"X-Forwarded-For", b"1.2.3.4"),
    (b"Connection", b"keep-alive, x"),
    (b"TE", b"trailers"),
    (b"X", b"y" * 20_000),
]
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "SEARCH"]


class Request(NamedTuple):
    """A request, as its parts are sent."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    kind: str  # what was made wild, in a word

    @property
    def path(self) -> str:
        """Path without the query, as it was sent."""
        return self.target.partition(b"?")[0].decode()


class Material(NamedTuple):
    """Bytes that only a service can make."""

    models: list[bytes]
    snapshots: list[bytes]


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of all operations, those with messages more often."""
    found = []
    for path, item in document()["paths"].items():
        for method, described in item.items():
            if method != "parameters":
                times = 20 if path.endswith(("/predict", "/observe", "/step")) else 2
                times = 1 if path.endswith(("/promote", "/backup", "/challengers")) else times
                found += [(method.upper(), path, described)] * times
    return found


_OPERATIONS = operations()


def made(number: int, material: Material, seed: int = 0) -> Request:
    """Make the request of a number.

    Examples
    --------
    >>> request = made(3, Material([b"model"], [b"state"]))
    >>> request == made(3, Material([b"model"], [b"state"]))
    True
    """
    random = Random(f"{seed}/{number}")
    method, template, described = random.choice(_OPERATIONS)
    kind = random.choices(["good", "nearly", "wild"], [4, 4, 3])[0]
    path = _path(random, method, template, kind)
    query = _query(random, described.get("parameters", []), kind)
    headers: list[tuple[bytes, bytes]] = []
    body = b""
    if "requestBody" in described:
        types = described["requestBody"]["content"]
        if "application/octet-stream" in types:
            body = _file(random, template, kind, material)
        else:
            body, content_type = _body(random, template, kind, number)
            headers.append((b"Content-Type", content_type))
    elif kind == "wild" and random.random() < 0.3:
        body = random.choice([b"{}", b"x" * 1000, b"\0"])
    if kind == "wild" or random.random() < 0.1:
        headers += random.sample(ODD_HEADERS, random.randint(1, 3))
        if random.random() < 0.2:
            method = random.choice(METHODS)
            if method == "DELETE" and path.endswith("/house"):
                method = "PATCH"
    return Request(method, (path + query).encode("ascii"), headers, body, kind)


def _path(random: Random, method: str, template: str, kind: str) -> str:
    """Fill in the names of a path; what is deleted for good is never the stream that all is about."""
    stream = "house" if kind == "good" else random.choice(STREAMS)
    if method == "DELETE" and template == "/v1/streams/{stream}":
        stream = random.choice(STREAMS[12:])
    name = random.choice(NAMES[:10]) if kind == "good" else random.choice([*NAMES, *TEXTS])
    series = "~" if name is None else quote(str(name), safe="", errors="surrogatepass")
    model = random.choice(MODELS[1:5] if kind == "good" else MODELS)
    if method == "DELETE" and model == "house":
        model = "third"
    filled = template.replace("{stream}", quote(stream, safe="%")).replace("{model}", quote(model, safe="%"))
    filled = filled.replace("{series}", series)
    if kind == "wild" and random.random() < 0.15:
        at = random.randrange(1, len(filled) + 1)
        filled = (
            filled[:at]
            + random.choice(["/", "//", "/..", "%", "%zz", "%ff", "%00", "%0a", ";a=b", "~"])
            + filled[at:]
        )
    return filled


def _query(random: Random, parameters: list[dict[str, Any]], kind: str) -> str:
    chosen = [one for one in parameters if random.random() < 0.5]
    pairs = [(one["name"], _value(random, one, kind)) for one in chosen]
    if kind == "wild":
        pairs += [(random.choice(["x", "link", "limit", "", "series"]), random.choice(TEXTS))]
        random.shuffle(pairs)
    text = "&".join(f"{name}={quote(value, safe='', errors='surrogatepass')}" for name, value in pairs)
    if kind == "wild" and random.random() < 0.2:
        text += random.choice(["&&&", "&=", "&%", "&%zz=%ff", "&a" * 500, "?", "&limit"])
    return f"?{text}" if text else ""


def _value(random: Random, parameter: dict[str, Any], kind: str) -> str:
    schema = parameter["schema"]
    if kind != "good" and random.random() < 0.5:
        return random.choice(TEXTS)
    if "enum" in schema:
        return str(random.choice(schema["enum"]))
    if schema.get("type") == "integer":
        return str(random.randint(schema["minimum"], min(schema["maximum"], schema["minimum"] + 100)))
    if parameter["name"] in ("from", "to"):
        return random.choice(["2026-01-01", "2026-01-01T00:30:00+01:00", "1767225600", "1767225600.5"])
    return str(random.choice(NAMES[:10]))


def _file(random: Random, template: str, kind: str, material: Material) -> bytes:
    blobs = material.snapshots if "snapshot" in template else material.models
    blob = random.choice(blobs)
    if kind == "good":
        return blob
    raw = bytearray(blob)
    if kind == "wild" and random.random() < 0.3:
        return random.choice([b"", b"\0" * 100, b"\x80\x04K\x01.", b"{}", b"\xff" * 20, *material.models])
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(raw))
        if random.random() < 0.5:
            raw[at] ^= 1 << random.randrange(8)
        else:
            del raw[at : at + random.randint(1, len(raw) // 2 + 1)]
        raw = raw or bytearray(b"?")
    return bytes(raw)


def message(random: Random, verb: str, number: int) -> dict[str, Any]:
    """Make a good message of a verb, as far as that can be known without the service."""
    name = random.choice(NAMES[:12])
    one: dict[str, Any] = {} if name is None else {"series": name}
    values = [random.gauss(0, 1), None if random.random() < 0.05 else random.gauss(0, 1)]
    x: Any = values if random.random() < 0.6 else dict(zip(("heat", "wind"), values, strict=True))
    if verb != "observe" or random.random() < 0.6:
        one["x"] = x
    if verb == "observe" or (verb == "step" and random.random() < 0.4):
        one["y"] = None if random.random() < 0.05 else random.gauss(0, 1)
    if verb == "step" and "y" not in one and random.random() < 0.3:
        one["last_y"] = random.gauss(0, 1)
    if verb == "observe" and "x" not in one and random.random() < 0.3:
        one[random.choice(["row", "for"])] = random.randrange(40)
    if random.random() < 0.2:
        one["interval"] = random.choice([0.5, [0.5, 0.9], [], 0.99])
    if verb != "predict" and random.random() < 0.3:
        one["key"] = f"k{random.randrange(max(1, number - 300), number + 1)}"
    if verb != "predict" and random.random() < 0.05:
        one["seq"] = random.randrange(1, 50)
    if name in ("c", "d") and "x" in one:  # series with times, which go on as the numbers do
        seconds = number % (28 * 86_400)
        one["time"] = f"{_BEGINNING + timedelta(seconds=seconds, milliseconds=random.randrange(1000))}"
    return one


def _body(random: Random, template: str, kind: str, number: int) -> tuple[bytes, bytes]:
    verb = template.rpartition("/")[2]
    lines = random.random() < 0.25
    content_type = TYPES[6] if lines else TYPES[0]
    if kind != "good" and random.random() < 0.3:
        content_type = random.choice(TYPES)
        lines = b"ndjson" in content_type
    if verb in ("streams", "challengers"):
        names = (
            {"name": "spare", "champion": "rival"}
            if verb == "streams"
            else {"model": random.choice(MODELS[1:5])}
        )
        messages: list[Any] = [names]
        alone = True
    else:
        messages = [message(random, verb, number) for _ in range(random.choice([1, 1, 1, 2, 5, 30]))]
        alone = len(messages) == 1 and random.random() < 0.8
    if kind != "good":
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(messages))
            if isinstance(messages[at], dict):
                messages[at] = _spoilt(random, messages[at])
    if kind == "wild":
        bad = random.random()
        if bad < 0.3:
            [raw] = malformed(1, 2, seed=random.randrange(10**9))
            return raw, content_type
        if bad < 0.5:
            return _damaged(random, _written(messages[0])), content_type
        if bad < 0.6:
            return random.choice(_BODIES), content_type
    if lines:
        return b"\n".join(_written(one) for one in messages) + random.choice(
            [b"", b"\n", b"\n\n{\n"]
        ), content_type
    return _written(messages[0] if alone else messages), content_type


_BODIES = [
    *(b"", b" ", b"null", b"[]", b"[[]]", b"{}", b"[{}]", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"{} {}"),
    *(
        b"[" * 2000,
        b"[" * 100_000,
        b'{"x":' * 50_000,
        b"9" * 5000,
        b'"' + b"a" * 100_000 + b'"',
        b"[1," * 1000,
    ),
    *(
        b'{"x": [1, 2], "x": [3, 4], "y": 1, "y": 2}',
        b'{"series": "\\ud800", "x": [1, 2]}',
        b"\x1f\x8b\x08\0",
    ),
    *(
        b'{"x": [NaN, Infinity]}',
        b'{"x": [1e999, -1e999], "y": 1}',
        b'{"y": 1e400}',
        b"[" + b"0," * 9_999 + b"0]",
    ),
]


def _spoilt(random: Random, one: dict[str, Any]) -> Any:
    """Make something of a message wrong."""
    way = random.randrange(5)
    if way == 0:
        return random.choice(WILD)
    if way == 1 and one:
        del one[random.choice(sorted(one))]
        return one
    if way == 2:
        one[random.choice(["Y", "serie", "lasty", "other", "", "sequence", "__proto__"])] = random.choice(
            WILD
        )
        return one
    if way == 3:
        one["series"] = random.choice([*NAMES, *WILD])
        return one
    one[
        random.choice(["x", "y", "last_y", "time", "interval", "row", "for", "key", "seq", "name", "model"])
    ] = random.choice(WILD)
    return one


def _written(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=True).encode()
    except ValueError:  # Python does not write numbers of so many digits
        return b'{"x": ' + b"9" * 5000 + b"}"


def _damaged(random: Random, text: bytes) -> bytes:
    raw = bytearray(text)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(raw) + 1)
        if raw and random.random() < 0.5:
            del raw[at : at + random.randint(1, 9)]
        else:
            raw[at:at] = bytes([random.randrange(256)])
    return bytes(raw)
