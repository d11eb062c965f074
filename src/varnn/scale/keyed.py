"""A live service that outgrows one process: series hashed over shards, each an actor of a Ray cluster.

::

    send -> messages by the hash of their series -> [actor] a live service, one transaction -> answers

Each shard is a folder as `varnn.service` keeps it, and answers nothing that is not on disk. An actor that
dies is made again, wherever the cluster has room, from its folder; the request under way is sent again under
its number, and is answered as it was, if it was.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any, Self

from varnn._version import VERSION
from varnn.data.files import write_atomically
from varnn.data.rules import shown
from varnn.errors import ConfigError, DataError, ModelFileError, OutputError, VarnnError, WorkerError, require
from varnn.jobs.cluster import connected
from varnn.persistence import model_file
from varnn.scale._shard import Shard
from varnn.scale.hashing import HASH, place_of
from varnn.service.live_stream import StreamSettings
from varnn.streaming.messages import check_name, name_of

MANIFEST, MODEL, SHARDS = "keyed.json", "model.varnn", "shards"
_MOST_SHARDS = 1000
_TOGETHER = 2000  # messages of one shard in a request, and in a transaction


class KeyedService:
    """Streams of many series, each series at home in one of several shards.

    Parameters
    ----------
    model : VARNNRegressor, str or Path
        A fitted model, or its file; the one that the folder was begun with.
    folder : str or Path
        Where everything is kept; made if it is not there. All machines of the cluster see it under this name,
        and its file system keeps locks between them.
    shards : int or None, default=None
        How many; fixed once the folder is there. None is as many as that has, or one for each core of the
        cluster.
    cluster : str, default="auto"
        The Ray cluster: as that of `varnn.jobs.run`.
    settings : StreamSettings or None, default=None
        How streams are kept: limits are those of one shard.
    cpus : float, default=0
        Cores that an actor reserves; 0 leaves that to the machines.
    patience : float, default=60.0
        Seconds to wait for an actor that died to be there again, and for a folder that another process has.

    Examples
    --------
    >>> import tempfile
    >>> from varnn import VARNNRegressor
    >>> from varnn.scale import KeyedService
    >>> model = VARNNRegressor(epochs=1).fit(X, y)                                       # doctest: +SKIP
    >>> with KeyedService(model, tempfile.mkdtemp(), shards=2) as service:               # doctest: +SKIP
    ...     service.send([{"series": "north", "x": [0.1, 0.2], "y": 0.3}])
    [{'series': 'north', 'seq': 1, 'row': 0, 'prediction': ..., 'innovation': ...}]
    """

    def __init__(
        self,
        model: Any,
        folder: str | Path,
        *,
        shards: int | None = None,
        cluster: str = "auto",
        settings: StreamSettings | None = None,
        cpus: float = 0,
        patience: float = 60.0,
    ) -> None:
        if shards is not None and (type(shards) is not int or not 1 <= shards <= _MOST_SHARDS):
            raise ConfigError(f"shards must be a whole number from 1 to {_MOST_SHARDS}; got {shards!r}.")
        ray = require("ray", extra="ray", purpose="a keyed service")
        blob = _bytes_of(model)
        fingerprint = model_file.unpacked(blob, _called(model)).fitted.fingerprint
        self.folder = Path(folder).resolve()
        self._is_closed = False
        self._stack = ExitStack()
        try:
            self._stack.enter_context(connected(ray, cluster, None))
            there = shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
            facts = _begun(self.folder, blob, fingerprint, shards, there)
            self.n_shards: int = facts["shards"]
            sender = token_hex(8)
            self._handles = [
                _Handle(ray, self._place(number), self.folder / MODEL, settings, sender, cpus, patience)
                for number in range(self.n_shards)
            ]
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_shards))
            self._stack.callback(self._end)
            self._each("open")
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, messages: Sequence[Any]) -> list[dict[str, Any]]:
        """Answer messages, each with an answer at its place; all are on disk by then.

        The messages of a series are taken in their order. Those of one call that go to several shards are no
        one transaction. Any number of threads may send; messages of one series that two of them send at a
        time come in either order.

        Parameters
        ----------
        messages : sequence
            As those of ``varnn serve``: ``{"series": "north", "x": [0.1, 0.2], "y": 0.3}``. One that cannot
            be taken has an ``error`` for an answer, and changes nothing.
        """
        given: object = messages
        if not isinstance(given, Sequence) or isinstance(given, str | bytes):
            raise DataError(
                f"messages must be a list, such as [{{'series': 'north', 'x': [0.1, 0.2]}}]; got "
                f"{shown(messages)}. A single one goes into a list, too."
            )
        self._check_open()
        places: dict[int, list[int]] = {}
        for place, message in enumerate(messages):
            places.setdefault(self.shard_of(message), []).append(place)
        found: dict[int, dict[str, Any]] = {}

        def one(shard: int) -> None:
            asked = [messages[place] for place in places[shard]]
            found.update(zip(places[shard], self._handles[shard].send(asked), strict=True))

        for done in [self._pool.submit(one, shard) for shard in places]:
            done.result()
        return [found[place] for place in range(len(messages))]

    def shard_of(self, message: Any) -> int:
        """Number of the shard that a message belongs to, by the name of its series."""
        if not isinstance(message, Mapping):
            return 0  # which says what is wrong with it
        try:
            check_name(message)
        except DataError:
            return 0
        return place_of(name_of(message), self.n_shards)

    @property
    def n_series(self) -> int:
        """Series that are known, in all shards."""
        self._check_open()
        return sum(self._each("n_series"))

    def processes(self) -> list[int]:
        """Process of each shard, on the machine that it is on at the moment."""
        return [one.process for one in self._handles]

    def close(self) -> None:
        """End all actors; every state is kept."""
        self._is_closed = True
        self._stack.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConfigError(
                f"this service is closed. KeyedService(model, {str(self.folder)!r}) goes on with its folder."
            )

    def _place(self, number: int) -> Path:
        return self.folder / SHARDS / f"{number:04}"

    def _each(self, what: str) -> list[Any]:
        return [one.result() for one in [self._pool.submit(getattr(one, what)) for one in self._handles]]

    def _end(self) -> None:
        self._each("close")


class _Handle:
    """A shard as its sender sees it: an actor that is always there, with one request under way at a time."""

    def __init__(
        self,
        ray: Any,
        folder: Path,
        model: Path,
        settings: StreamSettings | None,
        sender: str,
        cpus: float,
        patience: float,
    ) -> None:
        self._ray, self._given = ray, (folder, model, settings or StreamSettings())
        self._sender, self._number, self._patience = sender, 0, patience
        # One thread of an actor: requests are answered in their order.
        options = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._kind = ray.remote(**options)(Shard)
        self._actor: Any = None
        self._lock = Lock()
        self.process = 0

    def open(self) -> None:
        """Have an actor, which has the folder."""
        with self._lock:
            self._kept_alive(lambda: None)

    def send(self, messages: Sequence[Any]) -> list[dict[str, Any]]:
        """Answer messages in their order."""
        answers: list[dict[str, Any]] = []
        with self._lock:
            for begin in range(0, len(messages), _TOGETHER):
                some = list(messages[begin : begin + _TOGETHER])
                self._number += 1
                answers += self._kept_alive(
                    lambda some=some: self._actor.send.remote(self._sender, self._number, some)
                )
        return answers

    def n_series(self) -> int:
        """Series that are known there."""
        with self._lock:
            return int(self._kept_alive(lambda: self._actor.n_series.remote()))

    def close(self) -> None:
        """End the actor, with all states kept where it is alive; else the next one makes them again."""
        with self._lock, suppress(self._ray.exceptions.RayError):
            if self._actor is not None:
                self._ray.get(self._actor.close.remote(), timeout=self._patience)
        self._kill()

    def _kept_alive(self, ask: Any) -> Any:
        """Ask the actor, one made anew where it is dead, until it answers or patience is at its end."""
        until = None
        while True:
            try:
                if self._actor is None:
                    self._make()
                asked = ask()
                return None if asked is None else self._ray.get(asked)
            except self._ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, VarnnError):  # which it has put into words itself
                    raise error.cause from None
                raise
            except self._ray.exceptions.RayError as error:  # it died, or its machine did
                self._kill()
                until = time.monotonic() + self._patience if until is None else until
                if time.monotonic() > until:
                    raise WorkerError(
                        f"shard {str(self._given[0])!r} must have a process; one after the other died for "
                        f"{self._patience:g} s, the last with {type(error).__name__}: "
                        f"{str(error).strip().splitlines()[0]}. What was answered is on disk: mend the "
                        "cluster, open the service again, and send what was not answered once more."
                    ) from error

    def _make(self) -> None:
        self._actor = self._kind.remote(*self._given)
        found = self._ray.get(self._actor.open.remote(VERSION, self._patience))
        if isinstance(found, str):
            self._kill()
            raise OutputError(found)
        self.process = found

    def _kill(self) -> None:
        """Let go of an actor; one that only seems dead must not go on."""
        if self._actor is not None:
            with suppress(Exception):
                self._ray.kill(self._actor, no_restart=True)
        self._actor = None


def _begun(folder: Path, blob: bytes, fingerprint: str, shards: int | None, there: int) -> dict[str, Any]:
    """Begin a folder, or go on with the one that is there: what its manifest says."""
    try:
        (folder / SHARDS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{str(folder)!r} cannot be made: {error.strerror}. Name another.") from None
    path = folder / MANIFEST
    if not path.exists():
        write_atomically(folder / MODEL, blob)
        facts = {"format": 1, "hash": HASH, "shards": there, "model": fingerprint}
        draft = folder / f".{MANIFEST}.{token_hex(4)}.part"
        write_atomically(draft, json.dumps(facts, indent=1).encode())
        with suppress(FileExistsError):  # of two that begin at a time, one does
            os.link(draft, path)
        draft.unlink()
    facts = _read(path)
    if shards is not None and facts["shards"] != shards:
        raise ConfigError(
            f"{str(folder)!r} has {facts['shards']} shards, and series are at home in theirs; asked for were "
            f"{shards}. Leave shards out, or begin another folder and send it the rows again."
        )
    if facts["model"] != fingerprint:
        raise ConfigError(
            f"{str(folder)!r} goes on with another model than this one. Give {str(folder / MODEL)!r}, or "
            "begin another folder."
        )
    return facts


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())
        known = facts["format"] == 1 and facts["hash"] == HASH and 1 <= facts["shards"] <= _MOST_SHARDS
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelFileError(f"{str(path)!r} is damaged. Put it back from a copy.") from None
    if not known:
        raise ModelFileError(
            f"{str(path)!r} is of a form that is not known here. Use the version of varnn that wrote it."
        )
    return dict(facts)


def _called(model: Any) -> str:
    return repr(str(model)) if isinstance(model, str | Path) else "the model"


def _bytes_of(model: Any) -> bytes:
    if isinstance(model, str | Path):
        try:
            return Path(model).read_bytes()
        except OSError as error:
            raise DataError(f"{str(model)!r} cannot be read: {error.strerror}.") from None
    from varnn.estimator.loading import to_bytes

    if not hasattr(model, "fitted_"):
        raise ConfigError(f"model must be a fitted VARNNRegressor or its file; got {type(model).__name__}.")
    return to_bytes(model, "the model")
