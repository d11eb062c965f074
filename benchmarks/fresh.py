"""Run a measurement in a process of its own.

Thread pools take their size from the environment when a library is loaded, and the peak of a process'
memory is that of everything it ever did: a fresh process is the one way to fix the first and to trust
the second.
"""

import ctypes
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from varnn.errors import VarnnError

T = TypeVar("T")

_ROOT = Path(__file__).parents[1]  # of the clone, in which the package `benchmarks` lies

THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


def run_module(
    name: str, *arguments: str, environment: Mapping[str, str] | None = None, ahead: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m name`` of the benches in a fresh process, wherever this one works.

    Parameters
    ----------
    name
        Such as ``"benchmarks"``, or one of its modules.
    arguments
        The words after it.
    environment
        Variables of its environment, beside those of this process.
    ahead
        Folder to import from before any other, such as the ``src`` of another checkout.

    Examples
    --------
    >>> run_module("benchmarks", "--help").returncode
    0
    """
    # -P keeps the working directory, and what happens to be called `benchmarks` there, off the path.
    command = [sys.executable, "-P", "-m", name, *arguments]
    first = [] if ahead is None else [str(ahead)]
    path = os.pathsep.join([*first, str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    whole = {**os.environ, **(environment or {}), "PYTHONPATH": path}
    return subprocess.run(command, env=whole, capture_output=True, text=True, errors="replace")


def call(function: str, ahead: Path | None = None, /, *, threads: int, **arguments: Any) -> Any:
    """Call ``"module:function"`` in a fresh process that has so many threads; give its JSON answer.

    The function is told the number of threads, next to its other arguments. ``ahead`` is a folder that is
    imported from before any other.

    Examples
    --------
    >>> call("benchmarks.fresh:settings", threads=2)["OPENBLAS_NUM_THREADS"]
    '2'
    """
    environment = dict.fromkeys(THREAD_SETTINGS, str(threads))
    # Everyone runs on the processor; TensorFlow tells errors only.
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        asked = json.dumps({"threads": threads} | arguments)
        done = run_module(
            "benchmarks.fresh", function, asked, str(answer), environment=environment, ahead=ahead
        )
        if done.returncode != 0:
            last = " ".join(done.stderr.strip().splitlines()[-1:]).rstrip(".")
            raise VarnnError(
                f"the measurement {function} ended with code {done.returncode}: {last}. "
                "Run it alone to see more."
            )
        return json.loads(answer.read_text())


def settings(*, threads: int) -> dict[str, str]:
    """Settings of thread pools as this process sees them."""
    return {name: os.environ.get(name, "not set") for name in THREAD_SETTINGS}


def peak_above(work: Callable[[], T]) -> tuple[T, float | None]:
    """Run something; give its result and the most memory it had beyond what there was, in bytes.

    None where the system does not keep count (it is Linux that does).

    Examples
    --------
    >>> result, peak = peak_above(lambda: (b"x" * 30_000_000)[:1])
    >>> peak is None or 20e6 < peak < 40e6
    True
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)  # memory kept for later use would hide what the work needs
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew from here
    except (OSError, AttributeError, TypeError):
        return work(), None
    before = _status("VmRSS")
    result = work()
    return result, _status("VmHWM") - before


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return float(line.split()[1]) * 1024


def _main(function: str, arguments: str, answer: str) -> None:
    module, name = function.split(":")
    result = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    _main(*sys.argv[1:])
