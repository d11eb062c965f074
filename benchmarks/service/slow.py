"""Callers that send a byte now and then: each is let go in time, and nobody waits for them."""

import socket
import time
from contextlib import ExitStack, suppress

_HEAD = b"POST /v1/streams/house/step HTTP/1.1\r\nHost: localhost\r\n"
_EVERY = 0.5  # seconds between two bytes


def send_slowly(port: int, count: int, patience: float = 40.0) -> tuple[int, float]:
    """Open so many connections, half of them with slow heads and half with slow bodies.

    Gives how many were still open when patience ended, and the longest that anybody else waited meanwhile.
    """
    with ExitStack() as stack:
        slow = []
        for number in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5.0))
            one.sendall(_HEAD + b"Content-Length: 1000\r\n\r\n" if number % 2 else _HEAD + b"X: ")
            one.setblocking(False)
            slow.append(one)
        longest, until = 0.0, time.monotonic() + patience
        while slow and time.monotonic() < until:
            slow = [one for one in slow if _is_open(one)]
            longest = max(longest, _waited(port))
            time.sleep(_EVERY)
        return len(slow), longest


def _is_open(one: socket.socket) -> bool:
    """Send one more byte, and see whether the other side has closed."""
    try:
        one.send(b" ")
        with suppress(BlockingIOError):
            while part := one.recv(1 << 16):
                if b"connection: close" in part:
                    return False
            return False
    except OSError:
        return False
    return True


def _waited(port: int) -> float:
    begun = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while one.recv(1 << 16):
            pass
    return time.perf_counter() - begun
