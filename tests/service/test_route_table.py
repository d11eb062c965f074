"""Scopes of routes: as the page of the API has them, and never weaker than where a router leads."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.routing import Match, Route

from varnn.service.http.route_table import OTHER, ROUTES, find_route, needed_scope
from varnn.service.tokens import SCOPES

# By hand from the description of the API, not from the table that is tested.
NEEDED = """
none   GET /
none   GET /assets/uPlot.min.js
none   GET /login
none   POST /login
none   POST /logout
none   GET /healthz
none   GET /readyz
none   GET /docs
read   GET /metrics
read   GET /v1/openapi.json
read   GET /v1/health
read   GET /v1/session
read   GET /v1/models
admin  PUT /v1/models/house
admin  DELETE /v1/models/house
read   GET /v1/streams
admin  POST /v1/streams
read   GET /v1/streams/house
admin  DELETE /v1/streams/house
read   POST /v1/streams/house/predict
write  POST /v1/streams/house/observe
write  POST /v1/streams/house/step
admin  POST /v1/streams/house/challengers
admin  DELETE /v1/streams/house/challengers/other
admin  POST /v1/streams/house/challengers/other/promote
read   GET /v1/streams/house/series
read   GET /v1/streams/house/series/a
admin  DELETE /v1/streams/house/series/a
read   GET /v1/streams/house/series/a/history
admin  GET /v1/streams/house/series/a/snapshot
admin  PUT /v1/streams/house/series/a/snapshot
read   GET /v1/streams/house/events
read   GET /v1/streams/house/live
admin  POST /v1/streams/house/backup
"""
CASES: list[tuple[str, str, str | None]] = [
    (method, path, None if scope == "none" else scope)
    for scope, method, path in (line.split() for line in NEEDED.strip().splitlines())
]
_ORDER = (None, *SCOPES)


@pytest.mark.parametrize(("method", "path", "scope"), CASES)
def test_each_route_needs_what_is_promised(method: str, path: str, scope: str | None) -> None:
    assert needed_scope(method, path) == scope
    found = find_route(method, path)
    assert (method, found.template) in ROUTES


def test_no_route_is_left_out_here() -> None:
    assert {(method, find_route(method, path).template) for method, path, _ in CASES} == set(ROUTES)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "/v1/streams/house"),
        ("POST", "/v1/streams/house"),
        ("DELETE", "/v1/streams"),
        ("OPTIONS", "/v1/streams"),
        ("POST", "/"),
        ("PUT", "/login"),
        ("GET", ""),
        ("GET", "/v1"),
        ("GET", "/v2/streams"),
        ("GET", "/V1/streams"),
        ("GET", "/v1/streams/"),
        ("GET", "//v1/streams"),
        ("GET", "/healthz/"),
        ("GET", "/healthz\n"),
        ("GET", "/assets"),
        ("GET", "/assets/../v1/models"),
        ("GET", "/assets/.."),
        ("GET", "/v1/streams/house/series/a/snapshot\n"),
        ("GET", "/v1/streams/house/series//snapshot"),
        ("GET", "/v1/streams/house/series/a/b/snapshot"),
        ("GET", "/metricsx"),
        ("GET", "/v1/openapi_json"),
    ],
)
def test_what_is_no_route_needs_admin(method: str, path: str) -> None:
    assert needed_scope(method, path) == "admin"


def test_a_head_needs_what_the_whole_does() -> None:
    assert needed_scope("HEAD", "/healthz") is None
    assert needed_scope("HEAD", "/v1/streams/house/series/a/snapshot") == "admin"


def test_names_never_become_templates() -> None:
    assert find_route("GET", "/v1/streams/x/series/y/z").template == "/v1/streams/{stream}/series/{series}"
    assert find_route("GET", "/x" * 5000).template == OTHER
    assert find_route("GET", "/v1/streams/" + "x" * 5000).template == "/v1/streams/{stream}"


WORDS = ["v1", "streams", "models", "series", "snapshot", "history", "predict", "step", "observe", "backup"]
WORDS += [
    "assets",
    "login",
    "healthz",
    "metrics",
    "challengers",
    "promote",
    "live",
    "docs",
    "a",
    "..",
    "",
    "\n",
]
paths = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=8).map(
    lambda parts: "/" + "/".join(parts)
)
ROUTERS = {
    key: Route(re.sub(r"\{(series|file)\}", r"{\1:path}", key[1]), lambda request: None, methods=[key[0]])
    for key in ROUTES
}


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE"]), paths, st.sampled_from(["", "\n", "/"]))
@example("GET", "/v1/streams/a/series/x/snapshot", "\n")
@example("GET", "/v1/streams/a/series//snapshot", "")
def test_no_route_that_a_router_may_choose_needs_more(method: str, path: str, end: str) -> None:
    """Whatever its order, a router with these routes calls nothing that needs more than was asked for."""
    scope = {"type": "http", "method": method, "path": path + end, "root_path": "", "headers": []}
    for key, route in ROUTERS.items():
        if route.matches(scope)[0] is Match.FULL:
            assert _ORDER.index(ROUTES[key]) <= _ORDER.index(needed_scope(method, path + end)), key
