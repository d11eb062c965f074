"""Jobs on a Ray cluster: one task a job, some of them under way at any time.

Ray tries a task again whose process or machine died; what is kept here is how many are under way, and that
nothing goes on when nobody waits for it any more.
"""

import contextlib
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from threading import Event
from typing import Any

from varnn._version import VERSION
from varnn.errors import ConfigError, VarnnError, WorkerError, require
from varnn.jobs import cores
from varnn.jobs._outcome import Done, Failure
from varnn.jobs._pickling import common_bytes, dumps, loaded
from varnn.jobs._ray_task import run_one

_STOP_LOOKED_FOR = 0.2  # seconds
_CORES_LOOKED_FOR = 5.0  # seconds; a cluster may grow
_OURS = ("auto", "local", "")  # no addresses
_ANSWERED_WITHIN = 10.0  # seconds; Ray itself waits for minutes


def on_ray(
    function: Callable[[Any, Any], Any],
    jobs: Sequence[Any],
    shared: Any,
    workers: int | None,
    cluster: str,
    retries: int,
    stop: Event | None,
) -> Generator[Done[Any]]:
    """Run jobs as tasks of a Ray cluster."""
    ray = require("ray", extra="ray", purpose="running on a cluster")
    common = common_bytes(function, shared)
    with connected(ray, cluster, workers):
        task = ray.remote(num_cpus=1, max_retries=retries)(run_one)
        told = (uuid.uuid4().hex, VERSION, [ray.put(common)])
        del common
        under_way: dict[Any, int] = {}
        done: list[Done[Any]] = []
        fresh = iter(range(len(jobs)))
        room = _Room(ray, workers)

        def is_over() -> bool:
            return stop is not None and stop.is_set()

        try:
            while True:
                while (
                    not is_over()
                    and len(under_way) < room.size()
                    and (number := next(fresh, None)) is not None
                ):
                    try:
                        payload = dumps(jobs[number])
                    except Exception as error:
                        done.append(Done(number, None, Failure.not_a_job(error), 0.0))
                        continue
                    under_way[task.remote(*told, payload)] = number
                yield from done  # whoever takes them may take long over it, and jobs run meanwhile
                done.clear()
                if not under_way or is_over():
                    return
                ready, _ = ray.wait(list(under_way), timeout=None if stop is None else _STOP_LOOKED_FOR)
                if ready:  # and with it all others that are
                    ready, _ = ray.wait(list(under_way), num_returns=len(under_way), timeout=0)
                done += [_done(ray, one, under_way.pop(one), retries) for one in ready]
        finally:
            for one in under_way:
                with contextlib.suppress(Exception):  # it may be done by now, or the cluster gone
                    ray.cancel(one, force=True)


class _Room:
    """How many tasks may be under way: as many as asked for, or two a core of the cluster."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        self.ray, self.workers = ray, workers
        self.cores, self.looked = 0, -_CORES_LOOKED_FOR

    def size(self) -> int:
        if self.workers is not None:
            return self.workers
        if time.monotonic() - self.looked >= _CORES_LOOKED_FOR:
            self.cores = int(self.ray.cluster_resources().get("CPU", 1))
            self.looked = time.monotonic()
        return max(2, 2 * self.cores)  # those that wait tell a cluster that can to grow


def _done(ray: Any, reference: Any, number: int, retries: int) -> Done[Any]:
    """Read what a task came to."""
    lost = (
        ray.exceptions.WorkerCrashedError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.NodeDiedError,
        ray.exceptions.ObjectLostError,
    )
    try:
        found = ray.get(reference)
    except lost as error:
        said = str(error).strip().split("\n")[0].rstrip(".")
        return Done(number, None, Failure.worker_died(retries + 1, f"{type(error).__name__}: {said}"), 0.0)
    except ray.exceptions.RayError as error:  # the task itself catches what a job raises
        said = str(error).strip().split("\n")[-1]
        raise WorkerError(
            f"the cluster must be able to run varnn's tasks; it was {type(error).__name__}: {said}. Is the "
            "same varnn installed on all its machines?"
        ) from error
    if isinstance(found, str):
        raise WorkerError(f"{found}. Install what it needs on all machines of the cluster.")
    return loaded(number, *found)


@contextlib.contextmanager
def connected(ray: Any, cluster: str, workers: int | None) -> Iterator[None]:
    """Be connected to a cluster; one that is started here is ended again.

    Where this process is connected already, that stays as it is.
    """
    if cluster not in _OURS:
        _need_answer(cluster)
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        _connect(ray, cluster, workers)
        yield
    finally:
        ray.shutdown()
        if is_main and before is not None:
            signal.signal(signal.SIGTERM, before)  # Ray has one of its own


def _connect(ray: Any, cluster: str, workers: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    ours = {"num_cpus": workers or cores.usable(), "include_dashboard": False}
    named = os.environ.get("RAY_ADDRESS", "auto") if cluster == "auto" else cluster
    try:
        if named == "local":
            ray.init(address="local", **ours, **quiet)
        elif named not in _OURS:
            _need_answer(named)
            ray.init(address=named, **quiet)
        else:
            try:
                ray.init(**ours, **quiet)
            except ValueError:  # how many cores is not for us to say: there is one that runs here
                ray.init(**quiet)
    except VarnnError:
        raise
    except Exception as error:
        said = error  # "failed to connect", and beneath it why
        while isinstance(said.__cause__, Exception):
            said = said.__cause__
        raise WorkerError(
            f"cluster={cluster!r} must be a Ray cluster that can be used; Ray said: {said}"
        ) from error


def _need_answer(address: str) -> None:
    """Refuse an address where nobody is, at once."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(
            'cluster must be "auto", or an address such as "ray://head:10001" or "head:6379"; '
            f"got {address!r}."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERED_WITHIN).close()
    except (OSError, OverflowError) as error:
        raise WorkerError(
            f"a Ray cluster must answer at {address!r}; it was: {error}. Is it running (ray status), and can "
            "this machine reach it?"
        ) from None
