"""What a request asks: of which stream, with which messages; and answers as JSON, lists or lines of it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from varnn.errors import DataError
from varnn.service.errors import ServiceError
from varnn.service.http._asgi import Receive, Scope, Send
from varnn.service.live_stream import LiveStream
from varnn.service.service import Service
from varnn.streaming.json_text import read, write

LINES = "application/x-ndjson"


class TooMany(ServiceError):  # noqa: N818 - what is said of a body
    """A request holds more messages than one may."""

    status = 413


class Unreadable(ServiceError):  # noqa: N818 - what is said of a body
    """A body is not JSON."""

    status = 400


class Messages(NamedTuple):
    """What a body holds, and how it is to be answered."""

    rows: list[Any]
    form: str  # "one", "list" or "lines"


def messages_of(body: bytes, content_type: str, most: int) -> Messages:
    """Read a body.

    Examples
    --------
    >>> messages_of(b'[{"y": 1}, {"y": 2}]', "application/json", 10)
    Messages(rows=[{'y': 1}, {'y': 2}], form='list')
    >>> messages_of(b'{"y": 1}', "application/json", 10).form
    'one'
    """
    if content_type.partition(";")[0].strip().lower() in (LINES, "application/jsonl"):
        lines = [line for line in body.split(b"\n") if line.strip()]
        if len(lines) > most:
            raise TooMany(f"a request may hold {most} messages; got {len(lines)}. Send several.")
        return Messages([_line(line) for line in lines], "lines")
    found = _read(body)
    if isinstance(found, list):
        if len(found) > most:
            raise TooMany(f"a request may hold {most} messages; got {len(found)}. Send several.")
        return Messages(found, "list")
    return Messages([found], "one")


def _read(body: bytes) -> Any:
    try:
        return read(body)
    except (ValueError, RecursionError) as error:
        raise Unreadable(
            f"a body must be JSON: an object, a list of them, or lines of them ({LINES}). {str(error)[:200]}"
        ) from None


class NotJson:
    """A line that could not be read, in its place among the others."""

    def __init__(self, why: str) -> None:
        self.why = why


def _line(line: bytes) -> Any:
    try:
        return read(line)
    except (ValueError, RecursionError) as error:
        return NotJson(f"the line is not JSON: {str(error)[:200]}")


def answer_of(answers: list[dict[str, Any]], form: str) -> Response:
    """Answers as a body, with a status: that of the refusal where one object was sent and refused."""
    if form != "one":  # who does not look at each answer sees how many there were no rows for
        refused = {"Varnn-Refused": str(sum("error" in one for one in answers))}
        if form == "list":
            return json_response(answers, headers=refused)
        return Response(b"".join(write(one) + b"\n" for one in answers), headers=refused, media_type=LINES)
    answer = answers[0]
    if "error" not in answer:
        return json_response(answer)
    return json_response(answer, 503 if answer.get("damaged") else 409 if "next" in answer else 422)


class Parts(StreamingResponse):
    """An answer of many parts; what they come from is closed in any case, also where the caller left before.

    Parameters
    ----------
    parts : iterator of bytes or str
        The parts.
    close : callable
        What to do in the end.
    settings
        Those of ``StreamingResponse``.
    """

    def __init__(self, parts: Iterator[bytes | str], close: Callable[[], None], **settings: Any) -> None:
        super().__init__(parts, **settings)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Any value as JSON."""
    return Response(write(value), status, headers, media_type="application/json")


def object_of(body: bytes) -> dict[str, Any]:
    """Read a body that must be one object."""
    found = _read(body)
    if not isinstance(found, dict):
        raise DataError("the body must be one JSON object.")
    return found


def service_of(request: Request) -> Service:
    """The service that is asked."""
    service: Service = request.app.state.service
    return service


def stream_of(request: Request) -> LiveStream:
    """The stream that a path names."""
    return service_of(request).stream(request.path_params["stream"])
