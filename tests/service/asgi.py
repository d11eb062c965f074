"""A caller of ASGI apps without a network in between, and an app that says what reached it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

App = Callable[[Any, Any, Any], Awaitable[None]]


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    app: App,
    method: str,
    path: str,
    *,
    headers: dict[str, str] | None = None,
    body: bytes | Iterable[bytes] = b"",
    token: str | None = None,
    query: str = "",
    peer: str = "127.0.0.1",
    scheme: str = "http",
) -> Answer:
    """Send one request and wait for its answer; a body in parts is one without a length."""
    return asyncio.run(
        ask_within(
            app,
            method,
            path,
            headers=headers,
            body=body,
            token=token,
            query=query,
            peer=peer,
            scheme=scheme,
        )
    )


async def ask_within(
    app: App,
    method: str,
    path: str,
    *,
    headers: dict[str, str] | None = None,
    body: bytes | Iterable[bytes] = b"",
    token: str | None = None,
    query: str = "",
    peer: str = "127.0.0.1",
    scheme: str = "http",
) -> Answer:
    """Send one request from within a loop."""
    known = {"host": "127.0.0.1:8000"} | (headers or {})
    if token is not None:
        known["authorization"] = f"Bearer {token}"
    if not isinstance(body, bytes):
        known["transfer-encoding"] = "chunked"
    elif body:
        known["content-length"] = str(len(body))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "scheme": scheme,
        "client": (peer, 50_000),
        "server": ("127.0.0.1", 8000),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in known.items()],
        "state": {},
    }
    parts = iter([body] if isinstance(body, bytes) else body)
    sent: list[MutableMapping[str, Any]] = []
    complete = False

    async def receive() -> MutableMapping[str, Any]:
        nonlocal complete
        if complete:
            await asyncio.Event().wait()
        part = next(parts, None)
        complete = isinstance(body, bytes) or part is None
        return {"type": "http.request", "body": part or b"", "more_body": not complete}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    assert start["type"] == "http.response.start"
    assert rest and not rest[-1].get("more_body", False), "an answer must come to its end"
    assert all(one.get("more_body", False) for one in rest[:-1])
    pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in start["headers"]]
    return Answer(start["status"], pairs, b"".join(one.get("body", b"") for one in rest))


class Echo:
    """An app that answers what reached it, and remembers it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes]] = []
        self.states: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.seen.append((scope["method"], scope["path"], body))
        self.states.append(dict(scope["state"]))
        text = json.dumps({"path": scope["path"], "bytes": len(body)}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})
