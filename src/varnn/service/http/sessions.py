"""Sessions of the dashboard: a token once, then a cookie; and read-only links.

A session lives in memory, for 12 hours or until its token is revoked, and allows what its token does. Its
cookie is of no use to pages of other sites (SameSite=Strict) nor to scripts (HttpOnly). Whatever changes
something needs the session's own word besides (CSRF), which only a page of ours can read.
"""

import hashlib
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from varnn.errors import DataError
from varnn.service.http._asgi import Caller, Receive, Scope, Send, peer, refuse
from varnn.service.http._rates import Buckets, retry_after
from varnn.service.tokens import Token, Tokens
from varnn.streaming import json_text

COOKIE = "varnn_session"
_SECONDS = 12 * 3600
_MOST, _MOST_OF_ONE = 1000, 100
_WRONG_AT_ONCE, _WRONG_A_SECOND = 10, 1 / 6
_PRIVATE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_log = logging.getLogger(__name__)


class Session(NamedTuple):
    """One login: by which token, its word against forged requests, and when it ends."""

    token: str
    csrf: str
    ends: float


class Sessions:
    """All who have logged in.

    Parameters
    ----------
    tokens : Tokens
        What they log in by.
    clock : callable, default=time.time
        Gives the seconds since 1970.

    Attributes
    ----------
    routes : list of Route
        ``POST /login``, ``POST /logout`` and ``GET /v1/session``.
    """

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.time) -> None:
        self._tokens, self._clock = tokens, clock
        self._sessions: dict[bytes, Session] = {}  # by the hash of the cookie, the oldest first
        self._failures = Buckets(_WRONG_A_SECOND, _WRONG_AT_ONCE, clock=clock)
        self.routes = [
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/v1/session", self._session, methods=["GET"]),
        ]

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, token: Token) -> tuple[str, Session]:
        """Begin a session and give its cookie; where there are too many, the oldest ends."""
        now = self._clock()
        for key in [key for key, one in self._sessions.items() if one.ends <= now]:
            del self._sessions[key]
        same = [key for key, one in self._sessions.items() if one.token == token.id]
        if len(same) >= _MOST_OF_ONE:
            del self._sessions[same[0]]
        elif len(self._sessions) >= _MOST:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(32)
        session = Session(token.id, csrf=secrets.token_urlsafe(32), ends=now + _SECONDS)
        self._sessions[_hashed(cookie)] = session
        return cookie, session

    def find(self, header: bytes) -> tuple[Session, Token] | None:
        """Find the session of a Cookie header, and its token, unless either has ended."""
        key = _hashed(_cookie(header))
        session = self._sessions.get(key)
        if session is None:
            return None
        token = self._tokens.active(session.token)
        if token is None or session.ends <= self._clock():
            del self._sessions[key]
            return None
        return session, token

    def failed(self, place: str) -> float:
        """Count a wrong token from there; above 0 are seconds to wait, as there were too many.

        Who has a good token is never kept out, though a bad neighbour may be behind the same address:
        guessing is hopeless anyway, and what is slowed down is a caller that does not notice.
        """
        wait = self._failures.wait(place)
        if wait <= 0:
            self._failures.take(place)
        return wait

    async def follow_link(self, link: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``/?link=TOKEN``: a session for a token that only reads, then the page without the token."""
        token = self._tokens.find(link)
        if token is None and self._tokens.exist:
            wait = self.failed(peer(scope))
            status, headers = (429, [retry_after(wait)]) if wait > 0 else (401, [])
            why = "this link is wrong, or good no longer. Ask whoever gave it to you for a new one."
            return await refuse(scope, receive, send, status, why, headers)
        if token is not None and token.scope != "read":
            why = (
                f"a link must hold a token of scope read; this one has {token.scope}. Log in with it instead."
            )
            return await refuse(scope, receive, send, 403, why)
        response = RedirectResponse("/", status_code=303, headers=_PRIVATE)
        if token is not None:
            self._set_cookie(response, scope, self.begin(token)[0])
        return await response(scope, receive, send)

    async def _login(self, request: Request) -> Response:
        as_json = "json" in request.headers.get("content-type", "")
        given = _given_token(await request.body(), as_json)
        try:
            token = self._tokens.find(given)
        except DataError as error:
            return _refused(request, 503, unreadable_tokens(error))
        if token is None and self._tokens.exist:
            return _wrong(request, as_json, self.failed(peer(request.scope)))
        csrf = None
        response: Response = RedirectResponse("/", status_code=303, headers=_PRIVATE)
        if token is not None:
            cookie, session = self.begin(token)
            csrf = session.csrf
        if as_json:
            scope = "admin" if token is None else token.scope
            response = JSONResponse({"scope": scope, "csrf": csrf}, headers=_PRIVATE)
        if token is not None:
            self._set_cookie(response, request.scope, cookie)
        return response

    async def _logout(self, request: Request) -> Response:
        self._sessions.pop(_hashed(request.cookies.get(COOKIE, "")), None)
        response = JSONResponse({}, headers=_PRIVATE)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    async def _session(self, request: Request) -> Response:
        caller: Caller = request.state.access
        session: Session | None = request.scope["state"].get("session")
        csrf = None if session is None else session.csrf
        return JSONResponse({"scope": caller.scope, "csrf": csrf}, headers=_PRIVATE)

    @staticmethod
    def _set_cookie(response: Response, scope: Scope, cookie: str) -> None:
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=_SECONDS,
            path="/",
            httponly=True,
            samesite="strict",
            secure=scope["scheme"] == "https",
        )


def _hashed(cookie: str) -> bytes:
    """Key of a session: looking up a hash tells nothing of what was looked up by the time it takes."""
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).digest()


def _cookie(header: bytes) -> str:
    for part in header.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _given_token(body: bytes, as_json: bool) -> str:
    """Find the token in what a login sends; what cannot be read holds none."""
    try:
        if as_json:
            content: Any = json_text.read(body)
            given = content.get("token") if isinstance(content, dict) else None
        else:
            given = parse_qs(body.decode("ascii"), max_num_fields=10).get("token", [""])[0]
    except (ValueError, RecursionError):
        return ""
    return given.strip() if isinstance(given, str) else ""


def linked_token(scope: Scope) -> str | None:
    """Find the token of a link in a request; None where it is no link."""
    query: bytes = scope["query_string"]
    if b"link=" not in query or scope["path"] != "/" or scope["method"] != "GET":
        return None
    return parse_qs(query.decode("latin-1"), keep_blank_values=True).get("link", [None])[0]


def unreadable_tokens(error: DataError) -> str:
    """Log why tokens cannot be read, and give what is told to callers, who need not know where they are."""
    _log.error("%s", error)
    return "the service cannot read its tokens; its owner finds the reason in its log."


def _wrong(request: Request, as_json: bool, wait: float) -> Response:
    """Refuse a wrong token, and say how long to wait where there were too many."""
    more = {}
    if wait > 0:
        name, value = retry_after(wait)
        more[name.decode()] = value.decode()
    if not as_json:  # a form without scripts: the page of the login says it
        return RedirectResponse("/login?refused", status_code=303, headers=_PRIVATE | more)
    more["WWW-Authenticate"] = 'Bearer realm="varnn"'
    why = "this token is wrong, revoked or expired."
    return _refused(request, 429 if wait > 0 else 401, why, more)


def _refused(request: Request, status: int, why: str, more: dict[str, str] | None = None) -> Response:
    content = {"error": why, "request": request.scope["state"].get("request")}
    return JSONResponse(content, status_code=status, headers=_PRIVATE | (more or {}))
