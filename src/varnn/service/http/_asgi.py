"""What the middlewares share: headers of a request, and answers that are given before the app is asked."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

from varnn.streaming import json_text

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

_SMALL = 8 << 20  # bytes of a body that the server may throw away by itself; then the connection lives on
_CLOSE = (b"connection", b"close")
_LINGER_BYTES, _LINGER_SECONDS = 64 << 20, 5.0


class Caller(NamedTuple):
    """Who asks: what they may do (None: nothing but what all may), and the id of their token, if any."""

    scope: str | None
    token: str | None


def caller_name(scope: Scope) -> str:
    """Tell callers apart: by token where there is one, else by where they are."""
    caller: Caller | None = scope["state"].get("access")
    return peer(scope) if caller is None or caller.token is None else caller.token


def header(scope: Scope, name: bytes) -> bytes | None:
    """Give the first header of that name, which is in small letters."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None


def peer(scope: Scope) -> str:
    """Name who is at the other end of the connection."""
    client = scope.get("client")
    return str(client[0]) if client else "local"


def body_length(scope: Scope) -> int | None:
    """Give the bytes of the body as announced; None where they come in chunks, as many as there are."""
    length: int | None = 0
    for key, value in scope["headers"]:
        if key == b"transfer-encoding":
            return None
        if key == b"content-length":
            # Servers refuse what is no number; should one not, the bytes are counted as they come.
            length = int(value) if value.isdigit() else None
    return length


async def answer(send: Send, status: int, content: Any, headers: Headers = ()) -> None:
    """Answer a request by JSON."""
    text = json_text.write(content)
    await send({"type": "http.response.start", "status": status, "headers": _described(text, headers)})
    await send({"type": "http.response.body", "body": text})


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    status: int,
    why: str,
    headers: Headers = (),
    *,
    linger: bool = True,
) -> None:
    """Answer a request by an error, before its body is read.

    A small body that is still to come the server throws away. For a large one, or one without a known end,
    the connection is closed; but only after a while in which what comes is thrown away here: most clients
    send all before they read, and a connection closed at once would take the answer with it. Without
    ``linger`` it is closed at once.
    """
    content = {"error": why, "request": scope.get("state", {}).get("request")}
    length = body_length(scope)
    if not linger:
        return await answer(send, status, content, [*headers, _CLOSE])
    if length is not None and length <= _SMALL:
        return await answer(send, status, content, headers)
    text = json_text.write(content)
    all_headers = [*_described(text, headers), _CLOSE]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": text, "more_body": True})
    left = _LINGER_BYTES
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    break
                left -= len(message.get("body", b""))
    except TimeoutError:
        pass
    return await send({"type": "http.response.body", "body": b""})


def _described(text: bytes, headers: Headers) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(text)).encode()),
        (b"cache-control", b"no-store"),
        *headers,
    ]
