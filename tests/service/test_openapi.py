"""The OpenAPI document: its routes are those there are, and answers are what it says."""

import http.client
import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from benchmarks.service.schema import wrong, wrong_with_answer
from tests.service.serving import Served, whole_rows, x
from varnn.service.http import api
from varnn.service.http.openapi import document
from varnn.service.http.pages import routes as pages
from varnn.service.http.route_table import ROUTES, find_route
from varnn.service.http.sessions import Sessions
from varnn.service.tokens import Tokens

# What people look at, and not programs.
PAGES = {("GET", "/"), ("GET", "/assets/{file}"), ("GET", "/docs"), ("GET", "/login")}
PAGES |= {("POST", "/login"), ("POST", "/logout")}


def described() -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, item in document()["paths"].items()
        for method in item
        if method != "parameters"
    }


def test_every_route_is_described_and_every_description_has_a_route(tmp_path: Path) -> None:
    found = set()
    routes = [*api.routes, *Sessions(Tokens(tmp_path / "tokens.json")).routes, *pages]
    for one in routes:
        assert isinstance(one, Route)
        template = re.sub(r"\{(\w+):path\}", r"{\1}", one.path).replace("/assets/{name}", "/assets/{file}")
        found |= {(method, template) for method in one.methods or () if method != "HEAD"}
    found.add(("GET", "/metrics"))  # which is made with the application
    assert described() == set(ROUTES) - PAGES
    assert found == set(ROUTES)


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    text, schemas = json.dumps(document()), document()["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) == set(schemas)


def test_every_parameter_of_a_path_is_described() -> None:
    for path, item in document()["paths"].items():
        named = [one["name"] for one in item.get("parameters", ())]
        assert sorted(named) == sorted(re.findall(r"\{(\w+)\}", path))


def test_the_checker_of_answers_can_say_no() -> None:
    assert wrong_with_answer("GET", "/v1/streams/a", 200, "application/json", {"name": 5})
    assert wrong_with_answer("GET", "/healthz", 404, "text/plain", None)
    assert wrong_with_answer("GET", "/v1/models", 202, "application/json", [])
    assert wrong_with_answer("GET", "/nowhere", 404, "application/json", {"request": "a"})
    assert list(wrong({"oneOf": [{"type": "null"}, {"type": "string"}]}, 5, "it"))


def test_answers_are_as_described(house: Served, models: Path, request: pytest.FixtureRequest) -> None:
    """Every operation, well asked and badly."""
    client = house.client
    rows = whole_rows(300, series="a")
    for one in rows[150:]:
        one["y"] += 25.0
    client.add_model("rival", models / "rival.varnn")
    client.add_challenger("rival")
    client.step([*rows, {"series": "a", "x": x(0)}])
    blob, model = client.snapshot("a"), (models / "rival.varnn").read_bytes()
    one, some = {"series": "a", "x": x(0), "interval": [0.5, 0.9]}, [{"x": x(0)}, {"x": 1}, 5]
    stream = "/v1/streams/house"
    asked: list[tuple[str, str, Any, int]] = [
        ("POST", f"{stream}/predict", one, 200),
        ("POST", f"{stream}/predict", some, 200),
        ("POST", f"{stream}/step", one, 200),
        ("POST", f"{stream}/step", some, 200),
        ("POST", f"{stream}/step", one | {"seq": 9999}, 409),
        ("POST", f"{stream}/step", {"x": 1}, 422),
        ("POST", f"{stream}/observe", {"series": "a", "y": None}, 200),
        ("POST", f"{stream}/observe", {"series": "a", "y": 1.0}, 422),
        ("POST", f"{stream}/observe", b"{", 400),
        ("POST", "/v1/streams/none/observe", {}, 404),
        ("GET", "/v1/streams", None, 200),
        ("POST", "/v1/streams", {"name": "b", "champion": "rival"}, 201),
        ("POST", "/v1/streams", {"name": "b", "champion": "rival"}, 409),
        ("GET", stream, None, 200),
        ("POST", f"{stream}/challengers/rival/promote", None, 200),
        ("DELETE", f"{stream}/challengers/house", None, 200),
        ("POST", f"{stream}/challengers", {"model": "house"}, 201),
        ("POST", f"{stream}/backup", None, 200),
        ("HEAD", f"{stream}/live", None, 200),
        ("GET", f"{stream}/events?series=a&limit=5", None, 200),
        ("GET", f"{stream}/events?limit=0", None, 422),
        ("GET", f"{stream}/series?spark=5&sort=name", None, 200),
        ("GET", f"{stream}/series/a", None, 200),
        ("GET", f"{stream}/series/a/history?points=50", None, 200),
        ("GET", f"{stream}/series/a/history?format=csv", None, 200),
        ("GET", f"{stream}/series/a/snapshot", None, 200),
        ("PUT", f"{stream}/series/b/snapshot", b"", 422),
        ("DELETE", f"{stream}/series/a", None, 200),
        ("DELETE", f"{stream}/series/a", None, 404),
        ("GET", "/v1/models", None, 200),
        ("PUT", "/v1/models/third", model, 201),
        ("PUT", "/v1/models/third", b"", 422),
        ("DELETE", "/v1/models/third", None, 200),
        ("DELETE", "/v1/models/house", None, 409),
        ("GET", "/v1/health", None, 200),
        ("GET", "/v1/session", None, 200),
        ("GET", "/v1/openapi.json", None, 200),
        ("GET", "/healthz", None, 200),
        ("GET", "/readyz", None, 200),
        ("GET", "/metrics", None, 200),
        ("DELETE", "/v1/streams/b", None, 200),
        ("PATCH", "/v1/streams", None, 405),
        ("GET", "/v1/nothing", None, 404),
    ]
    tried = {(method, find_route(method, path.partition("?")[0]).template) for method, path, *_ in asked}
    live = ("GET", "/v1/streams/{stream}/live")  # which has no end
    assert described() - {live} <= tried
    connection = http.client.HTTPConnection("127.0.0.1", house.port, timeout=20)
    request.addfinalizer(connection.close)
    for method, path, body, status in asked:
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, sent)
        answer = connection.getresponse()
        content, kind = answer.read(), answer.getheader("Content-Type", "")
        assert answer.status == status, f"{method} {path}: {answer.status} {content[:300]!r}"
        told = json.loads(content) if kind == "application/json" and content else None
        assert wrong_with_answer(method, path.partition("?")[0], status, kind, told) == [], f"{method} {path}"
    connection.request("PUT", f"{stream}/series/b/snapshot", blob)
    assert connection.getresponse().status == 422  # it is of the former champion


@pytest.mark.parametrize("path", ["/v1/openapi.json", "/docs"])
def test_the_document_and_its_page_are_served(house: Served, path: str) -> None:
    found = house.client.get(path)
    assert found == document() if path.endswith("json") else b"<html" in found
