"""Both spellings of every operation compute the same: NumPy's, and the loops that numba compiles."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from varnn.step import operations
from varnn.step.compiling import compiled
from varnn.step.kernel import spellings

pytest.importorskip("numba")

Arrays = list[Any]
MEMBERS, RATES, SERIES, WIDTH = 3, 2, 4, 5


def doubles(generator: np.random.Generator, *shape: int, missing: bool = False) -> npt.NDArray[np.float64]:
    values = generator.normal(size=shape) * 10.0 ** generator.integers(-2, 3, shape)
    if missing:
        values[generator.random(shape) < 0.3] = np.nan
    return values


def singles(generator: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return doubles(generator, *shape).astype(np.float32)


def marks(generator: np.random.Generator, size: int) -> npt.NDArray[np.float64]:
    return (generator.random(size) < 0.7).astype(np.float64)


def trees(generator: np.random.Generator) -> Arrays:
    """Make ten trees of three splits each: the root, then one on each side."""
    feature = generator.integers(0, WIDTH, (3, 10))
    left = np.array([0b001, 0b011, 0b100])[:, None] * np.ones((3, 10), np.int64)  # in order of leaves
    return [
        singles(generator, SERIES, WIDTH),
        (feature, doubles(generator, 3, 10), left),
        doubles(generator, 4, 10),
        np.empty(SERIES),
    ]


CASES: dict[str, Callable[[np.random.Generator], Arrays]] = {
    "activate": lambda g: [singles(g, MEMBERS, SERIES, WIDTH), int(g.integers(2))],
    "copy": lambda g: [doubles(g, SERIES), np.empty(SERIES)],
    "copy_rows": lambda g: [singles(g, SERIES, WIDTH), np.empty((SERIES, 2 * WIDTH))[:, ::2]],
    "copy_marked_rows": lambda g: [marks(g, SERIES), doubles(g, SERIES, WIDTH), doubles(g, SERIES, WIDTH)],
    "copy_stack": lambda g: [
        doubles(g, int(g.choice([1, MEMBERS])), SERIES, WIDTH),
        np.empty((MEMBERS, SERIES, WIDTH + 2), np.float32)[:, :, 2:],
    ],
    "shift_right": lambda g: [doubles(g, SERIES, 3 * WIDTH), int(g.choice([1, WIDTH]))],
    "mark_known": lambda g: [doubles(g, SERIES, missing=True), np.empty(SERIES), np.empty(SERIES)],
    "drop_beyond": lambda g: [doubles(g, SERIES, missing=True), 5.0],
    "are_close": lambda g: [doubles(g, SERIES, missing=bool(g.integers(2))), np.zeros(SERIES), 30.0],
    "are_marked": lambda g: [marks(g, SERIES)],
    "are_within": lambda g: [doubles(g, SERIES, WIDTH, missing=g.random() < 0.2), 2000.0],
    "clip_columns": lambda g: [
        doubles(g, SERIES, WIDTH),
        -np.abs(doubles(g, WIDTH)),
        np.abs(doubles(g, WIDTH)),
    ],
    "standardize": lambda g: [
        doubles(g, SERIES, WIDTH),
        doubles(g, WIDTH),
        0.1 + np.abs(doubles(g, WIDTH)),
        float(g.choice([1.0, 1e9])),
        np.empty((SERIES, WIDTH + 1))[:, :WIDTH],
    ],
    "shrink_rows": lambda g: [doubles(g, SERIES, WIDTH) * g.choice([1.0, np.inf], (SERIES, WIDTH)), 4.0],
    "clear_beyond": lambda g: [singles(g, MEMBERS, SERIES, WIDTH + 2)[:, :, 1:-1], 30.0],
    "stacked_products": lambda g: [
        singles(g, MEMBERS, SERIES, WIDTH),
        singles(g, MEMBERS, WIDTH, 2),
        np.empty((MEMBERS, SERIES, 2), np.float32),
    ],
    "products": lambda g: [doubles(g, SERIES, WIDTH), doubles(g, WIDTH), np.empty(SERIES)],
    "transposed_product": lambda g: [doubles(g, WIDTH, SERIES), doubles(g, WIDTH, 3), np.empty((SERIES, 3))],
    "split_product": lambda g: [
        doubles(g, SERIES, WIDTH),
        doubles(g, WIDTH, 6),
        np.empty((SERIES, 3)),
        np.empty((SERIES, 3)),
    ],
    "whiten": lambda g: [
        doubles(g, int(g.choice([1, MEMBERS])), size := int(g.choice([1, SERIES])), WIDTH),
        doubles(g, MEMBERS, 2, WIDTH),
        np.empty((MEMBERS, size, 2)),
    ],
    "inner_products": lambda g: [doubles(g, SERIES, WIDTH), doubles(g, SERIES, WIDTH), np.empty(SERIES)],
    "row_products": lambda g: [
        doubles(g, MEMBERS, RATES, SERIES, WIDTH),
        doubles(g, MEMBERS, SERIES, WIDTH),
        np.empty((MEMBERS, RATES, SERIES)),
    ],
    "fade_and_add": lambda g: [
        doubles(g, MEMBERS, RATES, SERIES, WIDTH),
        marks(g, SERIES),
        0.9,
        doubles(g, MEMBERS, RATES, SERIES),
        doubles(g, MEMBERS, SERIES, WIDTH),
    ],
    "running_maximum": lambda g: [doubles(g, SERIES, WIDTH)],
    "sum_trees": trees,
}


def test_every_operation_is_compared() -> None:
    found = {
        name
        for name, function in inspect.getmembers(operations, inspect.isfunction)
        if spellings.get(function, ("", ""))[1] == "operation" and not name.startswith("_")
    }
    assert found == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_spellings_agree(name: str) -> None:
    plain = getattr(operations, name)
    loops = compiled(plain)
    for seed in range(40):
        given, others = (CASES[name](np.random.default_rng(seed)) for _ in range(2))
        assert plain(*given) == loops(*others)
        for left, right in zip(given, others, strict=True):
            if isinstance(left, np.ndarray):
                precision = 1e-12 if left.dtype == np.float64 else 2e-5
                scale = np.abs(left[np.isfinite(left)]).max(initial=1.0)
                np.testing.assert_allclose(right, left, rtol=precision, atol=precision * scale)


def test_trees_go_left_up_to_the_threshold() -> None:
    rows = np.array([[0.0, 9.0], [0.5, 9.0], [0.6, 9.0]], np.float32)
    splits = np.array([[0]]), np.array([[0.5]]), np.array([[1]])
    sums = np.empty(3)
    operations.sum_trees(rows, splits, np.array([[-1.0], [2.0]]), sums)
    assert sums.tolist() == [-1.0, -1.0, 2.0]


def test_shrunk_rows_keep_their_direction() -> None:
    rows = np.array([[8.0, -2.0], [1.0, 2.0], [np.inf, 3.0]])
    operations.shrink_rows(rows, 4.0)
    assert rows.tolist() == [[4.0, -1.0], [1.0, 2.0], [0.0, 0.0]]


def test_missing_states_are_cleared() -> None:
    stack = np.array([[[1.0, 2.0], [np.nan, 1.0], [50.0, 1.0]]], np.float32)
    operations.clear_beyond(stack, 30.0)
    assert stack.tolist() == [[[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]]
