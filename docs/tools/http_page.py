"""The OpenAPI document of the service -> docs/reference/http.md; run it after changing the interface.

``python docs/tools/http_page.py`` rewrites the page. A running service shows the same at ``/docs``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from varnn.service.http.openapi import document

PAGE = Path(__file__).parents[1] / "reference" / "http.md"
_HEAD = """# The service over HTTP

<!-- Made by docs/tools/http_page.py: change src/varnn/service/http/openapi.py, not this page. -->

What a service answers ([how to run one](../how-to/service.md)). All of it is JSON, unless said otherwise. A
running service has this page at `/docs`, and the OpenAPI document it is made from at `/v1/openapi.json`.
Scopes are those of [tokens](../how-to/service-security.md).

What is refused is answered by an [Error](#error), with a status:

| status | |
| --- | --- |
| 400 | the body is not JSON |
| 401, 403 | no token, or one that may not do this |
| 404 | no such stream, series, model or route |
| 405 | the route takes other methods, which the header `Allow` names |
| 408, 431 | the request came too slowly, or its head is too large |
| 409 | it contradicts what is there: a `seq` that is not due, a name that is taken, a model in use |
| 413 | too many bytes, or messages |
| 422 | it was understood, and cannot be used; the error says why |
| 429 | too fast, or too much waits: try again after the seconds in the header `Retry-After` |
| 503 | the service begins or ends, or a file is damaged |
| 507 | the disk is full, or cannot be written |
"""
_PARTS = {
    "Messages": ("/predict", "/observe", "/step"),
    "Series": ("/series", "{series}", "/history", "/snapshot", "/events", "/live"),
    "Streams": ("/v1/streams", "{stream}", "/challengers", "/backup", "/promote", "/challengers/{model}"),
    "Models": ("/v1/models", "/v1/models/{model}"),
    "The service itself": ("",),
}


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    left = dict(document()["paths"])
    for title, ends in _PARTS.items():
        lines.append(f"## {title}\n")
        for path in [one for one in left if one.endswith(ends)]:
            for method, operation in left.pop(path).items():
                if method != "parameters":
                    lines += _operation(method.upper(), path, operation)
    lines.append("## What they are made of\n")
    for name, schema in document()["components"]["schemas"].items():
        lines += _schema(name, schema)
    return "\n".join(lines).rstrip("\n") + "\n"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {method} {path}\n"
    yield f"{operation['summary']}.\n"
    if "description" in operation:
        yield f"{operation['description']}\n"
    if operation.get("parameters"):
        yield "| query | type | default | |\n| --- | --- | --- | --- |"
        for one in operation["parameters"]:
            default = f"`{one['schema']['default']}`" if "default" in one["schema"] else ""
            yield f"| `{one['name']}` | {_type(one['schema'])} | {default} | {one['description']} |"
        yield ""
    if "requestBody" in operation:
        yield f"Takes {_contents(operation['requestBody']['content'])}.\n"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            yield f"Gives {status}: {_contents(answer['content'])}.\n"


def _contents(content: dict[str, Any]) -> str:
    """Types of a body, each with what it holds."""
    told = []
    for kind, one in content.items():
        told.append(_type(one["schema"]) if kind == "application/json" else f"`{kind}`")
    return "; or ".join(told)


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{schema['description']}\n"
    yield "| field | type | |\n| --- | --- | --- |"
    yield from _fields(schema)
    yield ""


def _fields(schema: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, one in schema["properties"].items():
        optional = "" if name in schema.get("required", ()) else " (may be missing)"
        yield f"| `{before}{name}` | {_type(one)} | {_words(one)}{optional} |"
        inner = one.get("items", one.get("additionalProperties", one))
        if isinstance(inner, dict) and "properties" in inner:
            yield from _fields(inner, f"{before}{name}.")


def _words(schema: dict[str, Any]) -> str:
    return str(schema.get("description", ""))


def _type(schema: dict[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{re.sub('[^a-z]', '', name.lower())})"
    if "oneOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["oneOf"]))
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    types = schema.get("type", "anything")
    told = " or ".join(types) if isinstance(types, list) else str(types)
    if types == "array":
        return f"list of {_type(schema['items'])}"
    if types == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{_type(schema['additionalProperties'])} by name"
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if most is not None:
        told += f" from {least} to {most:,}"
    elif least is not None:
        told += f" from {least}"
    if "maxLength" in schema:
        told += f" of at most {schema['maxLength']} characters"
    return told


if __name__ == "__main__":
    PAGE.write_text(page())
