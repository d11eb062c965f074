"""Logs, one line for each thing that happened, as JSON or as text; and a line for each request.

A line says who asked for what and how it went: by token id, route template and numbers. Tokens, queries and
bodies are never in it.
"""

import logging
import random
import re
import sys
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, Any

from varnn.errors import check_choice
from varnn.service.http._asgi import App, Caller, Message, Receive, Scope, Send, answer, header, peer
from varnn.service.http.metrics import Metrics
from varnn.service.http.route_table import OTHER, find_route
from varnn.streaming import json_text

UNEXPECTED = "something went wrong in the service; its log has the reason under this request's id."
FORMATS = ("json", "text")
LEVELS = ("debug", "info", "warning", "error")
_random = random.Random()
_SANE = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
_PLAIN = re.compile(r"[\w./{}:+-]+")
_WATCHED = {"/healthz", "/readyz", "/metrics"}  # asked for every few seconds, and of no interest when well
_FOLLOWED = "/v1/streams/{stream}/live"
_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}


class Log:
    r"""Writes one line at a time.

    Parameters
    ----------
    file : binary file, default=standard error
        Where lines go.
    form : {"json", "text"}, default="json"
        How they are written.
    level : {"debug", "info", "warning", "error"}, default="info"
        The least that is written.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> Log(file, form="text").write("info", "started", port=8000, folder="my house")
    >>> file.getvalue().decode().partition(" ")[2]
    "info started port=8000 folder='my house'\n"
    """

    def __init__(self, file: IO[bytes] | None = None, *, form: str = "json", level: str = "info") -> None:
        check_choice("the format of logs", form, FORMATS)
        check_choice("the level of logs", level, LEVELS)
        self._file = sys.stderr.buffer if file is None else file
        self._as_json = form == "json"
        self._written = frozenset(LEVELS[LEVELS.index(level) :])

    def writes(self, level: str) -> bool:
        """Tell whether lines of a level are written."""
        return level in self._written

    def write(self, level: str, message: str, **facts: Any) -> None:
        """Write a line."""
        if level not in self._written:
            return
        at = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        if self._as_json:
            line = json_text.write({"time": at, "level": level, "message": message, **facts})
        else:
            told = [f"{name}={_plain(value)}" for name, value in facts.items() if value is not None]
            line = " ".join([at, level, _one_line(message), *told]).encode("utf-8", "backslashreplace")
        with suppress(OSError, ValueError):  # who reads the log has gone; those who are served have not
            self._file.write(line + b"\n")
            self._file.flush()

    def take_over(self, *names: str) -> None:
        """Let loggers of the standard library write here, and nowhere else."""
        for name in names:
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [_Handler(self)], False
            logger.setLevel(logging.DEBUG if self.writes("debug") else logging.INFO)


class _Handler(logging.Handler):
    """Brings what the standard library's loggers say into a log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._to = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        level = record.levelname.lower()
        facts: dict[str, Any] = {"logger": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            facts["traceback"] = _traceback(record.exc_info[1])
        self._to.write("error" if level == "critical" else level, record.getMessage(), **facts)


class Logged:
    """ASGI middleware, the outermost: gives each request an id, and writes and measures how it went.

    The id is the caller's own (``X-Request-ID``) where that is short and plain; it goes back with the answer,
    and is in ``scope["state"]["request"]``. What the app did not catch is answered by 500 and the id, and
    logged.

    Parameters
    ----------
    app : ASGI app
        What is asked.
    log : Log
        Where lines go.
    metrics : Metrics
        Where durations are counted.
    """

    def __init__(self, app: App, log: Log, metrics: Metrics) -> None:
        self._app, self._log, self._metrics = app, log, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began = time.perf_counter()
        given = header(scope, b"x-request-id")
        if given is None or not _SANE.fullmatch(given):
            given = b"%016x" % _random.getrandbits(64)
        state = scope.setdefault("state", {})
        state["request"] = given.decode()
        ours = [(b"x-request-id", given), (b"x-content-type-options", b"nosniff")]
        status, length, complete = 0, 0, False

        async def seen(message: Message) -> None:
            nonlocal status, length, complete
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *ours]
            elif message["type"] == "http.response.body":
                length += len(message.get("body", b""))
                complete = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, seen)
        except Exception as error:
            # Not in an answer: what went wrong inside is nobody's business, but the id finds it here.
            self._log.write("error", "failed", request=state["request"], traceback=_traceback(error))
            if status == 0:
                await answer(seen, 500, {"error": UNEXPECTED, "request": state["request"]})
            elif not complete:
                raise  # the server closes the connection, so that half an answer is not taken for a whole one
        finally:
            self._tell(scope, status, length, time.perf_counter() - began)

    def _tell(self, scope: Scope, status: int, length: int, seconds: float) -> None:
        template = find_route(scope["method"], scope["path"]).template
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        status = status or 499  # the caller left before there was an answer
        if template != _FOLLOWED:
            self._metrics.requests.observe(seconds, method, template, f"{status // 100}xx")
        level = "error" if status >= 500 else "debug" if template in _WATCHED else "info"
        if self._log.writes(level):
            caller: Caller | None = scope["state"].get("access")
            self._log.write(
                level,
                "request",
                request=scope["state"]["request"],
                method=method,
                route=template,
                status=status,
                ms=round(seconds * 1000, 3),
                bytes=length,
                peer=peer(scope),
                token=None if caller is None else caller.token,
            )


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _plain(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else repr(text)


def _one_line(message: str) -> str:
    """Keep a message on its line: what it quotes must not be able to write a line of its own."""
    return "".join(one if one.isprintable() else "?" for one in message)
