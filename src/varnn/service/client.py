"""A client of the standard library alone: one connection, answers as plain values."""

import http.client
import json
import shutil
import ssl
import time
from collections.abc import Generator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from varnn.errors import ConfigError, VarnnError

Message = Mapping[str, Any]
Name = str | int | None
_IDLE = 20.0  # seconds after which the server may be about to close a connection that nothing came over


class ServiceRefused(VarnnError):  # noqa: N818 - what a service did
    """What a service answered in place of what was asked.

    Attributes
    ----------
    status : int
        That of HTTP.
    after : float or None
        Seconds to wait before another try, where it said so.
    answer : dict
        All that it said; of a wrong ``seq`` it has ``next``, the one that is due.
    """

    def __init__(self, status: int, answer: dict[str, Any], after: float | None = None) -> None:
        super().__init__(f"{status}: {answer.get('error', 'no reason was given')}")
        self.status, self.answer, self.after = status, answer, after


class Client:
    """A connection to a service.

    It is for one thread at a time. Messages are plain dicts, as the service has them; numbers may be those of
    NumPy, and times datetimes. One message is answered by a dict, and :class:`ServiceRefused` is raised
    where it was refused; several are answered by a list, where those that were refused have ``error``.

    A connection that was lost is made anew, and a request that changes nothing, or whose messages all have
    keys or numbers, is sent once more by itself. Any other may have been taken, or not.

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
    patience : float, default=0.0
        Seconds to go on trying where the service is away, ends or has too much to do: for requests that may
        be sent again. Others are sent again only where it said that they came too fast.

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
        patience: float = 0.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url must be one of HTTP, such as 'http://127.0.0.1:8000'; got {url!r}.")
        self._host, self._port, self._is_safe = parts.hostname, parts.port, parts.scheme == "https"
        self._base, self._timeout, self._patience = parts.path.rstrip("/"), timeout, patience
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection | None = None
        self._used = 0.0
        self._stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; another request opens one anew."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def stream(self) -> str:
        """Name of the stream."""
        if self._stream is None:
            names = [one["name"] for one in self.streams()]
            if len(names) != 1:
                raise ConfigError(
                    f"the service must have one stream, or stream= must name one; there are {names[:10]}."
                )
            self._stream = names[0]
        return self._stream

    # -- messages ------------------------------------------------------------------------------------

    def predict(self, rows: Message | Sequence[Message]) -> Any:
        """Predict rows as the next ones of their series; nothing changes."""
        return self._said("predict", rows, again=True)

    def observe(self, messages: Message | Sequence[Message]) -> Any:
        """Bring labels; once answered they are on disk."""
        return self._said("observe", messages)

    def step(self, messages: Message | Sequence[Message]) -> Any:
        """Open the next row, with the label of the last one as ``last_y``; once answered it is on disk."""
        return self._said("step", messages)

    # -- looking -------------------------------------------------------------------------------------

    def streams(self) -> list[dict[str, Any]]:
        """All streams."""
        found: list[dict[str, Any]] = self.get("/v1/streams")
        return found

    def models(self) -> list[dict[str, Any]]:
        """All models, and where they are used."""
        found: list[dict[str, Any]] = self.get("/v1/models")
        return found

    def scores(self) -> dict[str, dict[str, Any]]:
        """Scores of the champion and the challengers, by name, over all series."""
        found: dict[str, dict[str, Any]] = self._object("GET", self._at(""))["scores"]
        return found

    def series(self, **query: Any) -> dict[str, Any]:
        """List series: ``search``, ``sort``, ``limit``, ``offset``, ``spark``."""
        return self._object("GET", self._at("/series", query))

    def one(self, series: Name) -> dict[str, Any]:
        """One series, with the weights of its experts and the rows that wait for labels."""
        return self._object("GET", self._of(series))

    def history(
        self, series: Name, *, start: Any = None, end: Any = None, points: int = 2000
    ) -> dict[str, Any]:
        """Rows of a series; ``start`` and ``end`` are times, or seconds since 1970."""
        query = {"from": start, "to": end, "points": points}
        return self._object("GET", self._of(series, "/history", query))

    def events(self, *series: Name, limit: int = 100) -> list[dict[str, Any]]:
        """Events of the monitor, the latest first: of all series, or of one."""
        query = {"series": _text(series[0]) if series else None, "limit": limit}
        found: list[dict[str, Any]] = self.get(self._at("/events", query))
        return found

    def health(self) -> dict[str, Any]:
        """How the service is."""
        return self._object("GET", "/v1/health")

    def follow(self, *series: Name) -> Generator[tuple[str, Any], None, None]:
        """Follow rows and events as they come, over a connection of its own, until the service ends.

        Gives pairs of a kind (``"rows"``, ``"events"``, ``"lagging"``) and a list, or the number of rows
        that were lost.
        """
        query = urlencode([("series", _text(one)) for one in series])
        headers = self._headers | {"Accept": "text/event-stream"}
        connection = self._made()
        try:
            connection.request("GET", f"{self._base}{self._at('/live')}?{query}", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _refusal(answer, answer.read())
            kind = ""
            while line := answer.readline():
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])
        finally:
            connection.close()

    # -- keeping -------------------------------------------------------------------------------------

    def snapshot(self, series: Name) -> bytes:
        """State of a series as bytes."""
        found: bytes = self.get(self._of(series, "/snapshot"))
        return found

    def restore(self, series: Name, state: bytes) -> dict[str, Any]:
        """Let a series go on from such bytes."""
        return self._object("PUT", self._of(series, "/snapshot"), state, "application/octet-stream")

    def forget(self, series: Name) -> dict[str, Any]:
        """Forget a series, for good."""
        return self._object("DELETE", self._of(series))

    def backup(self, path: str | Path) -> Path:
        """Write the whole state file, as it is now, to a place of this machine."""
        connection = self._made()
        try:
            connection.request("POST", self._base + self._at("/backup"), headers=self._headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _refusal(answer, answer.read())
            place = Path(path)
            draft = place.with_name(place.name + ".part")
            try:
                with draft.open("wb") as file:
                    shutil.copyfileobj(answer, file)
                if answer.length:  # what was announced, and did not come
                    raise http.client.IncompleteRead(b"", answer.length)
                return draft.replace(place)
            finally:
                draft.unlink(missing_ok=True)
        finally:
            connection.close()

    # -- models --------------------------------------------------------------------------------------

    def add_model(self, name: str, path: str | Path) -> dict[str, Any]:
        """Upload a .varnn file under a name."""
        blob = Path(path).read_bytes()
        return self._object("PUT", f"/v1/models/{_quoted(name)}", blob, "application/octet-stream")

    def drop_model(self, name: str) -> None:
        """Delete a model that no stream uses."""
        self.request("DELETE", f"/v1/models/{_quoted(name)}")

    def add_stream(self, name: str, champion: str) -> dict[str, Any]:
        """Begin a stream that a model answers."""
        return self._object("POST", "/v1/streams", _json({"name": name, "champion": champion}))

    def retire(self) -> dict[str, Any]:
        """Retire the stream; its file stays."""
        return self._object("DELETE", self._at(""))

    def add_challenger(self, model: str) -> dict[str, Any]:
        """Let a model go along with the stream."""
        return self._object("POST", self._at("/challengers"), _json({"model": model}))

    def drop_challenger(self, model: str) -> dict[str, Any]:
        """Let a challenger go."""
        return self._object("DELETE", self._at(f"/challengers/{_quoted(model)}"))

    def promote(self, model: str) -> dict[str, Any]:
        """Let a challenger and the champion change places."""
        return self._object("POST", self._at(f"/challengers/{_quoted(model)}/promote"))

    # -- requests ------------------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """Ask for anything, by its path."""
        return self.request("GET", path, again=True)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        *,
        again: bool = False,
    ) -> Any:
        """Send a request; ``again`` if it may be sent once more where nobody knows what became of it."""
        headers = self._headers if body is None else self._headers | {"Content-Type": kind}
        ends, lost = time.monotonic() + self._patience, 0
        while True:
            wait = 0.0
            try:
                answer, content = self._once(method, path, body, headers)
            except (OSError, http.client.HTTPException):
                self.close()
                lost += 1
                wait = 0.0 if lost == 1 else 0.25
                if not again or (lost > 1 and time.monotonic() + wait > ends):
                    raise
            else:
                if answer.status < 400:
                    is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
                    return json.loads(content) if is_json else content
                refusal = _refusal(answer, content)
                wait = refusal.after or 1.0
                tried = answer.status == 429 or (again and answer.status in (503, 507))
                if not tried or time.monotonic() + wait > ends:
                    raise refusal
            time.sleep(wait)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if time.monotonic() - self._used > _IDLE:
            self.close()
        connection = self._connection = self._connection or self._made()
        connection.request(method, self._base + path, body, dict(headers))
        answer = connection.getresponse()
        content = answer.read()
        self._used = time.monotonic()
        return answer, content

    def _said(self, verb: str, messages: Message | Sequence[Message], *, again: bool = False) -> Any:
        rows: list[Any] = [messages] if isinstance(messages, Mapping) else list(messages)
        again = again or all("key" in one or "seq" in one for one in rows if isinstance(one, Mapping))
        body = _json(rows[0] if isinstance(messages, Mapping) else rows)
        return self.request("POST", self._at(f"/{verb}"), body, again=again)

    def _object(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        found: dict[str, Any] = self.request(method, path, body, kind, again=method == "GET")
        return found

    def _at(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        given = {name: _time(value) for name, value in (query or {}).items() if value is not None}
        return f"/v1/streams/{_quoted(self.stream)}{path}{'?' + urlencode(given) if given else ''}"

    def _of(self, series: Name, path: str = "", query: Mapping[str, Any] | None = None) -> str:
        return self._at(f"/series/{_quoted(_text(series))}{path}", query)

    def _made(self) -> http.client.HTTPConnection:
        if self._is_safe:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)


def _text(series: Name) -> str:
    """A series' name as paths and queries have it."""
    return "~" if series is None else str(series)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _json(value: Any) -> bytes:
    return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> Any:
    """What JSON has in place of an array, a number or a time of Python or NumPy."""
    told = _time(value)
    if told is value:
        if not hasattr(value, "tolist"):
            raise TypeError(f"a message holds plain values, arrays and times; got a {type(value).__name__}.")
        told = value.tolist()
    return told


def _time(value: Any) -> Any:
    """A time as text; anything else as it is."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if type(value).__name__ == "datetime64" else value


def _refusal(answer: http.client.HTTPResponse, content: bytes) -> ServiceRefused:
    try:
        told = json.loads(content)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        told = {"error": content[:200].decode(errors="replace")}
    after = answer.getheader("Retry-After") or ""
    return ServiceRefused(answer.status, told, float(after) if after.isdigit() else None)
