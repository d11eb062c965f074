"""HTTP as uvicorn speaks it, with limits for what comes before a body: bytes, and seconds.

What follows a head is limited by `varnn.service.http.limits`; a head reaches the application only once it is
whole, and without these limits one that has no end would be held in memory, and half of one for ever.
"""

import asyncio
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from varnn.streaming import json_text

HEAD_BYTES = 64 << 10
HEAD_SECONDS = 15.0


class GuardedProtocol(HttpToolsProtocol):
    """One connection."""

    _head = 0  # bytes since the last head was whole
    _in_body = False
    _waiting: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what came, unless it is too much."""
        if not self._in_body:
            self._head += len(data)
            self._wait()
        super().data_received(data)
        if not self._in_body and self._head > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(
                "431 Request Header Fields Too Large",
                f"the head of a request has {HEAD_BYTES:,} bytes at most.",
            )

    def on_message_begin(self) -> None:
        """Hear of the first byte of a request."""
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Hear of a head that is whole."""
        self._in_body, self._head = True, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Hear of a request that is whole."""
        self._in_body = False
        super().on_message_complete()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if self._answers:
            self._wait()
        elif not self.transport.is_closing():
            self._refuse("408 Request Timeout", f"the head of a request must be there in {HEAD_SECONDS:g} s.")

    @property
    def _answers(self) -> bool:
        """Whether an answer is under way."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _refuse(self, status: str, why: str) -> None:
        if not self._answers:
            text = json_text.write({"error": why, "request": None})
            head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n"
            self.transport.write(f"{head}connection: close\r\n\r\n".encode() + text)
        self.transport.close()
