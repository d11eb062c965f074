"""Compiled code: where it is kept, what happens if it cannot be, and that nothing is compiled unasked."""

import errno
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn.step.compiling import compiled
from varnn.step.kernel import SWITCH, compiled_form_of, kernel, numba_available, use_compiled

needs_numba = pytest.mark.skipif(not numba_available(), reason="needs numba")

FIT_AND_STREAM = """
import hashlib
import numpy as np
from varnn import Details, VARNNRegressor
from varnn.step.kernel import use_compiled
draw = np.random.default_rng(0)
X = draw.normal(size=(600, 2))
y = np.cumsum(0.1 * draw.normal(size=600)) + X[:, 0]
model = VARNNRegressor(
    "RM", hidden_size=4, epochs=1, ensemble=2, window=4, device="cpu",
    details=Details(context="series", memory_size=3),
).fit(X[:400], y[:400])
batch = model.predict(X, y, interval=0.9)
live, fleet, found = model.stream(), model.stream(n_series=2), []
for x, label in zip(X[:30], y[:30]):
    found.append(live.predict(x, interval=0.9))
    both = fleet.predict(np.stack([x, x]))
    live.observe(label)
    fleet.observe([label, label])
found = np.array(found)
assert (found == np.transpose(batch)[:30]).all()
assert np.allclose(both, found[-1, 0], rtol=1e-6)
print(use_compiled())
print(hashlib.sha256(batch.prediction.tobytes() + found.tobytes() + live.snapshot()).hexdigest())
"""
WITHOUT_NUMBA = "import sys\nsys.modules['numba'] = None\n"


def run(*arguments: str, **environment: str) -> list[str]:
    """Run Python with other variables of the environment; warnings are errors, as here."""
    variables = {name: value for name, value in os.environ.items() if name != SWITCH}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *arguments],
        capture_output=True,
        text=True,
        env={**variables, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_importing_does_not_import_numba() -> None:
    code = """if True:
        import sys
        import varnn
        from varnn import Panel, Stream, VARNNRegressor, load
        import varnn.model.fitted, varnn.model.prediction, varnn.streaming.late, varnn.step.series
        print("numba" in sys.modules, "varnn.step.compiling" in sys.modules)
    """
    assert run("-c", code) == ["False False"]


@pytest.mark.parametrize("value", ["0", "false", " off ", "No"])
def test_compiled_code_can_be_switched_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, value)
    assert not use_compiled()


@needs_numba
def test_the_switch_is_looked_at_with_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert use_compiled()
    monkeypatch.setenv(SWITCH, "0")
    assert not use_compiled()
    monkeypatch.setenv(SWITCH, "1")
    assert use_compiled()


def test_without_numba_plain_code_runs() -> None:
    ours = run("-c", WITHOUT_NUMBA + FIT_AND_STREAM)
    assert ours[0] == "False"
    assert ours == run("-c", FIT_AND_STREAM, **{SWITCH: "0"})


def test_numba_that_is_told_not_to_compile_is_not_used() -> None:
    code = "from varnn.step.kernel import use_compiled; print(use_compiled())"
    assert run("-c", code, NUMBA_DISABLE_JIT="1") == ["False"]


def test_switched_off_numba_is_not_loaded_to_predict() -> None:
    code = """if True:
        import sys
        import numpy as np
        from benchmarks.speed.model import untrained
        from varnn import Panel, Stream
        from varnn.model.prediction import predict
        model = untrained("RM", n_inputs=1, hidden_size=2, window=5)
        predict(model, Panel.from_arrays(np.zeros((50, 1)), np.zeros(50)))
        Stream(model).predict([0.0])
        print("numba" in sys.modules)
    """
    assert run("-c", code, **{SWITCH: "0"}) == ["False"]


@needs_numba
def test_two_processes_give_the_same_bits() -> None:
    one, other = run("-c", FIT_AND_STREAM), run("-c", FIT_AND_STREAM)
    assert one[0] == "True"
    assert one == other


@needs_numba
def test_fitting_and_predicting_start_no_process() -> None:
    """Nothing is compiled beside a fit."""
    watch = """if True:
        import sys
        import torch, numba, scipy.linalg, varnn.fitting, varnn.step.compiling
        started = []
        kinds = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")
        sys.addaudithook(lambda event, _: started.append(event) if event in kinds else None)
    """
    assert run("-c", f"{watch}{FIT_AND_STREAM}\nprint(started)")[-1] == "[]"


PROBE = """
import runpy
import numba.core.event as event
with event.install_recorder("numba:compile") as compiled:
    try:
        runpy.run_module("varnn.step", run_name="__main__")
    except SystemExit as ended:
        assert ended.code == 0
from varnn.step.series import _compiled_run
print(len(compiled.buffer), len(_compiled_run().signatures))
"""


@needs_numba
def test_the_module_compiles_the_step_and_a_second_process_loads_it(tmp_path: Path) -> None:
    found = [run("-c", PROBE, NUMBA_CACHE_DIR=str(tmp_path))[-1].split() for _ in range(2)]
    assert int(found[0][0]) > 0 and found[1] == ["0", "1"]
    assert list(tmp_path.rglob("*.nbi")) and list(tmp_path.rglob("*.nbc"))


def test_the_module_does_nothing_without_compiled_code(tmp_path: Path) -> None:
    run("-m", "varnn.step", NUMBA_CACHE_DIR=str(tmp_path), **{SWITCH: "0"})
    assert not list(tmp_path.iterdir())


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give the module that compiles, with nothing known of its folder."""
    pytest.importorskip("numba")
    from varnn.step import compiling as module

    module.cache_folder.cache_clear()
    yield module
    module.cache_folder.cache_clear()


def parents(compiling: Any, monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let compiled code be kept below these folders only."""
    monkeypatch.setattr(compiling, "_cache_parents", lambda: list(folders))


def double(value: float) -> float:
    """Be compiled."""
    return 2 * value


def test_code_is_kept_in_the_first_folder_that_can_be_written(
    compiling: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    parents(compiling, monkeypatch, tmp_path / "file", tmp_path / "second", tmp_path / "third")
    folder = compiling.cache_folder()
    assert folder.parent == tmp_path / "second"
    assert not (tmp_path / "third").exists()
    assert compiling.jitted(double, exact=True, cached=True)(2.0) == 4.0
    assert list(folder.rglob("*.nbi"))


@pytest.mark.parametrize("trouble", ["read-only", "full"])
def test_a_folder_that_cannot_be_written_means_compiling_in_memory(
    trouble: str, compiling: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    parents(compiling, monkeypatch, folder)
    if trouble == "read-only":
        refused = OSError(errno.EROFS, "Read-only file system")
        monkeypatch.setattr(Path, "mkdir", lambda *_, **__: raise_(refused))
    else:
        full = OSError(errno.ENOSPC, "No space left on device")
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda *_, **__: raise_(full))
    assert compiling.cache_folder() is None
    assert compiling.jitted(double, exact=True, cached=True)(2.0) == 4.0
    assert not list(tmp_path.rglob("*.nb?"))


def raise_(error: Exception) -> Any:
    """Raise an error, in an expression."""
    raise error


def test_a_disk_that_fills_up_while_code_is_written_means_compiling_in_memory(
    compiling: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from varnn.step import series

    asked: list[Any] = []

    def compile_(loop: Any) -> None:
        asked.append(loop)
        if len(asked) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")

    in_memory = object()
    monkeypatch.setattr("varnn.step.compiling._dispatchers", {})
    monkeypatch.setattr(series, "_compile", compile_)
    monkeypatch.setattr(compiling, "announce", lambda *_: None)
    monkeypatch.setattr(compiling, "dispatcher", lambda *_, cached: None if cached else in_memory)
    assert series._compiled_run.__wrapped__() is in_memory
    assert len(asked) == 2 and asked[1] is in_memory


def test_another_source_has_another_folder(
    compiling: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "varnn" / "step"
    sources.mkdir(parents=True)
    (sources / "row.py").write_text("one = 1\n")
    monkeypatch.setattr(compiling, "_PACKAGE", sources)
    parents(compiling, monkeypatch, tmp_path / "cache")
    first = compiling.cache_folder()
    (sources / "row.py").write_text("one = 2\n")
    compiling.cache_folder.cache_clear()
    second = compiling.cache_folder()
    assert first != second and first.is_dir()  # another process may be using it


def test_compiling_is_said_in_one_line_unless_the_code_is_there(
    compiling: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parents(compiling, monkeypatch, tmp_path)
    caplog.set_level(logging.WARNING, logger="varnn")
    compiling.announce(compiling.jitted(double, exact=True, cached=True))
    assert len(caplog.records) == 1 and "once" in caplog.text
    caplog.clear()
    compiling.jitted(double, exact=True, cached=True)(1.0)
    compiling.announce(compiling.jitted(double, exact=True, cached=True))
    assert not caplog.records
    parents(compiling, monkeypatch)
    compiling.cache_folder.cache_clear()
    compiling.announce(compiling.jitted(double, exact=True, cached=True))
    assert len(caplog.records) == 1 and "every process" in caplog.text


def add(left: Any, right: Any, out: Any) -> None:
    """Add arrays."""
    np.add(left, right, out=out)


@compiled_form_of(add)
def _add(left: Any, right: Any, out: Any) -> None:
    for index in range(len(out)):
        out[index] = left[index] + right[index] + 100.0  # to tell them apart


@kernel
def twice(values: Any, out: Any) -> None:
    """Add an array to itself."""
    add(values, values, out)


@needs_numba
def test_a_function_that_is_compiled_stays_a_plain_one() -> None:
    found = np.empty(2)
    compiled(twice)(np.ones(2), found)
    assert found.tolist() == [102.0, 102.0]
    twice(np.ones(2), found)
    assert found.tolist() == [2.0, 2.0]
    assert compiled(twice) is compiled(twice)


@needs_numba
def test_only_python_functions_are_compiled() -> None:
    from varnn.step.compiling import dispatcher

    with pytest.raises(TypeError, match="only Python functions"):
        dispatcher(len, "kernel", cached=False)


def test_a_cache_folder_keeps_what_others_put_there(tmp_path: Path) -> None:
    other = tmp_path / "varnn-compiled" / "results.csv"
    other.parent.mkdir()
    other.write_text("precious")
    os.utime(other, (0, 0))
    code = "from varnn.step.compiling import cache_folder; print(cache_folder())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert done.stdout.strip().startswith(str(tmp_path)) and other.read_text() == "precious"


def test_a_module_called_numba_that_is_another_one_is_named_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("answer = 42")
    code = "from varnn.step.kernel import use_compiled; print(use_compiled())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "False" and "numba.py" in done.stderr
