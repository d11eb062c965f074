"""Every engine of the registry against the reference: the same losses, gradients and training curves.

Engines and cells come from the registry and from what each engine says that it handles: a new engine is
tested by being registered.
"""

import copy
import dataclasses
import itertools
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.cases import random_panel, random_weights, with_a_field
from varnn.data.preparation import Scaling
from varnn.errors import ConfigError
from varnn.network.cell import Architecture, MemoryActivation, Residual
from varnn.network.engines.engine import Engine, Task, pack
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.registry import CUDA, ENGINES, batches_members, engine_names, make_engine
from varnn.network.training import Member, TrainConfig, Trained, members, train, train_together


def cell_of(
    accumulate: bool, activation_memory: bool, residual: Residual, activation: MemoryActivation, horizon: int
) -> Architecture:
    return Architecture(
        n_inputs=3,
        hidden_size=7,
        memory_size=1 if residual == "scalar" else 5,
        accumulate=accumulate,
        activation_memory=activation_memory,
        residual=residual,
        memory_activation=activation,
        horizon=horizon,
    )


# All that the switches can be set to, those that `Architecture.of` does not offer too.
CELLS = [
    cell_of(*switches)
    for switches in itertools.product(
        (False, True), (False, True), get_args(Residual), get_args(MemoryActivation), (1, 4)
    )
]
ONE_STEP = [cell for cell in CELLS if cell.horizon == 1]


def called(one: object) -> str | None:
    if isinstance(one, Architecture):
        values = dataclasses.asdict(one).items()
        return "-".join(str(value) if isinstance(value, str) else f"{name}={value}" for name, value in values)
    return one.name if isinstance(one, type) and issubclass(one, Engine) else None


def fast_engines(cells: list[Architecture]) -> pytest.MarkDecorator:
    """Each engine but the reference with each cell it says that it handles."""
    pairs = [(engine, cell) for engine in ENGINES[:-1] for cell in cells if engine.handles(cell)]
    return pytest.mark.parametrize(("engine", "cell"), pairs, ids=called)


def each_fast_engine() -> pytest.MarkDecorator:
    """Each engine but the reference with the first cell it says that it handles."""
    pairs = [(engine, next(cell for cell in CELLS if engine.handles(cell))) for engine in ENGINES[:-1]]
    return pytest.mark.parametrize(("engine", "cell"), pairs, ids=called)


def made(engine: type[Engine], task: Task) -> Engine:
    """Make an engine; skip where what it needs is not installed."""
    if isinstance(engine.refusal(task), ImportError):
        pytest.skip(f"{engine.name} needs {list(engine.packages)}")
    return engine(task)


class Problem:
    """A task with random weights and rows, some without a label, and windows that end in labelled rows."""

    def __init__(
        self,
        cell: Architecture,
        *,
        window: int,
        loss_rows: int = 1,
        ahead: bool = False,
        missing: float = 0.0,
        weighed: bool = False,
        batch: int = 11,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        generator = np.random.default_rng(seed)
        inputs = generator.normal(size=(120, cell.n_inputs))
        target = inputs.sum(axis=1) + generator.normal(size=120)
        target[generator.random(120) < missing] = np.nan
        labelled = np.flatnonzero(~np.isnan(target))
        rows = (torch.tensor(inputs, dtype=dtype), torch.tensor(target, dtype=dtype))
        later = None
        if ahead:
            later = torch.stack([torch.roll(rows[1], -step) for step in range(1, cell.horizon)], dim=1)
            later[-5:] = torch.nan
        weights = generator.exponential(size=120) * (generator.random(120) < 0.7)
        self.task = Task(
            cell,
            *rows,
            window,
            loss_rows,
            later,
            weights=torch.tensor(weights, dtype=dtype) if weighed else None,
        )
        self.flat = torch.tensor(pack(random_weights(cell, seed)), dtype=dtype)
        self.ends = torch.tensor(generator.choice(labelled[labelled >= window - 1], batch))

    def assert_same(self, engine: Engine, ends: Tensor) -> None:
        loss, gradient = engine.loss_and_gradient(self.flat, ends)
        true_loss, true_gradient = ReferenceEngine(self.task).loss_and_gradient(self.flat, ends)
        largest = float(true_gradient.abs().max())
        torch.testing.assert_close(loss, true_loss, rtol=1e-10, atol=0)
        torch.testing.assert_close(gradient, true_gradient, rtol=0, atol=1e-10 * largest)


@fast_engines(CELLS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_loss_and_gradient_are_those_of_the_reference(
    engine: type[Engine], cell: Architecture, missing: float
) -> None:
    computed = 0
    for (window, loss_rows), ahead in itertools.product(
        [(1, 1), (2, 1), (2, 2), (5, 1), (6, 2), (6, 5), (6, 6), (9, 1)], {False, cell.horizon > 1}
    ):
        problem = Problem(cell, window=window, loss_rows=loss_rows, ahead=ahead, missing=missing)
        if isinstance(engine.refusal(problem.task), ConfigError):
            continue
        running = made(engine, problem.task)
        for ends in (problem.ends, problem.ends[:4], problem.ends):  # nothing is left over from call to call
            problem.assert_same(running, ends)
        computed += 1
    assert computed >= 4  # it handles the cell, so at least the paper's loss


@fast_engines(CELLS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_weighted_rows_are_those_of_the_reference_or_refused(
    engine: type[Engine], cell: Architecture, missing: float
) -> None:
    for window, loss_rows in [(1, 1), (2, 2), (5, 1), (6, 5)]:
        problem = Problem(cell, window=window, loss_rows=loss_rows, missing=missing, weighed=True)
        if (refusal := engine.refusal(problem.task)) is not None:
            assert isinstance(refusal, ImportError) or "weights of rows" in str(refusal)
            assert make_engine("auto", problem.task).name in ("fused", "reference")
            continue
        running = engine(problem.task)
        for ends in (problem.ends, problem.ends[:4], problem.ends):
            problem.assert_same(running, ends)


@pytest.mark.parametrize("engine", [FusedEngine, ReferenceEngine], ids=called)
def test_a_weight_is_what_it_says(engine: type[Engine]) -> None:
    """0 leaves a row's error out, 1 is nothing, and all of them twice as large double the loss."""
    problem = Problem(cell_of(True, True, "projected", "tanh", 1), window=6, loss_rows=3)
    task, ends = problem.task, problem.ends
    plain, gradient = (one.clone() for one in engine(task).loss_and_gradient(problem.flat, ends))
    ones = torch.ones(120, dtype=torch.float64)
    for scale in (1.0, 2.0):
        loss, slope = engine(dataclasses.replace(task, weights=scale * ones)).loss_and_gradient(
            problem.flat, ends
        )
        torch.testing.assert_close(loss, scale * plain)
        torch.testing.assert_close(slope, scale * gradient)
    # The last row of each window alone is learnt from, as with a single loss row.
    apart = torch.tensor([10, 20, 30, 40])
    only = torch.zeros(120, dtype=torch.float64)
    only[apart] = 1.0
    loss, slope = engine(dataclasses.replace(task, weights=only)).loss_and_gradient(problem.flat, apart)
    expected = engine(dataclasses.replace(task, loss_rows=1)).loss_and_gradient(problem.flat, apart)
    torch.testing.assert_close(loss, expected[0])
    torch.testing.assert_close(slope, expected[1])


def test_targets_ahead_are_not_weighed() -> None:
    problem = Problem(cell_of(True, True, "projected", "tanh", 3), window=6, ahead=True)
    with pytest.raises(ConfigError, match="the next row only"):
        dataclasses.replace(problem.task, weights=torch.ones(120))


@fast_engines(ONE_STEP)
@settings(max_examples=8, deadline=None)
@given(
    sizes=st.tuples(st.integers(0, 40), st.integers(1, 40), st.integers(1, 40)),
    batch=st.integers(1, 40),
    window=st.integers(1, 12),
    missing=st.sampled_from([0.0, 0.1, 0.9]),
    seed=st.integers(0, 1000),
)
def test_any_sizes(
    engine: type[Engine],
    cell: Architecture,
    sizes: tuple[int, int, int],
    batch: int,
    window: int,
    missing: float,
    seed: int,
) -> None:
    n_inputs, hidden_size, memory_size = sizes
    if cell.residual == "scalar":
        memory_size = 1
    cell = dataclasses.replace(cell, n_inputs=n_inputs, hidden_size=hidden_size, memory_size=memory_size)
    problem = Problem(cell, window=window, missing=missing, batch=batch, seed=seed)
    problem.assert_same(made(engine, problem.task), problem.ends)


@fast_engines(ONE_STEP)
def test_batches_of_changing_size_do_not_disturb_each_other(engine: type[Engine], cell: Architecture) -> None:
    problem = Problem(cell, window=5, missing=0.2)
    running = made(engine, problem.task)
    for size in (11, 4, 11, 1, 7, 11, 4):
        problem.assert_same(running, problem.ends[torch.randperm(11)[:size]])


@each_fast_engine()
def test_weights_changed_in_place_and_weights_in_another_tensor(
    engine: type[Engine], cell: Architecture
) -> None:
    problem = Problem(cell, window=4)
    running = made(engine, problem.task)
    problem.assert_same(running, problem.ends)
    problem.flat *= 1.5
    problem.assert_same(running, problem.ends)
    problem.flat = problem.flat * 0.5
    problem.assert_same(running, problem.ends)


@each_fast_engine()
def test_divergence_reaches_the_loss(engine: type[Engine], cell: Architecture) -> None:
    """Training stops at a loss that is not finite, so a NaN must not be lost in a relu."""
    problem = Problem(cell, window=4)
    problem.flat[:] = torch.nan
    loss, gradient = made(engine, problem.task).loss_and_gradient(problem.flat, problem.ends)
    assert loss.isnan()
    assert gradient.isnan().any()


def test_divergence_reaches_the_loss_of_the_reference() -> None:
    """Labels say what is left out of it, not errors: those of NaN weights are NaN too."""
    problem = Problem(cell_of(True, True, "projected", "relu", 4), window=4)
    problem.flat[:] = torch.nan
    loss, _ = ReferenceEngine(problem.task).loss_and_gradient(problem.flat, problem.ends)
    assert loss.isnan()


def curve(problem: Problem, engine: type[Engine]) -> list[float]:
    """Losses of three epochs of training with the engine's own optimiser; each has a remainder batch."""
    problem = copy.deepcopy(problem)
    running, losses = made(engine, problem.task), []
    optimiser = running.optimiser(problem.flat, learning_rate=3e-3)
    for _ in range(3):
        for ends in torch.split(torch.arange(problem.task.window - 1, len(problem.task.target)), 16):
            loss, gradient = running.loss_and_gradient(problem.flat, ends)
            optimiser.step(gradient)
            losses.append(float(loss))
    return losses


@fast_engines(ONE_STEP)
def test_training_curve_in_single_precision(engine: type[Engine], cell: Architecture) -> None:
    cell = dataclasses.replace(cell, n_inputs=6, hidden_size=32)
    problem = Problem(cell, window=5, dtype=torch.float32)
    expected = curve(problem, ReferenceEngine)
    assert np.mean(expected[-8:]) < np.mean(expected[:8])
    np.testing.assert_allclose(curve(problem, engine), expected, rtol=1e-3)


@pytest.mark.parametrize("engine", ENGINES, ids=called)
def test_optimiser_is_the_adam_of_torch(engine: type[Engine]) -> None:
    generator = torch.Generator().manual_seed(0)
    mine = torch.randn(50, generator=generator, dtype=torch.float64)
    theirs = mine.clone()
    task = Problem(next(cell for cell in CELLS if engine.handles(cell)), window=3).task
    optimiser = made(engine, task).optimiser(mine, learning_rate=0.01)
    assert optimiser.flat is mine
    peer = torch.optim.Adam([theirs], lr=0.01, eps=1e-7)
    for number in range(20):
        optimiser.learning_rate = peer.param_groups[0]["lr"] = 0.01 / (1 + number)
        gradient = torch.randn(50, generator=generator, dtype=torch.float64)
        theirs.grad = gradient.clone()
        peer.step()
        optimiser.step(gradient)
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)


# What engines say of themselves, and which of them is taken.


known = {field.name for field in dataclasses.fields(Architecture)}


@given(
    cell=st.sampled_from(CELLS),
    name=st.from_regex(r"[a-z]{1,8}", fullmatch=True).map(lambda word: f"{word}_of_memory"),
    value=st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just(("a", 1))),
)
def test_a_field_that_no_engine_has_heard_of_is_left_to_the_reference(
    cell: Architecture, name: str, value: Any
) -> None:
    assert name not in known
    longer = with_a_field(cell, name, value)
    assert [engine for engine in ENGINES if engine.handles(longer)] == [ReferenceEngine]
    task = dataclasses.replace(Problem(cell, window=2).task, architecture=longer)
    assert type(make_engine("auto", task)) is ReferenceEngine
    assert type(make_engine("reference", task)) is ReferenceEngine
    for engine in ENGINES[:-1]:
        with pytest.raises(
            ConfigError, match=rf"{name}=.*which it does not know of.*'auto'.*, or 'reference'"
        ):
            make_engine(engine.name, task)


@pytest.mark.parametrize("name", sorted(known - {"n_inputs", "hidden_size", "memory_size", "horizon"}))
def test_a_new_value_of_a_switch_is_left_to_the_reference(name: str) -> None:
    """An ablation may be a new value as well as a new field."""
    for cell in CELLS:
        other = dataclasses.replace(cell, **{name: "another"})  # type: ignore[arg-type]  # wrong on purpose
        assert [engine for engine in ENGINES if engine.handles(other)] == [ReferenceEngine]


@given(
    cell=st.sampled_from(CELLS),
    window=st.integers(1, 6),
    loss_rows=st.integers(1, 3),
    ahead=st.booleans(),
    members=st.integers(1, 2),
    device=st.sampled_from(["cpu", "meta"]),
)
def test_falling_back_is_silent_for_auto_only(
    cell: Architecture, window: int, loss_rows: int, ahead: bool, members: int, device: str
) -> None:
    last = min(window, loss_rows)
    problem = Problem(cell, window=window, loss_rows=last, ahead=ahead and cell.horizon > 1)
    inputs = problem.task.inputs.to(device)  # engines look at where these are
    task = dataclasses.replace(problem.task, inputs=inputs, members=members)
    handling = [engine for engine in ENGINES if engine.refusal(task) is None]
    assert handling[-1] is ReferenceEngine
    assert all(engine.handles(cell) for engine in handling)
    for engine in ENGINES:
        if engine not in handling:
            with pytest.raises((ConfigError, ImportError), match=f"engine='{engine.name}'"):
                make_engine(engine.name, task)
        elif device == "cpu":
            assert type(make_engine(engine.name, task)) is engine
    if device == "cpu":
        assert type(make_engine("auto", task)) is handling[0]


def test_names() -> None:
    assert engine_names() == ["auto", "cuda", *(engine.name for engine in ENGINES)]
    assert len(set(engine_names())) == len(ENGINES) + 2
    task = Problem(CELLS[0], window=2).task
    with pytest.raises(ConfigError, match=r"engine must be one of .*'auto'.*'reference'.*got 'quick'"):
        make_engine("quick", task)
    with pytest.raises(ConfigError, match=r"engine must be one of .*got 'quick'"):
        TrainConfig(engine="quick")


@pytest.mark.parametrize("name", [name for name in engine_names() if name != CUDA])
def test_members_in_every_step_need_an_engine_that_takes_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members on a GPU share each step if the engine asked for can do that; else they are trained apart."""
    panel = random_panel([90])
    scaled = Scaling.fit(panel, "minmax").apply(panel)
    handled = [cell for cell in CELLS for engine in ENGINES if engine.name == name and engine.handles(cell)]
    cell = handled[0] if handled else CELLS[0]
    config = TrainConfig(window=3, epochs=2, engine=name, device="cpu")
    every = [Member(cell, scaled, None, seed) for seed in (1, 2)]
    # Where there is no GPU, only what decides between the two ways is told of one; the CPU computes.
    monkeypatch.setattr(members, "pick_device", lambda _: torch.device("cuda"))
    shared: list[int] = []

    def counted(*arguments: Any) -> list[Trained]:
        shared.append(len(arguments[4]))
        return train_together(*arguments)

    monkeypatch.setattr(members, "train_together", counted)
    trained = members.train_members(every, config)
    for one, seed in zip(trained, (1, 2), strict=True):
        alone = train(cell, scaled, None, config, seed)
        np.testing.assert_allclose(one.weights.fusion, alone.weights.fusion, atol=1e-4)
    assert shared == [2] * batches_members(name)
    if not batches_members(name):
        with pytest.raises(ConfigError, match=f"engine='{name}' does not handle 2 members at once"):
            train_together(cell, scaled, None, config, [1, 2])
