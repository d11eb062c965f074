"""A process that runs jobs: what it is to run comes by a file, jobs and outcomes go through a socket.

It imports nothing but what that needs, so that it is there in a tenth of a second; what the function needs is
imported when that is read.
"""

import contextlib
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from varnn.jobs._outcome import Failure
from varnn.jobs._pickling import dumps

Message = tuple[int, bytes]  # number of a job, and the job
READY = -1  # in place of a number: the worker has read what it is to run, or says why it could not


def work(channel: int, common: int) -> None:
    """Run jobs until nobody is there to give them."""
    connection = Connection(channel)
    waiting: SimpleQueue[Message] = SimpleQueue()
    Thread(target=_receive, args=(connection, waiting), daemon=True).start()
    try:
        with os.fdopen(common, "rb", closefd=True) as file:
            # All workers share the place in the file that they read from: each goes by places of its own.
            size = os.fstat(file.fileno()).st_size
            function, shared = pickle.loads(_read(file.fileno(), size))
    except BaseException as error:
        connection.send_bytes(pickle.dumps((READY, None, Failure.of(error), 0.0)))
        return
    connection.send_bytes(pickle.dumps((READY, None, None, 0.0)))
    with contextlib.suppress(OSError):  # nobody is there any more, which is no error of this process
        while True:
            number, payload = waiting.get()
            connection.send_bytes(pickle.dumps((number, *outcome(function, payload, shared))))


def outcome(
    function: Callable[[Any, Any], Any], payload: bytes, shared: Any
) -> tuple[bytes | None, Failure | None, float]:
    """Run one job: its result as bytes, or why there is none, and the seconds it took."""
    began = time.perf_counter()
    try:
        result = function(pickle.loads(payload), shared)
    except KeyboardInterrupt:  # the function's own: workers are not sent any
        return None, Failure("KeyboardInterrupt", "the job raised it", ""), time.perf_counter() - began
    except Exception as error:
        return None, Failure.of(error), time.perf_counter() - began
    except SystemExit as error:
        return None, Failure.of(error), time.perf_counter() - began
    finally:
        for stream in (sys.stdout, sys.stderr):  # a worker is ended without having a last word
            with contextlib.suppress(Exception):
                stream.flush()
    seconds = time.perf_counter() - began
    try:
        return dumps(result), None, seconds
    except Exception as error:
        said = f"the result of a job must be something that can be pickled; got {type(result).__name__}: "
        failure = Failure.of(error)
        return None, failure._replace(message=f"{said}{failure.message}"), seconds


def _read(file: int, size: int) -> bytes:
    parts: list[bytes] = []
    while (place := sum(len(one) for one in parts)) < size:
        parts.append(os.pread(file, min(size - place, 1 << 30), place))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _receive(connection: Connection, waiting: "SimpleQueue[Message]") -> None:
    """Take jobs in while others run, so that whoever sends them never waits; end with who sent them."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            waiting.put(pickle.loads(connection.recv_bytes()))
    os.killpg(0, signal.SIGKILL)  # with all that the function may have started
