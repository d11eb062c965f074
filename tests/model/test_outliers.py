"""One wild value must not spoil a series: not its predictions, its intervals, nor those of its peers."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn import Panel, Stream, VARNNRegressor, load
from varnn._types import DoubleArray
from varnn.errors import DataError
from varnn.evaluation import metrics
from varnn.model.fitted import Fitted
from varnn.model.intervals import ErrorScale
from varnn.model.outliers import LabelFilter
from varnn.model.prediction import predict, predict_chunks, predict_intervals
from varnn.model.runtime import filter_model
from varnn.step.label_filter import MAX_PENDING_DISTANCE, filter_labels, move_towards_pending
from varnn.step.layout import Block
from varnn.streaming.linked import LinkedStreams

SMALL: Any = {"hidden_size": 8, "epochs": 3, "ensemble": 2, "window": 6, "device": "cpu", "random_state": 0}
TRAINING, PLACE = 1200, 200  # rows, and the row of what follows that goes wrong


def made(rows: int = 2000, seed: int = 0) -> tuple[DoubleArray, DoubleArray]:
    """Make inputs and labels of an ARX process whose labels have a deviation of about 2."""
    generator = np.random.default_rng(seed)
    inputs, noise = generator.normal(size=(rows, 2)), generator.normal(size=rows)
    labels = np.zeros(rows)
    for row in range(1, rows):
        labels[row] = 0.8 * labels[row - 1] + inputs[row, 0] + 0.3 * inputs[row - 1, 1] + 0.5 * noise[row]
    return inputs, labels


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    inputs, labels = made()
    return VARNNRegressor(**SMALL).fit(inputs[:TRAINING], labels[:TRAINING])


@pytest.fixture(scope="module")
def peers() -> VARNNRegressor:
    return VARNNRegressor(peers=True, **SMALL).fit(panel_of_peers(0, TRAINING))


def panel_of_peers(first: int, last: int, *, glitch: float = 0.0) -> Panel:
    """Make three series that share what moves them; the first has a wild label after `PLACE` rows."""
    inputs, labels = made()
    generator = np.random.default_rng(1)
    own = [labels + 0.3 * generator.normal(size=len(labels)) for _ in range(3)]
    own[0][first + PLACE] += glitch
    return Panel.from_arrays(
        np.tile(inputs[first:last], (3, 1)),
        np.concatenate([one[first:last] for one in own]),
        series=np.repeat(list("abc"), last - first),
    )


def later(*, label: float = 0.0, x: float = 0.0, shift: float = 0.0) -> tuple[DoubleArray, DoubleArray]:
    """Give the rows after training, one of which goes wrong, in deviations; a shift stays."""
    inputs, labels = made()
    inputs, labels = inputs[TRAINING:].copy(), labels[TRAINING:].copy()
    labels[PLACE] += 2 * label
    inputs[PLACE, 1] += x
    labels[PLACE:] += 2 * shift
    return inputs, labels


def rmse(errors: DoubleArray) -> float:
    return metrics.rmse(np.zeros_like(errors), errors)


@pytest.mark.parametrize("size", [100.0, 1e6, 1e99])
def test_a_wild_label_hardly_harms_the_rows_after_it(model: VARNNRegressor, size: float) -> None:
    quiet, spoilt = (later(label=label) for label in (0.0, size))
    errors = [labels - model.predict(inputs, labels) for inputs, labels in (quiet, spoilt)]
    after = slice(PLACE + 1, PLACE + 26)
    assert rmse(errors[1][after]) < 1.3 * rmse(errors[0][after])
    assert errors[1][PLACE] > 1.9 * size  # what is reported is the true error


@pytest.mark.parametrize("size", [100.0, 1e6, 1e99])
def test_a_wild_input_hardly_harms_the_rows_after_it(model: VARNNRegressor, size: float) -> None:
    quiet, spoilt = (later(x=x) for x in (0.0, size))
    errors = [labels - model.predict(inputs, labels) for inputs, labels in (quiet, spoilt)]
    after = slice(PLACE + 1, PLACE + 26)
    assert rmse(errors[1][after]) < 2 * rmse(errors[0][after])


@pytest.mark.parametrize("trouble", [{"label": 1e6}, {"x": 1e6}, {"label": 1e99}])
def test_intervals_hold_again_soon(model: VARNNRegressor, trouble: dict[str, float]) -> None:
    inputs, labels = later(**trouble)
    usual, spoilt = (model.predict(*rows, interval=0.9) for rows in (later(), (inputs, labels)))
    after = slice(PLACE + 30, PLACE + 330)
    covered = (spoilt.lower <= labels) & (labels <= spoilt.upper)
    assert 0.85 < covered[after].mean() < 0.95
    widths = [(one.upper - one.lower)[after].mean() for one in (usual, spoilt)]
    assert widths[1] < 1.3 * widths[0]


def test_a_wild_label_of_a_peer_harms_nobody(peers: VARNNRegressor) -> None:
    after = slice(PLACE + 1, PLACE + 26)
    quiet, spoilt = (panel_of_peers(TRAINING, TRAINING + 600, glitch=size) for size in (0.0, 2000.0))
    errors = [(quiet.target - peers.predict(one)).reshape(3, -1)[:, after] for one in (quiet, spoilt)]
    for series in range(3):
        assert rmse(errors[1][series]) < 1.3 * rmse(errors[0][series])


@pytest.mark.parametrize("size", [10.0, 100.0, 1e4])
def test_a_shift_that_stays_is_followed(model: VARNNRegressor, size: float) -> None:
    """Little later than if every label were taken: one label is left out first."""
    inputs, labels = later(shift=size)
    errors = np.abs(labels - model.predict(inputs, labels))
    every = replace(model.fitted_, pipeline=replace(model.fitted_.pipeline, label_filter=None))
    taken = np.abs(labels - predict(every, Panel.from_arrays(inputs, labels)))
    usual = rmse(taken[:PLACE])
    followed, before = (np.flatnonzero(one[: PLACE + 60] > 5 * usual)[-1] for one in (errors, taken))
    assert followed <= before + 3
    assert rmse(errors[PLACE + 60 :]) < 1.2 * rmse(taken[PLACE + 60 :])


def unfiltered(model: VARNNRegressor) -> Fitted:
    """Give a model without any of the bounds."""
    fitted = model.fitted_
    assert fitted.pipeline.linear is not None and isinstance(fitted.calibrator, ErrorScale)
    free = replace(fitted.pipeline.linear, input_low=None, input_high=None, largest_change=1e100)
    return replace(
        fitted,
        pipeline=replace(fitted.pipeline, linear=free, label_filter=None),
        calibrator=replace(fitted.calibrator, largest=np.inf),
    )


def test_rows_like_those_of_training_are_predicted_as_ever(model: VARNNRegressor) -> None:
    panel = Panel.from_arrays(*made())
    levels = np.array([0.9])
    for bounded, free in zip(
        predict_intervals(model.fitted_, panel, levels),
        predict_intervals(unfiltered(model), panel, levels),
        strict=True,
    ):
        assert np.array_equal(bounded, free)


def wild_rows(n_series: int = 1) -> tuple[DoubleArray, DoubleArray]:
    """Give rows of n series with glitches of all kinds, shifts, a ramp and missing labels."""
    generator = np.random.default_rng(4)
    inputs, labels = (np.stack([one] * n_series, axis=1) for one in later())
    labels = labels + 0.1 * generator.normal(size=labels.shape)
    labels[0] = 1e7  # a series may begin with one
    for row in generator.integers(1, len(labels), 30):
        series = generator.integers(n_series)
        labels[row : row + generator.integers(1, 4), series] += 10 ** generator.uniform(1, 8)
    labels[400:450] += 100 * np.arange(50)[:, None]
    labels[600:] -= 3000.0
    labels[generator.random(labels.shape) < 0.1] = np.nan
    inputs[generator.random(inputs.shape) < 0.01] *= 1e5
    return inputs, labels


def test_a_stream_gives_what_a_batch_gives_on_wild_rows(model: VARNNRegressor) -> None:
    inputs, labels = wild_rows()
    batch = model.predict(inputs[:, 0], labels[:, 0], interval=0.9)
    live, found = model.stream(), []
    for row, (x, label) in enumerate(zip(inputs[:, 0], labels[:, 0], strict=True)):
        found.append(live.predict(x, interval=0.9))
        live.observe(label)
        if row % 7 == 0:  # snapshots on the way, some of them while labels are left out
            live = Stream.restore(model, live.snapshot())
    for one, several in zip(batch, np.array(found).T, strict=True):
        np.testing.assert_array_equal(several, one)


def test_a_fleet_gives_what_a_batch_gives_on_wild_rows(model: VARNNRegressor) -> None:
    inputs, labels = wild_rows(n_series=3)
    fleet, found = model.stream(n_series=3), []
    for x, label in zip(inputs, labels, strict=True):
        found.append(fleet.predict(x))
        passed = label.copy()
        fleet.observe(passed)
        passed[:] = 1e9  # what a caller does with its own array afterwards changes nothing
    for series in range(3):
        batch = model.predict(inputs[:, series], labels[:, series])
        np.testing.assert_allclose(np.array(found)[:, series], batch, rtol=1e-4, atol=1e-3)


def test_pieces_of_wild_rows_are_predicted_as_the_whole(model: VARNNRegressor) -> None:
    inputs, labels = wild_rows()
    panel = Panel.from_arrays(inputs[:, 0], labels[:, 0])
    whole, parts = model.predict(panel), np.empty(len(panel))
    for chunk in predict_chunks(model.fitted_, panel, max_rows=37):
        parts[chunk.rows] = chunk.prediction
    np.testing.assert_array_equal(parts, whole)


def test_linked_streams_give_what_a_batch_gives_after_a_glitch(peers: VARNNRegressor) -> None:
    panel = panel_of_peers(TRAINING, TRAINING + 300, glitch=5e3)
    batch, live = peers.predict(panel).reshape(3, -1), LinkedStreams(peers)
    for name in "abc":
        live[name] = live.begin()
    inputs, labels = panel.inputs.reshape(3, -1, 2), panel.target.reshape(3, -1)
    for row in range(300):
        for series, name in enumerate("abc"):
            assert live[name].predict(inputs[series, row]) == pytest.approx(batch[series, row], abs=2e-3)
            live[name].observe(labels[series, row])


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    wild=st.sampled_from([0.01, 0.2, 0.9]),
    missing=st.sampled_from([0.0, 0.3]),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=4),
)
def test_the_filter_is_one_rule_for_batch_and_stream(
    seed: int, wild: float, missing: float, lengths: list[int]
) -> None:
    generator = np.random.default_rng(seed)
    rule = LabelFilter(change=2.0, low=-30.0, high=30.0)
    labels = generator.normal(size=sum(lengths))
    hit = generator.random(len(labels)) < wild
    labels[hit] += generator.choice([-1, 1], hit.sum()) * 10 ** generator.uniform(0, 3, hit.sum())
    labels[generator.random(len(labels)) < missing] = np.nan
    panel = Panel.from_arrays(None, labels, series=np.repeat([f"{i}" for i in range(len(lengths))], lengths))
    expected: list[float] = []
    for first, last in zip(panel.starts[:-1], panel.starts[1:], strict=True):
        expected += _streamed(rule, labels[first:last, None])[0][:, 0].tolist()
    assert np.array_equal(rule(panel).target, expected, equal_nan=True)
    assert np.array_equal(panel.target, labels, equal_nan=True)  # it is not changed itself
    assert np.array_equal(np.isnan(expected), rule.rejected(panel) | np.isnan(labels))


def _streamed(rule: LabelFilter, labels: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
    """Labels (N, n) as they are accepted, and how far predictions move before each."""
    model, n_series = filter_model(rule), labels.shape[1]
    accepted, moves = np.empty_like(labels), np.zeros_like(labels)
    block = Block(model, n_series)
    for row, now in enumerate(labels):
        block.state.prediction[:] = 0
        if block.state.waiting[0]:
            move_towards_pending(block.state)
        moves[row] = block.state.prediction
        filter_labels(model, block.state, now.copy())
        accepted[row] = block.state.label
        block.state.rows[0] += 1
        carried, block = block.carried, Block(model, n_series)  # as from a snapshot
        block.carried[:] = carried
    return accepted, moves


class Happening(NamedTuple):
    """What happens to a series for some rows: nothing, a glitch, a shift, or labels that are missing."""

    kind: str
    rows: int
    size: float


HAPPENINGS = st.lists(
    st.builds(
        Happening,
        st.sampled_from(["calm", "glitch", "shift", "missing"]),
        st.integers(1, 30),
        st.sampled_from([-200.0, -20.0, -4.0, 4.0, 6.0, 20.0, 35.0, 200.0]),
    ),
    min_size=1,
    max_size=12,
)


def happened(happenings: list[Happening]) -> DoubleArray:
    """Make labels within 1 of a level, to which all that happened."""
    level, parts, generator = 0.0, [], np.random.default_rng(len(happenings))
    for kind, rows, size in happenings:
        if kind == "shift":
            level += size
        labels = level + generator.uniform(-0.5, 0.5, rows)
        if kind == "glitch":
            labels[0] += size
        if kind == "missing":
            labels[:] = np.nan
        parts.append(labels)
    return np.concatenate(parts)


@settings(max_examples=100, deadline=None)
@given(series=st.lists(HAPPENINGS, min_size=1, max_size=4))
def test_a_series_of_a_fleet_is_filtered_as_it_is_alone(series: list[list[Happening]]) -> None:
    rule, every = LabelFilter(change=2.0, low=-30.0, high=30.0), [happened(one) for one in series]
    rows = min(map(len, every))
    accepted, moves = _streamed(rule, np.stack([one[:rows] for one in every], axis=1))
    for place, labels in enumerate(every):
        alone, moved = _streamed(rule, labels[:rows, None])
        np.testing.assert_array_equal(accepted[:, place], alone[:, 0])
        np.testing.assert_array_equal(moves[:, place], moved[:, 0])


def moves_of(labels: list[float]) -> list[float]:
    """How far each prediction moves towards a pending label, and the one after the last label."""
    rule = LabelFilter(change=2.0, low=-1e9, high=1e9)
    moves: list[float] = _streamed(rule, np.array([*labels, np.nan])[:, None])[1][:, 0].tolist()
    return moves


@pytest.mark.parametrize("glitches", range(6))
@pytest.mark.parametrize("shifts", range(4))
def test_the_share_is_that_of_laplace(glitches: int, shifts: int) -> None:
    """Glitches gone at the next label, and shifts that stayed, far enough apart to be ones alone."""
    calm, labels, level = [0.0] * 30, [0.0], 0.0
    size = 1.5 * MAX_PENDING_DISTANCE  # of 2: near enough to be pending
    for _ in range(shifts):
        level += size
        size = 2 * size + 1  # beyond the bound that the shift has raised
        labels += [level, level, *(level + one for one in calm)]
    for _ in range(glitches):
        labels += [level + size, level, *(level + one for one in calm)]
    found = moves_of([*labels, level + size])
    assert found[-1] == pytest.approx(size * (1 + shifts) / (2 + shifts + glitches))
    assert np.count_nonzero(found) == shifts + glitches + 1  # one row each


def test_what_is_too_far_off_gets_no_share() -> None:
    bound = 2.0
    assert moves_of([0.0, MAX_PENDING_DISTANCE * bound])[-1] == MAX_PENDING_DISTANCE * bound / 2
    assert not np.any(moves_of([0.0, MAX_PENDING_DISTANCE * bound * 1.001]))
    assert not np.any(moves_of([0.0, -MAX_PENDING_DISTANCE * bound * 1.001]))
    # Far off is meant a row: after missing labels more is plausible.
    waited = moves_of([0.0, np.nan, np.nan, 3 * MAX_PENDING_DISTANCE * bound])
    assert waited == [0, 0, 0, 0, 3 * MAX_PENDING_DISTANCE * bound / 2]


def test_a_label_is_pending_until_the_next_one() -> None:
    assert moves_of([0.0, 10.0, np.nan, np.nan, 0.5, 0.5]) == [0, 0, 5, 5, 5, 0, 0]
    assert moves_of([0.0, 10.0, np.nan, 10.5, 10.0]) == [0, 0, 5, 5, 0, 0]  # the shift is taken
    assert moves_of([0.0, 10.0, -10.0, 0.0]) == [0, 0, 5, -5, 0]  # another glitch, on the other side
    assert moves_of([1e12, 0.0]) == [0, 0, 0]  # a first label that cannot be tells nothing


def test_a_shift_is_followed_a_row_late() -> None:
    rule = LabelFilter(change=2.0, low=-30.0, high=30.0)

    def left_out(*labels: float) -> list[int]:
        rejected: list[int] = np.flatnonzero(rule.rejected(Panel.from_arrays(None, labels))).tolist()
        return rejected

    for size in (5.0, -1.5 * MAX_PENDING_DISTANCE, 2 * MAX_PENDING_DISTANCE):
        assert left_out(0.0, 0.5, size, size + 0.5, size) == [2]
    for size in (500.0, 1e9):  # too far off to be pending: two rows
        assert left_out(0.0, 0.5, size, size + 0.5, size) == [2, 3]
    assert left_out(0.0, 0.5, 16.0, 8.0, 17.0) == [2, 3]  # less than half as far: not until the third


def test_glitches_soon_leave_no_trace(model: VARNNRegressor) -> None:
    """The last of twenty costs a tenth of what the first does, or less, in the row after it."""
    inputs, labels = later()
    plain = model.predict(inputs, labels)
    rule = model.fitted_.pipeline.label_filter
    assert rule is not None
    hit = np.arange(30, 750, 36)
    labels[hit] += 3 * rule.change
    cost = np.abs(model.predict(inputs, labels) - plain)[hit + 1]
    assert cost[0] > rule.change and cost[-1] < cost[0] / 8
    assert np.abs(cost[5:] - cost[0] * 2 / (7 + np.arange(len(cost) - 5))).max() < 0.2 * cost[0]


@pytest.mark.parametrize("wild", [0.75 * MAX_PENDING_DISTANCE, -0.75 * MAX_PENDING_DISTANCE])
def test_a_stream_with_a_pending_label_equals_a_batch(model: VARNNRegressor, wild: float) -> None:
    """Through snapshots while a label is pending, between glitches, shifts and missing labels."""
    inputs, labels = (one[:120].copy() for one in later())
    rule = model.fitted_.pipeline.label_filter
    assert rule is not None
    labels[20] += wild * rule.change
    labels[21:24] = np.nan
    labels[40:] += wild * rule.change
    labels[80] -= wild * rule.change
    batch = model.predict(inputs, labels)
    quiet = model.predict(*(one[:120] for one in later()))
    assert np.abs(batch - quiet)[21:25].min() > 0.4 * abs(wild) * rule.change
    live = model.stream()
    for row, (x, label) in enumerate(zip(inputs, labels, strict=True)):
        assert live.predict(x) == batch[row]
        live = Stream.restore(model, live.snapshot())  # with an x that waits
        live.observe(label)
        live = Stream.restore(model, live.snapshot())


def test_nothing_of_the_training_rows_is_left_out() -> None:
    for seed in range(20):
        panel = Panel.from_arrays(None, np.random.default_rng(seed).standard_cauchy(500))
        rule = LabelFilter.fit(panel.between(0, 300), panel.between(300, 500))
        assert rule is not None
        for part in (panel.between(0, 300), panel.between(300, 500)):
            assert rule(part) is part
    assert LabelFilter.fit(Panel.from_arrays(None, [3.0, 3.0, 3.0])) is None  # nothing is known of changes


def test_a_bound_that_rose_comes_down_again() -> None:
    rule, rows = LabelFilter(change=1.0, low=-9.0, high=9.0), 12_000
    labels = np.zeros(rows)
    labels[10:] = 300.0  # a shift, after which changes of up to 200 a row are plausible
    labels[[20, 5000, rows - 5]] += 100.0
    left_out = np.flatnonzero(np.isnan(rule(Panel.from_arrays(None, labels)).target))
    assert left_out.tolist() == [10, 11, 5000, rows - 5]


@pytest.mark.parametrize("y", [1e308, -1e101, np.inf, 10**400])
def test_labels_beyond_what_a_panel_takes_are_refused(model: VARNNRegressor, y: Any) -> None:
    live = model.stream()
    live.predict([0.1, 0.2])
    before = live.snapshot()
    with pytest.raises((DataError, OverflowError)):
        live.observe(y)
    assert live.snapshot() == before
    fleet = model.stream(n_series=2)
    fleet.predict([[0.1, 0.2], [0.3, 0.4]])
    before = fleet.snapshot()
    with pytest.raises((DataError, OverflowError)):
        fleet.observe([0.5, y])
    assert fleet.snapshot() == before


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("x", [1.7e308, -1e101, np.inf])
def test_inputs_beyond_what_a_panel_takes_are_refused(model: VARNNRegressor, x: float, linear: bool) -> None:
    if not linear:
        inputs, labels = made()
        model = VARNNRegressor.paper("RM", epochs=1, hidden_size=4).fit(inputs[:300], labels[:300])
    live, other = model.stream(), model.stream()
    for one in (live, other):
        one.predict([0.1, 0.2])
        one.observe(0.3)
    with pytest.raises(DataError, match="x must be finite and at most 1e"):
        live.predict([0.1, x])
    assert live.snapshot() == other.snapshot()
    assert live.predict([0.2, 0.3]) == other.predict([0.2, 0.3])
    with pytest.raises(DataError, match="x must be finite and at most 1e"):
        live.predict([x, 0.1])  # while another is open, which stays so
    assert live.observe(0.4) == other.observe(0.4)
    assert live.predict([0.2, 0.3]) == other.predict([0.2, 0.3])


@pytest.mark.parametrize("wild", [{"y": 1e308}, {"x": [1.7e308, 0.0]}])
def test_a_refused_row_leaves_no_trace_among_linked_streams(
    peers: VARNNRegressor, wild: dict[str, Any]
) -> None:
    live = LinkedStreams(peers)
    for name in "ab":
        live[name] = live.begin()
        live[name].predict([0.1, 0.2])
    live["b"].observe(0.3)
    before = live.snapshot()
    with pytest.raises(DataError, match="must be finite and at most 1e"):
        live["a"].observe(wild["y"]) if "y" in wild else live["a"].predict(wild["x"])
    assert live.snapshot() == before


def test_a_file_keeps_the_bounds(model: VARNNRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.varnn")
    kept = load(tmp_path / "m.varnn")
    assert kept.fitted_.pipeline.label_filter == model.fitted_.pipeline.label_filter is not None
    assert kept.fitted_.fingerprint == model.fitted_.fingerprint
    rows = later(label=100.0)
    assert np.array_equal(kept.predict(*rows), model.predict(*rows))


def test_forecasts_start_from_plausible_labels() -> None:
    inputs, labels = made()
    model = VARNNRegressor(horizon=4, **SMALL).fit(inputs[:TRAINING], labels[:TRAINING])
    known = labels[: TRAINING + 400].copy()
    known[-2] += 1000.0
    quiet, spoilt = (
        model.forecast(Panel.from_arrays(inputs[: len(known)], one), interval=0.9)
        for one in (labels[: len(known)], known)
    )
    np.testing.assert_allclose(spoilt.prediction, quiet.prediction, atol=2.0)
    widths = [np.subtract(np.asarray(one.upper), np.asarray(one.lower)) for one in (spoilt, quiet)]
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.5)


def test_the_command_goes_on_after_a_wild_line(model: VARNNRegressor) -> None:
    from varnn.streaming.store import Store

    wild, calm = Store(model), Store(model)
    last = {"x": [0.2, 0.1], "interval": 0.9}
    lines = [{"x": [0.1, 0.2]}, {"y": 1e308}, {"y": 0.3}, {"x": [1.7e308, 0.0]}, last]
    answers = [wild.answer(line) for line in lines]
    expected = [calm.answer(lines[place]) for place in (0, 2, 4)]
    assert [answers[place] for place in (0, 2, 4)] == expected
    assert all("must be finite and at most 1e+100" in answers[place]["error"] for place in (1, 3))


def test_a_copy_of_a_stream_leaves_out_what_the_stream_does(model: VARNNRegressor) -> None:
    live = model.stream()
    inputs, labels = later()
    for x, y in zip(inputs[:50], labels[:50], strict=True):
        live.predict(x)
        live.observe(y)
    live.predict(inputs[50])
    live.observe(1e4)
    twin = copy.deepcopy(live)
    for x in inputs[51:55]:
        assert live.predict(x) == twin.predict(x)
        assert live.observe(1e4) == twin.observe(1e4)
