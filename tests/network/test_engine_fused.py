"""The fast engines against the reference: the same losses, gradients and training curves."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.cases import CASES, Case, random_weights
from varnn.network.cell import Architecture, Variant
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.adam import FlatAdam
from varnn.network.engines.engine import Engine, pack
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.registry import EngineName, make_adam, make_engine

ENGINES: list[tuple[EngineName, Case]] = [("fused", case) for case in CASES] + [("compiled", Case("RM"))]
every_engine = pytest.mark.parametrize(
    ("name", "case"), ENGINES, ids=lambda one: one if isinstance(one, str) else "-".join(one)
)


class Problem:
    """A cell with random weights and rows, some without a label, and windows that end in labelled rows."""

    def __init__(
        self,
        case: Case,
        *,
        window: int,
        missing: float = 0.0,
        batch: int = 11,
        sizes: tuple[int, int, int] = (3, 7, 5),
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.architecture = case.architecture(*sizes)
        self.window = window
        generator = np.random.default_rng(seed)
        inputs = generator.normal(size=(120, sizes[0]))
        target = inputs.sum(axis=1) + generator.normal(size=120)
        target[generator.random(120) < missing] = np.nan
        labelled = np.flatnonzero(~np.isnan(target))
        self.inputs = torch.tensor(inputs, dtype=dtype)
        self.target = torch.tensor(target, dtype=dtype)
        self.flat = torch.tensor(pack(random_weights(self.architecture, seed)), dtype=dtype)
        self.ends = torch.tensor(generator.choice(labelled[labelled >= window - 1], batch))

    def engine(self, name: EngineName, loss_rows: int = 1) -> Engine:
        if name == "compiled":
            pytest.importorskip("numba")
        return make_engine(name, self.architecture, self.inputs, self.target, self.window, loss_rows)


def assert_same(problem: Problem, engine: Engine, ends: Tensor) -> None:
    loss, gradient = engine.loss_and_gradient(problem.flat, ends)
    true_loss, true_gradient = problem.engine("reference").loss_and_gradient(problem.flat, ends)
    torch.testing.assert_close(loss, true_loss, rtol=1e-10, atol=0)
    torch.testing.assert_close(gradient, true_gradient, rtol=0, atol=1e-10 * float(true_gradient.abs().max()))


@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.parametrize(("window", "loss_rows"), [(2, 2), (6, 2), (6, 5), (6, 6)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_several_graded_rows(case: Case, window: int, loss_rows: int, missing: float) -> None:
    problem = Problem(case, window=window, missing=missing, batch=9)
    fused, reference = problem.engine("fused", loss_rows), problem.engine("reference", loss_rows)
    for ends in (problem.ends, problem.ends[:4], problem.ends):  # nothing is left over from call to call
        loss, gradient = fused.loss_and_gradient(problem.flat, ends)
        true_loss, true_gradient = reference.loss_and_gradient(problem.flat, ends)
        torch.testing.assert_close(loss, true_loss, rtol=1e-10, atol=0)
        torch.testing.assert_close(gradient, true_gradient, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("variant", ["RM+AM", "ARM+AM"])
@pytest.mark.parametrize(("window", "loss_rows"), [(1, 1), (6, 1), (6, 3), (6, 6)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_looking_ahead(variant: Variant, window: int, loss_rows: int, missing: float) -> None:
    problem = Problem(Case(variant), window=window, missing=missing, batch=9)
    cell = dataclasses.replace(problem.architecture, horizon=4)
    flat = torch.tensor(pack(random_weights(cell, 0)))
    ahead = torch.stack([torch.roll(problem.target, -k) for k in (1, 2, 3)], dim=1)
    ahead[-5:] = torch.nan
    rows = (problem.inputs, problem.target, window, loss_rows, ahead)
    fused, reference = make_engine("fused", cell, *rows), make_engine("reference", cell, *rows)
    assert isinstance(fused, FusedEngine)
    for ends in (problem.ends, problem.ends[:4], problem.ends):
        loss, gradient = fused.loss_and_gradient(flat, ends)
        true_loss, true_gradient = reference.loss_and_gradient(flat, ends)
        torch.testing.assert_close(loss, true_loss, rtol=1e-10, atol=0)
        torch.testing.assert_close(gradient, true_gradient, rtol=1e-9, atol=1e-10)
    alone, _ = make_engine("fused", problem.architecture, *rows[:-1]).loss_and_gradient(
        flat[: count_weights(problem.architecture)].clone(), problem.ends
    )
    assert loss > alone  # what lies ahead is in the loss


def test_without_activation_memory_the_reference_engine_looks_ahead() -> None:
    cell = Architecture.of("ARM", n_inputs=2, horizon=3)
    ahead = torch.zeros(9, 2)
    engine = make_engine("auto", cell, torch.zeros(9, 2), torch.zeros(9), window=3, ahead=ahead)
    assert isinstance(engine, ReferenceEngine)


@every_engine
@pytest.mark.parametrize("window", [1, 2, 5, 9])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_loss_and_gradient_are_those_of_the_reference(
    name: EngineName, case: Case, window: int, missing: float
) -> None:
    problem = Problem(case, window=window, missing=missing)
    assert_same(problem, problem.engine(name), problem.ends)


@every_engine
@settings(max_examples=12, deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 40), st.integers(1, 40), st.integers(1, 40)),
    batch=st.integers(1, 40),
    window=st.integers(1, 12),
    missing=st.sampled_from([0.0, 0.1, 0.9]),
    seed=st.integers(0, 1000),
)
def test_any_sizes(
    name: EngineName,
    case: Case,
    sizes: tuple[int, int, int],
    batch: int,
    window: int,
    missing: float,
    seed: int,
) -> None:
    problem = Problem(case, window=window, missing=missing, batch=batch, sizes=sizes, seed=seed)
    assert_same(problem, problem.engine(name), problem.ends)


@every_engine
def test_batches_of_changing_size_do_not_disturb_each_other(name: EngineName, case: Case) -> None:
    problem = Problem(case, window=5, missing=0.2)
    engine = problem.engine(name)
    for size in (11, 4, 11, 1, 7, 11, 4):
        assert_same(problem, engine, problem.ends[torch.randperm(11)[:size]])


@pytest.mark.parametrize("name", ["fused", "compiled"])
def test_weights_changed_in_place_and_weights_in_another_tensor(name: EngineName) -> None:
    problem = Problem(Case("RM"), window=4)
    engine = problem.engine(name)
    assert_same(problem, engine, problem.ends)
    problem.flat *= 1.5
    assert_same(problem, engine, problem.ends)
    problem.flat = problem.flat * 0.5
    assert_same(problem, engine, problem.ends)


@pytest.mark.parametrize("name", ["fused", "compiled"])
def test_divergence_reaches_the_loss(name: EngineName) -> None:
    """Training stops at a loss that is not finite, so a NaN must not be lost in a relu."""
    problem = Problem(Case("RM"), window=4)
    problem.flat[:] = torch.nan
    loss, gradient = problem.engine(name).loss_and_gradient(problem.flat, problem.ends)
    assert loss.isnan()
    assert gradient.isnan().any()


def curve(problem: Problem, name: EngineName) -> list[float]:
    """Losses of three epochs of training, with a remainder batch in each."""
    problem = copy.deepcopy(problem)
    engine, losses = problem.engine(name), []
    adam = make_adam(engine, problem.flat, learning_rate=3e-3)
    for _ in range(3):
        for ends in torch.split(torch.arange(problem.window - 1, len(problem.target)), 16):
            loss, gradient = engine.loss_and_gradient(problem.flat, ends)
            adam.step(gradient)
            losses.append(float(loss))
    return losses


@every_engine
def test_training_curve_in_single_precision(name: EngineName, case: Case) -> None:
    problem = Problem(case, window=5, sizes=(6, 32, 8), dtype=torch.float32)
    expected = curve(problem, "reference")
    assert np.mean(expected[-8:]) < np.mean(expected[:8])
    np.testing.assert_allclose(curve(problem, name), expected, rtol=1e-3)


def test_flat_adam_is_torch_adam() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(50, generator=generator, dtype=torch.float64)
    mine, theirs = flat.clone(), flat.clone()
    adam = FlatAdam(mine, learning_rate=0.01)
    peer = torch.optim.Adam([theirs], lr=0.01, eps=1e-7)
    for number in range(20):
        adam.learning_rate = peer.param_groups[0]["lr"] = 0.01 / (1 + number)
        gradient = torch.randn(50, generator=generator, dtype=torch.float64)
        theirs.grad = gradient.clone()
        peer.step()
        adam.step(gradient)
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)


def test_work_space_is_kept_for_two_batch_sizes_only() -> None:
    problem = Problem(Case("RM"), window=3)
    engine = FusedEngine(problem.architecture, problem.inputs, problem.target, problem.window)
    for size in (1, 2, 3, 4, 5):
        engine.loss_and_gradient(problem.flat, problem.ends[:size])
    assert engine._workspace.cache_info().currsize == 2


def test_without_any_memory_only_the_last_row_counts() -> None:
    problem = Problem(Case("RM", "none"), window=9)
    engine = FusedEngine(problem.architecture, problem.inputs, problem.target, problem.window)
    assert engine.steps == 1
    one_row = ReferenceEngine(problem.architecture, problem.inputs, problem.target, window=1)
    assert one_row.loss_and_gradient(problem.flat, problem.ends)[0] == pytest.approx(
        float(engine.loss_and_gradient(problem.flat, problem.ends)[0]), rel=1e-12
    )
