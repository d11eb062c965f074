"""Lines in and answers out, for a command that runs for months.

Lines are read as they come, in groups of those that are there, so that one alone is answered at once and
many are written to disk together. A line that is too long is passed over without being held. Signals are
looked at between lines, and wake up a read or a write that waits.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

from varnn.errors import OutputError

if sys.platform == "linux":
    import fcntl

_BLOCK = 1 << 16  # bytes read at a time
_TOGETHER = 1 << 19  # bytes taken together where they are there: as many lines as are written to disk at once
_PIPE = 4096  # bytes that a pipe which can be written to is sure to take
_GRACE = 2.0  # seconds that answers wait for their reader when the end was asked for
TOO_LONG = b"\0too long"  # stands for a line that was passed over; no line of text looks so


class Signals:
    """Whether to end, and whether to tell how it goes; within a ``with``, signals only say so here.

    Not on Windows, where nothing can wake up a read that waits: there a signal ends the process as ever, and
    what was answered is on disk.
    """

    def __init__(self) -> None:
        self.stop: int | None = None  # the signal that asked for the end
        self.tell = False
        self._before: dict[int, Any] = {}
        self._reading, self._writing = os.pipe()

    def __enter__(self) -> "Signals":
        # Threads other than the main one get no signals.
        if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
            for end in (self._reading, self._writing):
                os.set_blocking(end, False)
            self._wake_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.set_wakeup_fd(self._wake_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._reading)
        os.close(self._writing)

    def wait(self, file: int, *, write: bool = False, seconds: float | None = None) -> bool:
        """Wait until a file can be read or written, a signal comes or time is up; tell whether it can."""
        if sys.platform == "win32":  # which cannot wait for pipes
            return True
        reading = [self._reading] if write else [self._reading, file]
        ready, able, _ = select.select(reading, [file] if write else [], [], seconds)
        if self._reading in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reading, _BLOCK)
        return file in ready or file in able

    def _note(self, number: int, _: Any) -> None:
        if number == getattr(signal, "SIGUSR1", None):
            self.tell = True
        else:
            self.stop = number


class Lines:
    """The lines of a file, as they come.

    Parameters
    ----------
    source
        What to read from: standard input, or anything with bytes.
    signals : Signals
        What ends a wait.
    longest : int
        Bytes of a line; longer ones are given as ``TOO_LONG``.
    most : int
        Lines in a group.
    """

    def __init__(self, source: IO[bytes], signals: Signals, *, longest: int, most: int) -> None:
        self._source, self._signals, self._longest, self._most = source, signals, longest, most
        try:
            self._file: int | None = source.fileno()
        except (OSError, AttributeError):  # made of bytes in memory
            self._file = None
        if self._file is not None:
            _widen(self._file)
        self._rest, self._passing = b"", False  # of the last line; whether that one is passed over

    def groups(self, seconds: float | None = None) -> Iterator[list[bytes]]:
        """Groups of lines until the end; an empty one after a signal, or when nothing came."""
        while (block := self._block(seconds)) != b"":
            lines = [] if block is None else self._split(block)
            for first in range(0, len(lines) or 1, self._most):
                yield lines[first : first + self._most]
        if self._rest or self._passing:
            yield [TOO_LONG if self._passing else self._rest]

    def _block(self, seconds: float | None) -> bytes | None:
        if self._file is None:
            return self._source.read(_BLOCK)
        if not self._signals.wait(self._file, seconds=seconds):
            return None
        block = os.read(self._file, _BLOCK)
        if len(block) < _BLOCK or sys.platform == "win32":  # where it cannot be told whether there is more
            return block
        blocks, size = [block], len(block)
        while size < _TOGETHER and self._signals.wait(self._file, seconds=0):
            block = os.read(self._file, _BLOCK)
            if not block:  # the end, which is there to be read again
                break
            blocks.append(block)
            size += len(block)
        return b"".join(blocks)

    def _split(self, block: bytes) -> list[bytes]:
        *lines, rest = block.split(b"\n")
        if lines:
            lines[0] = TOO_LONG if self._passing else self._rest + lines[0]
            self._rest, self._passing = rest, False
        elif not self._passing:
            self._rest += rest
        if len(self._rest) > self._longest:
            self._rest, self._passing = b"", True
        return [TOO_LONG if len(line) > self._longest else line for line in lines]


def _widen(file: int) -> None:
    """Let a pipe hold more than its 64 kB, where the system can: a commit is for all lines that are there."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # no pipe, or more than the system grants
            if fcntl.fcntl(file, fcntl.F_GETPIPE_SZ) < _TOGETHER:
                fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _TOGETHER)


def send(text: bytes, signals: Signals) -> None:
    """Write to standard output; once the end is asked for, a reader that does not read is not waited for."""
    try:
        file = sys.stdout.fileno()
    except (OSError, AttributeError):
        sys.stdout.write(text.decode())
        return
    rest, until = memoryview(text), None
    while rest:
        if signals.stop is not None:
            until = until or time.monotonic() + _GRACE
            if time.monotonic() > until:
                return
        if signals.wait(file, write=True, seconds=None if until is None else 0.1):
            try:
                rest = rest[os.write(file, rest[:_PIPE]) :]
            except BrokenPipeError:
                raise
            except OSError as error:
                raise OutputError(f"answers cannot be written: {error.strerror}. Make room.") from None
