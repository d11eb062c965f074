"""The service on a port: from a folder to an end that loses nothing."""

import signal
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from varnn.errors import ConfigError, OutputError, require
from varnn.service.http.access import check_address
from varnn.service.http.limits import Limits
from varnn.service.http.logs import Log
from varnn.service.service import Service
from varnn.service.tokens import Tokens

_LAST_ANSWERS = 5  # seconds that requests under way have when the service ends
_BACKLOG = 2048


class Address(NamedTuple):
    """Where a service listens.

    Parameters
    ----------
    host : str, default="127.0.0.1"
        Name or number of the machine's own.
    port : int, default=8000
        Port; 0 for any that is free.
    certificate, key : Path or None, default=None
        Files in PEM, for TLS.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    key: Path | None = None


def run(
    service: Service,
    tokens: Tokens,
    address: Address,
    *,
    limits: Limits | None = None,
    log: Log | None = None,
    ready: Callable[[str], Any] = lambda url: None,
    beside: Callable[[Callable[[], None]], AbstractContextManager[Any]] = lambda stop: nullcontext(),
) -> None:
    """Answer until a signal (SIGTERM, Ctrl-C) asks for the end; then finish what is under way, and return.

    Parameters
    ----------
    service : Service
        What is served; the caller closes it.
    tokens : Tokens
        Who may.
    address : Address
        Where.
    limits : Limits or None, default=None
        How much.
    log : Log or None, default=None
        Where logs go; None for standard error.
    ready : callable
        Told the address, once requests are answered.
    beside : callable
        Gives what is entered before requests are answered and left once they no longer are, connectors for
        example; it is given a function that ends the service.
    """
    uvicorn = require("uvicorn", "serve", "a live service")
    from varnn.service.http._protocol import GuardedProtocol
    from varnn.service.http.app import application

    check_address(address.host, tokens)
    log = log or Log()
    log.take_over("varnn.service", "uvicorn")
    with closing(_listening(address)) as listener:
        port = listener.getsockname()[1]
        server: Any = None
        app = application(
            service, tokens, limits=limits, log=log, ending=lambda: server is not None and server.should_exit
        )
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_LAST_ANSWERS,
            ssl_certfile=None if address.certificate is None else str(address.certificate),
            ssl_keyfile=None if address.key is None else str(address.key),
            ws="none",
            http=GuardedProtocol,
        )
        try:
            config.load()
        except OSError as error:  # of the files for TLS
            raise ConfigError(f"the certificate or its key cannot be used: {error}.") from None
        server = uvicorn.Server(config)

        def stop() -> None:
            server.should_exit = True

        with _quiet_end(stop), beside(stop):
            told = f"http{'' if address.certificate is None else 's'}://{_shown(address.host)}:{port}"
            ready(told)
            server.run(sockets=[listener])


def _listening(address: Address) -> socket.socket:
    """A socket that takes connections, or an error that says why there is none."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host {address.host!r} is no address of this machine: {error}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise OutputError(
            f"port {address.port} of {address.host} cannot be had: {error.strerror}. Give another --port."
        ) from None
    return listener


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _quiet_end:  # noqa: N801 - used like a function, in a with statement
    """Let SIGTERM and Ctrl-C be an end like any other, before the server hears them itself, and after.

    It raises them again when it is done.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __enter__(self) -> None:
        self._before = {}
        for one in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError):  # not in the main thread, where no signal comes
                self._before[one] = signal.signal(one, self._heard)

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._stop()
