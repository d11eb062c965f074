"""A service as a process of its own, started by its command, as users start it."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from varnn.errors import VarnnError
from varnn.service.client import Client

PROGRAM = "from varnn.cli.app import main; main()"
_ADDRESS = re.compile(rb"dashboard http://127\.0\.0\.1:(\d+)/")
PATIENCE = 60.0  # seconds until a service is there, or gone


class Served:
    """A process of ``varnn serve``.

    Parameters
    ----------
    folder
        Its ``--data``.
    arguments
        Model files, and more options.
    first
        Statements of Python that the process begins with.

    Examples
    --------
    >>> import tempfile
    >>> from varnn.service.service import Service
    >>> folder = Path(tempfile.mkdtemp()) / "house.service"
    >>> Service(folder).close()
    >>> with Served(folder) as served, served.client() as client:
    ...     client.get("/v1/streams")
    []
    """

    def __init__(self, folder: Path, arguments: Sequence[str | Path] = (), *, first: str = "") -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.words_at = folder.with_name(f"{folder.name}.words")  # what all processes of a folder said
        self._before = self.words_at.stat().st_size if self.words_at.exists() else 0
        self.port: int | None = None
        with self.words_at.open("ab") as words:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", f"{first}\n{PROGRAM}", "serve"),
                    *(*map(str, arguments), "--data", str(folder), "--port", "0"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
            )
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def words(self) -> str:
        """What this process said."""
        with self.words_at.open("rb") as file:
            file.seek(self._before)
            return file.read().decode()

    def address(self, patience: float = PATIENCE) -> int:
        """Wait until it answers, and give its port; an error tells what it said instead."""
        while self.port is None:
            found = _ADDRESS.search(self.words.encode())
            if found is not None:
                self.port = int(found[1])
            elif self.process.poll() is not None or time.monotonic() > self.started + patience:
                raise VarnnError(f"the service did not begin (code {self.process.poll()}): {self.words}")
            else:
                time.sleep(0.005)
        return self.port

    def client(self, **settings: Any) -> Client:
        """Make a client of it."""
        return Client(f"http://127.0.0.1:{self.address()}", **settings)

    def end(self, patience: float = PATIENCE) -> int:
        """Ask it to end, as systems do; give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience)

    def kill(self) -> None:
        """End it at once, without a chance to do anything."""
        self.process.kill()
        self.process.wait(PATIENCE)
