"""What is special to the unrolled engine; that it agrees with the reference is in `test_engines`."""

import dataclasses
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from tests.cases import random_panel
from tests.network.test_engines import Problem
from varnn.data.preparation import Scaling, split_in_time
from varnn.errors import ConfigError, MissingExtraError
from varnn.network.cell import Architecture
from varnn.network.engines._compiled_adam import CompiledAdam
from varnn.network.engines.fused import FusedEngine
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.engines.registry import make_engine
from varnn.network.engines.unrolled import UnrolledEngine
from varnn.network.training import TrainConfig, Trained, train

# As the default has it.
CELL = Architecture.of("ARM+AM", n_inputs=12, hidden_size=64, memory_size=48)


def default(missing: float = 0.1, dtype: torch.dtype = torch.float32) -> Problem:
    return Problem(CELL, window=24, loss_rows=12, missing=missing, batch=9, dtype=dtype)


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.9])
def test_single_precision_at_the_size_of_the_default(missing: float) -> None:
    problem = default(missing)
    loss, gradient = UnrolledEngine(problem.task).loss_and_gradient(problem.flat, problem.ends)
    true = default(missing, torch.float64)
    true_loss, true_gradient = ReferenceEngine(true.task).loss_and_gradient(true.flat, true.ends)
    assert loss.dtype == gradient.dtype == torch.float32
    assert float(loss) == pytest.approx(float(true_loss), rel=1e-5)
    error = (gradient - true_gradient).norm() / true_gradient.norm()
    assert float(error) < 1e-4


def test_auto_takes_it_for_the_default() -> None:
    problem = default()
    engine = make_engine("auto", problem.task)
    assert type(engine) is UnrolledEngine
    assert type(engine.optimiser(problem.flat, learning_rate=0.1)) is CompiledAdam


def test_inputs_that_are_a_view_of_another_table() -> None:
    problem = default()
    wide = problem.task.inputs.repeat_interleave(2, dim=1)
    task = dataclasses.replace(problem.task, inputs=wide[:, ::2])
    loss, _ = UnrolledEngine(task).loss_and_gradient(problem.flat, problem.ends)
    expected, _ = UnrolledEngine(problem.task).loss_and_gradient(problem.flat, problem.ends)
    assert float(loss) == float(expected)


def test_refusing_says_all_that_is_not_handled() -> None:
    cell = Architecture.of("RM", n_inputs=3, residual="scalar", horizon=2)
    problem = Problem(cell, window=4, ahead=True)
    task = dataclasses.replace(problem.task, inputs=problem.task.inputs.to("meta"), members=3)
    with pytest.raises(ConfigError) as refused:
        make_engine("unrolled", task)
    reasons = [
        "activation_memory=False (only True)",
        "residual='scalar' (only 'projected')",
        "device='meta' (only 'cpu')",
        "3 members at once (only one)",
    ]
    assert f"engine='unrolled' does not handle {', '.join(reasons)}." in str(refused.value)


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert type(make_engine("auto", default().task)) is FusedEngine
    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        make_engine("unrolled", default().task)


def trained(engine: str, seed: int = 0) -> Trained:
    panel = random_panel([700], n_inputs=12, missing=0.05, seed=2)
    training, validation = split_in_time(panel, 0.7, 0.3)
    scaling = Scaling.fit(training, "standard")
    how = TrainConfig(
        window=24, loss_rows=12, epochs=6, batch_size=9, schedule="cosine", gradient_clip=1.0, weight_ema=0.9,
        engine=engine,
    )  # fmt: skip
    return train(CELL, scaling.apply(training), scaling.apply(validation), how, seed)


def test_a_training_is_that_of_the_reference() -> None:
    fast, true = trained("auto"), trained("reference")
    for name in ("loss", "validation_loss"):
        np.testing.assert_allclose(
            [line[name] for line in fast.history], [line[name] for line in true.history], rtol=2e-3
        )
    assert fast.history[-1]["loss"] < 0.9 * fast.history[0]["loss"]


def test_members_in_threads_do_not_disturb_each_other() -> None:
    """It lets go of Python's lock, so two trainings are in it at the same time."""
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda seed: trained("unrolled", seed), (1, 2)))
    for seed, one in zip((1, 2), together, strict=True):
        alone = trained("unrolled", seed)
        for name, matrix in alone.weights.as_dict().items():
            np.testing.assert_array_equal(one.weights.as_dict()[name], matrix)


def test_its_products_keep_to_one_thread() -> None:
    """Threads are limited of libraries that are loaded by then; NumPy's is not the one it calls."""
    code = """if True:
        import torch
        from threadpoolctl import threadpool_info
        from varnn.network.cell import Architecture
        from varnn.network.engines.engine import Task
        from varnn.network.engines.registry import make_engine
        from varnn.network.training import one_thread
        with one_thread():
            cell = Architecture.of("ARM+AM", n_inputs=2)
            make_engine("unrolled", Task(cell, torch.zeros(9, 2), torch.zeros(9), window=3))
            import scipy.linalg.cython_blas
            print({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
    """
    environment = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.stdout.strip() == "{1}", done.stderr
