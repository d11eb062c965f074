"""One shard of a keyed service, in a process of its own: a live service over a folder that is its alone."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from varnn._version import VERSION
from varnn.errors import OutputError
from varnn.service.live_stream import LiveStream, StreamSettings
from varnn.service.requests import Request
from varnn.service.service import Service

_LOOKED_FOR = 0.05  # seconds between two tries to have a folder


class Shard:
    """A service of one stream; a Ray actor, which may be made again anywhere that sees the folder.

    Parameters
    ----------
    folder : Path
        The shard's own, in the form of ``varnn serve --data``.
    model : Path
        The model file.
    settings : StreamSettings
        How the stream is kept.
    """

    def __init__(self, folder: Path, model: Path, settings: StreamSettings) -> None:
        self._folder, self._model, self._settings = folder, model, settings
        self._service: Service | None = None
        self._live: LiveStream | None = None

    def open(self, version: str, patience: float) -> str | int:
        """Open the folder, once whoever had it before is gone; the process, or in words why it cannot be.

        A machine that died may hold the lock of a shared file system for a while.
        """
        from threadpoolctl import threadpool_limits

        if version != VERSION:
            return f"varnn must be the same there as here; it is {VERSION} there, and {version} here"
        threadpool_limits(1)
        until = time.monotonic() + patience
        while True:
            try:
                self._service = Service(self._folder, self._settings)
                break
            except OutputError as error:
                if "is in use by" not in str(error):
                    raise
                if time.monotonic() > until:
                    return str(error).replace(" --data", "")
                time.sleep(_LOOKED_FOR)
        self._live = self._service.serve(self._model)
        return os.getpid()

    def send(self, sender: str, number: int, messages: Sequence[Any]) -> list[dict[str, Any]]:
        """Answer messages, once they are on disk; a request that was answered before, as it was."""
        if self._live is None:
            raise RuntimeError("a shard is opened before it is sent anything")
        return self._live.submit(messages, request=Request(sender, number)).result()

    def n_series(self) -> int:
        """Series that are known here."""
        return 0 if self._live is None else self._live.n_series

    def close(self) -> None:
        """Keep all states, and let others have the folder."""
        if self._service is not None:
            self._service.close()
        self._service = self._live = None
