"""Scoring by compiled code: the same predictions as step by step, and taken only where it can be."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")


from tests.cases import CASES, Case, random_panel, random_weights, with_a_field
from tests.network.test_engine_compiled import BREAK_POINTS
from tests.oracle import predict_rows
from varnn._types import FloatArray
from varnn.network import _compiled_scoring, compiled_code, scoring
from varnn.network._compiled_scoring import score_compiled
from varnn.network.cell import Architecture, Weights
from varnn.network.handled import PIECEWISE_LINEAR
from varnn.network.jit import kernel
from varnn.network.scoring import score, score_stepwise

RM = Case("RM")


class Problem(NamedTuple):
    """What there is to score; the arguments of all three functions, in their order."""

    architecture: Architecture
    weights: Weights
    inputs: Any
    target: Any
    first_rows: Any
    window: int


def problem(
    case: Case = RM,
    *,
    lengths: list[int] | None = None,
    window: int = 5,
    sizes: tuple[int, int, int] = (3, 8, 6),
    members: int = 2,
    missing: float = 0.2,
    seed: int = 0,
    dtype: Any = np.float64,
) -> Problem:
    architecture = case.architecture(*sizes)
    drawn = [random_weights(architecture, seed + member, dtype).as_dict() for member in range(members)]
    weights = Weights(**{name: np.stack([one[name] for one in drawn]) for name in drawn[0]})
    panel = random_panel(lengths or [40, 2, 25], sizes[0], missing=missing, seed=seed)
    rows = (panel.inputs.astype(dtype), panel.target.astype(dtype), panel.first_rows)
    return Problem(architecture, weights, *rows, window)


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    window=st.integers(1, 9),
    sizes=st.tuples(st.integers(0, 5), st.integers(1, 20), st.integers(1, 9)),
    members=st.integers(1, 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    rows_at_once=st.sampled_from([1, 2, 7, 1000]),
    seed=st.integers(0, 1000),
)
def test_predictions_are_those_of_the_stepwise_way(
    lengths: list[int],
    window: int,
    sizes: tuple[int, int, int],
    members: int,
    missing: float,
    rows_at_once: int,
    seed: int,
) -> None:
    one = problem(lengths=lengths, window=window, sizes=sizes, members=members, missing=missing, seed=seed)
    expected = score_stepwise(*one).predictions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled_scoring, "_CHUNK_FLOATS", rows_at_once * sizes[1])
        ours = score_compiled(*one)
    np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_predictions_are_those_of_algorithm_2(missing: float) -> None:
    one = problem(missing=missing)
    for member, ours in enumerate(score_compiled(*one)):
        oracle = predict_rows(
            {name: matrix[member] for name, matrix in one.weights.as_dict().items()},
            one.inputs,
            one.target,
            [*np.unique(one.first_rows).tolist(), len(one.target)],
            one.window,
            variant="RM",
            memory_size=one.architecture.memory_size,
        )
        np.testing.assert_allclose(ours, oracle, rtol=1e-12, atol=1e-12)


def test_single_precision_differs_by_its_rounding_only() -> None:
    one = problem(lengths=[3000], sizes=(27, 128, 27), window=24, dtype=np.float32)
    ours, theirs = score_compiled(*one), score_stepwise(*one).predictions
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("shape_memory", BREAK_POINTS)
def test_break_points_of_every_kind(shape_memory: Callable[[Weights], None]) -> None:
    one = problem(members=1)
    tensors = {name: torch.from_numpy(matrix[0]) for name, matrix in one.weights.as_dict().items()}
    shape_memory(Weights(**tensors))  # in place, in the arrays that the tensors share
    np.testing.assert_allclose(score_compiled(*one), score_stepwise(*one).predictions, rtol=1e-11)


def test_a_row_that_is_not_a_number_spoils_the_same_predictions() -> None:
    one = problem(missing=0.0)
    one.inputs[[7, 50]] = np.nan
    spoilt = np.isnan(score_stepwise(*one).predictions)
    assert spoilt.any() and not spoilt.all()
    np.testing.assert_array_equal(np.isnan(score_compiled(*one)), spoilt)


def test_arrays_that_are_views_or_must_not_be_written_to() -> None:
    one = problem()
    expected = score_compiled(*one)
    inputs, target, first_rows = (np.repeat(array, 2, axis=0)[::2] for array in one[2:5])
    weights = Weights(*(None if matrix is None else matrix.copy() for matrix in one.weights))
    for array in (inputs, target, first_rows, *weights.as_dict().values()):
        array.flags.writeable = False
    view = Problem(one.architecture, weights, inputs, target, first_rows, one.window)
    np.testing.assert_array_equal(score_compiled(*view), expected)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Architecture]:
    """Let `score` think all work worth compiling; list the cells it hands to the compiled code."""
    seen: list[Architecture] = []

    def spy(architecture: Architecture, *rest: Any, **options: Any) -> FloatArray:
        seen.append(architecture)
        return score_compiled(architecture, *rest, **options)

    monkeypatch.setattr(scoring, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(_compiled_scoring, "score_compiled", spy)
    return seen


@pytest.mark.parametrize("case", CASES, ids=str)
def test_score_takes_it_for_the_cells_it_knows(case: Case, asked: list[Architecture]) -> None:
    one = problem(case)
    scores = score(*one)
    assert asked == [one.architecture] * (one.architecture in PIECEWISE_LINEAR)
    assert scores.memory is None
    expected = score_stepwise(*one).predictions
    np.testing.assert_allclose(scores.predictions, expected, rtol=1e-11)


def test_score_does_without_where_a_field_of_the_cell_is_unknown_to_it(asked: list[Architecture]) -> None:
    one = problem()
    longer = one._replace(architecture=with_a_field(one.architecture, "flavour", "as ever"))
    np.testing.assert_array_equal(score(*longer).predictions, score_stepwise(*one).predictions)
    assert asked == []


def test_score_does_without_where_the_memory_is_asked_for(asked: list[Architecture]) -> None:
    one = problem()
    kept, expected = (way(*one, keep_memory=True) for way in (score, score_stepwise))
    np.testing.assert_array_equal(kept.memory, expected.memory)
    np.testing.assert_array_equal(kept.predictions, expected.predictions)
    assert asked == []


def test_score_does_without_on_tensors_and_in_mixed_precision(asked: list[Architecture]) -> None:
    one = problem()
    expected = score_stepwise(*one).predictions
    tensors = Weights(**{name: torch.tensor(matrix) for name, matrix in one.weights.as_dict().items()})
    inputs, target, first_rows = (torch.tensor(array) for array in one[2:5])
    on_torch = score(one.architecture, tensors, inputs, target, first_rows, one.window)
    np.testing.assert_allclose(on_torch.predictions.numpy(), expected, rtol=1e-11)
    mixed = score(*one._replace(target=one.target.astype(np.float32)))
    np.testing.assert_allclose(mixed.predictions, expected, rtol=1e-3, atol=1e-3)
    assert asked == []


def test_score_does_without_where_numba_cannot_be_loaded(
    asked: list[Architecture], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "varnn.network.jit", None)  # importing it fails
    monkeypatch.setattr(compiled_code, "_loads", compiled_code._loads.__wrapped__)  # nothing is remembered
    one = problem()
    np.testing.assert_array_equal(score(*one).predictions, score_stepwise(*one).predictions)
    assert asked == []


def test_a_million_rows_are_worth_compiling_and_a_thousand_are_not() -> None:
    """In processes of their own, as numba is loaded here already."""
    code = """if True:
        import sys
        import numpy as np
        from benchmarks.speed.model import untrained
        from varnn.network.scoring import score
        fitted, rows = untrained("RM", n_inputs=1, hidden_size=2, window=5), int(sys.argv[1])
        x = np.zeros((rows, 1), np.float32)
        score(fitted.architecture, fitted.weights, x, x[:, 0], np.zeros(rows, np.int64), 5)
        print("numba" in sys.modules)
    """
    for rows, loaded in ((1000, "False"), (1_000_000, "True")):
        done = subprocess.run([sys.executable, "-c", code, str(rows)], capture_output=True, text=True)
        assert done.stdout.strip() == loaded, done.stderr


def test_a_kernel_with_nowhere_to_be_kept_is_compiled_all_the_same() -> None:
    made: dict[str, Any] = {}
    exec("def double(number):\n    return 2 * number", made)  # it is in no file, so has no folder either
    assert kernel(made["double"])(4) == 8
