"""The cell and the engines that unroll it, against Algorithm 2 in NumPy and finite differences."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import CASES, Case, random_panel, random_weights
from tests.oracle import predict_rows
from varnn.data.windows import window_ends
from varnn.errors import ConfigError
from varnn.network.cell import Architecture, Weights, initial_weights
from varnn.network.engines.engine import Task, pack, unpack
from varnn.network.engines.reference import ReferenceEngine
from varnn.network.scoring import score

EVERY = [*CASES]  # and here those that streams and ONNX do not handle (yet), as CASES are theirs too


@pytest.mark.parametrize("case", EVERY, ids=str)
@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    window=st.integers(1, 6),
    n_inputs=st.integers(0, 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_scoring_equals_algorithm_2(
    case: Case, lengths: list[int], window: int, n_inputs: int, missing: float, seed: int
) -> None:
    architecture = case.architecture(n_inputs=n_inputs)
    weights = random_weights(architecture, seed)
    panel = random_panel(lengths, n_inputs, missing=missing, seed=seed)
    stacked = Weights(**{name: matrix[None] for name, matrix in weights.as_dict().items()})
    ours = score(architecture, stacked, panel.inputs, panel.target, panel.first_rows, window)
    oracle = predict_rows(
        weights.as_dict(),
        panel.inputs,
        panel.target,
        panel.starts.tolist(),
        window,
        variant=case.variant,
        residual=case.residual,
        activation=case.activation,
        memory_size=architecture.memory_size,
    )
    np.testing.assert_allclose(ours.predictions[0], oracle, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_scoring_in_chunks_and_on_tensors_is_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    architecture = case.architecture()
    panel = random_panel([40, 25], missing=0.1)
    members = [random_weights(architecture, seed).as_dict() for seed in (1, 2)]
    stacked = Weights(**{name: np.stack([one[name] for one in members]) for name in members[0]})
    arrays = (panel.inputs, panel.target, panel.first_rows)
    whole = score(architecture, stacked, *arrays, 5, keep_memory=True)
    monkeypatch.setattr("varnn.network.scoring._CHUNK_FLOATS", 7 * 6 * 2)
    chunked = score(architecture, stacked, *arrays, 5, keep_memory=True)
    np.testing.assert_allclose(chunked.predictions, whole.predictions, rtol=1e-12)
    np.testing.assert_allclose(chunked.memory, whole.memory, rtol=1e-12)
    tensors = Weights(**{name: torch.tensor(matrix) for name, matrix in stacked.as_dict().items()})
    inputs, target, first_rows = (torch.tensor(one) for one in arrays)
    on_torch = score(architecture, tensors, inputs, target, first_rows, 5)
    np.testing.assert_allclose(on_torch.predictions.numpy(), whole.predictions, rtol=1e-12)
    alone = score(architecture, Weights(**{n: m[1:] for n, m in stacked.as_dict().items()}), *arrays, 5)
    np.testing.assert_allclose(alone.predictions[0], whole.predictions[1], rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("case", EVERY, ids=str)
def test_the_training_loss_is_the_oracles_and_its_gradient_the_difference_quotient(
    case: Case, missing: float
) -> None:
    architecture = case.architecture()
    panel = random_panel([12, 9], missing=missing, seed=4)
    flat = torch.tensor(pack(random_weights(architecture, 3)))
    ends = window_ends(panel, 5).astype(np.int64)
    task = Task(architecture, torch.tensor(panel.inputs), torch.tensor(panel.target), window=5)
    engine = ReferenceEngine(task)
    loss, gradient = engine.loss_and_gradient(flat, torch.tensor(ends))
    oracle = predict_rows(
        {name: matrix.numpy() for name, matrix in unpack(architecture, flat).as_dict().items()},
        panel.inputs,
        panel.target,
        panel.starts.tolist(),
        5,
        variant=case.variant,
        residual=case.residual,
        activation=case.activation,
        memory_size=architecture.memory_size,
    )
    assert float(loss) == pytest.approx(np.mean((panel.target[ends] - oracle[ends]) ** 2), rel=1e-12)
    step = 1e-6
    for index in range(len(flat)):
        ahead, behind = flat.clone(), flat.clone()
        ahead[index] += step
        behind[index] -= step
        slope = (engine.loss(ahead, torch.tensor(ends)) - engine.loss(behind, torch.tensor(ends))) / (
            2 * step
        )
        assert float(gradient[index]) == pytest.approx(float(slope), rel=1e-5, abs=1e-8)


def test_weights_start_as_keras_does() -> None:
    architecture = Architecture.of("ARM+AM", n_inputs=20, hidden_size=64)
    weights = initial_weights(architecture, seed=1)
    for name, matrix in weights.as_dict().items():
        rows, columns = matrix.shape
        limit = np.sqrt(6 / (rows + columns))
        if name.endswith("_bias"):
            assert not matrix.any()
        else:
            assert np.abs(matrix).max() <= limit
            assert matrix.std() == pytest.approx(limit / np.sqrt(3), rel=0.2)
    again = initial_weights(architecture, seed=1)
    assert all(np.array_equal(one, two) for one, two in zip(weights, again, strict=True))


@pytest.mark.parametrize("variant", ["ARM", "ARM+AM"])
def test_an_ablation_cannot_accumulate(variant: str) -> None:
    with pytest.raises(ConfigError, match="no memory to accumulate"):
        Case(variant, "scalar").architecture()
