"""The interface described as OpenAPI has it; made by hand, and held to the routes and answers by tests."""

from functools import cache
from typing import Any

from varnn._version import VERSION
from varnn.service.http.openapi_schemas import SCHEMAS, Schema, many, ref
from varnn.service.http.route_table import ROUTES

_STREAM, _SERIES = "/v1/streams/{stream}", "/v1/streams/{stream}/series/{series}"
_PLAIN_NAME = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"}
_IN_PATHS: dict[str, tuple[Schema, str]] = {
    "stream": (_PLAIN_NAME, "name of the stream"),
    "model": (_PLAIN_NAME, "name of the model"),
    "series": (
        {"type": "string"},
        "name of the series: the text, else the whole number of those digits; ~ for the one without a name",
    ),
}


@cache
def document() -> dict[str, Any]:
    """The whole description.

    Examples
    --------
    >>> document()["openapi"], "/v1/streams/{stream}/step" in document()["paths"]
    ('3.1.0', True)
    """
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in _operations().items():
        scope = ROUTES[method, path]
        if scope is None:
            operation["security"] = []
        else:
            needs = f"Needs a token of scope {scope}, where tokens are needed."
            operation["description"] = f"{operation.get('description', '')}\n\n{needs}".strip()
        item = paths.setdefault(path, {})
        item[method.lower()] = operation
        if names := [one for one in _IN_PATHS if f"{{{one}}}" in path]:
            item["parameters"] = [
                {"name": one, "in": "path", "required": True, "schema": schema, "description": words}
                for one, (schema, words) in _IN_PATHS.items()
                if one in names
            ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "varnn",
            "version": VERSION,
            "description": "Predict and observe live; every answer to a change is on disk before it is sent.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operations() -> dict[tuple[str, str], dict[str, Any]]:
    """All operations by method and path, in the order in which they are shown."""
    return {
        ("POST", f"{_STREAM}/predict"): _messages("Predict rows as the next ones; nothing changes", "Row"),
        ("POST", f"{_STREAM}/observe"): _messages("Bring labels; durable once answered", "Observation"),
        ("POST", f"{_STREAM}/step"): _messages("Open the next rows; durable once answered", "Step"),
        ("GET", "/v1/streams"): _operation("List streams", many(ref("Stream"))),
        ("POST", "/v1/streams"): _operation(
            "Begin a stream", ref("Stream"), takes=_object("name", "champion"), status="201"
        ),
        ("GET", _STREAM): _operation("One stream, with the scores of its models", ref("Stream")),
        ("DELETE", _STREAM): _operation("Retire a stream; its file stays", ref("Retired")),
        ("POST", f"{_STREAM}/challengers"): _operation(
            "Let a model go along", ref("Stream"), takes=_object("model"), status="201"
        ),
        ("DELETE", f"{_STREAM}/challengers/{{model}}"): _operation("Let a challenger go", ref("Stream")),
        ("POST", f"{_STREAM}/challengers/{{model}}/promote"): _operation(
            "Let a challenger and the champion change places", ref("Stream")
        ),
        ("POST", f"{_STREAM}/backup"): _operation(
            "The state file as it is now", _BYTES, kind="application/vnd.sqlite3"
        ),
        ("GET", f"{_STREAM}/live"): _live(),
        ("GET", f"{_STREAM}/events"): _operation(
            "Events of the monitor, the latest first",
            many(ref("Event")),
            query=[
                _query("series", {"type": "string"}, "of one series, named as in a path"),
                _query("limit", _whole(1, 1000, 100), "events at most"),
            ],
        ),
        ("GET", f"{_STREAM}/series"): _operation("List series", ref("SeriesList"), query=_listing()),
        ("GET", _SERIES): _operation("One series, with the weights of its experts", ref("Summary")),
        ("DELETE", _SERIES): _operation("Forget a series", ref("Forgotten")),
        ("GET", f"{_SERIES}/history"): _history(),
        ("GET", f"{_SERIES}/snapshot"): _operation(
            "State of a series as bytes", _BYTES, kind="application/octet-stream"
        ),
        ("PUT", f"{_SERIES}/snapshot"): _operation(
            "Let a series go on from such bytes",
            ref("Placed"),
            takes=_FILE,
            more="Its history after that state is dropped. Keys that were known stay known.",
        ),
        ("GET", "/v1/models"): _operation("List models", many(ref("Model"))),
        ("PUT", "/v1/models/{model}"): _operation(
            "Upload a .varnn file", ref("Model"), takes=_FILE, status="201"
        ),
        ("DELETE", "/v1/models/{model}"): _operation("Delete a model that no stream uses", ref("Deleted")),
        ("GET", "/v1/health"): _operation("How the service is", ref("Health")),
        ("GET", "/v1/session"): _operation("Who is asking", ref("Session")),
        ("GET", "/v1/openapi.json"): _operation("This description", {"type": "object"}),
        ("GET", "/healthz"): _operation("Whether the process answers", _TEXT, kind="text/plain"),
        ("GET", "/readyz"): _ready(),
        ("GET", "/metrics"): _operation(
            "Figures for Prometheus (OpenMetrics)", _TEXT, kind="application/openmetrics-text"
        ),
    }


_TEXT: Schema = {"type": "string"}
_BYTES: Schema = {"type": "string", "format": "binary"}
_FILE: dict[str, Any] = {"required": True, "content": {"application/octet-stream": {"schema": _BYTES}}}
_LINES = "application/x-ndjson"


def _operation(
    summary: str,
    gives: Schema,
    *,
    kind: str = "application/json",
    takes: dict[str, Any] | None = None,
    query: list[dict[str, Any]] | None = None,
    more: str = "",
    status: str = "200",
) -> dict[str, Any]:
    refused = {"description": "refused", "content": {"application/json": {"schema": ref("Error")}}}
    good = {"description": "done", "content": {kind: {"schema": gives}}}
    found: dict[str, Any] = {"summary": summary, "responses": {status: good, "default": refused}}
    if more:
        found["description"] = more
    if takes is not None:
        found["requestBody"] = takes
    if query is not None:
        found["parameters"] = query
    return found


def _messages(summary: str, kind: str) -> dict[str, Any]:
    more = (
        "The body is one message, a list of them, or lines of them; it is answered in the same form, each in "
        "its place. Of a list or lines each message is taken or refused for itself; the status is 200, and "
        "the header Varnn-Refused tells how many were refused. One message that is refused has status 422, "
        "or 409 for a wrong seq."
    )
    found = _operation(
        summary, {"oneOf": [ref("Answer"), many(ref("Answer"))]}, more=more, takes={"required": True}
    )
    found["requestBody"]["content"] = {
        "application/json": {"schema": {"oneOf": [ref(kind), many(ref(kind))]}},
        _LINES: {"schema": _TEXT},
    }
    found["responses"]["200"]["content"][_LINES] = {"schema": _TEXT}
    found["responses"]["200"]["headers"] = {
        "Varnn-Refused": {
            "schema": {"type": "integer", "minimum": 0},
            "description": "of a list or lines: how many messages were refused",
        }
    }
    for status, words in (("409", "its seq is not the one that is due"), ("422", "it cannot be used")):
        content = {"application/json": {"schema": {"oneOf": [ref("Answer"), ref("Error")]}}}
        found["responses"][status] = {"description": words, "content": content}
    return found


def _live() -> dict[str, Any]:
    return _operation(
        "Rows and events as they come (server-sent events)",
        _TEXT,
        kind="text/event-stream",
        query=[_query("series", many(_TEXT), "which, named as in a path; none: all")],
        more=(
            "`event: rows`, a list of rows, each when it is predicted and again, with y, when its label is "
            "there; `event: events`, a list as of the route events; `event: lagging`, how many were lost as "
            "they were read too slowly. Gathered ten times a second."
        ),
    )


def _history() -> dict[str, Any]:
    found = _operation(
        "Rows of a series by time",
        ref("History"),
        query=[
            _query("from", _TEXT, "ISO time, or seconds since 1970"),
            _query("to", _TEXT, "the same, included"),
            _query("points", _whole(10, 20_000, 2000), "rows given at most"),
            _query("format", _one_of("json", "csv"), "csv has all rows of the range"),
        ],
    )
    found["responses"]["200"]["content"]["text/csv"] = {"schema": _TEXT}
    return found


def _listing() -> list[dict[str, Any]]:
    return [
        _query("search", _TEXT, "part of a name"),
        _query("sort", _one_of("trouble", "name", "recent"), "order"),
        _query("limit", _whole(1, 500, 50), "series given at most"),
        _query("offset", _whole(0, 10**9, 0), "series passed over"),
        _query("spark", _whole(0, 500, 0), "last labels given with each"),
    ]


def _ready() -> dict[str, Any]:
    found = _operation("Whether messages are taken", _TEXT, kind="text/plain")
    content = {"text/plain": {"schema": _TEXT}}
    found["responses"]["503"] = {
        "description": "not yet, not any more, or a stream cannot write",
        "content": content,
    }
    return found


def _object(*fields: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {one: _PLAIN_NAME for one in fields},
        "required": [*fields],
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _whole(least: int, most: int, default: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def _one_of(default: str, *others: str) -> Schema:
    return {"type": "string", "enum": [default, *others], "default": default}


def _query(name: str, schema: Schema, words: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": words}
