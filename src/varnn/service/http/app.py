"""The service as an ASGI application: routes and pages, and what stands before them.

::

    request -> Logged (id, log, durations) -> Access (who may) -> Limiter (how much) -> routes
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from varnn._version import VERSION
from varnn.errors import ModelFileError, OutputError, VarnnError
from varnn.service.errors import ServiceError
from varnn.service.http import api
from varnn.service.http.access import Access
from varnn.service.http.bodies import json_response
from varnn.service.http.limits import Limiter, Limits
from varnn.service.http.logs import UNEXPECTED, Log, Logged
from varnn.service.http.messages import MessagesFirst
from varnn.service.http.metrics import CONTENT_TYPE, Metrics
from varnn.service.http.pages import routes as pages
from varnn.service.http.route_table import methods_of
from varnn.service.http.sessions import Sessions
from varnn.service.service import Service
from varnn.service.tokens import Tokens


def application(
    service: Service,
    tokens: Tokens,
    *,
    limits: Limits | None = None,
    log: Log | None = None,
    ending: Callable[[], bool] = lambda: False,
) -> Any:
    """Make the application of a service.

    Parameters
    ----------
    service : Service
        What it answers for; whoever opened it closes it.
    tokens : Tokens
        Who may.
    limits : Limits or None, default=None
        How much; None for the defaults.
    log : Log or None, default=None
        Where requests are logged; None for standard error.
    ending : callable
        Tells whether the service is about to end, so that followers are let go.
    """
    limits, metrics, sessions = limits or Limits(), Metrics(VERSION), Sessions(tokens)

    async def scraped(request: Request) -> Response:
        # In a thread: to sum up the scores of many series takes longer than others should wait.
        return Response(await asyncio.to_thread(metrics.text), media_type=CONTENT_TYPE)

    routes = [*api.routes, Route("/metrics", scraped, methods=["GET"]), *sessions.routes, *pages]
    app = Starlette(
        routes=list(map(_exact, routes)),
        exception_handlers=_HANDLERS,
    )
    app.router.redirect_slashes = (
        False  # a path with a slash more is another one, and Host is not to be trusted
    )
    app.state.service, app.state.limits, app.state.ending = service, limits, ending
    app.state.followers = 0
    service.on_commit = lambda stream, seconds: metrics.commits.observe(seconds, stream)
    metrics.collect.append(lambda: _collect(service, metrics, app))
    limiter = Limiter(MessagesFirst(app, _failed), limits, ending=ending)
    return Logged(Access(limiter, tokens, sessions), log or Log(), metrics)


def _exact(route: Route) -> Route:
    """Let a path end where it ends, and not before a last line break; and names hold one, if they do."""
    pattern = route.path_regex.pattern.removesuffix("$").removesuffix(r"\Z")
    route.path_regex = re.compile(rf"{pattern}\Z", re.DOTALL)
    return route


def _collect(service: Service, metrics: Metrics, app: Starlette) -> None:
    """Look up what is shown as it is."""
    metrics.followers.set(app.state.followers)
    for live in service.streams():
        name = live.name
        metrics.queue_depth.set(live.waiting, name)
        metrics.series.set(live.n_series, name)
        metrics.observations.reach(live.counts["observed"], name)
        metrics.predictions.reach(live.counts["predicted"], name)
        metrics.refused.reach(live.counts["refused"], name, "data")
        for kind, count in live.event_counts.items():
            metrics.events.reach(count, name, kind)
        for model, score in api.scores_of(live).items():
            metrics.coverage.set(score["coverage"], name, model)
            metrics.innovation_scale.set(score["innovation_scale"], name, model)
            metrics.skill.set(score["skill"], name, model)


def _refused(request: Request, error: str, status: int, headers: dict[str, str] | None = None) -> Response:
    told = {"error": error, "request": request.scope.get("state", {}).get("request")}
    return json_response(told, status, headers)


def _of_service(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, ServiceError) else 400
    after = getattr(error, "after", None)
    return _refused(request, str(error), status, None if after is None else {"Retry-After": str(after)})


def _of_library(request: Request, error: Exception) -> Response:
    if isinstance(error, OutputError):
        return _refused(request, str(error), 507, {"Retry-After": "5"})
    # Of what was sent, or of what is on disk.
    is_ours = isinstance(error, ModelFileError) and request.method != "PUT"
    return _refused(request, str(error), 503 if is_ours else 422)


def _failed(request: Request, error: Exception) -> Response:
    return (_of_service if isinstance(error, ServiceError) else _of_library)(request, error)


def _of_http(request: Request, error: Exception) -> Response:
    status, words = 500, ""
    headers: dict[str, str] | None = None
    if isinstance(error, HTTPException):
        status, words, headers = error.status_code, error.detail, dict(error.headers or {})
    path = request.scope["path"][:200]  # not request.url, which needs a Host that is one
    if status == 404:
        words = f"there is no {path!r}. See /docs."
    elif status == 405:
        words = f"{request.method} is not what {path!r} takes. See /docs."
        headers = {"Allow": ", ".join(methods_of(request.scope["path"]))}  # a router knows those of one route
    return _refused(request, words, status, headers)


def _of_bug(request: Request, error: Exception) -> Response:
    return _refused(request, UNEXPECTED, 500)  # and then raised again, so that it is logged


_HANDLERS: Any = {
    ServiceError: _of_service,
    VarnnError: _of_library,
    HTTPException: _of_http,
    Exception: _of_bug,
}
