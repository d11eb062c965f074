"""fit_many after kill -9: of a worker it finishes with the same results, of all of it nothing is lost."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.scale.test_many import SMALL, of_series, panel_of, same_model
from varnn import VARNNRegressor, load
from varnn.scale import SeriesDone, fit_many

NAMES = [f"m{number}" for number in range(8)]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")

_FIT = """
import sys
from pathlib import Path
from tests.scale.test_many import SMALL, panel_of
from tests.scale.test_kills import NAMES
from varnn import VARNNRegressor
from varnn.scale import fit_many

def said(done):
    with Path(sys.argv[2]).open("a") as file:
        file.write(done.name + "\\n")

if __name__ == "__main__":
    fit_many(panel_of(NAMES), VARNNRegressor(**SMALL), path=sys.argv[1], workers=2, on_model=said)
"""


def _children(process: int) -> list[int]:
    """Processes that a process started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True)
    return [int(one) for one in found.stdout.split()]


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    panel, killed = panel_of(NAMES), list[int]()

    def kill_one(done: SeriesDone) -> None:
        workers = [one for one in _children(os.getpid()) if _is_worker(one)]
        if not killed and workers:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    path = tmp_path / "m.varnns"
    models = fit_many(panel, VARNNRegressor(**SMALL), path=path, workers=2, on_model=kill_one)
    assert killed and list(models) == NAMES and models.failures == {}
    for name in NAMES[::3]:
        rows = of_series(panel, name)
        same_model(models[name], VARNNRegressor(**SMALL).fit(rows), rows)


def _is_worker(process: int) -> bool:
    try:
        return b"varnn.jobs" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("place", ["m.varnns", "folder"])
def test_all_of_it_killed_the_same_call_goes_on(place: str, tmp_path: Path) -> None:
    script, path, said = tmp_path / "fit.py", tmp_path / place, tmp_path / "said"
    script.write_text(_FIT)
    said.touch()
    command = [sys.executable, str(script), str(path), str(said)]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})
    try:
        deadline = time.monotonic() + 120
        while len(said.read_text().split()) < 2 and time.monotonic() < deadline:
            assert process.poll() is None or said.read_text(), "it ended by itself"
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    before = said.read_text().split()
    kept = list(load(path))
    assert before and set(before) <= set(kept)  # what was said to be there is there
    panel, heard = panel_of(NAMES), list[str]()
    models = fit_many(
        panel, VARNNRegressor(**SMALL), path=path, workers=1, on_model=lambda done: heard.append(done.name)
    )
    assert sorted(heard) == sorted(set(NAMES) - set(kept))  # and is not fitted again
    assert list(models) == NAMES and models.failures == {}
    for name in NAMES[::3]:
        rows = of_series(panel, name)
        same_model(models[name], VARNNRegressor(**SMALL).fit(rows), rows)
