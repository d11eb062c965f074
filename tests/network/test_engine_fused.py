"""What is special to the fused engine; that it agrees with the reference is in `test_engines`."""

import dataclasses

import pytest
import torch

from tests.network.test_engines import CELLS, Problem
from varnn.network.cell import Architecture
from varnn.network.engines._workspace import count_weights
from varnn.network.engines.engine import Task
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.registry import make_engine

RM = CELLS[0]


def test_what_lies_ahead_is_in_the_loss() -> None:
    cell = dataclasses.replace(RM, activation_memory=True, horizon=4)
    problem = Problem(cell, window=6, ahead=True)
    loss, _ = FusedEngine(problem.task).loss_and_gradient(problem.flat, problem.ends)
    near = dataclasses.replace(cell, horizon=1)
    task = dataclasses.replace(problem.task, architecture=near, ahead=None)
    alone, _ = FusedEngine(task).loss_and_gradient(problem.flat[: count_weights(near)].clone(), problem.ends)
    assert loss > alone


def test_without_activation_memory_the_reference_engine_looks_ahead() -> None:
    cell = Architecture.of("ARM", n_inputs=2, horizon=3)
    rows = (torch.zeros(9, 2), torch.zeros(9))
    task = Task(cell, *rows, window=3, ahead=torch.zeros(9, 2))
    assert type(make_engine("auto", task)) is ReferenceEngine


def test_work_space_is_kept_for_two_batch_sizes_only() -> None:
    problem = Problem(RM, window=3)
    engine = FusedEngine(problem.task)
    for size in (1, 2, 3, 4, 5):
        engine.loss_and_gradient(problem.flat, problem.ends[:size])
    assert engine._workspace.cache_info().currsize == 2


def test_without_any_memory_only_the_last_row_counts() -> None:
    problem = Problem(dataclasses.replace(RM, residual="none"), window=9)
    engine = FusedEngine(problem.task)
    assert engine.steps == 1
    one_row = ReferenceEngine(dataclasses.replace(problem.task, window=1))
    assert one_row.loss_and_gradient(problem.flat, problem.ends)[0] == pytest.approx(
        float(engine.loss_and_gradient(problem.flat, problem.ends)[0]), rel=1e-12
    )
