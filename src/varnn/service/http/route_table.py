"""Every route of the service and the scope it needs, in one table; what is not in it needs admin.

Logs and metrics name requests by the templates of this table, never by paths, which hold names of series.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from varnn.service.tokens import SCOPES

_STREAM = "/v1/streams/{stream}"
_SERIES = _STREAM + "/series/{series}"

# None: open to all, as it tells nothing. {series} and {file} may hold slashes, other names may not.
ROUTES: dict[tuple[str, str], str | None] = {
    ("GET", "/"): None,
    ("GET", "/assets/{file}"): None,
    ("GET", "/login"): None,
    ("GET", "/docs"): None,  # the page; what it shows needs a token
    ("POST", "/login"): None,
    ("POST", "/logout"): None,
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
    ("GET", "/metrics"): "read",
    ("GET", "/v1/health"): "read",
    ("GET", "/v1/openapi.json"): "read",
    ("GET", "/v1/session"): "read",
    ("GET", "/v1/models"): "read",
    ("PUT", "/v1/models/{model}"): "admin",
    ("DELETE", "/v1/models/{model}"): "admin",
    ("GET", "/v1/streams"): "read",
    ("POST", "/v1/streams"): "admin",
    ("GET", _STREAM): "read",
    ("DELETE", _STREAM): "admin",
    ("POST", _STREAM + "/predict"): "read",
    ("POST", _STREAM + "/observe"): "write",
    ("POST", _STREAM + "/step"): "write",
    ("GET", _STREAM + "/events"): "read",
    ("GET", _STREAM + "/live"): "read",
    ("POST", _STREAM + "/backup"): "admin",
    ("POST", _STREAM + "/challengers"): "admin",
    ("DELETE", _STREAM + "/challengers/{model}"): "admin",
    ("POST", _STREAM + "/challengers/{model}/promote"): "admin",
    ("GET", _STREAM + "/series"): "read",
    ("GET", _SERIES): "read",
    ("DELETE", _SERIES): "admin",
    ("GET", _SERIES + "/history"): "read",
    ("GET", _SERIES + "/snapshot"): "admin",
    ("PUT", _SERIES + "/snapshot"): "admin",
}
OTHER = "other"  # the template of what is no route
_MOST_CACHED = 200  # characters of a path that is remembered; a longer one is looked up each time


class Route(NamedTuple):
    """What a request asks for: a template of the table, or "other", and the scope it needs."""

    template: str
    scope: str | None


def find_route(method: str, path: str) -> Route:
    """Find the route of a request.

    Examples
    --------
    >>> find_route("GET", "/v1/streams/house/series/a/b/history")
    Route(template='/v1/streams/{stream}/series/{series}/history', scope='read')
    >>> find_route("PATCH", "/v1/streams/house")
    Route(template='/v1/streams/{stream}', scope='admin')
    """
    return _remembered(method, path) if len(path) <= _MOST_CACHED else _found(method, path)


def needed_scope(method: str, path: str) -> str | None:
    """Tell which scope a request needs: read, write, admin, or None where it is open to all.

    Examples
    --------
    >>> needed_scope("POST", "/v1/streams/house/step"), needed_scope("GET", "/healthz")
    ('write', None)
    >>> needed_scope("GET", "/a/route/of/next/year")
    'admin'
    """
    return find_route(method, path).scope


def methods_of(path: str) -> list[str]:
    """List the methods that a path takes.

    Examples
    --------
    >>> methods_of("/v1/streams"), methods_of("/nowhere")
    (['GET', 'HEAD', 'POST'], [])
    """
    template = find_route("GET", path).template
    found = {method for method, one in ROUTES if one == template}
    return sorted(found | {"HEAD"} if "GET" in found else found)


def _pattern(template: str) -> re.Pattern[str]:
    wide = re.sub(r"\{(series|file)\}", ".*", template.replace(".", r"\."))
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", wide))


# Those with more after a series come before the series itself, whose name may hold slashes.
_TEMPLATES = {
    one: _pattern(one)
    for one in sorted({template for _, template in ROUTES}, key=lambda one: (-one.count("/"), one))
}
# A router may go up by dots, and its patterns may end before a last line break: no path of ours has either.
_ODD = re.compile(r"(^|/)\.\.(/|$)|[\x00-\x1f\x7f]")
_ORDER = (None, *SCOPES)


def _found(method: str, path: str) -> Route:
    if _ODD.search(path):
        return Route(OTHER, SCOPES[-1])
    fitting = [one for one, pattern in _TEMPLATES.items() if pattern.fullmatch(path)]
    # Who may get something may ask for its head, which is made as the whole is.
    asked = "GET" if method == "HEAD" else method
    scopes = [ROUTES[asked, one] for one in fitting if (asked, one) in ROUTES]
    # Of several the strictest: ".../series/a/snapshot" could be a series "a/snapshot", or the state of "a".
    strictest = max(scopes, key=_ORDER.index, default=SCOPES[-1])
    return Route(fitting[0] if fitting else OTHER, strictest)


_remembered = lru_cache(maxsize=4096)(_found)
