"""HTTP as bytes: heads without end, halves of requests, and what is no HTTP at all."""

import json
import socket
import time
from contextlib import suppress

import pytest

from tests.service.serving import Served, x
from tests.service.test_live_events import raw_follower, wait_until

HOST = b"Host: localhost\r\n"
ALIVE = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"


def post(body: bytes, headers: bytes = b"") -> bytes:
    return b"POST /v1/streams/house/step HTTP/1.1\r\n" + HOST + headers + b"\r\n" + body


def is_alive(house: Served) -> bool:
    return bool(house.client.get("/healthz") == b"ok")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 3_000_000,
        b"GET /healthz HTTP/1.1\r\n" + b"X: a\r\n" * 500_000,
        b"GET /" + b"a" * 3_000_000,
        b"\r\n" * 1_500_000,
        ALIVE + b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 3_000_000,
    ],
    ids=["a header", "headers", "a path", "empty lines", "after a request"],
)
def test_a_head_without_end_is_refused_before_it_is_held(house: Served, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", house.port), timeout=10) as connection:
        with suppress(ConnectionError):
            connection.sendall(head)
        found = b""
        with suppress(ConnectionError):
            while part := connection.recv(1 << 16):  # until the server closes it
                found += part
    if found:  # the answer may be lost with what was still on its way
        assert b"HTTP/1.1 431" in found or b"HTTP/1.1 400" in found
    assert is_alive(house)


def test_a_long_head_is_taken(house: Served) -> None:
    found = house.raw(
        b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"X: " + b"a" * 30_000 + b"\r\n\r\n"
    )
    assert found.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: loc", b"\r\n", ALIVE + b"GET"],
)
def test_half_a_head_is_not_waited_for(house: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("varnn.service.http._protocol.HEAD_SECONDS", 0.5)
    begun = time.monotonic()
    found = house.raw(sent, seconds=10)
    assert 0.4 < time.monotonic() - begun < 8
    answers = found.split(b"HTTP/1.1 ")[1:]
    assert [one[:3] for one in answers] == [b"200"] * sent.count(ALIVE) + [b"408"]
    assert json.loads(answers[-1].partition(b"\r\n\r\n")[2])["error"]


def test_a_slow_head_is_none_while_an_answer_is_under_way(
    house: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("varnn.service.http._protocol.HEAD_SECONDS", 0.3)
    live = house.service.stream("house")
    with raw_follower(house) as connection:
        wait_until(lambda: bool(live._followers))
        connection.sendall(b"GET")
        time.sleep(1.0)
        house.client.step({"series": "a", "x": x(0)})
        found = b""
        while b"event: rows" not in found:
            part = connection.recv(1 << 16)
            assert part
            found += part


def test_requests_in_a_row_are_answered_in_a_row(house: Served) -> None:
    body = json.dumps({"series": "p", "x": x(0), "y": 1.0}).encode()
    one = post(body, b"Content-Length: %d\r\n" % len(body))
    last = post(body, b"Connection: close\r\nContent-Length: %d\r\n" % len(body))
    found = house.raw(one * 20 + ALIVE + b"GET /none HTTP/1.1\r\n" + HOST + b"\r\n" + last)
    answers = [part.partition(b"\r\n\r\n") for part in found.split(b"HTTP/1.1 ")[1:]]
    assert [int(head[:3]) for head, _, _ in answers] == [200] * 21 + [404, 200]
    rows = [json.loads(content)["row"] for head, _, content in answers if b'"row"' in content]
    assert rows == list(range(21))


def test_a_body_in_chunks_is_one(house: Served) -> None:
    body = json.dumps({"series": "c", "x": x(0)}).encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[n : n + 1]) for n in range(len(body))) + b"0\r\n\r\n"
    found = house.raw(post(chunks, b"Transfer-Encoding: chunked\r\nConnection: close\r\n"))
    assert found.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /v1/streams/\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
        b"CONNECT example.org:80 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n: empty\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n",
        post(b"{}", b"Content-Length: 2\r\nContent-Length: 3\r\n"),
        post(b"{}", b"Content-Length: -2\r\n"),
        post(b"{}", b"Content-Length: 99999999999999999999999\r\n"),
        post(b"0\r\n\r\n", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
        post(b"ZZ\r\n{}\r\n", b"Transfer-Encoding: chunked\r\n"),
        post(b"-1\r\n{}\r\n", b"Transfer-Encoding: chunked\r\n"),
        post(b"FFFFFFFFFFFFFFFFF\r\n{}\r\n", b"Transfer-Encoding: chunked\r\n"),
        post(b"1\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
    ],
)
def test_what_is_no_http_is_refused_at_once(house: Served, sent: bytes) -> None:
    begun = time.monotonic()
    found = house.raw(sent, seconds=5)
    assert time.monotonic() - begun < 4
    assert found.startswith(b"HTTP/1.1 400"), found
    assert is_alive(house)
    assert house.client.series()["total"] == 0
