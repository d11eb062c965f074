"""Each part of a row against its equations, written once more and simply, for plain and compiled code."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from varnn.model.outliers import LabelFilter
from varnn.model.runtime import filter_model
from varnn.step import aggregation, intervals
from varnn.step.adaptation import LEAK, MAX_DEVIATIONS, correct, learn
from varnn.step.aggregation import combine, update_weights
from varnn.step.cell import advance_cell, remember
from varnn.step.compiling import compiled
from varnn.step.floor import find_floor, note_negative
from varnn.step.intervals import bounds, expect_scale, level_weights, track
from varnn.step.kernel import address_table, kernel, numba_available
from varnn.step.label_filter import filter_labels, move_towards_pending
from varnn.step.layout import (
    LEARNING_RATES,
    RECENT_SIZES,
    RESIDUALS,
    SIGNALS,
    SMALLEST_SIZE,
    Block,
    StepModel,
    StepState,
    model_of,
    state_of,
)
from varnn.step.linear import observe_linear, predict_linear

Doubles = npt.NDArray[np.float64]
Call = Callable[..., None]


@kernel
def _combine(model: Any, state: Any) -> None:
    combine(state_of(state))


@kernel
def _update_weights(model: Any, state: Any) -> None:
    update_weights(model_of(model), state_of(state))


@kernel
def _filter(model: Any, state: Any, labels: Doubles) -> None:
    m, s = model_of(model), state_of(state)
    filter_labels(m, s, labels)
    s.prediction[:] = 0.0
    move_towards_pending(s)
    s.rows[0] += 1.0


@kernel
def _correct(model: Any, state: Any) -> None:
    correct(model_of(model), state_of(state))


@kernel
def _learn(model: Any, state: Any) -> None:
    learn(model_of(model), state_of(state))


@kernel
def _predict_linear(model: Any, state: Any) -> None:
    predict_linear(model_of(model), state_of(state))


@kernel
def _observe_linear(model: Any, state: Any) -> None:
    s = state_of(state)
    observe_linear(model_of(model), s)
    s.rows[0] += 1.0


@kernel
def _advance(model: Any, state: Any) -> None:
    advance_cell(model_of(model), state_of(state))


@kernel
def _remember(model: Any, state: Any) -> None:
    remember(model_of(model), state_of(state))


@kernel
def _expect(model: Any, state: Any, levels: Doubles, lower: Doubles, upper: Doubles) -> None:
    m, s = model_of(model), state_of(state)
    expect_scale(m, s)
    bounds(s, levels, lower, upper)


@kernel
def _track(model: Any, state: Any, errors: Doubles) -> None:
    track(model_of(model), state_of(state), errors)


@kernel
def _floor(model: Any, state: Any, labels: Doubles) -> None:
    s = state_of(state)
    note_negative(labels, s.has_been_negative, s.has_been_negative)
    find_floor(s.has_been_negative, s.floor)


class Way:
    """How to call a kernel: as plain NumPy, or compiled."""

    def __init__(self, *, is_compiled: bool) -> None:
        self.is_compiled = is_compiled

    def __call__(self, function: Call, model: StepModel, state: StepState, *more: Any) -> None:
        if self.is_compiled:
            compiled(function)(address_table(model), address_table(state), *more)
        else:
            function(model, state, *more)


needs_numba = pytest.mark.skipif(not numba_available(), reason="needs numba")


@pytest.fixture(params=["plain", pytest.param("compiled", marks=needs_numba)])
def call(request: pytest.FixtureRequest) -> Way:
    return Way(is_compiled=request.param == "compiled")


def empty_model(**fields: Any) -> StepModel:
    """Make a model that does nothing, but for some fields."""
    return filter_model(LabelFilter(change=1.0, low=0.0, high=1.0))._replace(**fields)


# Aggregation


def aggregation_model(prior: Doubles, mean_square: float = 1.0) -> StepModel:
    return empty_model(
        prior=prior,
        mean_square=mean_square,
        mixing=np.zeros((SIGNALS, len(prior))),
        expert_offset=np.zeros(len(prior)),
    )


class Rows:
    """Rows of an aggregation: what it predicted, and what the bound of its regret needs."""

    def __init__(self, call: Way, prior: Doubles, n_series: int = 1) -> None:
        self.call, self.prior = call, prior
        self.model = aggregation_model(prior)
        self.state = Block(self.model, n_series).state

    def predict(self, experts: Doubles) -> Doubles:
        self.state.expert_predictions[:] = experts
        self.call(_combine, self.model, self.state)
        return self.state.combined.copy()

    def observe(self, labels: Doubles) -> None:
        self.state.residual[:] = labels
        self.call(_update_weights, self.model, self.state)


def test_weights_start_at_the_prior(call: Way) -> None:
    prior = np.array([0.5, 0.3, 0.2])
    rows = Rows(call, prior)
    assert rows.predict(np.array([[1.0, 0.0, 0.0]]))[0] == pytest.approx(0.5)


def test_scores_and_weights_follow_their_equations(call: Way) -> None:
    generator, prior = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    rows = Rows(call, prior)
    scores, mean_square = np.zeros((3, len(LEARNING_RATES))), 1.0
    for row in range(200):
        experts, label = generator.normal(size=3), generator.normal() * (100.0 if row % 40 == 7 else 1.0)
        powers = prior * (np.exp(aggregation.DISCOUNT * scores) @ LEARNING_RATES)
        weights = powers / powers.sum()
        p = float(weights @ experts)
        assert rows.predict(experts[None])[0] == pytest.approx(p, abs=1e-12)
        if row % 10 == 3:
            label = np.nan
        rows.observe(np.array([label]))
        if not np.isnan(label):
            regrets = 2 * (p - label) * (p - experts) / mean_square
            regrets *= min(1.0, aggregation.MAX_REGRET / np.abs(regrets).max())
            steps = LEARNING_RATES * regrets[:, None]
            grown = (1 - aggregation.SHARED) * np.exp(aggregation.DISCOUNT * scores + steps - steps**2)
            scores = np.log(grown + aggregation.SHARED)
            square = min((label - p) ** 2, aggregation.MAX_JUMP * mean_square)
            mean_square += (1 - aggregation.TRACKING) * (square - mean_square)
        np.testing.assert_allclose(rows.state.scores[0], scores, atol=1e-11)
        assert rows.state.mean_square[0] == pytest.approx(mean_square)


def _adversary(kind: str, row: int, experts: Doubles, p: float, generator: np.random.Generator) -> float:
    """Choose a label that hurts."""
    if kind == "against the combination":
        return p + 3.0 * (1.0 if experts[row // 60 % len(experts)] > p else -1.0)
    if kind == "switching":
        return float(experts[row // 25 % len(experts)])
    if kind == "huge":
        return float(generator.normal() * 10.0 ** generator.integers(-3, 9))
    return float(generator.normal())


@pytest.mark.parametrize("kind", ["against the combination", "switching", "huge", "noise"])
def test_regret_is_bounded_on_every_stretch(call: Way, kind: str) -> None:
    generator, prior = np.random.default_rng(1), np.array([0.7, 0.2, 0.1])
    rows, discount, shared = Rows(call, prior), aggregation.DISCOUNT, aggregation.SHARED
    n_rows = 300
    losses, squares = np.empty((n_rows, 3)), np.empty((n_rows, 3))
    for row in range(n_rows):
        experts = generator.normal(size=3)
        p = float(rows.predict(experts[None])[0])
        label = _adversary(kind, row, experts, p, generator)
        raw = 2 * (p - label) * (p - experts)
        mean_square = rows.state.mean_square[0]
        unit = min(1 / mean_square, aggregation.MAX_REGRET / max(np.abs(raw).max(), 1e-300))
        losses[row] = unit * ((p - label) ** 2 - (experts - label) ** 2)
        squares[row] = (unit * raw) ** 2
        rows.observe(np.array([label]))
    for start in range(0, n_rows, 20):
        for end in range(start + 20, n_rows + 1, 40):
            fading = discount ** np.arange(end - start - 1, -1, -1.0)
            left = fading @ losses[start:end]
            for rate in LEARNING_RATES:
                cost = np.log(len(LEARNING_RATES) / prior) + math.log(1 / (1 - shared)) * fading.sum()
                if start:
                    cost = cost + discount ** (end - start) * math.log(1 / shared)
                right = cost / rate + rate * (fading @ squares[start:end])
                assert (left <= right + 1e-6 * (1 + np.abs(right))).all()


def test_series_are_aggregated_apart(call: Way) -> None:
    generator, prior = np.random.default_rng(2), np.array([0.6, 0.4])
    together, alone = Rows(call, prior, 3), [Rows(call, prior) for _ in range(3)]
    for _ in range(50):
        experts, labels = generator.normal(size=(3, 2)), generator.normal(size=3)
        labels[generator.random(3) < 0.3] = np.nan
        found = together.predict(experts)
        for series, rows in enumerate(alone):
            assert rows.predict(experts[series : series + 1])[0] == pytest.approx(found[series], abs=1e-13)
            rows.observe(labels[series : series + 1])
        together.observe(labels)


# Label filter


def test_series_are_filtered_apart(call: Way) -> None:
    generator = np.random.default_rng(3)
    model = filter_model(LabelFilter(change=2.0, low=-5.0, high=5.0))
    levels = np.cumsum(generator.normal(size=(300, 4)) / 2, axis=0)
    levels[generator.random(levels.shape) < 0.05] += 30.0
    levels[150:, 1] += 40.0
    levels[generator.random(levels.shape) < 0.1] = np.nan
    together, alone = Block(model, 4).state, [Block(model).state for _ in range(4)]
    for labels in levels:
        call(_filter, model, together, labels)
        for series, state in enumerate(alone):
            call(_filter, model, state, labels[series : series + 1].copy())
            np.testing.assert_array_equal(state.label[0], together.label[series])
            assert state.prediction[0] == together.prediction[series]


def test_filter_rejects_a_glitch_and_follows_a_shift(call: Way) -> None:
    model = filter_model(LabelFilter(change=1.0, low=0.0, high=2.0))
    state, found = Block(model).state, []
    for label in (1.0, 1.2, 50.0, 1.1, 9.0, 9.1, 9.2):
        call(_filter, model, state, np.array([label]))
        found.append(float(state.label[0]))
    np.testing.assert_array_equal(found, [1.0, 1.2, np.nan, 1.1, np.nan, 9.1, 9.2])


# Adaptation


def test_adaptation_is_newton_steps_in_plain_coordinates(call: Way) -> None:
    generator = np.random.default_rng(4)
    members, hidden, width, n_series, rates = 2, 3, 2, 3, np.array([0.02, 0.1])
    size = hidden + width + 1
    factors = np.tril(generator.normal(size=(members, size, size))) / 2 + np.eye(size)
    factors[1, hidden:, hidden:] = factors[0, hidden:, hidden:]
    linear = np.tril(generator.normal(size=(width + 1, width + 1))) / 2 + np.eye(width + 1)
    steps = np.full((members + 1, 2, 1), np.inf)
    steps[:members, :, 0], steps[members, 0] = 1 / rates, 1 / 0.05
    bound, offset, scale = 2.0, 0.3, 2.0
    model = empty_model(
        target_offset=offset,
        target_scale=scale,
        linear_weights=np.zeros(width),
        readout=np.zeros((members, 1, hidden), np.float32),
        to_hidden=np.zeros((members, 1, hidden), np.float32),
        center=np.array([0.1, -0.2]),
        deviation=np.array([1.5, 0.7]),
        own_whitening=np.ascontiguousarray(factors[:, :, :hidden].swapaxes(1, 2)),
        common_whitening=np.ascontiguousarray(np.stack([factors[0, hidden:, hidden:].T, linear.T])),
        adaptation_steps=steps,
        adaptation_bounds=np.full((members + 1, 1, 1), bound),
        member_shares=np.array([[0.5], [0.5], [0.0]]),
    )
    state = Block(model, n_series).state
    changes = np.zeros((members, 2, n_series, size))
    linear_change = np.zeros((n_series, width + 1))
    for _ in range(60):
        units = generator.random((members, n_series, hidden)).astype(np.float32)
        outputs, regressors = (
            generator.normal(size=(members, n_series)),
            generator.normal(size=(n_series, width)),
        )
        targets = generator.normal(size=n_series) * 3
        targets[generator.random(n_series) < 0.2] = np.nan
        state.hidden[:], state.member_outputs[:members], state.regressors[:] = units, outputs, regressors
        call(_correct, model, state)
        standard = np.clip((regressors - model.center) / model.deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        common = np.column_stack([standard, np.ones(n_series)])
        for series in range(n_series):
            for member in range(members):
                phi = np.concatenate([units[member, series], common[series]])
                gain = factors[member] @ factors[member].T @ phi
                for rate, step in enumerate(rates):
                    change = changes[member, rate, series]
                    correction = change @ phi
                    assert state.corrections[member, rate, series] == pytest.approx(correction, abs=1e-10)
                    if not np.isnan(targets[series]):
                        error = np.clip(targets[series] - outputs[member, series] - correction, -bound, bound)
                        change *= LEAK
                        change += step * error / (1 + step * gain @ phi) * gain
            gain = linear @ linear.T @ common[series]
            correction = linear_change[series] @ common[series]
            assert state.corrections[members, 0, series] == pytest.approx(correction, abs=1e-10)
            if not np.isnan(targets[series]):
                error = np.clip(targets[series] + offset / scale - correction, -bound, bound)
                linear_change[series] *= LEAK
                linear_change[series] += 0.05 * error / (1 + 0.05 * gain @ common[series]) * gain
        state.target_known[:] = ~np.isnan(targets)
        state.target_clean[:] = np.nan_to_num(targets)
        call(_learn, model, state)


# Linear part


def test_linear_part_follows_its_equation(call: Way) -> None:
    generator, n_rows, period = np.random.default_rng(5), 60, 7
    low, high, largest, inputs = -1.0, 1.0, 0.8, 2
    weights, constant = generator.normal(size=1 + 2 + 4 + 3 * inputs), 0.3
    span, endless = high - low, np.full(2 * inputs, np.inf)
    model = empty_model(
        has_linear=1,
        inputs=inputs,
        initial_inputs=np.zeros(inputs),
        input_offset=np.zeros(inputs + 2),
        to_hidden=np.empty((0, 1 + inputs + 2, 0), np.float32),
        changes=2,
        input_lags=2,
        periods=np.array([period]),
        label_mean=0.1,
        label_low=low,
        label_high=high,
        largest_change=largest,
        constant=constant,
        linear_weights=weights,
        regressor_low=np.concatenate([[low], [-largest] * 2, [-span] * 4, [-1.5] * inputs, -endless]),
        regressor_high=np.concatenate([[high], [largest] * 2, [span] * 4, [1.5] * inputs, endless]),
        seen_inputs=inputs,
    )
    state = Block(model).state
    x, labels = generator.normal(size=(n_rows, inputs)), np.cumsum(generator.normal(size=n_rows)) / 2
    labels[generator.random(n_rows) < 0.15] = np.nan
    known, differences, has_label = [0.1], [0.0, 0.0], False  # last labels known, before each row; changes
    bounded = np.clip(x, -1.5, 1.5)
    for row in range(n_rows):
        last = known[-1]
        seasonal = np.zeros(4)
        if row >= period + 2:
            then = row - period  # place of the label of the row before, as known[0] comes before all rows
            g = [known[then + place] for place in (-1, 0, 1, 2)]
            seasonal = np.clip([g[2] - g[1], g[1] - g[0], g[3] - g[2], g[2] - last], -span, span)
        past = [bounded[max(row - lag, 0)] - bounded[row] for lag in (1, 2)]
        regressors = [np.clip([last], low, high), differences[-1:-3:-1], seasonal, bounded[row], *past]
        expected = np.concatenate(regressors) @ weights + last + constant
        state.columns[:, :inputs] = x[row]
        call(_predict_linear, model, state)
        assert state.linear_prediction[0] == pytest.approx(expected, abs=1e-12)
        state.label[:], label = labels[row], labels[row]
        call(_observe_linear, model, state)
        change = label - last if has_label and not np.isnan(label) else 0.0
        differences.append(float(np.clip(change, -largest, largest)))
        known.append(last if np.isnan(label) else label)
        has_label = has_label or not np.isnan(label)
        assert state.last_label[0] == known[-1]
        assert state.last_change[0] == change
        assert bool(state.has_label[0]) == has_label


# Cell


def cell_model(*, windows: int, tanh: bool, accumulate: bool, activation: bool) -> StepModel:
    generator, members, hidden, memory, inputs = np.random.default_rng(6), 2, 4, 3, 2

    def singles(*shape: int) -> npt.NDArray[np.float32]:
        return (generator.normal(size=shape) / 2).astype(np.float32)

    return empty_model(
        input_offset=np.zeros(inputs),
        windows=windows,
        carried=int(windows == 1),
        residual=RESIDUALS.index("projected"),
        activation=int(tanh),
        to_hidden=singles(members, 1 + memory + hidden * activation + inputs, hidden),
        readout=singles(members, 1, hidden),
        readout_bias=singles(members, 1),
        to_memory=singles(members, 2 + memory * accumulate, memory),
        adaptation_steps=np.empty((members, 0, 1)),
        own_whitening=np.empty((members, 0, 0)),
        member_shares=np.full((members, 1), 1 / members),
    )


@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize(("accumulate", "activation"), [(False, False), (True, False), (True, True)])
def test_cell_follows_its_equations(
    call: Way, windows: int, tanh: bool, accumulate: bool, activation: bool
) -> None:
    model = cell_model(windows=windows, tanh=tanh, accumulate=accumulate, activation=activation)
    generator, n_rows, n_series = np.random.default_rng(7), 12, 2
    x, targets = generator.normal(size=(n_rows, n_series, 2)), generator.normal(size=(n_rows, n_series))
    targets[generator.random(targets.shape) < 0.2] = np.nan
    members, memory, hidden = 2, 3, 4
    state = Block(model, n_series).state

    def output(member: int, series: int, first: int, row: int) -> float:
        h, u, y = np.zeros(memory), np.zeros(hidden * activation), 0.0
        for place in range(first, row + 1):
            seen = np.concatenate([[1.0], h, u, x[place, series]])
            units = np.maximum(seen @ model.to_hidden[member], 0)
            y = units @ model.readout[member, 0] + model.readout_bias[member, 0]
            if not np.isnan(targets[place, series]):
                error = [targets[place, series] - y, 1.0, *(h if accumulate else [])]
                news = np.array(error) @ model.to_memory[member]
                h = np.tanh(news) if tanh else np.maximum(news, 0)
            if activation:
                u = units
        return float(y)

    for row in range(n_rows):
        state.columns[:] = x[row]
        call(_advance, model, state)
        first = 0 if windows == 1 else max(row - windows + 1, 0)
        if first or windows == 1:  # before that, the oldest window began with nothing before the first row
            for series in range(n_series):
                outputs = [output(member, series, first, row) for member in range(members)]
                np.testing.assert_allclose(state.outputs[:, series], outputs, rtol=2e-4, atol=1e-5)
                assert state.network_output[series] == pytest.approx(np.mean(outputs), rel=2e-4, abs=1e-5)
        state.target[:] = targets[row]
        state.target_known[:] = ~np.isnan(targets[row])
        state.target_clean[:] = np.nan_to_num(targets[row])
        call(_remember, model, state)


def test_states_beyond_the_limit_begin_again(call: Way) -> None:
    model = cell_model(windows=1, tanh=False, accumulate=True, activation=False)._replace(state_limit=10.0)
    state = Block(model, 2).state
    call(_advance, model, state)
    state.target_known[:], state.target_clean[:] = 1.0, [1e5, 0.1]
    call(_remember, model, state)
    assert np.abs(state.seen[:, :, 1:4]).max() <= 10.0
    assert (np.abs(state.seen[:, 1, 1:4]).max(axis=1) > 0).any()


# Intervals


def test_intervals_follow_their_equations(call: Way) -> None:
    generator, hidden, n_series = np.random.default_rng(8), 3, 2
    weights, unit, largest = generator.normal(size=hidden + RECENT_SIZES + 1) / 3, 2.0, 30.0
    quantiles = np.sort(generator.normal(size=len(intervals.TAUS)))
    model = empty_model(
        to_hidden=np.zeros((1, 1, hidden), np.float32),
        quantiles=quantiles,
        scale_weights=weights,
        scale_unit=unit,
        largest_error=largest,
    )
    state, levels = Block(model, n_series).state, (0.5, 0.9)
    lower, upper = np.empty((n_series, 2)), np.empty((n_series, 2))
    q = np.tile(quantiles, (n_series, 1))
    recent, inflation = np.full((n_series, RECENT_SIZES), 1 / SMALLEST_SIZE), np.ones(n_series)
    for row in range(100):
        units = np.maximum(generator.normal(size=(n_series, hidden)), 0).astype(np.float32)
        state.hidden[0] = units
        call(_expect, model, state, level_weights(levels), lower, upper)
        errors = generator.normal(size=n_series) * 10.0 ** (row % 3)
        errors[generator.random(n_series) < 0.2] = np.nan
        for series in range(n_series):
            told = np.log1p(np.concatenate([units[series], recent[series]]))
            exponent = np.clip(
                told @ weights[:-1] + weights[-1], -intervals.MAX_EXPONENT, intervals.MAX_EXPONENT
            )
            scale = unit * np.exp(exponent)
            assert state.expected_scale[series] == pytest.approx(scale)
            at = np.interp([0.25, 0.05, 0.75, 0.95], intervals.TAUS, q[series]) * scale * inflation[series]
            np.testing.assert_allclose(lower[series], np.minimum(at[:2], 0))
            np.testing.assert_allclose(upper[series], np.maximum(at[2:], 0))
            error = errors[series]
            if not np.isnan(error):
                below = error <= q[series] * scale * inflation[series]
                q[series] += intervals.TRACKING_RATE * (intervals.TAUS - below)
                q[series] = np.maximum.accumulate(q[series])
                size = min(abs(error), largest) / (SMALLEST_SIZE * unit)
                recent[series] += intervals.RECENT_WEIGHTS * (size - recent[series])
                ratio = min(abs(error) / scale, intervals.MAX_RATIO * inflation[series])
                inflation[series] += intervals.INFLATION_RATE * (ratio - inflation[series])
        call(_track, model, state, errors)
        np.testing.assert_allclose(state.quantiles, q)
        np.testing.assert_allclose(state.recent_sizes, recent)
        np.testing.assert_allclose(state.inflation, inflation)


def test_levels_between_quantiles_lie_on_a_normal_line() -> None:
    found = intervals.PROBITS @ level_weights((0.5, 0.7, 0.99))
    np.testing.assert_allclose(found[3:], [0.67449, 1.03643, 2.57583], atol=1e-5)
    np.testing.assert_allclose(found[:3], -found[3:])
    assert level_weights(()).shape == (len(intervals.TAUS), 0)


# Floor


def test_floor_is_zero_until_a_label_is_negative(call: Way) -> None:
    model = empty_model()
    state = Block(model, 3).state
    call(_floor, model, state, np.array([1.0, -0.5, np.nan]))
    assert state.floor[0] == state.floor[2] == 0.0
    assert not np.signbit(state.floor[0])
    assert state.floor[1] < -1e200
    call(_floor, model, state, np.array([1.0, 2.0, 0.0]))
    assert state.has_been_negative.tolist() == [0.0, 1.0, 0.0]
