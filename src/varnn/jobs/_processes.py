"""Jobs on the cores of this machine: one process a core, each with a socket of its own.

Who runs what is known at any time, so that a process that dies takes its own job along and no other.
"""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from threading import Event
from typing import IO, Any

from varnn.errors import ConfigError, WorkerError
from varnn.jobs._outcome import Done, Failure
from varnn.jobs._pickling import common_bytes, dumps, loaded
from varnn.jobs._worker import READY
from varnn.jobs.cores import ONE_THREAD

_STOP_LOOKED_FOR = 0.2  # seconds
_DEATHS_LOOKED_FOR = 2.0  # seconds; mostly a socket that is closed says it at once
_LAST_WORDS = 2.0  # seconds for a process to end that has closed its socket
_PROGRAM = "import sys; sys.path[:] = {path}; from varnn.jobs._worker import work; work({channel}, {common})"


class Process:
    """A worker, and the job it runs."""

    def __init__(self, common: int) -> None:
        ours, theirs = socket.socketpair()
        given = theirs.fileno()
        program = _PROGRAM.format(path=list(map(str, sys.path)), channel=given, common=common)
        with ours, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=2,  # standard output is for results: what functions print is none
                pass_fds=(given, common),
                start_new_session=True,  # Ctrl-C is for the process that gave the jobs
                env={**os.environ, **ONE_THREAD},
            )
            self.connection = Connection(ours.detach())
        self.job: int | None = None
        self.is_ready = False  # to run it

    def send(self, number: int, payload: bytes) -> None:
        """Give it a job; OSError where it is dead by now."""
        self.connection.send_bytes(pickle.dumps((number, payload)))
        self.job = number

    def end(self) -> None:
        """End it at once, with all that its function may have started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()


class Pool:
    """So many workers, and jobs that are open."""

    def __init__(self, jobs: Sequence[Any], workers: int, retries: int, common: IO[bytes]) -> None:
        self.jobs, self.retries, self.common = jobs, retries, common
        self.fresh: Iterator[int] = iter(range(len(jobs)))
        self.again: deque[int] = deque()  # taken from a worker that died
        self.deaths: dict[int, int] = {}
        self.done: list[Done[Any]] = []  # and not yet given to who waits for it
        self.early_deaths = 0  # one after the other, before they could begin anything
        self.workers: list[Process] = []
        try:
            for _ in range(min(workers, len(jobs))):
                self.workers.append(Process(common.fileno()))
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Leave no process behind."""
        for one in self.workers:
            one.end()
        self.workers.clear()

    def run(self, stop: Event | None) -> Generator[Done[Any]]:
        """Give outcomes as they come, and jobs to whoever is free."""
        while stop is None or not stop.is_set():
            self.hand_out()
            yield from self.taken_out()
            if all(one.job is None for one in self.workers) and not self.waits():
                return
            under_way = {one.connection: one for one in self.workers}
            found = wait(list(under_way), _DEATHS_LOOKED_FOR if stop is None else _STOP_LOOKED_FOR)
            for ready in found:
                self.read(under_way[ready])  # type: ignore[index]  # it gives what it was given
            if not found:
                self.replace_silent()
        yield from self.taken_out()  # what came before the stop

    def taken_out(self) -> Iterator[Done[Any]]:
        """Give what is done; whoever takes it may take long over it, and jobs run meanwhile."""
        done, self.done = self.done, []
        yield from done

    def waits(self) -> bool:
        """Whether there are jobs that no worker has."""
        if self.again:
            return True
        following = next(self.fresh, None)
        if following is not None:
            self.again.append(following)
        return following is not None

    def hand_out(self) -> None:
        """Give a job to each worker that has none, be it still on its way up.

        None is sent ahead: a job would wait behind a long one, and saves a fiftieth of a millisecond.
        """
        for one in self.workers:
            while one.job is None and self.waits():
                number = self.again.popleft()
                try:
                    payload = dumps(self.jobs[number])
                except Exception as error:
                    self.done.append(Done(number, None, Failure.not_a_job(error), 0.0))
                    continue
                try:
                    one.send(number, payload)
                except OSError:  # which is read as the end of the worker, not of a job it never had
                    self.again.appendleft(number)
                    break

    def read(self, worker: Process) -> None:
        """Take one message of a worker, or the news that it is dead."""
        try:
            number, payload, failure, seconds = pickle.loads(worker.connection.recv_bytes())
        except (EOFError, OSError):
            self.replace(worker)
            return
        if number == READY:
            if failure is not None:
                raise ConfigError(
                    "the function of jobs, and what they share, must be readable in another process; there "
                    f"it was {failure.kind}: {failure.message}. Define it in a module that can be imported."
                )
            worker.is_ready, self.early_deaths = True, 0
            return
        worker.job = None
        self.done.append(loaded(number, payload, failure, seconds))

    def replace_silent(self) -> None:
        """Replace workers that died with their socket open, as a process that a job forked holds it, too."""
        for one in list(self.workers):
            if one.process.poll() is not None and not one.connection.poll(0):
                self.replace(one)

    def replace(self, worker: Process) -> None:
        """Start another in the place of a worker that died; the job it ran is tried again."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(_LAST_WORDS)  # its own end says why; ours would not
        worker.end()
        code = worker.process.returncode
        self.workers.remove(worker)
        if not worker.is_ready:
            self.early_deaths += 1
            if self.early_deaths > self.retries:
                raise WorkerError(
                    f"worker processes must be able to start; {self.early_deaths} one after the other ended "
                    f"before they could begin a job, the last {ended(code)}. What they said is on "
                    "standard error; workers=1 runs jobs in this process."
                )
        number = worker.job
        if number is not None and not worker.is_ready:  # it was not begun
            self.again.appendleft(number)
        elif number is not None:
            self.deaths[number] = self.deaths.get(number, 0) + 1
            if self.deaths[number] > self.retries:
                failure = Failure.worker_died(self.deaths.pop(number), ended(code))
                self.done.append(Done(number, None, failure, 0.0))
            else:
                self.again.appendleft(number)
        if self.waits() or not self.workers:
            self.workers.append(Process(self.common.fileno()))


def ended(code: int) -> str:
    """Say how a process ended.

    Examples
    --------
    >>> ended(-9), ended(3)
    ('killed by SIGKILL, by hand or for want of memory', 'ended with exit code 3')
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (", by hand or for want of memory" if -code == signal.SIGKILL else "")


def on_processes(
    function: Callable[[Any, Any], Any],
    jobs: Sequence[Any],
    shared: Any,
    workers: int,
    retries: int,
    stop: Event | None,
) -> Generator[Done[Any]]:
    """Run jobs on processes of this machine."""
    if sys.platform == "win32":
        raise ConfigError(
            "jobs in several processes need Linux or macOS; this is Windows. Use workers=1, or WSL."
        )
    # A file without a name: read by each worker for itself, gone with the last of them.
    with tempfile.TemporaryFile() as common:
        common.write(common_bytes(function, shared))
        common.flush()
        pool = Pool(jobs, workers, retries, common)
        try:
            yield from pool.run(stop)
        finally:
            pool.end()
