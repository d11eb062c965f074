"""However a run ends, no process is left behind; and what workers say, import and need to start."""

import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from tests.jobs import work
from varnn.errors import ConfigError, MissingExtraError, WorkerError
from varnn.jobs import run

ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys
from pathlib import Path
from tests.jobs import work
from varnn.jobs import run

for one in run(work.pid_then_sleep, range(5), shared=Path(sys.argv[1]), workers=2, cluster={cluster!r}):
    print(one.index, flush=True)
"""


class Script:
    """A script that runs jobs which take for ever, once the first is done; in a session of its own."""

    def __init__(self, folder: Path, cluster: str | None) -> None:
        path = folder / "script.py"
        path.write_text(SCRIPT.format(cluster=cluster))
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(path), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        )

    def __enter__(self) -> "Script":
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "0\n"
        assert work.wait_for(lambda: len(work.pids(self.folder)) >= 4)  # two, each with a child
        assert all(map(work.is_alive, work.pids(self.folder)))
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_the_one_that_started_them(how: signal.Signals, tmp_path: Path) -> None:
    with Script(tmp_path, None) as script:
        os.killpg(script.process.pid, how)  # as a terminal sends Ctrl-C: to all of a group
        assert work.all_gone(tmp_path)
        _, error = script.process.communicate(timeout=30)
    assert script.process.returncode != 0
    assert error.count("KeyboardInterrupt") == (1 if how == signal.SIGINT else 0)  # no worker says it, too


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_ray_that_was_started_ends_with_the_run(how: signal.Signals, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with Script(tmp_path, "local") as script:
        family = work.descendants(script.process.pid)
        assert len(family) > 4  # Ray's own among them
        script.process.send_signal(how)
        script.process.communicate(timeout=60)
    assert work.wait_for(lambda: not any(map(work.is_alive, family)), within=30)
    workers = [one for one in work.pids(tmp_path) if one in family]
    assert workers and not any(map(work.is_alive, workers))
    for one in set(work.pids(tmp_path)) - set(workers):  # children of jobs, which Ray does not know of
        if work.is_alive(one):
            os.kill(one, signal.SIGKILL)


def test_a_closed_iterator_leaves_no_process(tmp_path: Path) -> None:
    outcomes = run(work.pid_then_sleep, range(5), shared=tmp_path, workers=2)
    assert next(outcomes).index == 0
    assert work.wait_for(lambda: len(work.pids(tmp_path)) >= 4)
    outcomes.close()
    assert work.all_gone(tmp_path)
    assert list(outcomes) == []


def test_a_forgotten_iterator_leaves_no_process(tmp_path: Path) -> None:
    for one in run(work.pid_then_sleep, range(5), shared=tmp_path, workers=2):
        assert one.index == 0
        break
    del one
    assert work.all_gone(tmp_path)


def test_an_error_of_who_waits_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        for _ in run(work.pid_then_sleep, range(5), shared=tmp_path, workers=2):
            raise ZeroDivisionError
    assert work.all_gone(tmp_path)


def test_a_worker_that_is_killed_while_it_waits_costs_no_try(tmp_path: Path) -> None:
    outcomes = run(work.pid_of, [0.0, 1.0], shared=tmp_path, workers=2, retries=0)
    first = next(outcomes)  # its worker has nothing more to do
    assert first.result is not None
    os.kill(first.result, signal.SIGKILL)
    assert [one.failure for one in outcomes] == [None]


def test_a_worker_that_dies_before_what_it_forked_is_missed(tmp_path: Path) -> None:
    # The child holds the worker's socket: nothing is heard of the end of it.
    found = {
        one.index: one for one in run(work.fork_and_die, range(4), shared=tmp_path, workers=2, retries=0)
    }
    assert sorted(found) == [0, 1, 2, 3]
    assert found[0].failure is not None and found[0].failure.kind == "WorkerDied"
    assert work.pids(tmp_path) and work.all_gone(tmp_path)


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "from varnn.jobs import run\n"
        "print('begun')\n"
        "class Square:\n"
        "    def __init__(self, x): self.x = x * x\n"
        "def square(job, shared): return Square(job)\n"
        "found = sorted(run(square, [1, 2, 3], workers=2), key=lambda one: one.index)\n"
        "print([one.result.x for one in found], all(type(one.result) is Square for one in found))\n"
    )
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "begun\n[1, 4, 9] True\n"
    assert done.stderr == ""


@pytest.mark.parametrize("cluster", [None, "auto"])
def test_what_jobs_print_is_no_result(
    cluster: str | None, capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    if cluster is not None:
        request.getfixturevalue("local_ray")
    found = sorted(one.result or "" for one in run(work.said, ["a", "b", "c"], workers=2, cluster=cluster))
    assert found == ["a", "b", "c"]
    out, error = capfd.readouterr()
    assert out == ""
    if cluster is None:  # a cluster keeps it in its own logs
        assert all(f"printed by {one}" in error and f"warned by {one}" in error for one in "abc"), error


def test_workers_import_what_they_need() -> None:
    (one,) = run(work.modules, [0], cluster=None, workers=1)  # here: this very process
    assert one.result is not None and "pytest" in one.result
    found = [one.result or [] for one in run(work.modules, [0, 1], workers=2)]
    heavy = {"numpy", "torch", "sklearn", "ray", "cloudpickle", "typer", "pytest", "asyncio"}
    assert not any(heavy & set(one) for one in found)


def test_workers_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerError, match=r"must be able to start; 3 one after the other.*exit code 1"):
        list(run(work.add, range(10), workers=2))


def test_a_function_that_is_nowhere_to_be_found_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("made_up_here")
    exec("def function(job, shared): return job", module.__dict__)  # as a notebook's extension may
    monkeypatch.setitem(sys.modules, "made_up_here", module)
    with pytest.raises(ConfigError, match=r"must be readable in another process; there.*made_up_here"):
        list(run(module.function, range(10), workers=2))


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"running on a cluster needs .*\[ray\]"):
        list(run(work.add, [1, 2], cluster="auto"))


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "ray://head", "head:port"])
def test_what_is_no_address_is_refused(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match='cluster must be "auto", or an address such as'):
        list(run(work.add, [1, 2], cluster=address))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_does_not_answer_is_missed_at_once(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(WorkerError, match=f"a Ray cluster must answer at '{address}'; it was: .*refused"):
        list(run(work.add, [1, 2], cluster=address))
    code = "from varnn.jobs import run; print(list(run(pow, [1, 2], shared=2, cluster='auto')))"
    surroundings = os.environ | {"RAY_ADDRESS": address}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=surroundings)
    assert f"WorkerError: a Ray cluster must answer at '{address}'" in done.stderr


def test_jobs_can_be_run_from_any_thread() -> None:
    found: list[int | None] = []

    def elsewhere() -> None:
        found.extend(one.result for one in run(work.add, range(4), workers=2))

    threads = [threading.Thread(target=elsewhere) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(one or 0 for one in found) == [0, 0, 1, 1, 2, 2, 3, 3]
