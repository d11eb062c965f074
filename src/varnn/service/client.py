"""A client of a few lines, of the standard library alone: one connection, answers as plain values."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from varnn.errors import VarnnError

Message = Mapping[str, Any]


class ServiceRefused(VarnnError):  # noqa: N818 - what a service did
    """What a service answered in place of what was asked; ``status`` is that of HTTP."""

    def __init__(self, status: int, words: str, after: float | None = None) -> None:
        super().__init__(f"{status}: {words}")
        self.status, self.after = status, after


class Client:
    """A connection to a service.

    It is for one thread at a time. A connection that was lost is made anew, and a request whose messages
    all have keys, or that changes nothing, is sent once more by itself.

    Parameters
    ----------
    url : str, default="http://127.0.0.1:8000"
        Where the service is.
    token : str or None, default=None
        What ``varnn token make`` printed, if the service needs one.
    stream : str or None, default=None
        The stream to talk to; None for the only one there is.
    timeout : float, default=60.0
        Seconds to wait for an answer.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000")                                    # doctest: +SKIP
    >>> client.step({"series": "north", "x": {"heat": 20.5}})["prediction"]         # doctest: +SKIP
    61.2
    >>> client.observe({"series": "north", "y": 60.0})["innovation"]                # doctest: +SKIP
    -1.2
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        stream: str | None = None,
        *,
        timeout: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be one of HTTP, such as 'http://127.0.0.1:8000'; got {url!r}.")
        self._host, self._port, self._is_safe = parts.hostname, parts.port, parts.scheme == "https"
        self._base, self._timeout = parts.path.rstrip("/"), timeout
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection | None = None
        self._stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def stream(self) -> str:
        """Name of the stream."""
        if self._stream is None:
            names = [one["name"] for one in self.get("/v1/streams")]
            if len(names) != 1:
                raise ServiceRefused(404, f"there are {len(names)} streams ({names[:5]}): name one.")
            self._stream = names[0]
        return self._stream

    def predict(self, rows: Message | Sequence[Message]) -> Any:
        """Predict rows as the next ones of their series; nothing changes."""
        return self._said("predict", rows, again=True)

    def observe(self, messages: Message | Sequence[Message]) -> Any:
        """Bring labels; once answered they are on disk."""
        return self._said("observe", messages)

    def step(self, messages: Message | Sequence[Message]) -> Any:
        """Open the next row, with the label of the last one as ``last_y``; once answered it is on disk."""
        return self._said("step", messages)

    def series(self, **query: Any) -> dict[str, Any]:
        """List series: ``search``, ``sort``, ``limit``, ``offset``, ``spark``."""
        found: dict[str, Any] = self.get(self._at("series", query))
        return found

    def history(self, series: str | int | None, **query: Any) -> dict[str, Any]:
        """Rows of a series: ``start`` and ``to`` as times or seconds, ``points``."""
        if "start" in query:
            query["from"] = query.pop("start")
        found: dict[str, Any] = self.get(self._at(f"series/{_in_path(series)}/history", query))
        return found

    def events(self, **query: Any) -> list[dict[str, Any]]:
        """Events of the monitor, the latest first."""
        found: list[dict[str, Any]] = self.get(self._at("events", query))
        return found

    def follow(self, *series: str | int | None) -> Iterator[tuple[str, Any]]:
        """Follow rows and events as they come: pairs of a kind and a list; for a connection of its own."""
        query = [("series", "~" if one is None else one) for one in series]
        headers = self._headers | {"Accept": "text/event-stream"}
        connection = self._made()
        try:
            connection.request("GET", self._base + self._at("live") + "?" + urlencode(query), headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _refusal(answer.status, answer.read(), answer.getheader("Retry-After"))
            kind = ""
            while line := answer.readline():
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Ask for anything, by its path."""
        return self.request("GET", path, again=True)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str | None = None,
        *,
        again: bool = False,
    ) -> Any:
        """Send a request; ``again`` if it may be sent once more where the connection was lost."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = kind or "application/json"
        for more in (again, False):
            connection = self._connection = self._connection or self._made()
            try:
                connection.request(method, self._base + path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self.close()
                if not more:
                    raise
        if answer.status >= 400:
            raise _refusal(answer.status, content, answer.getheader("Retry-After"))
        is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
        return json.loads(content) if is_json else content

    def _said(self, verb: str, messages: Message | Sequence[Message], *, again: bool = False) -> Any:
        rows = [messages] if isinstance(messages, Mapping) else messages
        again = again or all("key" in one or "seq" in one for one in rows)
        body = json.dumps(messages if isinstance(messages, Mapping) else list(messages)).encode()
        return self.request("POST", self._at(verb), body, again=again)

    def _at(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        asked = "?" + urlencode(query) if query else ""
        return f"/v1/streams/{quote(self.stream)}/{path}{asked}"

    def _made(self) -> http.client.HTTPConnection:
        if self._is_safe:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)


def _in_path(series: str | int | None) -> str:
    return "~" if series is None else quote(str(series), safe="")


def _refusal(status: int, content: bytes, after: str | None) -> ServiceRefused:
    try:
        words = str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        words = content[:200].decode(errors="replace")
    return ServiceRefused(status, words, None if after is None else float(after))
