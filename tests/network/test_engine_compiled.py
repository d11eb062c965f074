"""What is special to the compiled engine, and the choice between engines."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("numba")

from varnn.errors import ConfigError, MissingExtraError
from varnn.network.cell import Architecture, Variant, Weights, initial_weights
from varnn.network.engines._compilable import supports
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.compiled import CompiledAdam, CompiledEngine
from varnn.network.engines.engine import pack, unpack
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.registry import EngineName, make_adam, make_engine

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
    loss, gradient = CompiledEngine(CELL, inputs, target, window=6).loss_and_gradient(flat, ends)
    true_loss, true_gradient = ReferenceEngine(CELL, inputs, target, window=6).loss_and_gradient(flat, ends)
    torch.testing.assert_close(loss, true_loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, true_gradient, rtol=0, atol=1e-11 * float(true_gradient.abs().max()))


def test_inputs_that_are_a_view_of_another_table() -> None:
    inputs, target = rows(n_inputs=6)
    flat = torch.tensor(pack(initial_weights(CELL, seed=3))).double()
    ends = torch.arange(4, 80, 3)
    loss, _ = CompiledEngine(CELL, inputs[:, ::2], target, window=4).loss_and_gradient(flat, ends)
    true_loss, _ = ReferenceEngine(CELL, inputs[:, ::2], target, window=4).loss_and_gradient(flat, ends)
    torch.testing.assert_close(loss, true_loss, rtol=1e-12, atol=0)


def test_compiled_adam_is_flat_adam() -> None:
    generator = torch.Generator().manual_seed(0)
    mine = torch.randn(50, generator=generator, dtype=torch.float64)
    theirs = mine.clone()
    adam, peer = CompiledAdam(mine, 0.01), FlatAdam(theirs, 0.01)
    for number in range(20):
        adam.learning_rate = peer.learning_rate = 0.01 / (1 + number)
        gradient = torch.randn(50, generator=generator, dtype=torch.float64)
        adam.step(gradient)
        peer.step(gradient)
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)


def test_auto_takes_the_compiled_engine_where_it_can() -> None:
    for variant, expected in (("RM", CompiledEngine), ("ARM", FusedEngine), ("RM+AM", FusedEngine)):
        cell = Architecture.of(variant, n_inputs=3)  # type: ignore[arg-type]
        assert supports(cell) == (expected is CompiledEngine)
        assert type(make_engine("auto", cell, *rows(), window=4)) is expected
    tanh = Architecture.of("RM", n_inputs=3, memory_activation="tanh")
    assert type(make_engine("auto", tanh, *rows(), window=4)) is FusedEngine


@pytest.mark.parametrize(
    ("name", "engine", "adam"),
    [
        ("reference", ReferenceEngine, FlatAdam),
        ("fused", FusedEngine, FlatAdam),
        ("compiled", CompiledEngine, CompiledAdam),
    ],
)
def test_engines_by_name(name: EngineName, engine: type[Any], adam: type[Any]) -> None:
    made = make_engine(name, CELL, *rows(), window=4)
    assert type(made) is engine
    assert type(make_adam(made, torch.zeros(3), learning_rate=0.1)) is adam


def test_unknown_name() -> None:
    with pytest.raises(ConfigError, match="engine must be one of"):
        make_engine("quick", CELL, *rows(), window=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["RM+AM", "ARM"])
def test_compiled_refuses_a_cell_it_cannot_compute(variant: Variant) -> None:
    with pytest.raises(ConfigError, match="needs an RM cell"):
        make_engine("compiled", Architecture.of(variant, n_inputs=3), *rows(), window=4)


def test_compiled_refuses_another_device() -> None:
    elsewhere = [one.to("meta") for one in rows()]
    with pytest.raises(ConfigError, match="needs device='cpu'; got meta"):
        CompiledEngine(CELL, elsewhere[0], elsewhere[1], window=4)


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr("varnn.network.engines.registry.find_spec", lambda _: None)
    assert type(make_engine("auto", CELL, *rows(), window=4)) is FusedEngine
    with pytest.raises(MissingExtraError, match=r"pip install 'varnn\[fast\]'"):
        make_engine("compiled", CELL, *rows(), window=4)
