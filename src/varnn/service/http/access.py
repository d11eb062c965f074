"""Who may do what: a middleware that finds the caller's scope and refuses what it does not allow.

Without tokens everything is allowed, to callers on this machine alone: the server listens on a loopback
address (`check_address`); the Host header must name one, so that a page of another site cannot reach it by a
name of its own that leads here (DNS rebinding); and no proxy may stand between. With tokens each route needs
the scope of its entry in `route_table`. No header ever lets another site read an answer (CORS is closed).
"""

import hmac
import ipaddress
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from varnn.errors import ConfigError, DataError
from varnn.service.http._asgi import App, Caller, Headers, Receive, Scope, Send, peer, refuse
from varnn.service.http._rates import retry_after
from varnn.service.http.route_table import find_route, needed_scope
from varnn.service.http.sessions import Session, Sessions, linked_token, unreadable_tokens
from varnn.service.tokens import SCOPES, Tokens

__all__ = ["Access", "check_address", "needed_scope"]

_SAFE = {"GET", "HEAD", "OPTIONS"}
_OPEN = Caller(scope="admin", token=None)  # everybody on this machine, while there are no tokens
_NOBODY = Caller(scope=None, token=None)
# Of a proxy, which brings callers from elsewhere; it may well call this machine by its own name.
_FORWARDED = frozenset((b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"))


class _Refusal(NamedTuple):
    status: int
    why: str
    headers: Headers = ()


class Access:
    """ASGI middleware that lets a request through where its caller may do what it asks for.

    The caller is put into ``scope["state"]["access"]``, and the session, if there is one, into
    ``scope["state"]["session"]``.

    Parameters
    ----------
    app : ASGI app
        What is asked when all is well.
    tokens : Tokens
        Those who may.
    sessions : Sessions
        Those who have logged in.
    """

    def __init__(self, app: App, tokens: Tokens, sessions: Sessions) -> None:
        self._app, self._tokens, self._sessions = app, tokens, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        scope.setdefault("state", {})["access"] = _NOBODY
        try:
            refusal = self._refusal(scope)
            link = linked_token(scope) if refusal is None else None
            if link is not None:
                return await self._sessions.follow_link(link, scope, receive, send)
        except DataError as error:  # the file of tokens is damaged: nobody knows who may, so nobody may
            refusal = _Refusal(503, unreadable_tokens(error))
        if refusal is not None:
            return await refuse(scope, receive, send, *refusal)
        return await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> _Refusal | None:
        """Find the caller of a request, and why it is refused, if it is."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        state, method = scope["state"], scope["method"]
        route = find_route(method, scope["path"])
        if not self._tokens.exist:
            if not is_loopback(headers.get(b"host", b"")) or not _FORWARDED.isdisjoint(headers):
                return _Refusal(403, _OTHER_NAME)
            state["access"] = _OPEN
        unsafe = method not in _SAFE
        if unsafe and _is_foreign(headers):
            return _Refusal(403, "a page of another site may not change anything here.")
        if state["access"] is _OPEN:
            return None
        given = headers.get(b"authorization")
        if given is not None and route.scope is not None:
            refusal = self._by_token(scope, given)
        else:
            session = self._by_cookie(scope, headers.get(b"cookie"))
            refusal = None
            if session is not None and unsafe and scope["path"] != "/login":
                refusal = _lacks_proof(session, headers)
        return refusal or _too_weak(state["access"], route.scope)

    def _by_token(self, scope: Scope, given: bytes) -> _Refusal | None:
        kind, _, text = given.partition(b" ")
        found = self._tokens.find(text.strip().decode("latin-1")) if kind.lower() == b"bearer" else None
        if found is not None:
            scope["state"]["access"] = Caller(found.scope, found.id)
            return None
        wait = self._sessions.failed(peer(scope))
        if wait > 0:
            return _Refusal(429, "too many wrong tokens came from there.", [retry_after(wait)])
        asked = (b"www-authenticate", b'Bearer realm="varnn", error="invalid_token"')
        return _Refusal(401, "this token is wrong, revoked or expired.", [asked])

    def _by_cookie(self, scope: Scope, cookie: bytes | None) -> Session | None:
        found = None if cookie is None else self._sessions.find(cookie)
        if found is None:
            return None
        session, token = found
        scope["state"]["access"], scope["state"]["session"] = Caller(token.scope, token.id), session
        return session


_OTHER_NAME = (
    "without tokens this service answers only on this machine, by its names localhost and 127.0.0.1, and not "
    "through a proxy. To reach it in another way, make a token: varnn token make"
)


def _lacks_proof(session: Session, headers: dict[bytes, bytes]) -> _Refusal | None:
    """Refuse what a browser may have been made to send: only pages of ours can read the session's word."""
    if hmac.compare_digest(headers.get(b"x-csrf-token", b""), session.csrf.encode()):
        return None
    return _Refusal(403, "a session must send the header X-CSRF-Token as GET /v1/session gives it.")


def _too_weak(caller: Caller, needed: str | None) -> _Refusal | None:
    if needed is None:
        return None
    if caller.scope is None:
        asked = (b"www-authenticate", b'Bearer realm="varnn"')
        return _Refusal(401, "a token is needed: send Authorization: Bearer TOKEN, or log in.", [asked])
    if SCOPES.index(caller.scope) >= SCOPES.index(needed):
        return None
    says = f'Bearer realm="varnn", error="insufficient_scope", scope="{needed}"'
    why = f"this needs a token of scope {needed}; yours has {caller.scope}."
    return _Refusal(403, why, [(b"www-authenticate", says.encode())])


def _is_foreign(headers: dict[bytes, bytes]) -> bool:
    """Tell whether a request was made by a page of another host."""
    origin = headers.get(b"origin")
    if origin is None:  # no browser, or one that says where a request is from in another way
        return headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
    try:
        host = urlsplit(origin.decode("latin-1")).netloc
    except ValueError:
        return True
    # Not the scheme: before a proxy it is https, and behind it http.
    return not host or host.lower() != headers.get(b"host", b"").decode("latin-1").lower()


@lru_cache(maxsize=64)
def is_loopback(host: bytes) -> bool:
    """Tell whether a Host header names this machine, as only it can.

    Examples
    --------
    >>> is_loopback(b"localhost:8000"), is_loopback(b"[::1]:8000"), is_loopback(b"127.0.0.1.example.org")
    (True, True, False)
    """
    try:
        parts = urlsplit("//" + host.decode("ascii"))
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.netloc == host.decode() and "@" not in parts.netloc and is_own_name(name or "")


def is_own_name(name: str) -> bool:
    """Tell whether a name, or an address, is one of this machine that only it can reach.

    Examples
    --------
    >>> is_own_name("localhost"), is_own_name("0.0.0.0")
    (True, False)
    """
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_address(host: str, tokens: Tokens) -> None:
    """Refuse to listen where others can reach a service that has no tokens.

    Examples
    --------
    >>> check_address("127.0.0.1", Tokens("no-tokens-yet.json"))
    >>> check_address("0.0.0.0", Tokens("no-tokens-yet.json"))
    Traceback (most recent call last):
    varnn.errors.ConfigError: without tokens a service listens on this machine alone (...
    """
    if not is_own_name(host) and not tokens.exist:
        raise ConfigError(
            "without tokens a service listens on this machine alone (127.0.0.1, ::1, localhost); got --host "
            f"{host}. Make a token first: varnn token make NAME --scope admin --token-file {tokens.path}"
        )
