"""Whether there is compiled code: with numba, without it, and switched off."""

import os
import subprocess
import sys

import pytest

from varnn.network import compiled_code
from varnn.network.compiled_code import is_there, is_worth_it, on_all_cores, shares

FIT_AND_STREAM = """
import numpy as np
from varnn import Details, Stream, VARNNRegressor
from varnn.network import compiled_code
from varnn.network.scoring import score
draw = np.random.default_rng(0)
X = draw.normal(size=(5000, 2))
y = np.cumsum(0.1 * draw.normal(size=5000)) + X[:, 0]
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
assert np.allclose(found, np.transpose(batch)[:30], rtol=1e-4, atol=1e-4)
assert np.allclose(both, found[-1, 0], rtol=1e-6)
print(compiled_code.is_there(), type(live._step).__name__, live.snapshot()[-64:].hex())
print(batch.prediction.tobytes()[-400:].hex(), found.tobytes()[-400:].hex())
"""
WITHOUT_NUMBA = "import sys\nsys.modules['numba'] = None\n"


def run(code: str, **environment: str) -> list[str]:
    """Run a program of its own; warnings are errors, as here."""
    variables = {name: value for name, value in os.environ.items() if name != compiled_code.SWITCH}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code],
        capture_output=True,
        text=True,
        env={**variables, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_numba_all_is_done_by_numpy() -> None:
    first, _ = run(WITHOUT_NUMBA + FIT_AND_STREAM)
    assert first.startswith("False NumpyStep")


def test_switched_off_all_is_done_by_numpy() -> None:
    first, _ = run(FIT_AND_STREAM, VARNN_COMPILED="0")
    assert first.startswith("False NumpyStep")


def test_two_processes_give_the_same_bits() -> None:
    pytest.importorskip("numba")
    one, other = run(FIT_AND_STREAM), run(FIT_AND_STREAM)
    assert one[0].startswith("True CompiledStep")
    assert one == other


def test_switched_off_numba_is_not_even_loaded_to_predict() -> None:
    """By models with windows neither, however many rows there are."""
    code = """if True:
        import sys
        import numpy as np
        from benchmarks.speed.model import untrained
        from varnn.network.scoring import score
        fitted, rows = untrained("RM", n_inputs=1, hidden_size=2, window=5), 1_000_000
        x = np.zeros((rows, 1), np.float32)
        score(fitted.architecture, fitted.weights, x, x[:, 0], np.zeros(rows, np.int64), 5)
        print("numba" in sys.modules)
    """
    assert run(code, VARNN_COMPILED="0") == ["False"]


def test_the_switch_is_looked_at_with_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.delenv(compiled_code.SWITCH, raising=False)
    assert is_there() and is_worth_it(compiled_code.ROWS_WORTH_IT)
    assert not is_worth_it(compiled_code.ROWS_WORTH_IT - 1)
    monkeypatch.setenv(compiled_code.SWITCH, "0")
    assert not is_there() and not is_worth_it(10**9)
    monkeypatch.setenv(compiled_code.SWITCH, "1")
    assert is_there()


@pytest.mark.parametrize("cores", [1, 2, 7])
def test_work_is_shared_in_order_and_nothing_is_left_out(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_code, "n_cores", lambda: cores)
    assert on_all_cores(lambda one: 2 * one, range(20)) == list(range(0, 40, 2))
    assert on_all_cores(abs, []) == []
    for count in (0, 1, 6, 300, 2000):
        parts = shares(count)
        assert [row for part in parts for row in range(count)[part]] == list(range(count))
        assert len(parts) == max(1, min(cores, count // compiled_code.FEWEST_EACH))


def test_cores_that_a_process_must_not_use_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3}, raising=False)
    assert compiled_code.n_cores() == 1
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert compiled_code.n_cores() == 1
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    for wanted, found in (("2", 2), ("", 8), ("4,2", 8), ("0", 8), ("99", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert compiled_code.n_cores() == found
    monkeypatch.setenv("VARNN_CORES", "3")
    assert compiled_code.n_cores() == 3


def test_what_goes_wrong_on_a_core_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda one: 1 / one, [1, 0, 2])


def test_what_is_worth_it_may_be_for_all_rows_of_some_work_to_say() -> None:
    if not is_there():
        pytest.skip("numba is not installed")
    few = compiled_code.ROWS_WORTH_IT - 1
    with compiled_code.worth_it_for(compiled_code.ROWS_WORTH_IT):
        assert is_worth_it(1)
        with compiled_code.worth_it_for(1):  # a part of it
            assert is_worth_it(1)
    assert not is_worth_it(few)
    with compiled_code.worth_it_in_a_fit(compiled_code.FITTED_ROWS_WORTH_IT):
        assert is_worth_it(1)
    with compiled_code.worth_it_in_a_fit(compiled_code.FITTED_ROWS_WORTH_IT - 1):
        assert not is_worth_it(few)
