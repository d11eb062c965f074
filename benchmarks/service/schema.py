"""Answers held against the OpenAPI document: the few words of JSON Schema that it uses, and no others."""

import re
from collections.abc import Iterator
from typing import Any

from varnn.service.http.openapi import document

_KNOWN = {
    *("type", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "format", "description"),
    *("exclusiveMinimum", "exclusiveMaximum", "items", "maxItems", "properties", "required"),
    *("additionalProperties", "oneOf", "$ref"),
}


def wrong_with_answer(method: str, path: str, status: int, kind: str, content: Any) -> list[str]:
    """Tell what an answer has, or lacks, that the document says otherwise; ``content`` is parsed if JSON.

    Examples
    --------
    >>> wrong_with_answer("GET", "/v1/models", 200, "application/json", [])
    []
    >>> wrong_with_answer("GET", "/v1/models", 200, "application/json", {})
    ['answer: must be of type array']
    """
    operation = _operation("get" if method == "HEAD" else method.lower(), path)
    if operation is None:  # no route of the interface: whatever it is, it must be an error in words
        return list(wrong({"$ref": "#/components/schemas/Error"}, content, "answer"))
    responses = operation["responses"]
    allowed = responses.get(str(status), responses["default"] if status >= 400 else None)
    if allowed is None:
        return [f"answer: status {status} is not one of {sorted(responses)}"]
    schema = allowed["content"].get(kind.partition(";")[0])
    if schema is None:
        return [f"answer: type {kind!r} is not one of {sorted(allowed['content'])}"]
    return [] if content is None else list(wrong(schema["schema"], content, "answer"))


def _operation(method: str, path: str) -> Any:
    """Find what the document says of a request; a series' name may hold anything, and end like a route."""
    for template, item in sorted(document()["paths"].items(), key=lambda pair: -pair[0].count("/")):
        pattern = re.sub(r"\\\{series\\\}", ".*", re.escape(template))
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", pattern), path, re.DOTALL) and method in item:
            return item[method]
    return None


def wrong(schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    """Tell what is wrong with a value; fields that the schema does not name are, too.

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"row": {"type": "integer", "minimum": 0}}}
    >>> list(wrong(schema, {"row": -1, "rwo": 2}, "answer"))
    ['answer.row: must be at least 0', "answer: nothing is said of 'rwo'"]
    """
    if unknown := schema.keys() - _KNOWN:
        raise NotImplementedError(f"the words {sorted(unknown)} of a schema are not known here.")
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        yield from wrong(document()["components"]["schemas"][name], value, where)
        return
    if "oneOf" in schema:
        found = [list(wrong(one, value, where)) for one in schema["oneOf"]]
        if all(found):
            yield min(found, key=len)[0]
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: must be one of {schema['enum']}"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, one) for one in types):
        yield f"{where}: must be of type {' or '.join(types)}"
    elif isinstance(value, dict):
        yield from _wrong_object(schema, value, where)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from wrong(schema.get("items", {}), one, f"{where}[{place}]")
    elif isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)) or not re.search(
            schema.get("pattern", ""), value
        ):
            yield f"{where}: must not be so"
    elif isinstance(value, int | float) and value < schema.get("minimum", value):
        yield f"{where}: must be at least {schema['minimum']}"


def _wrong_object(schema: dict[str, Any], value: dict[str, Any], where: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}: must have {name!r}"
    named, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, one in value.items():
        if name in named:
            yield from wrong(named[name], one, f"{where}.{name}")
        elif others is not None:
            yield from wrong(others, one, f"{where}.{name}")
        elif named:
            yield f"{where}: nothing is said of {name!r}"


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    kinds: dict[str, Any] = {
        "string": str,
        "array": list,
        "object": dict,
        "boolean": bool,
        "null": type(None),
    }
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kinds[kind])
