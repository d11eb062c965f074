"""What is special to the compiled engine; that it agrees with the reference is in `test_engines`."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("numba")


from varnn.errors import ConfigError, MissingExtraError
from varnn.network.cell import Architecture, Weights, initial_weights
from varnn.network.engines._compiled_adam import CompiledAdam
from varnn.network.engines.compiled import CompiledEngine
from varnn.network.engines.engine import Task, pack, unpack
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.registry import make_engine
from varnn.network.engines.unrolled import UnrolledEngine

CELL = Architecture.of("RM", n_inputs=3, hidden_size=8, memory_size=6)


def rows(n_inputs: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(80, n_inputs, generator=generator, dtype=torch.float64)
    return inputs, torch.randn(80, generator=generator, dtype=torch.float64)


def never_active(weights: Weights) -> None:
    weights.error.zero_()
    weights.error_bias.fill_(-1)


def always_active(weights: Weights) -> None:
    weights.error.zero_()
    weights.error_bias.fill_(1)


def all_break_at_zero(weights: Weights) -> None:
    weights.error_bias.zero_()


def same_break_twice(weights: Weights) -> None:
    weights.error[0, 1:3] = weights.error[0, 0]
    weights.error_bias[0, 1:3] = weights.error_bias[0, 0]


def some_without_slope(weights: Weights) -> None:
    weights.error[0, ::2] = 0


def all_rise(weights: Weights) -> None:
    weights.error.abs_()


def all_fall(weights: Weights) -> None:
    weights.error.abs_().neg_()


BREAK_POINTS = [
    never_active,
    always_active,
    all_break_at_zero,
    same_break_twice,
    some_without_slope,
    all_rise,
    all_fall,
]


@pytest.mark.parametrize("shape_memory", BREAK_POINTS)
def test_break_points_of_every_kind(shape_memory: Callable[[Weights], None]) -> None:
    inputs, target = rows()
    flat = torch.tensor(pack(initial_weights(CELL, seed=3))).double()
    weights = unpack(CELL, flat)
    weights.error_bias.copy_(torch.linspace(-1, 1, 6)[None])
    shape_memory(weights)
    ends = torch.arange(6, 80)
    task = Task(CELL, inputs, target, window=6)
    loss, gradient = CompiledEngine(task).loss_and_gradient(flat, ends)
    true_loss, true_gradient = ReferenceEngine(task).loss_and_gradient(flat, ends)
    torch.testing.assert_close(loss, true_loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, true_gradient, rtol=0, atol=1e-11 * float(true_gradient.abs().max()))


def test_inputs_that_are_a_view_of_another_table() -> None:
    inputs, target = rows(n_inputs=6)
    flat = torch.tensor(pack(initial_weights(CELL, seed=3))).double()
    ends = torch.arange(4, 80, 3)
    task = Task(CELL, inputs[:, ::2], target, window=4)
    loss, _ = CompiledEngine(task).loss_and_gradient(flat, ends)
    true_loss, _ = ReferenceEngine(task).loss_and_gradient(flat, ends)
    torch.testing.assert_close(loss, true_loss, rtol=1e-12, atol=0)


def test_auto_takes_the_compiled_engine_where_it_can() -> None:
    """Whoever adds a field to the cell sees here which engines do not name it yet."""
    for variant, expected in (("RM", CompiledEngine), ("ARM", FusedEngine), ("RM+AM", UnrolledEngine)):
        cell = Architecture.of(variant, n_inputs=3)  # type: ignore[arg-type]  # a name from a list
        assert type(make_engine("auto", Task(cell, *rows(), window=4))) is expected
    tanh = Architecture.of("RM", n_inputs=3, memory_activation="tanh")
    assert type(make_engine("auto", Task(tanh, *rows(), window=4))) is FusedEngine
    assert type(make_engine("auto", Task(CELL, *rows(), window=4, loss_rows=2))) is FusedEngine


def test_it_brings_the_compiled_optimiser() -> None:
    engine = make_engine("compiled", Task(CELL, *rows(), window=4))
    assert type(engine.optimiser(torch.zeros(3), learning_rate=0.1)) is CompiledAdam


def test_refusing_says_all_that_is_not_handled() -> None:
    cell = Architecture.of("ARM+AM", n_inputs=3, memory_activation="tanh")
    inputs, target = (one.to("meta") for one in rows())
    with pytest.raises(ConfigError) as refused:
        make_engine("compiled", Task(cell, inputs, target, window=4, loss_rows=2, members=3))
    reasons = [
        "accumulate=True (only False)",
        "activation_memory=True (only False)",
        "memory_activation='tanh' (only 'relu')",
        "loss_rows=2 (only 1)",
        "device='meta' (only 'cpu')",
        "3 members at once (only one)",
    ]
    remedy = "Use Details(engine='auto'), or 'reference', which handles everything."
    assert str(refused.value) == f"engine='compiled' does not handle {', '.join(reasons)}. {remedy}"


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    task = Task(CELL, *rows(), window=4)
    assert type(make_engine("auto", task)) is FusedEngine
    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        make_engine("compiled", task)


def test_a_numba_that_cannot_be_loaded_is_done_without(tmp_path: Path) -> None:
    """As one that refuses this version of NumPy; by name its own words are what there is to say."""
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs NumPy 1.0 or less')")
    code = """if True:
        import torch
        from varnn.network.cell import Architecture
        from varnn.network.engines.engine import Task
        from varnn.network.engines.registry import make_engine
        task = Task(Architecture.of("RM", n_inputs=2), torch.zeros(9, 2), torch.zeros(9), window=3)
        print(make_engine("auto", task).name)
        make_engine("compiled", task)
    """
    places = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert done.stdout.strip() == "fused"
    assert done.stderr.strip().endswith("ImportError: Numba needs NumPy 1.0 or less")


def test_the_registry_loads_no_compiler() -> None:
    code = "import sys, varnn.network.engines.registry; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
