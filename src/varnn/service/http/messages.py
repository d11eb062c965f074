"""The routes that messages come by: predict, observe and step.

Nearly all requests are of these, and the model takes a twentieth of a millisecond for one: so they do not go
by the router and what is around it, which take as long.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from varnn.errors import VarnnError
from varnn.service.errors import refusal
from varnn.service.http._asgi import App, Receive, Scope, Send, header
from varnn.service.http._bridge import Bridge
from varnn.service.http.bodies import NotJson, answer_of, messages_of
from varnn.service.http.limits import charge
from varnn.service.http.route_table import find_route

NEEDED = {"predict": "x", "observe": "y", "step": "x"}
_PLACE = 3  # of a stream's name among the parts of a path


class MessageRoute:
    """What answers the messages of one verb.

    Parameters
    ----------
    verb : str
        One of ``NEEDED``.
    """

    def __init__(self, verb: str) -> None:
        self._verb, self._field = verb, NEEDED[verb]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        state = scope["app"].state
        live = state.service.stream(scope["path"].split("/")[_PLACE])
        body = await Request(scope, receive).body()
        kind = header(scope, b"content-type") or b""
        messages, form = messages_of(body, kind.decode("latin-1"), state.limits.most_rows)
        charge(scope, len(messages))
        refused = {
            place: refusal(one, why) for place, one in enumerate(messages) if (why := self._wrong_with(one))
        }
        good = [one for place, one in enumerate(messages) if place not in refused] if refused else messages
        answers: list[dict[str, Any]] = []
        if good:
            answers = await _bridge(state).awaited(live.submit(good, pure=self._verb == "predict"))
        if refused:
            found = iter(answers)
            answers = [refused[n] if n in refused else next(found) for n in range(len(messages))]
        await answer_of(answers, form)(scope, receive, send)

    def _wrong_with(self, message: Any) -> str | None:
        """Why a message cannot be one of this verb."""
        if type(message) is dict:
            return None if self._field in message else f"{self._verb} needs {self._field!r} in every message."
        return message.why if isinstance(message, NotJson) else "a message must be an object."


def _bridge(state: Any) -> Bridge:
    """The bridge of the loop that this runs in; an application may be run by another one later."""
    loop = asyncio.get_running_loop()
    if getattr(state, "bridge", None) is None or state.bridge.loop is not loop:
        state.bridge = Bridge(loop)
    bridge: Bridge = state.bridge
    return bridge


class MessagesFirst:
    """ASGI app that answers messages by itself, and hands on all else.

    Parameters
    ----------
    app : ASGI app
        What answers all else: a Starlette application.
    failed : callable
        Makes an answer of an error.
    """

    def __init__(self, app: App, failed: Callable[[Request, Exception], Response]) -> None:
        self._app, self._failed = app, failed
        self._routes = {f"/v1/streams/{{stream}}/{verb}": MessageRoute(verb) for verb in NEEDED}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        route = None
        if scope["type"] == "http" and scope["method"] == "POST":
            route = self._routes.get(find_route("POST", scope["path"]).template)
        if route is None:
            return await self._app(scope, receive, send)
        scope["app"] = self._app
        try:
            return await route(scope, receive, send)
        except VarnnError as error:
            return await self._failed(Request(scope), error)(scope, receive, send)
