"""The whole application behind its doors: every route of it, and what is seen of it from outside."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.routing import Route

from tests.service.asgi import Answer, ask
from tests.service.test_metrics import read
from tests.service.test_route_table import CASES
from varnn import VARNNRegressor
from varnn.service.http.app import application
from varnn.service.http.limits import Limits
from varnn.service.http.logs import Log
from varnn.service.http.metrics import CONTENT_TYPE
from varnn.service.http.route_table import ROUTES
from varnn.service.service import Service
from varnn.service.tokens import SCOPES, Tokens


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give a service with one stream, ``house``."""
    folder = tmp_path_factory.mktemp("service")
    X = np.random.default_rng(0).normal(size=(80, 2))
    VARNNRegressor.paper("RM", epochs=1, hidden_size=4).fit(X, X[:, 0]).save(folder / "house.varnn")
    with Service(folder / "house.service") as service:
        service.serve(folder / "house.varnn")
        yield service


class House:
    """The application of a service, with tokens of all kinds."""

    def __init__(self, service: Service, folder: Path, limits: Limits | None = None) -> None:
        self.tokens = Tokens(folder / "tokens.json")
        self.texts = {scope: self.tokens.make(scope, scope) for scope in SCOPES}
        self.texts["expired"] = Tokens(self.tokens.path, clock=lambda: 0.0).make("expired", "admin", days=1)
        self.texts["revoked"] = self.tokens.make("revoked", "admin")
        self.tokens.revoke("revoked")
        self.log = io.BytesIO()
        self.app = application(service, self.tokens, limits=limits, log=Log(self.log, level="debug"))

    def ask(self, method: str, path: str, **how: Any) -> Answer:
        return ask(self.app, method, path, **how)


@pytest.fixture
def house(service: Service, tmp_path: Path) -> House:
    return House(service, tmp_path)


def routes_of(app: Any) -> set[tuple[str, str]]:
    """Methods and paths that an application answers to, whatever their parameters are called."""
    while not hasattr(app, "routes"):
        app = app._app
    found = set()
    for route in app.routes:
        assert isinstance(route, Route), f"{route} is no plain route: who may use it is not in the table"
        found |= {(method, route.path) for method in (route.methods or ()) if method != "HEAD"}
    return found


def test_every_route_of_the_application_has_its_scope_in_the_table(house: House) -> None:
    def unnamed(routes: Any) -> set[tuple[str, str]]:
        return {(method, re.sub(r"\{\w+(:path)?\}", "{}", path)) for method, path in routes}

    assert unnamed(routes_of(house.app)) <= unnamed(ROUTES)


@pytest.mark.parametrize(("method", "path", "scope"), [case for case in CASES if case[2] is not None])
def test_a_route_is_closed_to_all_but_those_who_may(house: House, method: str, path: str, scope: str) -> None:
    path = path.replace("/house", "/nowhere")  # so that nothing is done by those who may
    for token in (None, house.texts["admin"][:-1], house.texts["revoked"], house.texts["expired"]):
        said = house.ask(method, path, token=token)
        assert said.status == 401
        assert str(said.header("www-authenticate")).startswith('Bearer realm="varnn"')
        assert said.json["request"] == said.header("x-request-id")
    for kind in SCOPES:
        said = house.ask(method, path, token=house.texts[kind])
        if SCOPES.index(kind) < SCOPES.index(scope):
            assert said.status == 403
        else:
            assert said.status in (200, 400, 404, 422), said
    for name, _ in said.headers:
        assert not name.startswith("access-control")


def test_open_routes_answer_without_a_token(house: House) -> None:
    assert house.ask("GET", "/healthz").body == b"ok"
    assert house.ask("GET", "/readyz").status == 200
    for method, path in [case[:2] for case in CASES if case[2] is None]:
        assert house.ask(method, path).status in (200, 303, 404, 405)


def test_a_session_sends_rows_with_its_word(house: House) -> None:
    body = json.dumps({"token": house.texts["write"]}).encode()
    said = house.ask("POST", "/login", body=body, headers={"content-type": "application/json"})
    headers = {"cookie": str(said.header("set-cookie")).partition(";")[0]}
    row = b'{"series": "by session", "x": [0.1, 0.2]}'
    assert house.ask("POST", "/v1/streams/house/step", headers=headers, body=row).status == 403
    headers["x-csrf-token"] = house.ask("GET", "/v1/session", headers=headers).json["csrf"]
    assert "prediction" in house.ask("POST", "/v1/streams/house/step", headers=headers, body=row).json
    assert house.ask("POST", "/logout", headers=headers).status == 200
    assert house.ask("POST", "/v1/streams/house/step", headers=headers, body=row).status == 401


def test_rows_count_against_the_rate(service: Service, tmp_path: Path) -> None:
    house = House(service, tmp_path, Limits(rate=10, burst=100, most_rows=300, most_bytes=20_000))
    step, write = "/v1/streams/house/step", house.texts["write"]
    rows = json.dumps([{"series": "rate", "x": [0.1, 0.2]}] * 250).encode()
    assert len(house.ask("POST", step, token=write, body=rows).json) == 250
    said = house.ask("POST", step, token=write, body=rows)
    assert said.status == 429
    assert 10 < int(str(said.header("retry-after"))) <= 16
    assert house.ask("GET", "/v1/streams", token=house.texts["read"]).status == 200  # another caller
    assert house.ask("POST", step, token=house.texts["admin"], body=b"x" * 20_001).status == 413
    many = json.dumps([{"x": [0, 0]}] * 301).encode()
    assert house.ask("POST", step, token=house.texts["admin"], body=many).status == 413


def test_metrics_and_logs_know_streams_and_templates_but_no_series(house: House) -> None:
    token = house.texts["write"]
    row = b'[{"series": "a secret name", "x": [0.1, 0.2], "y": 1.0}, {"series": "a secret name", "x": []}]'
    assert house.ask("POST", "/v1/streams/house/step", token=token, body=row).status == 200
    assert house.ask("GET", "/v1/streams/house/series/a secret name", token=token).status == 200
    said = house.ask("GET", "/metrics", token=token)
    assert said.header("content-type") == CONTENT_TYPE
    found = read(said.body)
    values = {
        name: {tuple(labels.values()): value for _, labels, value in one.samples}
        for name, one in found.items()
    }
    assert values["varnn_observations"]["house",] >= 1
    assert values["varnn_predictions"]["house",] >= 1
    assert sum(values["varnn_refused"].values()) >= 1
    assert values["varnn_series"]["house",] >= 1
    assert values["varnn_queue_depth"].keys() == {("house",)}
    assert found["varnn_innovation_scale"].samples[0][1] == {"stream": "house", "model": "house"}
    assert found["varnn_commit_duration_seconds"].samples
    written = said.body.decode() + house.log.getvalue().decode()
    for hidden in ("secret name", token.split("_", 2)[2]):
        assert hidden not in written


def test_a_failure_inside_is_not_told(
    service: Service, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise RuntimeError("of the inside")

    monkeypatch.setattr(service, "streams", fails)
    said = house.ask("GET", "/v1/streams", token=house.texts["read"])
    assert said.status == 500
    assert said.json["request"] == said.header("x-request-id")
    assert "of the inside" not in said.body.decode() and "Traceback" not in said.body.decode()
    assert "RuntimeError: of the inside" in house.log.getvalue().decode()
