"""Sessions: logins by form and JSON, read-only links, what ends them, and requests forged by other pages."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.service.asgi import Answer, ask
from varnn.service.http.access import Access
from varnn.service.http.limits import Limiter, Limits
from varnn.service.http.sessions import COOKIE, Sessions
from varnn.service.tokens import SCOPES, Tokens


class Clock:
    """A clock that is set by hand."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def step(request: Any) -> JSONResponse:
    return JSONResponse({"done": request.path_params["stream"]})


class House:
    """A service with its door, its sessions, and one thing to do inside."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.tokens = Tokens(folder / "tokens.json", clock=self.clock)
        self.sessions = Sessions(self.tokens, clock=self.clock)
        inside = Route("/v1/streams/{stream}/step", step, methods=["POST"])
        self.inside = Starlette(routes=[*self.sessions.routes, inside])
        self.app = Access(Limiter(self.inside, Limits()), self.tokens, self.sessions)
        self.texts = {scope: self.tokens.make(scope, scope) for scope in SCOPES}

    def ask(self, method: str, path: str, **how: Any) -> Answer:
        return ask(self.app, method, path, **how)

    def log_in(self, scope: str) -> dict[str, str]:
        """Log in, and give the headers of a browser that has."""
        body = json.dumps({"token": self.texts[scope]}).encode()
        said = self.ask("POST", "/login", body=body, headers={"content-type": "application/json"})
        assert said.status == 200
        assert said.json["scope"] == scope
        return {"cookie": cookie_of(said), "x-csrf-token": said.json["csrf"]}


def cookie_of(said: Answer) -> str:
    return str(said.header("set-cookie")).partition(";")[0]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_login_by_a_form_sets_a_cookie_that_only_our_pages_send(house: House) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = f"token=+{house.texts['write']}+&x=1".encode()
    said = house.ask("POST", "/login", body=body, headers=form)
    assert (said.status, said.header("location")) == (303, "/")
    name, *rest = str(said.header("set-cookie")).split("; ")
    assert name.startswith(f"{COOKIE}=") and len(name) > len(COOKIE) + 40
    assert {one.lower() for one in rest} == {"httponly", "samesite=strict", "path=/", "max-age=43200"}
    said = house.ask("POST", "/login", body=body, headers=form, scheme="https")
    assert "secure" in str(said.header("set-cookie")).lower().split("; ")
    assert said.header("cache-control") == "no-store"


def test_a_session_does_what_its_token_may_with_its_own_word(house: House) -> None:
    headers = house.log_in("write")
    said = house.ask("GET", "/v1/session", headers=headers)
    assert said.json == {"scope": "write", "csrf": headers["x-csrf-token"]}
    assert house.ask("POST", "/v1/streams/house/step", headers=headers).json == {"done": "house"}
    said = house.ask("DELETE", "/v1/streams/house", headers=headers)
    assert said.status == 403 and "scope admin" in said.json["error"]


def test_a_session_without_its_own_word_changes_nothing(house: House) -> None:
    headers, other = house.log_in("admin"), house.log_in("admin")
    for proof in ({}, {"x-csrf-token": ""}, {"x-csrf-token": other["x-csrf-token"]}, {"x-csrf-token": "é"}):
        forged = {"cookie": headers["cookie"], **proof}
        for path in ("/v1/streams/house/step", "/logout"):
            said = house.ask("POST", path, headers=forged)
            assert said.status == 403 and "X-CSRF-Token" in said.json["error"]
        assert house.ask("GET", "/v1/session", headers=forged).status == 200
    assert house.ask("POST", "/v1/streams/house/step", headers=headers).status == 200


def test_a_word_without_its_session_is_nothing(house: House) -> None:
    headers = house.log_in("admin")
    for cookie in ("", "x=y", f"{COOKIE}=", f"{COOKIE}=x", f"x{headers['cookie']}", headers["cookie"][:-1]):
        assert house.ask("GET", "/v1/session", headers=headers | {"cookie": cookie}).status == 401
    among = {"cookie": f"a=b; {headers['cookie']}; c=d"}
    assert house.ask("GET", "/v1/session", headers=among).status == 200


def test_a_token_beside_a_session_counts_alone(house: House) -> None:
    headers = house.log_in("admin")
    said = house.ask("GET", "/v1/session", headers=headers, token=house.texts["read"])
    assert said.json == {"scope": "read", "csrf": None}
    assert house.ask("GET", "/v1/session", headers=headers, token="wrong").status == 401


def test_a_session_ends_after_its_time_by_logout_and_with_its_token(house: House) -> None:
    for end in ("time", "logout", "token"):
        headers = house.log_in("read")
        assert house.ask("GET", "/v1/session", headers=headers).status == 200
        if end == "time":
            house.clock.now += 12 * 3600
        elif end == "logout":
            said = house.ask("POST", "/logout", headers=headers)
            assert said.status == 200 and 'varnn_session=""' in str(said.header("set-cookie"))
        else:
            house.tokens.revoke("read")
        assert house.ask("GET", "/v1/session", headers=headers).status == 401
    assert len(house.sessions) == 0


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"token": "wrong"}'),
        ("application/json", b"{"),
        ("application/json", b"[1]"),
        ("application/json", b'{"token": 5}'),
        ("application/json", b"[" * 10_000),
        ("application/json", b"\xff"),
        ("application/x-www-form-urlencoded", b"token=wrong"),
        ("application/x-www-form-urlencoded", b""),
        ("application/x-www-form-urlencoded", b"\xff"),
        ("application/x-www-form-urlencoded", b"&a=b" * 100),
        ("multipart/form-data", b"--x"),
    ],
)
def test_a_login_that_is_none_begins_nothing(house: House, kind: str, body: bytes) -> None:
    said = house.ask("POST", "/login", body=body, headers={"content-type": kind})
    if "json" in kind:
        assert said.status == 401 and "wrong, revoked or expired" in said.json["error"]
    else:
        assert (said.status, said.header("location")) == (303, "/login?refused")
    assert said.header("set-cookie") is None
    assert len(house.sessions) == 0


def test_logins_of_revoked_and_expired_tokens_and_other_hosts_begin_nothing(house: House) -> None:
    house.texts["old"] = house.tokens.make("old", "admin", days=1)
    house.clock.now += 86_400
    house.tokens.revoke("admin")
    for scope in ("old", "admin"):
        body = json.dumps({"token": house.texts[scope]}).encode()
        said = house.ask("POST", "/login", body=body, headers={"content-type": "application/json"})
        assert said.status == 401
    foreign = {"content-type": "application/json", "origin": "http://evil.example"}
    body = json.dumps({"token": house.texts["read"]}).encode()
    assert house.ask("POST", "/login", body=body, headers=foreign).status == 403
    assert len(house.sessions) == 0


def test_a_login_in_the_place_of_an_older_one_needs_no_word(house: House) -> None:
    headers = house.log_in("read")
    body = json.dumps({"token": house.texts["write"]}).encode()
    asked = {"cookie": headers["cookie"], "content-type": "application/json"}
    assert house.ask("POST", "/login", body=body, headers=asked).json["scope"] == "write"


def test_failed_logins_are_slowed_down_by_where_they_come_from(house: House) -> None:
    as_json = {"content-type": "application/json"}
    statuses = [
        house.ask("POST", "/login", body=b'{"token": "x"}', headers=as_json).status for _ in range(12)
    ]
    assert statuses == [401] * 10 + [429] * 2
    said = house.ask("POST", "/login", body=b"token=x")
    assert (said.status, said.header("retry-after")) == (303, "6")
    assert house.ask("GET", "/", query="link=x").status == 429
    assert house.ask("POST", "/login", body=b'{"token": "x"}', headers=as_json, peer="::2").status == 401
    house.log_in("read")  # a good one is never kept out
    for number in range(20_000):
        house.sessions.failed(f"peer {number}")
    assert len(house.sessions._failures) == 10_000


def test_a_link_opens_the_dashboard_to_read(house: House) -> None:
    said = house.ask("GET", "/", query=f"link={house.texts['read']}")
    assert (said.status, said.header("location")) == (303, "/")
    assert said.header("referrer-policy") == "no-referrer"
    headers = {"cookie": cookie_of(said)}
    session = house.ask("GET", "/v1/session", headers=headers).json
    assert session["scope"] == "read"
    headers["x-csrf-token"] = session["csrf"]
    assert house.ask("POST", "/v1/streams/house/step", headers=headers).status == 403
    house.tokens.revoke("read")
    assert house.ask("GET", "/v1/session", headers=headers).status == 401
    assert house.ask("GET", "/", query=f"link={house.texts['read']}").status == 401


def test_a_link_is_only_for_reading(house: House) -> None:
    for scope in ("write", "admin"):
        said = house.ask("GET", "/", query=f"link={house.texts[scope]}")
        assert said.status == 403 and "scope read" in said.json["error"]
        assert said.header("set-cookie") is None
    assert house.ask("GET", "/", query="link=").status == 401
    assert len(house.sessions) == 0


def test_a_damaged_file_of_tokens_lets_nobody_log_in_and_is_not_named_to_strangers(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    assert house.tokens.exist
    house.tokens.path.write_text("{")
    body = json.dumps({"token": house.texts["read"]}).encode()
    as_json = {"content-type": "application/json"}
    for said in (
        house.ask("POST", "/login", body=body, headers=as_json),
        house.ask("GET", "/", query=f"link={house.texts['read']}"),
    ):
        assert said.status == 503 and "cannot read its tokens" in said.json["error"]
        assert house.tokens.path.name not in said.body.decode()
    assert caplog.text.count(str(house.tokens.path)) == 2
    assert len(house.sessions) == 0


def test_only_a_link_is_one(house: House) -> None:
    for method, query in (("GET", "blink=x"), ("GET", "a=link%3D"), ("HEAD", f"link={house.texts['read']}")):
        assert house.ask(method, "/", query=query).status == 404  # there is no page here
    assert len(house.sessions) == 0


def test_without_tokens_there_is_nothing_to_log_in_to(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "none.json")
    sessions = Sessions(tokens)
    app = Access(Starlette(routes=sessions.routes), tokens, sessions)
    assert ask(app, "GET", "/v1/session").json == {"scope": "admin", "csrf": None}
    said = ask(app, "POST", "/login", body=b'{"token": "x"}', headers={"content-type": "application/json"})
    assert said.json == {"scope": "admin", "csrf": None} and said.header("set-cookie") is None
    assert ask(app, "GET", "/", query="link=x").header("location") == "/"
    assert len(sessions) == 0


def test_sessions_are_bounded_and_one_token_cannot_push_out_others(house: House) -> None:
    headers = house.log_in("admin")
    reader, writer = (house.tokens.find(house.texts[one]) for one in ("read", "write"))
    assert reader is not None and writer is not None
    cookies = [house.sessions.begin(reader)[0] for _ in range(150)]
    assert len(house.sessions) == 101
    assert house.sessions.find(f"{COOKIE}={cookies[49]}".encode()) is None
    assert house.sessions.find(f"{COOKIE}={cookies[50]}".encode()) is not None
    assert house.ask("GET", "/v1/session", headers=headers).status == 200
    for number in range(10):
        other = house.tokens.find(house.tokens.make(f"other {number}", "read"))
        assert other is not None
        for _ in range(100):
            house.sessions.begin(other)
    assert len(house.sessions) == 1000
