"""A state that is carried: the cell's own equations row by row, and windows as long as the series."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import CASES, Case, random_panel, random_weights, with_a_field
from varnn.data.panel import Panel
from varnn.errors import ConfigError
from varnn.network import carried as carried_module
from varnn.network import cell, compiled_code
from varnn.network.carried import CarriedCell, score_carried
from varnn.network.cell import Architecture, State, Weights
from varnn.network.scoring import Scores, score

pytestmark = pytest.mark.usefixtures("on_numpy")


@pytest.fixture
def on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled_code.SWITCH, "0")


def members_of(architecture: Architecture, members: int, seed: int) -> Weights:
    drawn = [random_weights(architecture, seed + one, np.float32).as_dict() for one in range(members)]
    return Weights(**{name: np.stack([one[name] for one in drawn]) for name in drawn[0]})


def plain(
    architecture: Architecture, weights: Weights, panel: Panel, limit: float = np.inf
) -> tuple[Any, Any, Any]:
    """Go through each series by the cell's equations in double precision: outputs, memory, hidden."""
    doubles = Weights(**{name: one.astype(np.float64) for name, one in weights.as_dict().items()})
    outputs, memory, hidden = [], [], []
    for first, last in pairwise(panel.starts):
        projected = cell.project(architecture, doubles, panel.inputs[first:last].astype(np.float64))
        state = cell.initial_state(architecture, like=projected[:, :1])
        for row in range(last - first):
            label = panel.target[first + row]
            y_hat, u = cell.predict(architecture, doubles, projected[:, row : row + 1], state)
            outputs.append(y_hat[:, 0, 0])
            memory.append(state.residual[:, 0])
            hidden.append(u[:, 0])
            missing = np.full((1, 1), np.isnan(label))
            state = cell.update(architecture, doubles, label - y_hat, u, state, missing)
            parts = [part.copy() for part in state if part is not None]
            beyond = (np.abs(np.concatenate(parts, axis=-1)) > limit).any(axis=-1)
            for part in parts:
                part[beyond] = 0
            state = State(*parts)
    return np.stack(outputs, axis=1), np.stack(memory, axis=1), np.stack(hidden, axis=1)


def single(panel: Panel) -> tuple[Any, Any, Any]:
    return panel.inputs.astype(np.float32), panel.target.astype(np.float32), panel.starts


@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    n_inputs=st.integers(0, 4),
    members=st.integers(1, 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_rows_are_predicted_by_the_equations_of_the_cell(
    case: Case, lengths: list[int], n_inputs: int, members: int, missing: float, seed: int
) -> None:
    architecture = case.architecture(n_inputs)
    weights = members_of(architecture, members, seed)
    panel = random_panel(lengths, n_inputs, missing=missing, seed=seed)
    one = CarriedCell(architecture, weights, len(lengths))
    found = score_carried(one, *single(panel), keep_memory=True, keep_hidden=True)
    for ours, theirs in zip(found, plain(architecture, weights, panel), strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_window_as_long_as_the_series_gives_the_same(case: Case, missing: float) -> None:
    architecture = case.architecture()
    weights = members_of(architecture, 2, seed=3)
    panel = random_panel([9, 1, 15, 4], missing=missing, seed=5)
    inputs, target, starts = single(panel)
    options: dict[str, Any] = {"keep_memory": True, "keep_hidden": True}
    windows = score(architecture, weights, inputs, target, panel.first_rows, 15, **options)
    carried = score_carried(CarriedCell(architecture, weights, 4), inputs, target, starts, **options)
    for ours, theirs in zip(carried, windows, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())


def in_parts(one: CarriedCell, panel: Panel, length: int, ends: list[int]) -> Scores:
    """Score series of one length a part at a time."""
    inputs, target, _ = single(panel)
    found = []
    for first, last in pairwise([0, *ends]):
        rows = np.concatenate([np.arange(start + first, start + last) for start in panel.starts[:-1]])
        starts = np.arange(panel.n_series + 1) * (last - first)
        found.append(
            (rows, score_carried(one, inputs[rows], target[rows], starts, keep_memory=True, keep_hidden=True))
        )
    parts = [np.concatenate([scores[part] for _, scores in found], axis=1) for part in range(3)]
    order = np.argsort(np.concatenate([rows for rows, _ in found]))
    assert len(order) == length * panel.n_series
    return Scores(*(part[:, order] for part in parts))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_state_goes_on_from_part_to_part(case: Case) -> None:
    architecture = case.architecture()
    weights = members_of(architecture, 2, seed=1)
    panel = random_panel([20] * 3, missing=0.2, seed=2)
    whole = CarriedCell(architecture, weights, 3)
    expected = score_carried(whole, *single(panel), keep_memory=True, keep_hidden=True)
    cut = CarriedCell(architecture, weights, 3)
    for ours, theirs in zip(in_parts(cut, panel, 20, [1, 8, 8, 20]), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(cut.state, whole.state, rtol=1e-5, atol=1e-5)


def test_series_of_all_lengths_end_with_the_state_each_has_alone() -> None:
    architecture = Case("ARM+AM").architecture()
    weights = members_of(architecture, 2, seed=7)
    lengths = [3, 0, 11, 1, 11, 0]
    panel = random_panel([length for length in lengths if length], missing=0.2, seed=8)
    inputs, target, _ = single(panel)
    starts = np.cumsum([0, *lengths])
    together = CarriedCell(architecture, weights, len(lengths))
    together.state += np.arange(len(lengths), dtype=np.float32)[:, None] / 10
    begun = together.state.copy()
    found = score_carried(together, inputs, target, starts)
    for series, (first, last) in enumerate(pairwise(starts)):
        alone = CarriedCell(architecture, weights, 1)
        alone.state[...] = begun[:, series : series + 1]
        rows = slice(first, last)
        one = score_carried(alone, inputs[rows], target[rows], np.array([0, last - first]))
        np.testing.assert_allclose(found.predictions[:, rows], one.predictions, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(together.state[:, series], alone.state[:, 0], rtol=1e-5, atol=1e-5)


def test_no_rows_at_all_leave_the_state_as_it_is() -> None:
    architecture = Case("RM").architecture()
    one = CarriedCell(architecture, members_of(architecture, 2, seed=0), 3)
    one.state += 1
    nothing = np.empty((0, 3), np.float32), np.empty(0, np.float32), np.zeros(4, np.int64)
    assert score_carried(one, *nothing, keep_hidden=True).hidden.shape == (2, 0, 6)
    assert (one.state == 1).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_row_is_predicted_from_does_not_depend_on_how_often_it_is_asked_for(case: Case) -> None:
    architecture = case.architecture()
    one, other = (CarriedCell(architecture, members_of(architecture, 2, seed=2), 3) for _ in range(2))
    draw = np.random.default_rng(0)
    for _ in range(5):
        inputs, labels = draw.normal(size=(3, 3)).astype(np.float32), draw.normal(size=3).astype(np.float32)
        for _ in range(3):
            one.advance(draw.normal(size=(3, 3)).astype(np.float32))
            found = [part.copy() for part in one.advance(inputs)]
        for ours, theirs in zip(found, other.advance(inputs), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        one.remember(labels)
        other.remember(labels)
        np.testing.assert_array_equal(one.state, other.state)


def growing(variant: str, factor: float) -> tuple[Architecture, Weights]:
    """Two members with one unit of memory: that of the first is multiplied with every row."""
    architecture = Case(variant).architecture(n_inputs=1, hidden_size=2, memory_size=1)
    weights = members_of(architecture, 2, seed=0)
    for matrix in weights.as_dict().values():
        matrix[...] = 0
    weights.error_bias[...] = 1
    if architecture.accumulate:
        weights.carry[0], weights.carry[1] = factor, 0.5
    if architecture.activation_memory:
        weights.fusion_bias[0] = 1
        weights.fusion[0, -2:] = factor * np.eye(2, dtype=np.float32)
    return architecture, weights


@pytest.mark.parametrize("variant", ["ARM", "RM+AM", "ARM+AM"])
def test_a_state_beyond_the_limit_begins_anew_for_its_own_member_alone(variant: str) -> None:
    architecture, weights = growing(variant, 2.0)
    panel = random_panel([40], 1, seed=0)
    free, held = (
        score_carried(
            CarriedCell(architecture, weights, 1, limit), *single(panel), keep_memory=True, keep_hidden=True
        )
        for limit in (np.inf, 100.0)
    )
    largest = [max(np.abs(one.memory[0]).max(), np.abs(one.hidden[0]).max()) for one in (free, held)]
    assert largest[0] > 1e9 and 50 < largest[1] < 300
    np.testing.assert_array_equal(held.memory[1], free.memory[1])
    expected = plain(architecture, weights, panel, limit=100.0)
    np.testing.assert_allclose(held.memory, expected[1], rtol=1e-5)
    np.testing.assert_allclose(held.hidden, expected[2], rtol=1e-5)


@pytest.mark.parametrize("wild", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("case", [Case("RM"), Case("ARM"), Case("RM+AM"), Case("ARM+AM")], ids=str)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_a_state_that_is_no_number_begins_anew(case: Case, wild: float) -> None:
    """A row of inputs that no number can be made of spoils itself, and nothing after the next label."""
    architecture = case.architecture()
    weights = members_of(architecture, 2, seed=4)
    panel = random_panel([30, 30], seed=3)
    inputs, target, starts = single(panel)
    inputs[10] = wild
    one = CarriedCell(architecture, weights, 2, limit=1e6)
    found = score_carried(one, inputs, target, starts).predictions
    fresh = score_carried(
        CarriedCell(architecture, weights, 1), inputs[11:30], target[11:30], np.array([0, 19])
    )
    if not np.isfinite(found[:, 10]).all():
        np.testing.assert_allclose(found[:, 11:30], fresh.predictions, rtol=1e-4, atol=1e-4)
    assert np.isfinite(found[:, 11:]).all() and np.isfinite(one.state).all()


def test_a_cell_that_is_not_known_is_refused() -> None:
    architecture = Case("RM").architecture()
    longer = with_a_field(architecture, "flavour", "as ever")
    with pytest.raises(ConfigError, match="a state that is carried does not handle flavour='as ever'"):
        CarriedCell(longer, members_of(architecture, 1, seed=0), 1)


def test_compiled_code_is_asked_only_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(architecture: Architecture) -> Any:
        raise AssertionError("compiled code was asked for")

    monkeypatch.setattr(compiled_code, "ROWS_WORTH_IT", 1)
    monkeypatch.setattr(carried_module, "_compiled_for", refuse)
    architecture = Case("RM").architecture()
    one = CarriedCell(architecture, members_of(architecture, 1, seed=0), 1)
    score_carried(one, *single(random_panel([5], seed=0)))
