"""Coefficients that learn in compiled code: what `Adapter` learns on NumPy, row by row and all at once."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.compiled import n_forms
from varnn._types import DoubleArray, FloatArray, IntArray
from varnn.model.adaptation import Adaptation, Adapter, corrections, gain_of
from varnn.model.compiled_adaptation import adapted_rows, correct, corrections_compiled, learn, whiten
from varnn.model.experts import read_by_readout
from varnn.network import compiled_code


class Problem(NamedTuple):
    """Rows of some series, and how to adapt to them."""

    how: Adaptation
    hidden: FloatArray  # (E, N, K)
    regressors: DoubleArray  # (N, F)
    outputs: FloatArray  # (E, N)
    targets: DoubleArray  # (N,)
    starts: IntArray

    @property
    def features(self) -> Any:
        return read_by_readout(self.hidden, self.regressors, 1.0 if self.regressors.shape[1] else 0.0)

    @property
    def n_series(self) -> int:
        return len(self.starts) - 1


def problem(
    lengths: list[int],
    *,
    members: int = 2,
    width: int = 5,
    regressors: int = 3,
    forgetting: tuple[float, ...] = (0.99, 0.9),
    missing: float = 0.2,
    tails: float = 30,
    seed: int = 0,
) -> Problem:
    draw = np.random.default_rng(seed)
    rows = sum(lengths)
    hidden = np.maximum(draw.normal(size=(members, rows, width)), 0).astype(np.float32)
    joined = draw.normal(size=(rows, regressors))
    outputs = draw.normal(size=(members, rows)).astype(np.float32)
    targets = draw.standard_t(tails, size=rows)
    targets[draw.random(rows) < missing] = np.nan
    seen = read_by_readout(
        np.maximum(draw.normal(size=(members, 200, width)), 0),
        draw.normal(size=(200, regressors)),
        float(regressors > 0),
    )
    how = Adaptation(forgetting=forgetting, gain=gain_of(seen), noise=0.5)
    return Problem(how, hidden, joined, outputs, targets, np.cumsum([0, *lengths]))


def by_rows(one: Problem, begun: DoubleArray) -> tuple[DoubleArray, DoubleArray, int]:
    """Correct and learn row after row, each series alone; count errors beyond their bound."""
    added, states, beyond = np.empty((len(one.how.forgetting), len(one.targets))), [], 0
    for series in range(one.n_series):
        adapter = Adapter(one.how, 1)
        adapter.restore(begun[series : series + 1])
        for row in range(one.starts[series], one.starts[series + 1]):
            some = slice(row, row + 1)
            added[:, some] = adapter.correct(one.features[:, some], one.outputs[:, some])
            left = one.targets[row] - one.outputs[:, row] - adapter._corrections[:, :, 0]
            beyond += int((np.abs(left) > one.how.bound).sum())
            adapter.learn(one.targets[some])
        states.append(adapter.state())
    return added, np.concatenate(states), beyond


def compiled(one: Problem, begun: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    adapter = Adapter(one.how, one.n_series)
    adapter.restore(begun)
    rows = (one.hidden, one.regressors, one.outputs, one.targets, one.starts)
    return corrections_compiled(adapter, *rows), adapter.state()


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 70), min_size=1, max_size=4).filter(any),
    members=st.integers(1, 3),
    width=st.integers(1, 9),
    regressors=st.sampled_from([0, 1, 4]),
    forgetting=st.sampled_from([(0.99,), (0.9999, 0.9), (0.9, 0.99, 0.999)]),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    tails=st.sampled_from([30.0, 1.0]),
    begun=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_rows_are_those_of_an_adapter(
    lengths: list[int],
    members: int,
    width: int,
    regressors: int,
    forgetting: tuple[float, ...],
    missing: float,
    tails: float,
    begun: bool,
    seed: int,
) -> None:
    sizes: dict[str, Any] = {"members": members, "width": width, "regressors": regressors}
    one = problem(lengths, forgetting=forgetting, missing=missing, tails=tails, seed=seed, **sizes)
    state = Adapter(one.how, one.n_series).state()
    if begun:
        state = np.random.default_rng(seed).normal(size=state.shape)
    expected, after, _ = by_rows(one, state)
    together = Adapter(one.how, one.n_series)
    together.restore(state)
    solved = corrections(together, lambda rows: one.features[:, rows], one.outputs, one.targets, one.starts)
    found, our_state = compiled(one, state)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(our_state, after, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solved, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(together.state(), after, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("wild", [1e3, 1e30, 1e90, -1e90])
def test_wild_errors_are_bounded_as_on_numpy(wild: float) -> None:
    one = problem([80, 40], missing=0.1, seed=3)
    one.targets[[5, 6, 31, 32, 33, 100]] = wild
    state = Adapter(one.how, 2).state()
    expected, after, beyond = by_rows(one, state)
    found, our_state = compiled(one, state)
    assert beyond >= 20
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(our_state, after, rtol=1e-9, atol=1e-9)
    assert np.abs(our_state).max() < 100


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(0, 12),
    regressors=st.integers(0, 5),
    rates=st.integers(1, 3),
    common=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    label=st.sampled_from([0.3, -2.0, 1e90, np.nan]),
    seed=st.integers(0, 1000),
)
def test_one_row_is_that_of_an_adapter(
    width: int, regressors: int, rates: int, common: bool, dtype: Any, label: float, seed: int
) -> None:
    """Where members have regressors in common, what these are whitened to comes from another one."""
    draw = np.random.default_rng(seed)
    size = width + regressors + 1
    how = Adaptation(
        forgetting=(0.9, 0.99, 0.999)[:rates], gain=gain_of(draw.normal(size=(1, 100, size - 1))), noise=1.0
    )
    adapter = Adapter(how, 1)
    adapter.restore(draw.normal(size=adapter.state().shape))
    change = adapter.change[:, 0, 0].copy()
    hidden, joined = draw.normal(size=width).astype(dtype), draw.normal(size=regressors)
    white, phi, found = np.empty(size), np.empty(size), np.empty(rates)
    own = width if common else size
    expected = np.append(np.concatenate([hidden.astype(np.float64), joined]), 1.0) @ how.whitening[0]
    whiten(hidden, joined, np.ascontiguousarray(how.whitening[0].T), own, phi, expected, white)
    correct(white, change, found)
    features = np.concatenate([hidden.astype(np.float64), joined])
    np.testing.assert_allclose(white, np.append(features, 1.0) @ how.whitening[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        found, adapter.correct(features[None, None], np.full((1, 1), 0.7))[:, 0], rtol=1e-9, atol=1e-12
    )
    learn(label - 0.7, white, found, 1 - np.array(how.forgetting), how.bound, change)
    adapter.learn(np.array([label]))
    np.testing.assert_allclose(change, adapter.change[:, 0, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("regressors", [0, 3])
@pytest.mark.parametrize("alike", [True, False])
def test_what_members_have_in_common_is_whitened_once(regressors: int, alike: bool) -> None:
    """The gains of files from before have a ridge of each member's own: then nothing is shared."""
    one = problem([60, 20], members=3, regressors=regressors, seed=5)
    gain = one.how.gain
    draw = np.random.default_rng(0)
    seen = draw.normal(size=(200, regressors))
    features = read_by_readout(draw.normal(size=(3, 200, 5)), seen, float(regressors > 0))
    gain = gain_of(features) * (1.0 if alike else np.array([1.0, 1.1, 1.2])[:, None, None])
    how = Adaptation(forgetting=(0.99,), gain=gain, noise=1.0, common=1 + regressors)
    assert how.own == (5 if alike else 6 + regressors)
    apart = Adaptation(forgetting=(0.99,), gain=gain, noise=1.0)
    assert apart.own == 6 + regressors
    found = [compiled(one._replace(how=each), Adapter(each, 2).state()) for each in (how, apart)]
    rows = [by_rows(one._replace(how=each), Adapter(each, 2).state())[:2] for each in (how, apart)]
    for added, state in (*found, *rows):
        np.testing.assert_allclose(added, found[0][0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(state, found[0][1], rtol=1e-5, atol=1e-7)


def test_a_missing_label_teaches_nothing_and_does_not_fade() -> None:
    one = problem([30], missing=1.0)
    state = np.random.default_rng(0).normal(size=Adapter(one.how, 1).state().shape)
    _, after = compiled(one, state)
    np.testing.assert_array_equal(after, state)


def test_whitened_coordinates_are_those_of_the_gain() -> None:
    """L is lower triangular and L L' is the gain, so that corrections are those of q = G^-1 phi."""
    one = problem([5], seed=4)
    for factor, gain in zip(one.how.whitening, one.how.gain, strict=True):
        assert (np.triu(factor, 1) == 0).all()
        np.testing.assert_allclose(factor @ factor.T, gain, rtol=1e-4, atol=1e-6)  # of single precision


def test_the_equations_of_the_module_in_coordinates_that_are_not_whitened() -> None:
    """d <- leak d + s e / (1 + s q' phi) q with q = G^-1 phi, as its first lines say."""
    one = problem([60], members=1, forgetting=(0.95,), missing=0.2, tails=2.0, seed=5)
    gain, changed, expected = one.how.gain[0], np.zeros(one.how.gain.shape[1]), []
    for row, target in enumerate(one.targets):
        phi = np.append(one.features[0, row].astype(np.float64), 1.0)
        expected.append(changed @ phi)
        if not np.isnan(target):
            error = np.clip(target - one.outputs[0, row] - expected[-1], -one.how.bound, one.how.bound)
            q = gain @ phi
            changed = 0.9998 * changed + 0.05 * error / (1 + 0.05 * q @ phi) * q
    found, _ = compiled(one, Adapter(one.how, 1).state())
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-6)


def test_members_go_side_by_side_and_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem([100, 50], members=5, seed=2)
    state, found = Adapter(one.how, 2).state(), []
    for cores in (1, 2, 7):
        monkeypatch.setattr(compiled_code, "n_cores", lambda cores=cores: cores)
        found.append(compiled(one, state))
    for added, after in found[1:]:
        np.testing.assert_array_equal(added, found[0][0])
        np.testing.assert_array_equal(after, found[0][1])


def test_rows_in_parts_go_on_where_they_were_and_compile_nothing_anew() -> None:
    one = problem([90], seed=6)
    adapter = Adapter(one.how, 1)
    whole, after = compiled(one, adapter.state())
    compiled_forms = n_forms(adapted_rows)
    for first, last in ((0, 1), (1, 1), (1, 34), (34, 90)):
        rows = slice(first, last)
        part = corrections_compiled(
            adapter,
            one.hidden[:, rows],
            one.regressors[rows],
            one.outputs[:, rows],
            one.targets[rows],
            np.array([0, last - first]),
        )
        np.testing.assert_allclose(part, whole[:, rows], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(adapter.state(), after, rtol=1e-12, atol=1e-12)
    assert n_forms(adapted_rows) == compiled_forms
