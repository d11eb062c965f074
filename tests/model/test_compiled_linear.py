"""The linear part in compiled code: what `LinearStream` predicts and keeps, for forms of all kinds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from varnn._types import DoubleArray
from varnn.data.panel import Panel
from varnn.model.compiled_linear import LinearNumbers, observe_linear, predict_linear
from varnn.model.linear import SEASONAL, LinearPart, LinearStream


def drawn(
    inputs: int, changes: int, lags: int, periods: tuple[int, ...], bounded: bool, seed: int
) -> LinearPart:
    """A linear part with drawn coefficients, none of which is zero."""
    draw = np.random.default_rng(seed)
    low, high = (np.full(inputs, -1.0), np.full(inputs, 1.2)) if bounded else (None, None)
    return LinearPart(
        mean=0.3,
        low=-2.0,
        high=2.5,
        constant=0.1,
        of_last=-0.2,
        of_changes=draw.normal(size=changes),
        of_inputs=draw.normal(size=(lags + 1, inputs)),
        input_low=low,
        input_high=high,
        largest_change=1.5,
        periods=np.array(periods, np.float64),
        of_seasons=draw.normal(size=(len(periods), SEASONAL)),
    )


class Compiled:
    """One series in compiled code."""

    def __init__(self, part: LinearPart) -> None:
        self.numbers = LinearNumbers.of(part)
        self.state = LinearStream(part, 1).state()[0]
        self.regressors = np.zeros(part.form.width)

    def predict(self, inputs: DoubleArray) -> float:
        return float(predict_linear(inputs, self.state, *self.numbers, self.regressors))

    def observe(self, label: float) -> None:
        sizes, _, numbers, _, _ = self.numbers
        observe_linear(label, self.state, sizes, numbers, self.regressors)


forms = {
    "inputs": st.integers(0, 3),
    "changes": st.integers(0, 4),
    "lags": st.sampled_from([-1, 0, 1, 3]),
    "periods": st.sampled_from([(), (4,), (3, 7)]),
    "bounded": st.booleans(),
}


@settings(max_examples=150, deadline=None)
@given(**forms, missing=st.sampled_from([0.0, 0.3, 1.0]), first=st.booleans(), seed=st.integers(0, 1000))
def test_rows_are_those_of_a_stream_and_of_a_batch(
    inputs: int,
    changes: int,
    lags: int,
    periods: tuple[int, ...],
    bounded: bool,
    missing: float,
    first: bool,
    seed: int,
) -> None:
    part = drawn(inputs, changes, lags, periods, bounded, seed)
    draw = np.random.default_rng(seed)
    X, y = draw.normal(size=(25, inputs)), draw.standard_t(3, size=25)
    y[draw.random(25) < missing] = np.nan
    if first:
        y[:3] = np.nan
    batch = part.rows(Panel.from_arrays(X, y) if not np.isnan(y).all() else _unlabelled(X), regressors=True)
    stream, ours = LinearStream(part, 1), Compiled(part)
    assert batch.regressors is not None
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        for _ in range(2):  # asked for twice, by other inputs first
            ours.predict(draw.normal(size=inputs))
            found = ours.predict(x)
        expected = stream.predict(x[None])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found, batch.predictions[row], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(ours.regressors, stream.regressors[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.regressors, batch.regressors[row], rtol=1e-12, atol=1e-12)
        ours.observe(label)
        stream.observe(np.array([label]))
        np.testing.assert_allclose(ours.state, stream.state()[0], rtol=1e-12, atol=1e-12)


def _unlabelled(X: DoubleArray) -> Panel:
    return replace(Panel.from_arrays(X, np.zeros(len(X))), target=np.full(len(X), np.nan))


@pytest.mark.parametrize("cut", [0, 1, 2, 5, 6, 9, 12])
def test_a_state_may_come_from_either(cut: int) -> None:
    part = drawn(2, 2, 3, (4,), True, 0)
    draw = np.random.default_rng(cut)
    X, y = draw.normal(size=(20, 2)), draw.normal(size=20)
    stream, ours = LinearStream(part, 1), Compiled(part)
    for x, label in zip(X[:cut], y[:cut], strict=True):
        stream.predict(x[None])
        stream.observe(np.array([label]))
    ours.state[:] = stream.state()[0]
    for x, label in zip(X[cut:], y[cut:], strict=True):
        np.testing.assert_allclose(ours.predict(x), stream.predict(x[None])[0], rtol=1e-12)
        ours.observe(label)
        stream.observe(np.array([label]))
    again = LinearStream(part, 1)
    again.restore(ours.state[None])
    np.testing.assert_allclose(again.predict(X[:1]), stream.predict(X[:1]), rtol=1e-12)
