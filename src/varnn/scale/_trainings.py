"""Trainings of many processes on the one GPU of this machine, which the process that started them owns.

::

    worker:  members -> jobs (`TrainingJob.of`, NumPy only) --socket-->  parent: `run_jobs` -> results
             weights and history (`job.trained`)            <--socket--

A worker prepares rows and chooses what is to be chosen; its threads have several fits under way, each with a
connection of its own. The parent has a thread for each connection, and the GPU takes the blocks of all calls
side by side. The socket is a private one of this machine, and who does not know a random key is refused.
"""

import logging
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Client, Connection, Listener
from tempfile import mkdtemp
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from varnn.errors import TrainingError

if TYPE_CHECKING:  # importing it would import torch
    from varnn.network.training import Epoch, Member, TrainConfig, Trained, Trainer

logger = logging.getLogger(__name__)

_WAITING = 256  # connections that may wait to be taken
_DONE, _FAILED, _REFUSED = "done", "failed", "refused"


class Job(Protocol):
    """A training as plain data, as `varnn.network.engines.cuda` has it."""

    @classmethod
    def of(cls, member: "Member", config: "TrainConfig") -> "Self":
        """Make one of a member; Refused where it is known already that the parent does not train it."""
        ...

    def trained(self, result: Any) -> "Trained":
        """What a result means; TrainingError where the training failed."""
        ...


Run = Callable[[list[Any], Event], list[Any]]  # jobs -> results; the event ends it


class Refused(Exception):  # noqa: N818  # no error: the worker trains these itself
    """Jobs that the parent does not train, such as of cells that its kernel does not know."""


class Door(NamedTuple):
    """What a worker needs to have members trained by the parent."""

    address: Any
    key: bytes
    kind: type[Any]  # of jobs, see Job

    def trainer(self) -> "Trainer":
        """A trainer as of `train_members`, for one fit at a time."""
        return _Remote(self)


class Trainings:
    """Trains what workers send, until it is closed.

    Parameters
    ----------
    run : callable
        Takes jobs and an event that ends it, gives their results; called from several threads at a time.
    kind : type
        Of the jobs.
    """

    def __init__(self, run: Run, kind: type[Any]) -> None:
        self._run, self._stop = run, Event()
        key = os.urandom(32)
        self._folder: str | None = None
        try:
            self._listener = Listener(backlog=_WAITING, authkey=key)
        except OSError:  # the folder for temporary files has a longer name than a socket may have
            self._folder = mkdtemp(prefix="varnn-", dir="/tmp")  # for nobody else to read
            self._listener = Listener(f"{self._folder}/socket", backlog=_WAITING, authkey=key)
        self.door = Door(self._listener.address, key, kind)
        self._lock, self._connections = threading.Lock(), set[Connection]()
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def __enter__(self) -> "Trainings":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what is under way, and take no more."""
        self._stop.set()
        self._wake()
        self._listener.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        with self._lock:
            for one in self._connections:
                one.close()
        for thread in self._threads:
            thread.join(timeout=10)

    def _wake(self) -> None:
        """Let the thread that waits for connections see that there will be none."""
        with suppress(OSError, EOFError):
            Client(self.door.address).close()  # without the key: nobody is waited for

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection = self._listener.accept()
            except Exception as error:  # one that does not know the key, or went away at once
                if not self._stop.is_set():
                    logger.debug("a connection was not taken: %s", error)
                continue
            with self._lock:
                self._connections.add(connection)
            self._begin(self._serve, connection)

    def _serve(self, connection: Connection) -> None:
        """Answer one thread of one worker, until it goes; that it died is its own affair."""
        try:
            with suppress(OSError, EOFError):
                while not self._stop.is_set():
                    connection.send(self._answer(connection.recv()))
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _answer(self, jobs: list[Any]) -> tuple[str, Any]:
        try:
            return _DONE, self._run(jobs, self._stop)
        except Refused as refused:
            return _REFUSED, str(refused)
        except Exception as error:
            return _FAILED, f"{error}" if isinstance(
                error, TrainingError
            ) else f"{type(error).__name__}: {error}"


class _Remote:
    """Trains members by the parent."""

    def __init__(self, door: Door) -> None:
        self.door = door

    def __call__(
        self,
        members: "Sequence[Member]",
        config: "TrainConfig",
        on_epoch: "Callable[[int, Epoch], None] | None" = None,
        stop: Event | None = None,
    ) -> "list[Trained]":
        try:
            jobs = [self.door.kind.of(member, config) for member in members]
            kind, answer = _asked(self.door, jobs)
        except Refused:
            kind = _REFUSED
        if kind == _REFUSED:
            return _trained_here(members, config, on_epoch, stop)
        if kind == _FAILED:
            raise TrainingError(str(answer))
        return [job.trained(result) for job, result in zip(jobs, answer, strict=True)]


def _trained_here(
    members: "Sequence[Member]",
    config: "TrainConfig",
    on_epoch: "Callable[[int, Epoch], None] | None",
    stop: Event | None,
) -> "list[Trained]":
    """Train on the CPU, unless the GPU was asked for by name: each process that uses it takes room there."""
    from varnn.network.training import train_members

    device = "cpu" if config.device == "auto" else config.device
    return train_members(members, replace(config, device=device), on_epoch, stop)


_mine = threading.local()


def _asked(door: Door, jobs: list[Any]) -> tuple[str, Any]:
    """Send jobs by this thread's own connection, and wait for the answer."""
    connection = getattr(_mine, "connection", None)
    try:
        if connection is None or getattr(_mine, "door", None) != door:
            connection = Client(door.address, authkey=door.key)
            _mine.connection, _mine.door = connection, door
        connection.send(jobs)
        kind, answer = connection.recv()
    except (OSError, EOFError):
        _mine.connection = None
        raise TrainingError(
            "the process that trains on the GPU is gone: it was ended while it trained. Run it again; what "
            "is finished is kept."
        ) from None
    return str(kind), answer
