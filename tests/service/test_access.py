"""Every route without, with a wrong, a revoked, an expired and a too weak token; hosts and origins."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.service.asgi import Answer, App, Echo, ask
from tests.service.test_route_table import CASES
from varnn.errors import ConfigError
from varnn.service.http.access import Access, check_address, is_loopback
from varnn.service.http.sessions import Sessions
from varnn.service.tokens import SCOPES, Tokens

FORBIDDEN = [case for case in CASES if case[2] is not None]


class Clock:
    """A clock that is set by hand."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class House:
    """A service behind its door: what is behind it only says what reached it."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.tokens = Tokens(folder / "tokens.json", clock=self.clock)
        self.sessions = Sessions(self.tokens, clock=self.clock)
        self.inside = Echo()
        self.app: App = Access(self.inside, self.tokens, self.sessions)
        self.texts: dict[str, str] = {}

    def close(self) -> None:
        """Make tokens, good ones and others."""
        self.texts = {scope: self.tokens.make(scope, scope) for scope in SCOPES}
        self.texts["expired"] = self.tokens.make("expired", "admin", days=1)
        self.clock.now += 86_401
        self.texts["revoked"] = self.tokens.make("revoked", "admin")
        self.tokens.revoke("revoked")

    def ask(self, method: str, path: str, **how: Any) -> Answer:
        return ask(self.app, method, path, **how)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def closed(house: House) -> House:
    house.close()
    return house


@pytest.mark.parametrize(("method", "path", "scope"), FORBIDDEN)
def test_a_route_is_closed_to_all_but_those_who_may(
    closed: House, method: str, path: str, scope: str
) -> None:
    texts = closed.texts
    name, secret = texts["admin"].split("_", 2)[1:]
    wrong = {
        "expired": texts["expired"],
        "revoked": texts["revoked"],
        "another secret": f"varnn_{name}_{secret[::-1]}",
        "another id": f"varnn_{name[::-1]}_{secret}",
        "nothing": "",
    }
    said = closed.ask(method, path)
    assert said.status == 401
    assert said.header("www-authenticate") == 'Bearer realm="varnn"'
    for text in wrong.values():
        said = closed.ask(method, path, token=text)
        assert said.status == 401
        assert said.header("www-authenticate") == 'Bearer realm="varnn", error="invalid_token"'
        assert "wrong, revoked or expired" in said.json["error"]
    for other in ("Basic " + texts["admin"], texts["admin"], "Bearer", "Bearer  x y"):
        assert closed.ask(method, path, headers={"authorization": other}).status in (401, 429)
    assert closed.inside.seen == []
    for kind in SCOPES:
        said = closed.ask(method, path, token=texts[kind])
        if SCOPES.index(kind) < SCOPES.index(scope):
            assert said.status == 403
            assert f'error="insufficient_scope", scope="{scope}"' in str(said.header("www-authenticate"))
            assert said.json["error"] == f"this needs a token of scope {scope}; yours has {kind}."
        else:
            assert said.status == 200
            assert closed.inside.states[-1]["access"] == (kind, texts[kind].split("_")[1])
    assert len(closed.inside.seen) == len(SCOPES) - SCOPES.index(scope)


@pytest.mark.parametrize(("method", "path"), [case[:2] for case in CASES if case[2] is None])
def test_a_route_without_a_scope_is_open_even_with_a_bad_token(closed: House, method: str, path: str) -> None:
    assert closed.ask(method, path).status == 200
    assert closed.ask(method, path, token=closed.texts["revoked"]).status == 200
    assert closed.inside.states[-1]["access"] == (None, None)


def test_what_is_no_route_is_closed_to_all_but_admins(closed: House) -> None:
    for method, path in (("GET", "/v1/secrets"), ("PATCH", "/v1/streams"), ("OPTIONS", "/v1/streams")):
        assert closed.ask(method, path).status == 401
        assert closed.ask(method, path, token=closed.texts["write"]).status == 403
        assert closed.ask(method, path, token=closed.texts["admin"]).status == 200


def test_without_tokens_all_is_open_on_this_machine_alone(house: House) -> None:
    for method, path, _ in CASES:
        assert house.ask(method, path).status == 200
        for host in ("localhost:8000", "LOCALHOST", "[::1]:8000", "127.9.9.9"):
            assert house.ask(method, path, headers={"host": host}).status == 200
    done = len(house.inside.seen)
    for host in (
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "192.168.1.5:8000",
        "",
        "0.0.0.0",
    ):
        for method, path, _ in CASES:
            said = house.ask(method, path, headers={"host": host})
            assert said.status == 403
            assert "make a token" in said.json["error"]
    assert len(house.inside.seen) == done


def test_without_tokens_nobody_comes_through_a_proxy(house: House) -> None:
    """It may name this machine in its requests, as nginx does, whoever asked it."""
    for name in ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"):
        said = house.ask("GET", "/v1/streams", headers={name.lower(): "203.0.113.5"})
        assert said.status == 403 and "proxy" in said.json["error"]
    house.close()
    forwarded = {"x-forwarded-for": "203.0.113.5"}
    assert house.ask("GET", "/v1/streams", headers=forwarded, token=house.texts["read"]).status == 200


@pytest.mark.parametrize(
    "host", [b"a@127.0.0.1", b"127.0.0.1/x", b"127.0.0.1:x", b"localhost.", b"[::1", b"\xff", b"127.0.0.1 "]
)
def test_odd_hosts_are_not_this_machine(host: bytes) -> None:
    assert not is_loopback(host)


def test_the_first_token_closes_a_service_that_runs(house: House) -> None:
    assert house.ask("GET", "/v1/streams").status == 200
    text = house.tokens.make("a", "read")
    assert house.ask("GET", "/v1/streams").status == 401
    assert house.ask("GET", "/v1/streams", token=text).status == 200
    assert house.ask("GET", "/v1/streams", token=text, headers={"host": "house.example"}).status == 200
    house.tokens.revoke("a")
    assert house.ask("GET", "/v1/streams").status == 401
    house.tokens.path.unlink()
    assert house.ask("GET", "/v1/streams").status == 401
    assert house.ask("GET", "/v1/streams", token=text).status == 401


def test_a_damaged_file_of_tokens_closes_everything_and_tells_no_stranger_why(
    closed: House, caplog: pytest.LogCaptureFixture
) -> None:
    closed.tokens.path.write_text("{")
    said = closed.ask("GET", "/v1/streams", token=closed.texts["admin"])
    assert said.status == 503
    assert str(closed.tokens.path) not in said.body.decode()
    assert str(closed.tokens.path) in caplog.text
    assert closed.ask("GET", "/v1/streams").status == 401
    assert closed.ask("GET", "/healthz").status == 200
    assert [path for _, path, _ in closed.inside.seen] == ["/healthz"]


def test_a_damaged_file_closes_a_service_that_had_none(house: House) -> None:
    house.tokens.path.write_text("{")
    assert house.ask("GET", "/v1/streams").status == 503
    assert house.inside.seen == []


ORIGINS = {
    "http://127.0.0.1:8000": True,
    "https://127.0.0.1:8000": True,  # a proxy has the certificate
    "http://127.0.0.1:9000": False,
    "http://localhost:8000": False,
    "http://evil.example": False,
    "http://127.0.0.1:8000.evil.example": False,
    "null": False,
    "": False,
    "http://[": False,
}


@pytest.mark.parametrize(("origin", "good"), ORIGINS.items())
def test_pages_of_other_hosts_change_nothing(house: House, origin: str, good: bool) -> None:
    path = "/v1/streams/house/step"
    assert house.ask("POST", path, headers={"origin": origin}).status == (200 if good else 403)
    assert house.ask("GET", "/v1/streams", headers={"origin": origin}).status == 200
    house.close()
    said = house.ask("POST", path, headers={"origin": origin}, token=house.texts["write"])
    assert said.status == (200 if good else 403)


def test_pages_of_other_sites_are_known_without_an_origin_too(house: House) -> None:
    for kind, status in {"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200}.items():
        assert house.ask("POST", "/v1/streams", headers={"sec-fetch-site": kind}).status == status


def test_no_answer_is_for_other_sites(closed: House) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        for token in (None, closed.texts["admin"]):
            headers = {"origin": "http://evil.example", "access-control-request-method": "POST"}
            said = closed.ask(method, "/v1/streams", token=token, headers=headers)
            assert not [name for name, _ in said.headers if name.startswith("access-control")]


def test_wrong_tokens_are_slowed_down_and_good_ones_are_not(closed: House) -> None:
    bad, good = closed.texts["revoked"], closed.texts["read"]
    statuses = [closed.ask("GET", "/v1/streams", token=bad).status for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    said = closed.ask("GET", "/v1/streams", token=bad)
    assert said.header("retry-after") == "6"
    assert closed.ask("GET", "/v1/streams", token=good).status == 200
    assert closed.ask("GET", "/v1/streams").status == 401
    assert closed.ask("GET", "/v1/streams", token=bad, peer="10.0.0.2").status == 401
    closed.clock.now += 6
    assert closed.ask("GET", "/v1/streams", token=bad).status == 401
    assert closed.ask("GET", "/v1/streams", token=bad).status == 429


def test_a_websocket_is_closed(closed: House) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def connect() -> None:
        await closed.app({"type": "websocket", "path": "/", "headers": []}, receive, send)

    asyncio.run(connect())
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_service_without_tokens_listens_on_this_machine_alone(house: House) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        check_address(host, house.tokens)
    for host in ("0.0.0.0", "::", "192.168.1.5", "house.example", ""):
        with pytest.raises(ConfigError, match="without tokens a service listens on this machine alone"):
            check_address(host, house.tokens)
    house.close()
    check_address("0.0.0.0", house.tokens)


def test_errors_are_the_same_json_everywhere(closed: House) -> None:
    said = closed.ask("POST", "/v1/streams", body=b"x" * 100)
    assert said.header("content-type") == "application/json"
    assert said.header("cache-control") == "no-store"
    assert set(json.loads(said.body)) == {"error", "request"}
