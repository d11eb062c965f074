"""The interface described as OpenAPI has it; made by hand, and held to the routes and answers by tests."""

from functools import cache
from typing import Any

import varnn

_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_NUMBERS: dict[str, Any] = {"type": "array", "items": _NUMBER}
_NAME: dict[str, Any] = {"type": ["string", "integer", "null"], "maxLength": 200}
_INPUTS: dict[str, Any] = {
    "description": "inputs by name, or as a list in the model's order; null where one is missing",
    "oneOf": [
        {"type": "object", "additionalProperties": {"type": ["number", "string", "null"]}},
        {"type": "array", "items": _NUMBER},
    ],
}
_LEVELS: dict[str, Any] = {
    "description": "level, or levels, of intervals to give; without it that of the stream",
    "oneOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "array", "items": {"type": "number"}, "maxItems": 20},
    ],
}
_FIELDS: dict[str, Any] = {
    "series": {**_NAME, "description": "which series; may be left out where there is only one"},
    "x": _INPUTS,
    "time": {"type": ["string", "null"], "description": "of x, ISO 8601; without a zone it is UTC"},
    "interval": _LEVELS,
    "y": {
        **_NUMBER,
        "description": "label: beside x that of its row, alone that of the open row; null: missing",
    },
    "last_y": {**_NUMBER, "description": "beside x: label of the row before, which is open"},
    "row": {"type": "integer", "minimum": 0, "description": "beside y alone: the row it is the label of"},
    "for": {"type": ["string", "integer"], "description": "the same by the key, or seq, of its x"},
    "key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "sent again, answered as it was",
    },
    "seq": {"type": "integer", "minimum": 1, "description": "number of the message in its series, likewise"},
}
_SCHEMAS: dict[str, Any] = {
    "Error": {
        "type": "object",
        "properties": {"error": {"type": "string"}, "request": {"type": ["string", "null"]}},
        "required": ["error"],
    },
    "Answer": {
        "type": "object",
        "properties": {
            "series": _NAME,
            "seq": {"type": "integer"},
            "row": {"type": "integer"},
            "prediction": _NUMBER,
            "lower": {"oneOf": [_NUMBER, _NUMBERS]},
            "upper": {"oneOf": [_NUMBER, _NUMBERS]},
            "innovation": _NUMBER,
            "events": {"type": "array", "items": {"type": "object"}},
            "error": {
                "type": "string",
                "description": "why this message was refused; it has changed nothing",
            },
        },
    },
    "Row": {
        "type": "object",
        "properties": {name: _FIELDS[name] for name in ("series", "x", "time", "interval")},
        "required": ["x"],
    },
    "Observation": {"type": "object", "properties": _FIELDS, "required": ["y"]},
    "Step": {"type": "object", "properties": _FIELDS, "required": ["x"]},
    "Object": {"type": "object"},
    "List": {"type": "array", "items": {"type": "object"}},
}


@cache
def document() -> dict[str, Any]:
    """The whole description.

    Examples
    --------
    >>> document()["openapi"], "/v1/streams/{stream}/step" in document()["paths"]
    ('3.1.0', True)
    """
    stream, series = "/v1/streams/{stream}", "/v1/streams/{stream}/series/{series}"
    listing = [
        _query("search", {"type": "string"}, "part of a name"),
        _query("sort", {"type": "string", "enum": ["trouble", "name", "recent"]}, "order"),
        _query("limit", {"type": "integer", "minimum": 1, "maximum": 500}, "series given at most"),
        _query("offset", {"type": "integer", "minimum": 0, "maximum": 10**9}, "series passed over"),
        _query("spark", {"type": "integer", "minimum": 0, "maximum": 500}, "last labels given with each"),
    ]
    span = [
        _query("from", {"type": "string"}, "ISO time, or seconds since 1970"),
        _query("to", {"type": "string"}, "the same"),
        _query("points", {"type": "integer", "minimum": 10, "maximum": 20000}, "rows given at most, about"),
        _query("format", {"type": "string", "enum": ["json", "csv"]}, "csv has all rows of the range"),
    ]
    paths: dict[str, dict[str, Any]] = {
        f"{stream}/predict": {
            "post": _messages("Predict rows as the next ones; nothing changes", "Row", "read")
        },
        f"{stream}/observe": {
            "post": _messages("Bring labels; durable once answered", "Observation", "write")
        },
        f"{stream}/step": {"post": _messages("Open the next rows; durable once answered", "Step", "write")},
        "/v1/streams": {
            "get": _operation("List streams", "read", gives="List"),
            "post": _operation("Begin a stream", "admin", takes=_object("name", "champion"), status="201"),
        },
        stream: {
            "get": _operation("One stream, with the scores of its models", "read"),
            "delete": _operation("Retire a stream; its file stays", "admin"),
        },
        f"{stream}/challengers": {
            "post": _operation("Let a model go along", "admin", takes=_object("model"), status="201")
        },
        f"{stream}/challengers/{{model}}": {"delete": _operation("Let a challenger go", "admin")},
        f"{stream}/challengers/{{model}}/promote": {
            "post": _operation("Let a challenger and the champion change places", "admin")
        },
        f"{stream}/backup": {"post": _operation("The state file as it is now", "admin", gives=None)},
        f"{stream}/live": {
            "get": _operation("Rows and events as they come (server-sent events)", "read", gives=None)
            | {
                "parameters": [
                    _query("series", {"type": "array", "items": {"type": "string"}}, "which; none: all")
                ]
            }
        },
        f"{stream}/events": {
            "get": _operation("Events of the monitor, the latest first", "read", gives="List")
            | {
                "parameters": [
                    _query("series", {"type": "string"}, "of one series"),
                    _query("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "events at most"),
                ]
            }
        },
        f"{stream}/series": {"get": _operation("List series", "read") | {"parameters": listing}},
        series: {
            "get": _operation("One series, with the weights of its experts", "read"),
            "delete": _operation("Forget a series", "admin"),
        },
        f"{series}/history": {"get": _operation("Rows of a series by time", "read") | {"parameters": span}},
        f"{series}/snapshot": {
            "get": _operation("State of a series as bytes", "admin", gives=None),
            "put": _operation("Let a series go on from such bytes", "admin", takes=_BYTES),
        },
        "/v1/models": {"get": _operation("List models", "read", gives="List")},
        "/v1/models/{model}": {
            "put": _operation("Upload a .varnn file", "admin", takes=_BYTES, status="201"),
            "delete": _operation("Delete a model that no stream uses", "admin"),
        },
        "/v1/health": {"get": _operation("How the service is", "read")},
        "/v1/session": {"get": _operation("Who is asking", "read")},
        "/v1/openapi.json": {"get": _operation("This description", "read")},
        "/healthz": {"get": _operation("Whether the process answers", None, gives=None)},
        "/readyz": {"get": _operation("Whether messages are taken", None, gives=None)},
        "/metrics": {"get": _operation("Figures for Prometheus (OpenMetrics)", "read", gives=None)},
    }
    for path, item in paths.items():
        named = [one for one in ("stream", "series", "model") if f"{{{one}}}" in path]
        item["parameters"] = [
            {"name": one, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for one in named
        ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "varnn",
            "version": varnn.__version__,
            "description": "Predict and observe live; every answer to a change is on disk before it is sent.",
        },
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


_BYTES: dict[str, Any] = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(*fields: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {one: {"type": "string"} for one in fields},
        "required": [*fields],
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _query(name: str, schema: dict[str, Any], words: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": words}


def _operation(
    summary: str,
    scope: str | None,
    *,
    takes: dict[str, Any] | None = None,
    gives: str | None = "Object",
    status: str = "200",
) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "done"}
    if gives is not None:
        good["content"] = {"application/json": {"schema": _ref(gives)}}
    refused = {"description": "refused", "content": {"application/json": {"schema": _ref("Error")}}}
    found: dict[str, Any] = {"summary": summary, "responses": {status: good, "default": refused}}
    if scope is None:
        found["security"] = []
    else:
        found["description"] = f"Needs a token of scope {scope}, where tokens are needed."
    if takes is not None:
        found["requestBody"] = takes
    return found


def _messages(summary: str, kind: str, scope: str) -> dict[str, Any]:
    one, some = _ref(kind), {"type": "array", "items": _ref(kind)}
    answers = {"oneOf": [_ref("Answer"), {"type": "array", "items": _ref("Answer")}]}
    found = _operation(summary, scope)
    found["requestBody"] = {
        "required": True,
        "content": {
            "application/json": {"schema": {"oneOf": [one, some]}},
            "application/x-ndjson": {"schema": {"type": "string"}},
        },
    }
    found["responses"]["200"]["content"] = {
        "application/json": {"schema": answers},
        "application/x-ndjson": {"schema": {"type": "string"}},
    }
    return found
