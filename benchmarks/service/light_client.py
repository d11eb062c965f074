"""A client that takes little of the machine it shares with the service: prepared bytes, raw connections."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from varnn.errors import VarnnError

_HEAD = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Content-Length: {size}\r\n\r\n"
)
_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")
_LENGTH = re.compile(rb"(?i)content-length: (\d+)")


def request(path: str, content: Any) -> bytes:
    """A whole request, to be sent as it is.

    Examples
    --------
    >>> request("/v1/streams/house/step", {"x": [1]}).splitlines()[0]
    b'POST /v1/streams/house/step HTTP/1.1'
    """
    body = json.dumps(content).encode()
    return _HEAD.format(path=path, size=len(body)).encode() + body


class Connection:
    """One connection, one request at a time.

    Parameters
    ----------
    port
        Of the service, on this machine.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, asked: bytes) -> bytes:
        """Send a request, and give the body of its answer, which must be a good one."""
        self._socket.sendall(asked)
        data = self._rest
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        size = end + 4 + length_of(data[:end])
        while len(data) < size:
            data += self._more()
        self._rest = data[size:]
        return data[end + 4 : size]

    def _more(self) -> bytes:
        found = self._socket.recv(1 << 18)
        if not found:
            raise VarnnError("the service closed the connection.")
        return found


def length_of(head: bytes) -> int:
    """Bytes of the body of an answer, by its head; refuse one that is no good one."""
    status, length = _STATUS.match(head), _LENGTH.search(head)
    if status is None or status[1] != b"200" or length is None:
        raise VarnnError(f"the service must answer with 200; it said {head[:300]!r}.")
    return int(length[1])


def latencies(
    port: int, sources: Sequence[Iterator[bytes]], *, seconds: float, rate: float | None = None
) -> list[float]:
    """Seconds that requests of several clients took.

    Parameters
    ----------
    port
        Of the service.
    sources
        Requests of each client, without end; each has a connection of its own.
    seconds
        How long to ask.
    rate
        Requests a second of each client, sent when they are due whatever became of the others, and timed
        from then; None for as many as are answered.
    """
    return asyncio.run(_latencies(port, sources, seconds, rate))


async def _latencies(
    port: int, sources: Sequence[Iterator[bytes]], seconds: float, rate: float | None
) -> list[float]:
    found: list[float] = []
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in sources]
    begin = time.perf_counter() + 0.1
    clock = _due(begin, seconds, rate, len(sources))
    clients = [
        _ask(reader, writer, source, clock(number), found)
        for number, ((reader, writer), source) in enumerate(zip(opened, sources, strict=True))
    ]
    await asyncio.gather(*clients)
    for _, writer in opened:
        writer.close()
    return found


def _due(begin: float, seconds: float, rate: float | None, clients: int) -> Callable[[int], Iterator[float]]:
    """When each request of a client is due, by its number; spread out, so that they do not come together."""

    def times(number: int) -> Iterator[float]:
        if rate is None:
            while (now := time.perf_counter()) < begin + seconds:
                yield now
            return
        first = begin + number / clients / rate
        for place in range(int(seconds * rate)):
            yield first + place / rate

    return times


async def _ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    source: Iterator[bytes],
    due: Iterator[float],
    found: list[float],
) -> None:
    for at in due:
        asked = next(source)
        wait = at - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        writer.write(asked)
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(length_of(head))
        found.append(time.perf_counter() - at)
