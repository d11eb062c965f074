"""Bytes on a connection that are no request, or half of one, or several."""

import random as randomness
import socket
from contextlib import suppress
from typing import NamedTuple

_HOST = b"Host: localhost\r\n"
_STEP = b"POST /v1/streams/house/step HTTP/1.1\r\n" + _HOST
_ALIVE = b"GET /healthz HTTP/1.1\r\n" + _HOST + b"\r\n"
_BODY = b'{"series": "raw", "x": [1, 2]'  # not whole, so that it is never taken

# Refused at once, as they cannot be the beginning of a request.
BROKEN = [
    *(
        b"\0" * 100,
        b"\x16\x03\x01\x02\x00\x01",
        b"hello\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
    ),
    *(
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n" + _HOST + b"\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
    ),
    *(
        b"GET /healthz HTTP/1.1\r\n: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nA b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\0: b\r\n\r\n",
    ),
    _STEP + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    _STEP + b"Content-Length: -2\r\n\r\n{}",
    _STEP + b"Content-Length: 1e3\r\n\r\n{}",
    _STEP + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    _STEP + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    _STEP + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n",
    _STEP + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n",
    _STEP + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n{}\r\n",
    _STEP + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 200_000,
    b"GET /healthz HTTP/1.1\r\n" + b"X: a\r\n" * 30_000,
    b"GET /" + b"a" * 200_000,
]
# Begun and left: whoever sent them goes away.
HALF = [
    *(
        b"",
        b"\r\n",
        b"G",
        b"GET /healthz",
        b"GET /healthz HTTP/1.1\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: loc",
    ),
    _STEP + b"Content-Length: 100\r\n\r\n" + _BODY,
    _STEP + b"Content-Length: 7000000\r\n\r\n" + b" " * 100_000,
    _STEP + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    _STEP + b"Transfer-Encoding: chunked\r\n\r\nFFFF\r\n" + b" " * 1000,
    _STEP + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n",
    b"GET /v1/streams/house/live HTTP/1.1\r\n" + _HOST + b"\r\n",
    b"POST /v1/streams/house/backup HTTP/1.1\r\n" + _HOST + b"\r\n",
]
# Answered, each: one status a request.
WHOLE = [
    (_ALIVE * 3, [200] * 3),
    (b"\r\n\r\n" + _ALIVE, [200]),
    (_ALIVE + b"GET /none HTTP/1.1\r\n" + _HOST + b"\r\n" + _ALIVE, [200, 404, 200]),
    (b"GET http://evil.example/healthz HTTP/1.1\r\n" + _HOST + b"\r\n", [200]),
    (b"GET /healthz HTTP/1.0\r\n" + _HOST + b"\r\n", [200]),
    (b"GET /healthz HTTP/1.1\r\n\r\n", [403]),
    (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", [403]),
    (b"OPTIONS * HTTP/1.1\r\n" + _HOST + b"\r\n", [404]),
    (_STEP + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", [422]),
    (
        _STEP + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nTrailer: x\r\n\r\n" + _ALIVE,
        [422, 200],
    ),
    (_STEP + b"Content-Length: 0\r\n\r\n" + _ALIVE, [400, 200]),
    (_STEP + b"Content-Length: 9000000\r\n\r\n" + b" " * 200_000, [413]),
    (
        _STEP + b"Content-Length: 2\r\n\r\n{}" + _STEP + b"Content-Length: 1\r\n\r\n{" + _ALIVE,
        [422, 400, 200],
    ),
]


class Sent(NamedTuple):
    """What became of bytes."""

    kind: str
    statuses: list[int]
    wrong: str = ""


def send_raw(port: int, number: int, *, seed: int = 0, patience: float = 10.0) -> Sent:
    """Send the bytes of a number over a connection of their own, and see what comes."""
    random = randomness.Random(f"raw/{seed}/{number}")
    kind = random.choice(["broken", "half", "whole"])
    if kind == "whole":
        sent, expected = random.choice(WHOLE)
        found = _sent(port, sent, patience, answers=len(expected))
        return Sent(kind, found, "" if found == expected else f"{sent[:80]!r}: {found}, not {expected}")
    if kind == "half":
        sent = random.choice(HALF)
        return Sent(kind, _sent(port, sent, random.choice([0.0, 0.0, 0.02]), answers=99))
    sent = random.choice(BROKEN)
    if random.random() < 0.3:
        sent = bytes(random.randrange(256) for _ in range(random.randrange(1, 300))) + b"\r\n\r\n" * 2
        # What by chance is half of a request is left alone as one.
        return Sent("random", _sent(port, sent, 0.05, answers=1))
    found = _sent(port, sent, patience, answers=1)
    # Whoever sends much that is not wanted may lose the answer with it.
    good = all(400 <= one < 500 for one in found) and (found or len(sent) > 100_000)
    return Sent(kind, found, "" if good else f"{sent[:80]!r}: {found}")


def _sent(port: int, sent: bytes, patience: float, *, answers: int) -> list[int]:
    """Send, and read until so many answers are there, the connection is closed, or patience ends."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as connection, suppress(ConnectionError):
        connection.sendall(sent)
        connection.settimeout(max(patience, 0.001))
        with suppress(TimeoutError):
            while found.count(b"HTTP/1.1 ") < answers and (part := connection.recv(1 << 16)):
                found += part
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]
