"""What a service takes at most, and the middleware that holds to it: bytes, time, and rows a second.

Bodies are read here, once and whole, before the app is asked: it never waits for a caller, and a body that is
too large (413) or comes too slowly (408) never reaches it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, fields

from varnn.errors import ConfigError
from varnn.service.http._asgi import (
    App,
    Message,
    Receive,
    Scope,
    Send,
    answer,
    body_length,
    caller_name,
    refuse,
)
from varnn.service.http._rates import Buckets, retry_after
from varnn.service.http.route_table import Route, find_route

_OPEN_BYTES = 16 << 10  # of what anybody may send, which is a login
_SLOWEST = 64 << 10  # bytes a second that give a large body more time
_WHILE_ENDING = {"/healthz", "/readyz", "/metrics"}
_FILES = {"/v1/models/{model}", "/v1/streams/{stream}/series/{series}/snapshot"}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a service takes at most.

    Parameters
    ----------
    most_bytes : int, default=8 MiB
        Bytes of a request's body.
    most_file_bytes : int, default=64 MiB
        The same for model files and snapshots, which admins send.
    held_bytes : int, default=256 MiB
        Bytes of all bodies that are in memory at one time.
    most_rows : int, default=10_000
        Rows of a request.
    rate : float, default=0
        Rows a second of one caller, where a request counts as one row at least; 0 is no limit.
    burst : float, default=0
        Rows at once before the rate counts; 0 is those of ten seconds.
    queue : int, default=50_000
        Messages that wait in one stream.
    seconds : float, default=30
        Seconds until a request has its answer; those of admins may take longer.
    body_seconds : float, default=10
        Seconds until a body is there, and one more for each 64 KiB of it.
    followers : int, default=200
        Callers that follow live.

    Examples
    --------
    >>> Limits(rate=500).burst_rows
    5000.0
    """

    most_bytes: int = 8 << 20
    most_file_bytes: int = 64 << 20
    held_bytes: int = 256 << 20
    most_rows: int = 10_000
    rate: float = 0
    burst: float = 0
    queue: int = 50_000
    seconds: float = 30
    body_seconds: float = 10
    followers: int = 200

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), 0 if one.name in ("rate", "burst") else 1e-3
            if not least <= value < float("inf"):
                words = "0 or more" if least == 0 else "more than 0"
                raise ConfigError(f"the limit {one.name} must be {words}; got {value}.")

    @property
    def burst_rows(self) -> float:
        """Rows at once before the rate counts."""
        return float(max(1.0, self.burst or 10 * self.rate))


class Limiter:
    """ASGI middleware that refuses what is more than a service takes, before the app sees it.

    Parameters
    ----------
    app : ASGI app
        What is asked when all is well.
    limits : Limits
        What is taken.
    ending : callable, optional
        Tells whether the service is about to end; then only those who watch it are answered.
    """

    def __init__(self, app: App, limits: Limits, *, ending: Callable[[], bool] = lambda: False) -> None:
        self._app, self._limits, self._ending = app, limits, ending
        self._buckets = Buckets(limits.rate, limits.burst_rows) if limits.rate else None
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        route = find_route(scope["method"], scope["path"])
        if self._ending() and route.template not in _WHILE_ENDING:
            why = "the service is about to end; send this again when it is back."
            return await refuse(scope, receive, send, 503, why, [retry_after(5)])
        if self._buckets is not None and route.scope is not None:
            name = caller_name(scope)
            wait = self._buckets.wait(name)
            if wait > 0:
                why = f"at most {self._limits.rate:g} rows a second are taken; wait {wait:.1f} s."
                return await refuse(scope, receive, send, 429, why, [retry_after(wait)])
            self._buckets.take(name)
            scope["state"]["meter"] = (self._buckets, name)
        most, length = self._most_bytes(route), body_length(scope)
        if length is not None and length > most:
            return await self._too_large(scope, receive, send, most)
        expected = most if length is None else length
        if self._held + expected > self._limits.held_bytes:
            why = "too many bodies are being read at this moment; send this again."
            return await refuse(scope, receive, send, 503, why, [retry_after(1)])
        self._held += expected
        try:
            has_body = length != 0
            return await self._within_time(scope, receive, send, route, most if has_body else 0)
        finally:
            self._held -= expected

    async def _within_time(self, scope: Scope, receive: Receive, send: Send, route: Route, most: int) -> None:
        """Read a body of at most so many bytes, 0 if there is none, and ask the app, both in their time.

        An answer that has begun may take any.
        """
        body: bytes | None = None
        reading = True

        async def replay() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message = {"type": "http.request", "body": body, "more_body": False}
            body = None
            return message

        async def begun(message: Message) -> None:
            if message["type"] == "http.response.start":
                clock.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(self._limits.body_seconds) as clock:
                if most:
                    body = await _read(receive, most, clock)
                    if body is None:
                        return None
                reading = False
                # Who changes models may have to wait for a disk; what they began is not to be cut in two.
                now = asyncio.get_running_loop().time()
                clock.reschedule(None if route.scope == "admin" else now + self._limits.seconds)
                return await self._app(scope, replay, begun)
        except _TooLargeError:
            return await self._too_large(scope, receive, send, most)
        except TimeoutError:
            if not clock.expired():
                raise  # the app's own
        if reading:
            why = "the body came too slowly, and was not used; send it again, or in smaller parts."
            return await refuse(scope, receive, send, 408, why, linger=False)
        why = (
            f"no answer within {self._limits.seconds:g} s. What was sent may have been taken: send it again "
            "with the same key or seq, and it is taken once."
        )
        content = {"error": why, "request": scope["state"].get("request")}
        return await answer(send, 503, content, [retry_after(5)])

    def _most_bytes(self, route: Route) -> int:
        if route.scope is None:
            return min(_OPEN_BYTES, self._limits.most_bytes)
        return self._limits.most_file_bytes if route.template in _FILES else self._limits.most_bytes

    async def _too_large(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        why = f"a body must have at most {most:,} bytes; this one has more. Send it in smaller parts."
        await refuse(scope, receive, send, 413, why)


class _TooLargeError(Exception):
    """A body is longer than was announced, or than may be."""


async def _read(receive: Receive, most: int, clock: asyncio.Timeout) -> bytes | None:
    """Read a body whole; None where the caller left."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        whole: bytes = message.get("body", b"")
        if len(whole) > most:
            raise _TooLargeError
        return whole
    parts, length, due = [], 0, clock.when()
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > most:
            raise _TooLargeError
        if not message.get("more_body", False):
            return b"".join(parts)
        clock.reschedule(None if due is None else due + length / _SLOWEST)
        message = await receive()
    return None


def charge(scope: Scope, rows: int) -> None:
    """Count the rows of a request, once they are known, against what its caller may send.

    A request has been counted as one row before the app sees it. Where its rows are more than were left, it
    is taken all the same, and the caller waits the longer before the next one.

    Parameters
    ----------
    scope : dict
        The request's ASGI scope, as ``request.scope``.
    rows : int
        Its rows.
    """
    meter = scope["state"].get("meter")
    if meter is not None and rows > 1:
        buckets, name = meter
        buckets.take(name, rows - 1)
