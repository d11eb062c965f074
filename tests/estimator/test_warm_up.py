"""What is compiled ahead: in a process beside a fit, once, and never at the cost of the fit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

from varnn.estimator import warm_up
from varnn.network import compiled_code

PROBE = """
import numba.core.event as event
from varnn.estimator import warm_up
with event.install_recorder("numba:compile") as compiled:
    warm_up.compile_now()
print(len(compiled.buffer))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    here = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    counts = [
        int(subprocess.run([sys.executable, "-c", PROBE], env=here, check=True, capture_output=True).stdout)
        for _ in range(2)
    ]
    assert counts[0] > 20 and counts[1] == 0
    assert [one.name.startswith("varnn-") for one in tmp_path.iterdir()] == [True]


def test_it_is_begun_once_and_only_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setenv(warm_up.SWITCH, "1")
    monkeypatch.setattr(warm_up, "_begun", [])
    monkeypatch.setattr("varnn.network.jit.is_kept", lambda _: False)
    monkeypatch.setattr(warm_up, "_is_first", lambda folder: folder.name != "")
    monkeypatch.setattr(compiled_code, "compile_beside", asked.append)
    warm_up.begin()
    warm_up.begin()
    assert asked == ["varnn.estimator.warm_up"]
    monkeypatch.setattr(warm_up, "_begun", [])
    monkeypatch.setenv(warm_up.SWITCH, "0")
    warm_up.begin()
    assert len(asked) == 1


def test_a_folder_that_cannot_be_used_keeps_nothing(tmp_path: Path) -> None:
    """numba would take another one, of a name that says nothing of the code."""
    (tmp_path / "file").write_text("")
    here = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    told = "from varnn.network.jit import kernel, _IS_KEPT; k = kernel(lambda x: x); print(_IS_KEPT, k(2))"
    found = subprocess.run([sys.executable, "-c", told], env=here, check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["False", "2"]


@pytest.mark.parametrize("value", ["0", "false", " off "])
def test_compiled_code_can_be_switched_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled_code.SWITCH, value)
    assert not compiled_code.is_there()


def test_of_several_processes_one_begins(tmp_path: Path) -> None:
    assert warm_up._is_first(tmp_path / "new") and not warm_up._is_first(tmp_path / "new")
    os.utime(tmp_path / "new" / "begun", (0, 0))  # long ago: that one will not be done any more
    assert warm_up._is_first(tmp_path / "new")
    (tmp_path / "file").write_text("")
    assert not warm_up._is_first(tmp_path / "file" / "folder")


@pytest.mark.parametrize("executable", ["", None, "/nowhere/python"])
def test_where_no_process_can_be_started_nothing_happens(
    executable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    compiled_code.compile_beside("varnn.estimator.warm_up")
    assert not compiled_code._beside
    assert compiled_code.is_there()


def test_an_application_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    compiled_code.compile_beside("varnn.estimator.warm_up")
    assert not compiled_code._beside


def test_who_needs_it_waits_and_modules_of_the_folder_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    compiled_code.compile_beside("varnn")  # which has no __main__: it ends at once
    assert compiled_code._beside
    compiled_code.wait_for_it()
    assert not compiled_code._beside
    assert not (tmp_path / "run").exists()
