"""A service on a port of this machine, in threads of the test's own process, and small models to serve."""

import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import uvicorn

from varnn import Panel, VARNNRegressor
from varnn.service import Client, Service
from varnn.service.http._protocol import GuardedProtocol
from varnn.service.http.app import application
from varnn.service.http.limits import Limits
from varnn.service.http.logs import Log
from varnn.service.live_stream import StreamSettings
from varnn.service.tokens import Tokens

ROWS = np.random.default_rng(7).normal(size=(400, 2))
LABELS = (ROWS[:, 0] + 0.3 * np.sin(np.arange(400) / 9)).tolist()


def save_models(folder: Path) -> Path:
    """Fit small models and save them: house and rival take heat and wind; narrow takes heat alone."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(300, 2))
    target = inputs[:, 0] + 0.1 * random.normal(size=300)
    for name, seed, names in (
        ("house", 0, ["heat", "wind"]),
        ("rival", 5, ["heat", "wind"]),
        ("narrow", 1, ["heat"]),
    ):
        panel = Panel.from_arrays(inputs[:, : len(names)], target, input_names=names, target_name="load")
        model = VARNNRegressor(ensemble=1, epochs=1, hidden_size=4, random_state=seed)
        model.fit(panel).save(folder / f"{name}.varnn")
    return folder


def x(row: int) -> list[float]:
    """Give the inputs of a row."""
    found: list[float] = ROWS[row].tolist()
    return found


def whole_rows(count: int, first: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Give messages of so many rows, each with its label."""
    return [{"x": x(row), "y": LABELS[row], **more} for row in range(first, first + count)]


class Served:
    """A service that answers on a port; ``client`` talks to it, and ``log`` has what it logged."""

    def __init__(
        self, service: Service, *, limits: Limits | None = None, tokens: Tokens | None = None, port: int = 0
    ) -> None:
        self.service, self._log = service, io.BytesIO()
        log = Log(self._log)
        log.take_over("varnn.service", "uvicorn")
        self.app = application(
            service,
            tokens or Tokens(service.folder / "tokens.json"),
            limits=limits,
            log=log,
            ending=lambda: self._server.should_exit,
        )
        config = uvicorn.Config(
            self.app, port=port, lifespan="off", log_config=None, access_log=False, http=GuardedProtocol
        )
        config.timeout_graceful_shutdown = 5
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, daemon=True)
        self._thread.start()
        self.port = self._listening()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = Client(self.url)

    def _listening(self) -> int:
        for _ in range(1000):
            if self._server.started:
                port: int = self._server.servers[0].sockets[0].getsockname()[1]
                return port
            time.sleep(0.01)
        raise TimeoutError("the server did not begin")

    @property
    def log(self) -> str:
        return self._log.getvalue().decode()

    def begin_to_end(self) -> None:
        """Ask the server to end, as a signal would."""
        self._server.should_exit = True

    def end(self) -> None:
        """End the server, and wait until it has ended."""
        self.client.close()
        self.begin_to_end()
        self._thread.join(20)
        assert not self._thread.is_alive(), "the server must end"

    def raw(self, sent: bytes, seconds: float = 5.0) -> bytes:
        """Send bytes over a connection of their own, and give what comes until it is closed or quiet."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(sent)
            parts = []
            try:
                while part := connection.recv(1 << 16):
                    parts.append(part)
            except (TimeoutError, ConnectionResetError):
                pass
            return b"".join(parts)


@contextmanager
def served(
    folder: Path,
    *models: Path,
    settings: StreamSettings | None = None,
    limits: Limits | None = None,
    port: int = 0,
) -> Iterator[Served]:
    """Serve model files from a folder; nothing may go wrong inside meanwhile."""
    with Service(folder, settings) as service:
        for one in models:
            service.serve(one)
        for live in service.streams():
            assert live.is_warm.wait(300)
        found = Served(service, limits=limits, port=port)
        try:
            yield found
        finally:
            found.end()
        failures = [line for line in found.log.splitlines() if "traceback" in line.lower()]
        assert not failures, "\n".join(failures[:3])
