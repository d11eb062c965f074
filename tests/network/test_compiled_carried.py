"""The carried state in compiled code: what NumPy makes of it, on the same rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.cases import CASES, Case, random_panel, with_a_field
from tests.compiled import by_compiled_code, by_numpy, n_forms
from tests.network.test_carried import growing, members_of, single
from varnn._types import FloatArray
from varnn.data.panel import Panel
from varnn.network import compiled_carried, compiled_code
from varnn.network.carried import CarriedCell, _compiled_for, score_carried
from varnn.network.cell import Architecture, Weights
from varnn.network.compiled_carried import CELLS, carried_rows, go_through
from varnn.network.compiled_products import is_within, layer, product_of
from varnn.network.scoring import Scores, score

KNOWN = [Case("RM"), Case("RM+AM"), Case("ARM"), Case("ARM+AM")]
KEPT: dict[str, Any] = {"keep_memory": True, "keep_hidden": True}


def both(
    architecture: Architecture,
    weights: Weights,
    rows: tuple[Any, Any, Any],
    limit: float = np.inf,
    begun: FloatArray | None = None,
) -> list[tuple[Scores, FloatArray]]:
    """Score the same rows by NumPy and in compiled code; give the states after them, too."""
    found = []
    for way in (by_numpy, by_compiled_code):
        one = CarriedCell(architecture, weights, len(rows[2]) - 1, limit)
        if begun is not None:
            one.state[...] = begun
        with way(), np.errstate(over="ignore", invalid="ignore"):
            found.append((score_carried(one, *rows, **KEPT), one.state))
    return found


def alike(found: list[tuple[Scores, FloatArray]], tolerance: float = 1e-4) -> None:
    (plain, state), (ours, our_state) = found
    for one, other in zip((*ours, our_state), (*plain, state), strict=True):
        assert one.dtype == np.float32 and one.shape == other.shape
        size = np.abs(other).max(initial=1e-3, where=np.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * size)


@pytest.mark.parametrize("case", KNOWN, ids=str)
@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=4).filter(any),
    sizes=st.tuples(st.integers(0, 5), st.integers(1, 20), st.integers(1, 9)),
    members=st.integers(1, 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    limit=st.sampled_from([np.inf, 3.0, 0.5]),
    begun=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_rows_are_those_of_numpy(
    case: Case,
    lengths: list[int],
    sizes: tuple[int, int, int],
    members: int,
    missing: float,
    limit: float,
    begun: bool,
    seed: int,
) -> None:
    architecture = case.architecture(*sizes)
    weights = members_of(architecture, members, seed)
    panel = random_panel([one for one in lengths if one], sizes[0], missing=missing, seed=seed)
    inputs, target, _ = single(panel)
    state = CarriedCell(architecture, weights, len(lengths)).state
    if begun:
        state += np.random.default_rng(seed).random(state.shape, np.float32)
    alike(both(architecture, weights, (inputs, target, np.cumsum([0, *lengths])), limit, state), 1e-3)


@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_a_window_as_long_as_the_series_gives_the_same(case: Case) -> None:
    architecture = case.architecture()
    weights = members_of(architecture, 2, seed=3)
    panel = random_panel([9, 1, 15, 4], missing=0.2, seed=5)
    inputs, target, starts = single(panel)
    windows = score(architecture, weights, inputs, target, panel.first_rows, 15, **KEPT)
    with by_compiled_code():
        ours = score_carried(CarriedCell(architecture, weights, 4), inputs, target, starts, **KEPT)
    for one, other in zip(ours, windows, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("variant", ["ARM", "RM+AM", "ARM+AM"])
@pytest.mark.parametrize("limit", [100.0, 1e18])
def test_a_state_begins_anew_where_numpy_lets_it(variant: str, limit: float) -> None:
    architecture, weights = growing(variant, 2.0)
    found = both(architecture, weights, single(random_panel([150], 1, seed=0)), limit)
    alike(found, 1e-5)
    assert np.abs(found[1][0].hidden).max() <= 4 * limit


@pytest.mark.parametrize("case", KNOWN, ids=str)
@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("labelled", [True, False])
def test_a_row_that_is_not_a_number_spoils_the_same_rows(case: Case, wild: float, labelled: bool) -> None:
    architecture = case.architecture()
    weights = members_of(architecture, 2, seed=4)
    inputs, target, starts = single(random_panel([30, 30], missing=0.2, seed=3))
    inputs[10], target[10] = wild, 0.5 if labelled else np.nan
    inputs[35, 1] = wild
    (plain, state), (ours, our_state) = found = both(architecture, weights, (inputs, target, starts), 1e6)
    finite = np.isfinite(plain.predictions)
    assert np.isfinite(state).all() and np.isfinite(our_state).all()
    np.testing.assert_array_equal(np.isfinite(ours.predictions), finite)
    np.testing.assert_allclose(
        ours.predictions[finite],
        plain.predictions[finite],
        rtol=1e-3,
        atol=1e-3 * (1 if wild != 1e30 else 1e24),
    )
    np.testing.assert_allclose(found[1][0].memory, plain.memory, rtol=1e-3, atol=1e-3)


def test_a_state_that_grows_without_end_is_told_with_and_without_a_limit() -> None:
    """Compiled code has a limit of its own, 1e19; what is larger than any state may be shows all the same."""
    architecture, weights = growing("ARM+AM", 3.0)
    rows = single(random_panel([300], 1, seed=0))
    for scores, _ in both(architecture, weights, rows):
        largest = np.nanmax(np.abs(scores.memory))
        assert largest > 1e15 or not np.isfinite(scores.memory).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_taken_for_the_cells_it_knows(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    architecture, asked = case.architecture(), []

    def spy(architecture: Architecture, *rest: Any) -> None:
        asked.append(architecture)
        go_through(architecture, *rest)

    monkeypatch.setattr(compiled_carried, "go_through", spy)
    weights = members_of(architecture, 2, seed=1)
    alike(both(architecture, weights, single(random_panel([20, 3], missing=0.2, seed=2))), 1e-3)
    assert asked == [architecture] * (case in KNOWN)
    assert (architecture in CELLS) == (case in KNOWN)
    assert _compiled_for(with_a_field(architecture, "flavour", "as ever")) is None


def as_another(array: FloatArray, kind: str) -> FloatArray:
    if kind == "view":
        return np.repeat(array, 2, axis=0)[::2]
    if kind == "turned":
        return np.asfortranarray(array)
    other = array.copy()
    other.flags.writeable = False
    return other


@pytest.mark.parametrize("kind", ["view", "turned", "read-only"])
def test_arrays_of_other_layouts_give_the_same_and_compile_nothing_anew(kind: str) -> None:
    architecture = Case("ARM+AM").architecture()
    weights, rows = members_of(architecture, 2, seed=1), single(random_panel([20, 3], missing=0.2, seed=2))
    (_, _), (expected, _) = both(architecture, weights, rows)
    compiled = n_forms(carried_rows)
    others = tuple(as_another(one, kind) for one in rows)
    drawn = Weights(**{name: as_another(one, kind) for name, one in weights.as_dict().items()})
    (_, _), (found, _) = both(architecture, drawn, others)  # type: ignore[arg-type]  # of any length
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert n_forms(carried_rows) == compiled == 1


def test_members_go_side_by_side_and_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    architecture = Case("ARM").architecture(hidden_size=33, memory_size=7)
    weights, rows = members_of(architecture, 5, seed=1), single(random_panel([50, 30], missing=0.2, seed=2))
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(compiled_code, "n_cores", lambda cores=cores: cores)
        found.append(both(architecture, weights, rows)[1])
    for scores, state in found[1:]:
        np.testing.assert_array_equal(scores.predictions, found[0][0].predictions)
        np.testing.assert_array_equal(state, found[0][1])


def test_no_rows_leave_the_state_as_it_is() -> None:
    architecture = Case("RM").architecture()
    empty = Panel.from_arrays(np.ones((1, 3)), [1.0])
    rows = (empty.inputs[:0].astype(np.float32), empty.target[:0].astype(np.float32), np.zeros(3, np.int64))
    one = CarriedCell(architecture, members_of(architecture, 2, seed=0), 2)
    one.state += 1
    out = np.empty((2, 0), np.float32), np.empty((2, 0, 4), np.float32), np.empty((2, 0, 6), np.float32)
    go_through(one.architecture, one.weights, one.limit, one.state, *rows, *out)
    assert (one.state == 1).all()


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(0, 40),
    units=st.integers(1, 9),
    spoilt=st.sampled_from([None, np.nan, np.inf, -np.inf]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 1000),
)
def test_products(width: int, units: int, spoilt: float | None, dtype: Any, seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix, values = draw.normal(size=(units, width)).astype(dtype), draw.normal(size=width).astype(dtype)
    if spoilt is not None and width:
        values[draw.integers(width)] = spoilt
    found = np.empty(units, dtype)
    layer(matrix, values, found)
    exact = np.maximum(matrix.astype(np.float64) @ values.astype(np.float64), 0)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        product_of(matrix[0], values), matrix[0].astype(np.float64) @ values, rtol=1e-5, atol=1e-4
    )
    for limit in (0.5, 3.0, 1e19):
        assert is_within(values, dtype(limit)) == bool((np.abs(values) <= limit).all())


def test_a_limit_is_that_of_each_value_and_not_of_their_sum() -> None:
    ones = np.ones(9, np.float32)
    assert is_within(ones, np.float32(1.0))
    assert not is_within(ones * np.float32(1.001), np.float32(1.0))
    assert is_within(np.full(200, 1e18, np.float32), np.float32(1e19))
    assert not is_within(np.full(2, 3e38, np.float32), np.float32(1e19))  # whose squares are infinite
