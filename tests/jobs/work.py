"""Functions that workers run in tests; a module of its own, so that workers can import it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class UnpicklableError(Exception):
    """An error that no other process can be sent: its constructor needs two values, and it holds a lock."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")
        self.lock = threading.Lock()


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Counted:
    """Counts in a folder how often it is read in another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        mark(self.folder, f"read-{os.getpid()}")


def mark(folder: Path, name: str) -> int:
    """Say that something happened; gives how often it did."""
    times = len(list(folder.glob(f"{name}.*")))
    (folder / f"{name}.{times}").touch(exist_ok=False)
    return times + 1


def times(folder: Path, name: str) -> int:
    return len(list(folder.glob(f"{name}.*")))


def add(job: int, shared: int | None) -> int:
    return job + (shared or 0)


def nap(job: float, _: None) -> int:
    time.sleep(job)
    return os.getpid()


def odd_fails(job: int, _: None) -> int:
    if job % 2:
        raise ValueError(f"{job} is odd")
    return job


def said(job: str, _: None) -> str:
    print(f"printed by {job}")  # noqa: T201  # on purpose
    print(f"warned by {job}", file=sys.stderr)  # noqa: T201  # on purpose
    return job


def troubled(job: object, _: object) -> Any:
    """Fail in a way of its own, or do well."""
    if job == "unpicklable error":
        raise UnpicklableError("a", "b")
    if job == "speechless":
        raise SpeechlessError
    if job == "unpicklable result":
        return threading.Lock()
    if job == "exit":
        raise SystemExit(3)
    if job == "interrupt":
        raise KeyboardInterrupt
    return job


def killed_once(job: int, folder: Path) -> int:
    """Die the first time that some jobs are run, as by ``kill -9`` in the middle of it."""
    began = mark(folder, f"job-{job}")
    if job % 3 == 0 and began == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return job * job


def killed_always(job: int, folder: Path) -> int:
    mark(folder, f"job-{job}")
    if job == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def pid_then_sleep(job: int, folder: Path) -> int:
    """Say which process runs it, start one more, and take long over all but the first job."""
    (folder / f"pid-{os.getpid()}").touch()
    if job == 0:
        return 0
    child = subprocess.Popen(["sleep", "1000"])
    (folder / f"pid-{child.pid}").touch()
    time.sleep(1000)
    return job


def fork_and_die(job: int, folder: Path) -> int:
    """Fork a process that has all that is open, too, and die before it."""
    if job == 0:
        child = os.fork()
        if child == 0:
            time.sleep(1000)
            os._exit(0)
        (folder / f"pid-{child}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def surroundings(_: int, __: None) -> dict[str, Any]:
    """What a worker computes with."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    from varnn.jobs.cores import usable

    return {
        "cores": usable(),
        "threads": [one["num_threads"] for one in threadpool_info()],
        "numba": os.environ["NUMBA_NUM_THREADS"],
        "modules": sorted(sys.modules),
    }


def nested(job: int, _: None) -> list[int | None]:
    """Run jobs within a job."""
    from varnn.jobs import run

    return [one.result for one in run(add, [job, job], shared=1)]


def is_alive(pid: int) -> bool:
    """Tell whether a process is there, and not only its remains."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def pids(folder: Path) -> list[int]:
    return [int(one.name.removeprefix("pid-")) for one in folder.glob("pid-*")]


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that they started, by the system's list."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
    found = [pid]
    for one in found:
        found += [child for child, parent in parents if parent == one]
    return found[1:]


def wait_for(is_so: Callable[[], bool], within: float = 60.0) -> bool:
    """Wait until something is so; tell whether it came to be."""
    until = time.monotonic() + within
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def all_gone(folder: Path) -> bool:
    """Wait until no process that said so in a folder is there any more."""
    return wait_for(lambda: not any(map(is_alive, pids(folder))), within=20.0)


def pid_of(job: float, _: Path) -> int:
    time.sleep(job)
    return os.getpid()


def modules(_: int, __: None) -> list[str]:
    return [one for one in sys.modules if "." not in one]
