"""Limits: too large, too slow, too fast, ending; through the middleware, and over real connections."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from tests.service.asgi import Answer, App, Echo, ask, ask_within
from varnn.errors import ConfigError
from varnn.service.http._asgi import Caller
from varnn.service.http._rates import Buckets
from varnn.service.http.limits import Limiter, Limits, charge

STEP = "/v1/streams/house/step"


def test_limits_must_make_sense() -> None:
    for wrong in ({"most_bytes": 0}, {"rate": -1}, {"seconds": 0}, {"queue": float("nan")}, {"burst": 1e400}):
        with pytest.raises(ConfigError, match=f"the limit {next(iter(wrong))} must be"):
            Limits(**wrong)


def test_a_body_reaches_the_app_once_and_whole() -> None:
    inside = Echo()
    app = Limiter(inside, Limits(most_bytes=1000))
    for body in (b"", b"x" * 1000, [b"x" * 400, b"", b"y" * 600], []):
        whole = body if isinstance(body, bytes) else b"".join(body)
        assert ask(app, "POST", STEP, body=body).json["bytes"] == len(whole)
        assert inside.seen[-1] == ("POST", STEP, whole)


def test_a_body_that_is_too_large_never_reaches_the_app() -> None:
    inside = Echo()
    app = Limiter(inside, Limits(most_bytes=1000, most_file_bytes=2000))
    for body in (b"x" * 1001, [b"x" * 1001], [b"x" * 600, b"x" * 600, b"x"]):
        said = ask(app, "POST", STEP, body=body)
        assert said.status == 413
        assert "at most 1,000 bytes" in said.json["error"]
    assert ask(app, "PUT", "/v1/models/house", body=b"x" * 2000).status == 200
    assert ask(app, "PUT", "/v1/models/house", body=b"x" * 2001).status == 413
    assert ask(Limiter(inside, Limits()), "POST", "/login", body=b"x" * 20_000).status == 413
    assert [one[1] for one in inside.seen] == ["/v1/models/house"]


def test_a_body_is_refused_with_the_part_that_is_too_much() -> None:
    given = 0
    given_when_answered: list[int] = []

    def parts() -> Iterator[bytes]:
        nonlocal given
        for _ in range(50):
            given += 1
            yield b"x" * 600

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            given_when_answered.append(given)
            await send(message)

        await Limiter(Echo(), Limits(most_bytes=1000))(scope, receive, noted)

    assert ask(app, "POST", STEP, body=parts()).status == 413
    assert given_when_answered == [2, 2, 50]  # the last is the end, once what still came is thrown away


def test_bodies_of_all_callers_together_are_bounded() -> None:
    release = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await release.wait()
        await Echo()(scope, receive, send)

    async def several() -> list[Answer]:
        app = Limiter(slow, Limits(most_bytes=1000, held_bytes=2500))
        first = [asyncio.create_task(ask_within(app, "POST", STEP, body=b"x" * 1000)) for _ in range(2)]
        await asyncio.sleep(0.01)
        third = await ask_within(app, "POST", STEP, body=b"x" * 1000)
        chunked = await ask_within(app, "POST", STEP, body=[b"x"])
        release.set()
        done = [await one for one in first]
        return [third, chunked, *done, await ask_within(app, "POST", STEP, body=b"x" * 1000)]

    found = asyncio.run(several())
    assert [one.status for one in found] == [503, 503, 200, 200, 200]
    assert found[0].header("retry-after") == "1"


def test_too_many_requests_and_rows_of_a_caller_are_told_when_to_come_again() -> None:
    now = 0.0
    inside = Counting()
    limiter = Limiter(inside, Limits(rate=10, burst=20))
    limiter._buckets = Buckets(10, 20, clock=lambda: now)
    known: dict[str, Any] = {"a": Caller("write", "a"), "b": Caller("write", "b")}

    def step(who: str, rows: int = 1, path: str = STEP) -> Answer:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["state"]["access"] = known[who]
            inside.rows = rows
            await limiter(scope, receive, send)

        return ask(app, "POST" if path == STEP else "GET", path)

    assert [step("a").status for _ in range(21)] == [200] * 20 + [429]
    said = step("a")
    assert said.header("retry-after") == "1" and "10 rows a second" in said.json["error"]
    assert step("b", rows=500).status == 200  # more than its bucket holds, taken all the same
    assert step("b").status == 429
    assert step("b").header("retry-after") == "49"
    assert step("a", path="/healthz").status == 200
    now = 0.1
    assert [step("a").status for _ in range(2)] == [200, 429]
    now = 48.0
    assert step("b").status == 429
    now = 48.2
    assert step("b").status == 200


class Counting(Echo):
    """An app that counts rows as the service does."""

    rows = 1

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        charge(scope, self.rows)
        await super().__call__(scope, receive, send)


def test_without_a_rate_nothing_is_counted() -> None:
    app = Limiter(Counting(), Limits())
    assert {ask(app, "POST", STEP).status for _ in range(100)} == {200}


def test_callers_are_forgotten_before_they_are_too_many() -> None:
    now = 0.0
    buckets = Buckets(1, 1, most=3, clock=lambda: now)
    for name in "abcab":
        buckets.take(name)
    assert len(buckets) == 3
    assert buckets.wait("b") == 2.0
    buckets.take("d")  # c was not seen for longest
    assert len(buckets) == 3
    assert buckets.wait("c") == 0.0 < buckets.wait("a")


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    now = 1000.0
    buckets = Buckets(1, 10, clock=lambda: now)
    buckets.take("a", 5)
    now = 0.0
    assert buckets.wait("a") == 0.0


def test_a_service_that_ends_answers_only_those_who_watch_it() -> None:
    ending = False
    app = Limiter(Echo(), Limits(), ending=lambda: ending)
    assert ask(app, "POST", STEP).status == 200
    ending = True
    said = ask(app, "POST", STEP, body=b"x")
    assert (said.status, said.header("retry-after")) == (503, "5")
    assert [ask(app, "GET", path).status for path in ("/healthz", "/readyz", "/metrics", "/")] == [
        200,
        200,
        200,
        503,
    ]


def test_an_answer_that_does_not_come_is_given_up_and_one_that_has_begun_is_not() -> None:
    cancelled: list[str] = []

    async def hangs(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.append(scope["path"])

    async def follows(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.1)
        await send({"type": "http.response.body", "body": b"late", "more_body": False})

    limits = Limits(seconds=0.02)
    began = time.monotonic()
    for body in (b"x", [b"x", b"y"]):
        said = ask(Limiter(hangs, limits), "POST", STEP, body=body)
        assert said.status == 503 and "same key" in said.json["error"]
    assert cancelled == [STEP, STEP]
    assert time.monotonic() - began < 3  # nothing is waited for once the body is here
    assert ask(Limiter(follows, limits), "GET", "/v1/streams/house/live").body == b"late"

    async def is_slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.1)
        await Echo()(scope, receive, send)

    assert ask(Limiter(is_slow, limits), "POST", "/v1/streams/house/backup").status == 200  # an admin waits


def test_a_timeout_of_the_app_itself_is_the_apps() -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        ask(Limiter(fails, Limits()), "POST", STEP)


def test_a_body_that_drips_is_given_up_though_each_drop_is_in_time() -> None:
    async def drip() -> tuple[int, float]:
        loop, sent = asyncio.get_running_loop(), []
        began = loop.time()

        async def receive() -> Any:
            await asyncio.sleep(0.02)
            return {"type": "http.request", "body": b"x", "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"transfer-encoding", b"chunked")]
        scope = {"type": "http", "method": "POST", "path": STEP, "headers": headers, "state": {}}
        await Limiter(Echo(), Limits(body_seconds=0.1))(scope, receive, send)
        return sent[0]["status"], loop.time() - began

    status, seconds = asyncio.run(drip())
    assert status == 408
    assert 0.1 <= seconds < 5


@contextmanager
def served(app: App) -> Iterator[int]:
    """Serve an app on a port of this machine, in a thread."""
    config = uvicorn.Config(app, port=0, log_level="critical", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def raw(port: int, *parts: bytes) -> bytes:
    """Send bytes, all of them, and then read until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


HEAD = f"POST {STEP} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()


def test_over_a_connection_a_client_that_sends_all_before_it_reads_has_its_answer() -> None:
    inside = Echo()
    with served(Limiter(inside, Limits(most_bytes=1000))) as port:
        body = b"x" * (20 << 20)  # more than any buffer on the way holds
        said = raw(port, HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode(), body)
        assert said.startswith(b"HTTP/1.1 413 ") and b"connection: close" in said
        chunks = b"".join(b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20)) for _ in range(10))
        said = raw(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunks, b"0\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 413 ")
    assert inside.seen == []


def test_over_a_connection_a_slow_body_is_cut_off() -> None:
    inside = Echo()
    with served(Limiter(inside, Limits(body_seconds=0.1))) as port:
        began = time.monotonic()
        said = raw(port, HEAD + b"Content-Length: 100\r\n\r\n", b"x")
        assert said.startswith(b"HTTP/1.1 408 ") and b"connection: close" in said
        said = raw(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")
        assert said.startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - began < 5
        close = b"Connection: close\r\n\r\n"
        assert raw(port, HEAD + b"Content-Length: 1\r\n" + close, b"x").startswith(b"HTTP/1.1 200 ")
    assert len(inside.seen) == 1


def test_over_a_connection_a_client_that_leaves_is_no_matter() -> None:
    inside = Echo()
    with served(Limiter(inside, Limits())) as port:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nx")
        time.sleep(0.05)
        close = b"Content-Length: 1\r\nConnection: close\r\n\r\n"
        assert raw(port, HEAD + close, b"x").startswith(b"HTTP/1.1 200 ")
    assert [body for _, _, body in inside.seen] == [b"x"]
