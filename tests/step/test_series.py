"""Series at work, plain and compiled: streams, fleets and batches are one step, to the last bit."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.cases import CASES, Case, random_panel, random_weights, with_a_field
from tests.compiled import WAYS, by_compiled_code, by_numpy
from tests.streaming.kinds import (
    KINDS,
    LEVELS,
    TINY,
    Rows,
    alike,
    close,
    fitted,
    later,
    rows_of,
    step,
    streams,
)
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn._types import FloatArray
from varnn.data.preparation import Scaling
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.jobs import cores
from varnn.model.fitted import Fitted
from varnn.model.intervals.error_scale import ErrorScale, ScaleTracker
from varnn.model.pipeline import FeaturePipeline
from varnn.model.prediction import predict, predict_chunks, predict_intervals
from varnn.model.rows import run_panel
from varnn.network import cell
from varnn.network.cell import Architecture, Weights
from varnn.network.scoring import score
from varnn.persistence import model_file
from varnn.step import series
from varnn.step.kernel import address_table
from varnn.step.layout import CARRIED, Block
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.stream import ReplayRow

Way = Callable[[], Any]


def drawn(
    case: Case, context: Any, *, window: int = 5, members: int = 2, n_inputs: int = 3, seed: int = 0
) -> Fitted:
    """Make a model of drawn weights that sees inputs and labels as they are."""
    architecture = case.architecture(n_inputs=n_inputs)
    weights = [random_weights(architecture, seed + one, np.float32).as_dict() for one in range(members)]
    return plain_model(
        architecture,
        Weights(**{name: np.stack([one[name] for one in weights]) for name in weights[0]}),
        context=context,
        window=window,
    )


def plain_model(architecture: Architecture, weights: Weights, **options: Any) -> Fitted:
    """Make a model of a cell alone."""
    inputs = architecture.n_inputs
    scaling = Scaling(
        input_offset=np.zeros(inputs),
        input_scale=np.ones(inputs),
        initial_inputs=np.zeros(inputs),
        target_offset=0.0,
        target_scale=1.0,
    )
    return Fitted(
        architecture=architecture,
        weights=weights,
        pipeline=FeaturePipeline(scaling=scaling, fill="forward", initial_inputs=np.zeros(inputs)),
        input_names=tuple(f"x{index}" for index in range(inputs)),
        target_name="y",
        **options,
    )


def panel_of(rows: Rows, model: Fitted) -> Panel:
    """Rows of one series as a panel."""
    names = model.input_names or None
    inputs = rows.x[:, 0] if rows.x.shape[2] else None
    return Panel.from_arrays(inputs, rows.y[:, 0], time=rows.times, input_names=names)


def same(one: Any, other: Any) -> None:
    """Compare arrays to the last bit."""
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("context", ["series", "window"])
@pytest.mark.parametrize("case", CASES, ids=str)
@settings(max_examples=10, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    n_inputs=st.integers(0, 3),
    members=st.integers(1, 3),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_a_cell_of_any_kind_predicts_by_the_equations_of_the_paper(
    case: Case,
    context: str,
    way: Way,
    lengths: list[int],
    n_inputs: int,
    members: int,
    missing: float,
    seed: int,
) -> None:
    model = drawn(case, context, members=members, n_inputs=n_inputs, seed=seed)
    panel = random_panel(lengths, n_inputs, missing=missing, seed=seed)
    with way():
        found = predict(model, panel)
    cell = {
        "variant": case.variant,
        "residual": case.residual,
        "activation": case.activation,
        "memory_size": model.architecture.memory_size,
    }
    window = max(lengths) if model.carried else model.window
    starts = panel.starts.tolist()
    expected = np.mean(
        [
            oracle.predict_rows(weights, panel.inputs, panel.target, starts, window, **cell)
            for weights in members_of(model)
        ],
        axis=0,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * max(1.0, np.abs(expected).max()))


def members_of(model: Fitted) -> list[dict[str, FloatArray]]:
    """Weights of each member, in double precision."""
    matrices = model.weights.as_dict()
    return [
        {name: matrix[member].astype(np.float64) for name, matrix in matrices.items()}
        for member in range(model.n_members)
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("context", ["series", "window"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_memory_and_hidden_layers_are_those_of_windows(
    case: Case, missing: float, context: str, way: Way
) -> None:
    """A state that is carried is that of a window as long as the series."""
    model = drawn(case, context, seed=3)
    panel = random_panel([9, 1, 15, 4], missing=missing, seed=5)
    with way():
        (chunk,) = predict_chunks(model, panel, wanted=("memory", "hidden", "output"))
    inputs, target = panel.inputs.astype(np.float32), panel.target.astype(np.float32)
    expected = score(
        model.architecture,
        model.weights,
        inputs,
        target,
        panel.first_rows,
        15 if model.carried else model.window,
        keep_memory=True,
        keep_hidden=True,
    )
    for found, wanted in (
        (chunk.taps.memory, expected.memory),
        (chunk.taps.hidden, expected.hidden),
        (chunk.taps.output, expected.predictions.mean(axis=0)),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(wanted).max()))


def by_the_cell(model: Fitted, panel: Panel) -> tuple[Any, Any, Any]:
    """Carry a state by the cell's own equations in double precision: outputs, memory and hidden layers."""
    cells, limit = model.architecture, model.state_limit
    weights = Weights(**{name: one.astype(np.float64) for name, one in model.weights.as_dict().items()})
    outputs, memory, hidden = [], [], []
    for first, last in pairwise(panel.starts):
        projected = cell.project(cells, weights, panel.inputs[first:last].astype(np.float64))
        state = cell.initial_state(cells, like=projected[:, :1])
        for row in range(last - first):
            label = panel.target[first + row]
            y_hat, u = cell.predict(cells, weights, projected[:, row : row + 1], state)
            outputs.append(y_hat[:, 0, 0])
            memory.append(state.residual[:, 0])
            hidden.append(u[:, 0])
            missing = np.full((1, 1), np.isnan(label))
            state = cell.update(cells, weights, label - y_hat, u, state, missing)
            parts = [part.copy() for part in state if part is not None]
            beyond = (np.abs(np.concatenate(parts, axis=-1)) > limit).any(axis=-1)
            for part in parts:
                part[beyond] = 0
            state = cell.State(*parts)
    return np.stack(outputs, axis=1), np.stack(memory, axis=1), np.stack(hidden, axis=1)


def growing(variant: str, factor: float, limit: float) -> Fitted:
    """Two members with one unit of memory: the state of the first is multiplied with every row."""
    architecture = Case(variant).architecture(n_inputs=1, hidden_size=2, memory_size=1)
    matrices = {name: np.zeros((2, *shape), np.float32) for name, shape in architecture.shapes.items()}
    matrices["error_bias"][...] = 1
    if architecture.accumulate:
        matrices["carry"][0], matrices["carry"][1] = factor, 0.5
    if architecture.activation_memory:
        matrices["fusion_bias"][0] = 1
        matrices["fusion"][0, -2:] = factor * np.eye(2, dtype=np.float32)
    return plain_model(architecture, Weights(**matrices), context="series", window=3, state_limit=limit)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limit", [100.0, 1e18])
@pytest.mark.parametrize("variant", ["ARM", "RM+AM", "ARM+AM"])
def test_a_state_beyond_the_limit_begins_again_for_its_own_member_alone(
    variant: str, limit: float, way: Way
) -> None:
    panel, wanted = random_panel([250], 1, seed=0), ("memory", "hidden")
    with way():
        ((_, held),) = run_panel(growing(variant, 2.0, limit).step, panel, wanted=wanted)
        ((_, free),) = run_panel(growing(variant, 2.0, np.inf).step, panel.between(0, 100), wanted=wanted)
    largest = [max(np.abs(one.memory[0]).max(), np.abs(one.hidden[0]).max()) for one in (held, free)]
    assert limit / 4 < largest[0] <= 4 * limit
    assert largest[1] > 1e25
    np.testing.assert_array_equal(held.memory[1, :100], free.memory[1])
    _, memory, hidden = by_the_cell(growing(variant, 2.0, limit), panel)
    np.testing.assert_allclose(held.memory, memory, rtol=1e-5)
    np.testing.assert_allclose(held.hidden, hidden, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", [Case("RM"), Case("ARM"), Case("RM+AM"), Case("ARM+AM")], ids=str)
@pytest.mark.parametrize("wild", [1e30, -1e30])
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_a_wild_input_does_nothing_after_the_next_label(case: Case, wild: float, way: Way) -> None:
    model = replace(drawn(case, "series", seed=4), state_limit=1e6)
    free = replace(model.pipeline.scaling, input_limit=1e35)
    model = replace(model, pipeline=replace(model.pipeline, scaling=free))
    panel = random_panel([30, 30], missing=0.1, seed=3)
    panel.inputs[10], panel.target[10] = wild, 0.5
    with way():
        found, alone = predict(model, panel), predict(model, panel.between(30, 60))
    np.testing.assert_array_equal(found[30:], alone)
    expected = by_the_cell(model, panel)[0].mean(axis=0)
    later_rows = np.arange(60) != 10
    assert np.abs(expected[later_rows]).max() < 1e5
    np.testing.assert_allclose(found[later_rows], expected[later_rows], rtol=1e-3, atol=1e-3)


def test_a_cell_that_the_step_does_not_know_is_refused() -> None:
    """The step has the cell's equations a second time, so a new kind of cell must not pass unnoticed."""
    model = drawn(Case("RM"), "window")
    longer = replace(model, architecture=with_a_field(model.architecture, "flavour", "as ever"))
    with pytest.raises(ConfigError, match="flavour"):
        Stream(longer)


def test_the_kinds_are_what_they_are_called() -> None:
    experts = fitted("few joined").experts
    assert experts is not None and experts.unit == 0
    assert fitted("calendar").pipeline.calendar == ("day", "week")
    assert fitted("positive").positive and not fitted("default").positive
    assert fitted("no intervals").calibrator is None
    linear = fitted("seasonal").pipeline.linear
    assert linear is not None and linear.form.periods == (48,)
    assert fitted("no inputs").input_names == ()
    assert fitted("alone").n_members == 1
    assert not fitted("window").carried and fitted("default").carried
    assert fitted("no linear part").pipeline.linear is None
    assert fitted("not learning").experts is None
    assert fitted("tanh").architecture.memory_activation == "tanh"
    assert [fitted(one).architecture.residual for one in ("scalar", "none")] == ["scalar", "none"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_a_batch_to_the_last_bit(kind: str, way: Way) -> None:
    """Also through snapshots, with an x that waits for its label, and whatever is asked in between."""
    model, rows = fitted(kind), later(kind, 120)
    panel, draw = panel_of(rows, model), np.random.default_rng(0)
    interval = None if model.calibrator is None else LEVELS
    with way():
        if interval is None:
            batch: Any = (predict(model, panel, resume=False),)
        else:
            batch = predict_intervals(model, panel, LEVELS, resume=False)
        live, found = Stream(model), []
        for row in range(120):
            time = None if rows.times is None else rows.times[row]
            if row % 5 == 2:
                live.predict(draw.normal(size=live._shape), time=time, interval=interval)
            answer = live.predict(rows.x[row, 0], time=time, interval=interval)
            found.append(answer if interval is not None else (answer,))
            if row % 9 == 4:
                live = Stream.restore(model, live.snapshot())
            live.observe(rows.y[row, 0])
            if row % 11 == 7:
                live = Stream.restore(model, live.snapshot())
    same(map(np.array, zip(*found, strict=True)), batch)


@pytest.mark.parametrize("n_series", [None, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_code_gives_what_plain_code_gives(kind: str, n_series: int | None) -> None:
    """To a millionth of the labels' deviation; rows in trouble, to single precision."""
    model = fitted(kind)
    for trouble, tolerance in ((False, 1e-6), (True, 1e-5)):
        rows = later(kind, 120, n_series or 1, trouble=trouble)
        scale = float(np.nanstd(later(kind, 120, trouble=False).y))
        plain, ours = streams(model, n_series)
        for row in range(120):
            interval = None if model.calibrator is None else (None, 0.9, LEVELS)[row % 3]
            found, expected = step(ours, rows, row, interval), step(plain, rows, row, interval)
            for one, other in zip(found, expected, strict=True):
                assert type(one) is type(other) and np.shape(one) == np.shape(other)
                relative = tolerance if trouble else 0.0
                np.testing.assert_allclose(one, other, rtol=relative, atol=tolerance * scale)
            if model.experts is not None:
                assert list(ours.weights) == list(plain.weights)
                close(ours.weights.values(), plain.weights.values())
        alike(ours, plain)


@pytest.mark.parametrize(
    "kind", ["default", "RM", "positive", "unfiltered", "seasonal", "one factor", "window"]
)
def test_numbers_beyond_all_bounds_leave_finite_ones(kind: str) -> None:
    model, rows, draw = fitted(kind), later(kind, 120, 2, seed=3), np.random.default_rng(3)
    wild = draw.random(rows.y.shape) < 0.08
    rows.y[wild] = draw.choice([1e99, -1e99, 1e60, -1e30, 0.0, 1e8], size=wild.sum())
    wild = draw.random(rows.x.shape) < 0.03
    rows.x[wild] = draw.choice([1e100, -1e100, 1e60, 0.0], size=wild.sum())
    plain, ours = streams(model, 2)
    for row in range(120):
        found = step(ours, rows, row, LEVELS)
        close(found, step(plain, rows, row, LEVELS), 1e-4)
        assert all(np.isfinite(one).all() for one in found[:3])
    after = None if rows.times is None else rows.times[-1] + np.timedelta64(1, "D")
    for live, way in ((plain, by_numpy), (ours, by_compiled_code)):
        with way():
            again = Stream.restore(model, live.snapshot())
        same(again.predict(rows.x[0], time=after), live.predict(rows.x[0], time=after))


@pytest.mark.parametrize("way", WAYS)
def test_labels_and_inputs_that_are_all_missing_leave_predictions(way: Way) -> None:
    model, rows = fitted("default"), later("default", 40, 2, trouble=False)
    rows.y[10:30], rows.x[10:30] = np.nan, np.nan
    with way():
        live = Stream(model, 2)
        for row in range(40):
            found = step(live, rows, row, 0.9)
            assert all(np.isfinite(one).all() for one in found[:3])
            assert np.isnan(found[3]).all() == (10 <= row < 30)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "n_series", "count"),
    [
        *((kind, 3, 60) for kind in KINDS),
        ("default", 1, 40),
        ("default", 128, 12),
        ("default", 129, 12),
        ("default", 300, 12),
        ("default", 2000, 5),
        ("window", 129, 12),
        ("positive", 300, 12),
        ("calendar", 300, 12),
    ],
)
def test_a_series_of_a_fleet_is_that_series_alone(kind: str, n_series: int, count: int, way: Way) -> None:
    """But for how single precision rounds."""
    model, rows = fitted(kind), later(kind, count, n_series)
    interval = None if model.calibrator is None else 0.9
    places = sorted({0, 1, 127, 128, n_series - 1} & set(range(n_series)))
    with way():
        fleet, alone = Stream(model, n_series), {place: Stream(model) for place in places}
        for row in range(count):
            together = step(fleet, rows, row, interval)
            for place, live in alone.items():
                found = step(live, rows.of(place), row, interval)
                close([one[place] for one in together], found)
        weights = [] if model.experts is None else [*fleet.weights.values()]
        for place, live in alone.items():
            if weights:
                close([one[place] for one in weights], live.weights.values(), 1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_series_over_several_threads_give_the_same_bits(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, found = fitted("default"), later("default", 8, 300), []
    monkeypatch.setattr(series, "_THREADED", 200)
    for count in (1, 2, 5):
        monkeypatch.setattr(cores, "usable", lambda count=count: count)
        with way():
            live = Stream(model, 300)
            found.append(([step(live, rows, row, LEVELS) for row in range(8)], live.snapshot()))
    for steps, snapshot in found[1:]:
        assert snapshot == found[0][1]
        for one, other in zip(steps, found[0][0], strict=True):
            same(one, other)


def test_few_series_or_one_core_take_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "ThreadPoolExecutor", None)  # asking for one fails
    model, rows = fitted("RM"), later("RM", 2, 300)
    with by_numpy():
        step(Stream(model, 300), rows, 0)
        monkeypatch.setattr(series, "_THREADED", 200)
        monkeypatch.setattr(cores, "usable", lambda: 4)
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        step(Stream(model, 300), rows, 0)
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with pytest.raises(TypeError):
            step(Stream(model, 300), rows, 0)


@pytest.mark.parametrize("way", WAYS)
def test_an_input_that_cannot_be_used_is_found_in_any_block(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "_THREADED", 200)
    with way():
        for place in (0, 130, 299):
            x = np.zeros((300, 2))
            live = Stream(fitted("default"), 300)
            x[place, 1] = 1e101
            with pytest.raises(DataError):
                live.predict(x)


@pytest.mark.parametrize("way", WAYS)
def test_threads_with_streams_of_their_own_give_the_same_bits(way: Way) -> None:
    model, rows = fitted("default"), later("default", 60)

    def go(_: int) -> str:
        live = Stream(model)
        return repr([step(live, rows, row, 0.9) for row in range(60)])

    with way(), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(go, range(4)))
        assert found == [go(0)] * 4


@pytest.mark.parametrize("way", WAYS)
def test_series_of_a_panel_do_not_see_each_other(way: Way) -> None:
    model = fitted("default")
    panel = random_panel([90, 1, 140, 33], 2, missing=0.1, seed=1)
    panel = replace(panel, input_names=model.input_names)
    with way():
        whole = predict_intervals(model, panel, LEVELS)
        for first, last in pairwise(panel.starts.tolist()):
            if np.isnan(panel.target[first:last]).all():
                continue
            part = predict_intervals(model, panel.between(first, last), LEVELS)
            same(part, [values[first:last] for values in whole])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("calendar", [None, ["day"]])
def test_series_that_see_each_other_are_predicted_alike_in_a_batch_a_fleet_and_one_by_one(
    calendar: Any, way: Way
) -> None:
    rows, names = rows_of(260, 3, timed=True, trouble=True), np.array(["a", "b", "c"])

    def panel(first: int, last: int) -> Panel:
        inputs = rows.x[first:last].swapaxes(0, 1).reshape(-1, 2)
        labels, times = rows.y[first:last].T.ravel(), np.tile(rows.times[first:last], 3)
        return Panel.from_arrays(inputs, labels, series=np.repeat(names, last - first), time=times)

    details = Details(context="series", memory_size=3)
    model = VARNNRegressor(**TINY, peers=True, calendar=calendar, details=details).fit(panel(0, 200)).fitted_
    with way():
        batch = predict(model, panel(200, 260), resume=False).reshape(3, 60)
        fleet, linked = Stream(model, 3), LinkedStreams(model)
        for name in names:
            linked[name] = linked.begin()
        for row in range(60):
            x, y, time = (one[200 + row] for one in rows)
            np.testing.assert_allclose(fleet.predict(x, time=time), batch[:, row], rtol=1e-4, atol=1e-4)
            fleet.observe(y)
            for place, name in enumerate(names):
                found = linked[name].predict(x[place], time=time)
                np.testing.assert_allclose(found, batch[place, row], rtol=1e-4, atol=1e-4)
                linked[name].observe(y[place])


def in_another_form(panel: Panel, form: str) -> Panel:
    """The same numbers, in memory that is laid out otherwise."""

    def other(array: FloatArray) -> Any:
        if form == "view":
            return np.repeat(array, 2, axis=0)[::2]
        if form == "turned":
            return np.asfortranarray(array)
        again = array.copy()
        again.flags.writeable = False
        return again

    starts = panel.starts.copy()
    starts.flags.writeable = form != "read-only"
    return replace(panel, inputs=other(panel.inputs), target=other(panel.target), starts=starts)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["view", "turned", "read-only"])
def test_panels_of_any_form_are_predicted_alike(form: str, way: Way) -> None:
    model = fitted("default")
    panel = replace(random_panel([60, 20], 2, missing=0.1), input_names=model.input_names)
    with way():
        expected = predict_intervals(model, panel, LEVELS)
        same(predict_intervals(model, in_another_form(panel, form), LEVELS), expected)
        single = replace(
            panel, inputs=panel.inputs.astype(np.float32), target=panel.target.astype(np.float32)
        )
        found = predict_intervals(model, single, LEVELS)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_numbers_that_are_not_contiguous_are_refused() -> None:
    model = fitted("default").step
    with pytest.raises(TypeError, match="contiguous"):
        address_table(model._replace(input_offset=np.zeros(2 * len(model.input_offset))[::2]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 2])
def test_predicting_changes_nothing(n_series: int | None, way: Way) -> None:
    model, rows = fitted("default"), later("default", 40, n_series or 1)
    with way():
        live, other = Stream(model, n_series), Stream(model, n_series)
        draw = np.random.default_rng(0)
        for row in range(40):
            for _ in range(2):
                live.predict(draw.normal(size=live._shape), interval=[0.5, 0.9])
            assert repr(step(live, rows, row)) == repr(step(other, rows, row))
        assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 2])
def test_a_caller_may_write_into_its_own_arrays(n_series: int | None, way: Way) -> None:
    """Those of x, of labels and of answers: they are used again for the next row."""
    model, rows = fitted("default"), later("default", 12, n_series or 1)
    with way():
        live, other = Stream(model, n_series), Stream(model, n_series)
        x, labels = np.empty(live._shape), np.empty(n_series or 1)
        for row in range(12):
            x[...], labels[...] = rows.x[row].reshape(x.shape), rows.y[row]
            found = live.predict(x, interval=0.9)
            x[...] = np.nan if row % 2 else 7e7
            if n_series is not None:
                found.prediction[:], found.lower[:], found.upper[:] = 1e9, 1e9, 1e9
            if row % 4 == 3:
                live = Stream.restore(model, live.snapshot())
            innovation = live.observe(labels[0] if n_series is None else labels)
            labels[...] = 1e9
            np.testing.assert_array_equal(innovation, step(other, rows, row)[-1])
        assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 3, 300])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf, 1e200, 1e101])
def test_a_refused_row_leaves_the_open_step_as_it_was(n_series: int | None, wrong: float, way: Way) -> None:
    model, rows = fitted("default"), later("default", 4, n_series or 1)
    with way():
        live, other = Stream(model, n_series), Stream(model, n_series)
        bad = np.zeros(live._shape)
        bad.flat[-1] = wrong
        for row in range(4):
            x, label = rows.x[row], rows.y[row]
            if n_series is None:
                x, label = x[0], label[0]
            for one in (live, other):
                one.predict(x, interval=0.9)
            with pytest.raises(DataError, match="x must be finite"):
                live.predict(bad)
            np.testing.assert_array_equal(live.observe(label), other.observe(label))
        assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_row_without_an_open_step_opens_none(way: Way) -> None:
    with way():
        live = Stream(fitted("default"))
        with pytest.raises(DataError):
            live.predict([np.inf, 0.0])
        with pytest.raises(DataError, match="no x was predicted"):
            live.observe(1.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 2])
def test_a_missing_input_is_refused_if_the_model_fills_none(n_series: int | None, way: Way) -> None:
    rows = later("refused", 3, n_series or 1)
    with way():
        live, other = Stream(fitted("refused"), n_series), Stream(fitted("refused"), n_series)
        for one in (live, other):
            step(one, rows, 0)
            one.predict(rows.x[1][0] if n_series is None else rows.x[1])
        x = np.zeros(live._shape)
        x.flat[-1] = np.nan
        with pytest.raises(DataError, match="missing input"):
            live.predict(x)
        for one in (live, other):
            one.observe(rows.y[1][0] if n_series is None else rows.y[1])
            step(one, rows, 2)
        assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_a_time_is_refused_if_the_calendar_is_an_input(way: Way) -> None:
    rows = later("calendar", 3)
    with way():
        live = Stream(fitted("calendar"))
        expected = live.predict(rows.x[0, 0], time=rows.times[0])
        with pytest.raises(DataError, match="time"):
            live.predict(rows.x[1, 0])
        assert live.observe(rows.y[0, 0]) == rows.y[0, 0] - expected


@pytest.mark.parametrize(
    "time", ["1969-12-31T23:59:59.999999", "2026-03-01T07:13:59.123456", "0001-01-01", "9999-12-31T23:59:59"]
)
def test_times_of_all_kinds_are_seen_alike(time: str) -> None:
    plain, ours = streams(fitted("calendar"), None)
    found, expected = (live.predict([0.1, 0.2], time=time) for live in (ours, plain))
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 3])
@pytest.mark.parametrize("kind", ["default", "positive", "calendar", "window", "no inputs", "seasonal"])
def test_a_checkpoint_is_gone_back_to_any_number_of_times(kind: str, n_series: int | None, way: Way) -> None:
    model, rows = fitted(kind), later(kind, 50, n_series or 1)
    with way():
        live = Stream(model, n_series)
        live.watch(coverage=0.9)
        for row in range(30):
            step(live, rows, row)
        x, y = (one[30][0] if n_series is None else one[30] for one in (rows.x, rows.y))
        opened = live.predict(x, time=None if rows.times is None else rows.times[30], interval=0.9)
        here, before = live.checkpoint(), live.snapshot()
        runs = []
        for _ in range(3):
            np.testing.assert_array_equal(live.prediction, opened.prediction)
            assert live.is_open and live.steps == 30 and live.snapshot() == before
            answers = [live.observe(y), *(step(live, rows, row, LEVELS) for row in range(31, 50))]
            runs.append((repr(answers), live.snapshot(), live.events))
            live.rollback(here)
        assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["default", "positive", "calendar", "window", "trees"])
def test_rows_replayed_are_rows_with_labels_in_time(kind: str, way: Way) -> None:
    """A label that was missing comes; all rows since are gone through again."""
    model, rows = fitted(kind), later(kind, 40)
    times = [None] * 40 if rows.times is None else list(rows.times)
    with way():
        live, other = Stream(model), Stream(model)
        for one in (live, other):
            one.watch()
            for row in range(20):
                step(one, rows, row)
            one.predict(rows.x[20, 0], time=times[20])
        here = live.checkpoint()
        live.observe(None)
        for row in range(21, 39):
            step(live, rows, row)
        live.predict(rows.x[39, 0], time=times[39])
        again = [ReplayRow(rows.y[row, 0], rows.x[row + 1, 0], times[row + 1]) for row in range(20, 39)]
        live.replay(here, again)
        other.observe(rows.y[20, 0])
        for row in range(21, 39):
            step(other, rows, row)
        expected = other.predict(rows.x[39, 0], time=times[39])
        assert live.prediction == expected
        assert live.snapshot() == other.snapshot()
        live.replay(here, [ReplayRow(1.0, None, None)])  # and none is open after the last one
        assert not live.is_open and live.steps == 21


@pytest.mark.parametrize("n_series", [None, 3, 130])
@pytest.mark.parametrize("kind", ["default", "positive", "calendar", "no inputs", "RM", "window", "trees"])
def test_plain_and_compiled_code_continue_from_each_others_snapshots(kind: str, n_series: int | None) -> None:
    """Also in the middle of a step, whose x waits for its label."""
    count = 80 if n_series != 130 else 30
    model, rows = fitted(kind), later(kind, count, n_series or 1)
    plain, ours = streams(model, n_series)
    for row in range(count):
        if row % 9 == 4:
            x, label = (one[row][0] if n_series is None else one[row] for one in (rows.x, rows.y))
            for live in (plain, ours):
                live.predict(x, time=None if rows.times is None else rows.times[row])
            with by_numpy():
                restored = Stream.restore(model, ours.snapshot())
            with by_compiled_code():
                ours = Stream.restore(model, plain.snapshot())
            plain = restored
            close([ours.observe(label)], [plain.observe(label)])
            continue
        close(step(ours, rows, row), step(plain, rows, row))
    alike(ours, plain)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("n_series", [None, 2])
def test_copies_continue_by_themselves(
    n_series: int | None, again: Callable[[Stream], Stream], way: Way
) -> None:
    model, rows = fitted("default"), later("default", 40, n_series or 1)
    with way():
        live = Stream(model, n_series)
        for row in range(20):
            step(live, rows, row)
        other = again(live)
        first = [step(live, rows, row, 0.9) for row in range(20, 40)]  # the copy is not moved by it
        for row, expected in enumerate(first, start=20):
            same(step(other, rows, row, 0.9), expected)
        assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["default", "positive", "calendar", "RM", "window"])
def test_rows_that_are_looked_back_on_teach_nothing(kind: str, way: Way) -> None:
    model, rows = fitted(kind), later(kind, 40)
    rows = rows._replace(times=None if rows.times is None else rows.times + np.timedelta64(500, "h"))
    panel = panel_of(rows, model)
    with way():
        live, fresh = Stream(model, resume=True), Stream(model)
        ours, theirs = (one._step.blocks[0].state for one in (live, fresh))
        for name in ("changes", "scores", "weights", "quantiles", "recent_sizes", "inflation"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert not np.allclose(ours.seen, theirs.seen)
        assert ours.last_label[0] != theirs.last_label[0]
        found = [step(live, rows, row, 0.9)[:3] for row in range(40)]
        same(map(np.array, zip(*found, strict=True)), predict_intervals(model, panel, 0.9, resume=True))


@pytest.mark.parametrize("way", WAYS)
def test_labels_below_zero_lift_the_floor_unless_they_are_not_plausible(way: Way) -> None:
    model, rows = fitted("positive"), later("positive", 60, trouble=False)
    rows.y[:] = np.maximum(9 - 0.5 * np.arange(60), 0.05)[:, None]
    rows.y[30], rows.y[50:] = -1e6, -0.2
    lifted, lowest = [], []
    with way():
        live = Stream(model)
        for row in range(60):
            lowest.append(step(live, rows, row, 0.95)[1])
            lifted.append(bool(live._has_been_negative[0]))
    assert lifted == [False] * 50 + [True] * 10
    assert min(lowest[:50]) == 0.0 and min(lowest[51:]) < 0


@pytest.mark.parametrize("n_series", [None, 2])
def test_rows_are_forecast_alike(n_series: int | None) -> None:
    rows = rows_of(300, offset=9.0)
    details = Details(memory_size=3, context="series", positive=True)
    model = VARNNRegressor("RM", **TINY, horizon=3, details=details).fit(rows.x[:, 0], rows.y[:, 0])
    rows = rows_of(60, n_series or 1, offset=9.0, trouble=True, seed=2)
    pytest.importorskip("numba")
    with by_numpy():
        plain = Stream(model, n_series)
    with by_compiled_code():
        ours = Stream(model, n_series)
    for row in range(60):
        close(step(ours, rows, row), step(plain, rows, row))
        if row % 20 == 10:
            found, expected = (live.forecast(interval=0.9) for live in (ours, plain))
            assert found.lower is not None and expected.lower is not None
            np.testing.assert_allclose(found.prediction, expected.prediction, rtol=1e-6)
            np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-6)
    alike(ours, plain)


@pytest.mark.parametrize("n_series", [None, 3])
def test_changes_are_noticed_alike(n_series: int | None) -> None:
    model, rows = fitted("default"), later("default", 400, n_series or 1)
    rows.y[200:] += 5 * np.random.default_rng(0).normal(size=rows.y[200:].shape)
    plain, ours = streams(model, n_series)
    noticed: list[list[Any]] = [[], []]
    for live in (plain, ours):
        live.watch(coverage=0.9, warm_up=50)
    for row in range(400):
        for live, events in zip((plain, ours), noticed, strict=True):
            step(live, rows, row, (None, [0.5, 0.7])[row % 2])  # other levels than the one that is watched
            events += [(event.kind, event.row, event.series) for event in live.events]
    assert noticed[0] and noticed[0] == noticed[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("level", [0.5, 0.83, 0.99])
def test_whether_an_interval_covers_a_label_is_what_its_bounds_say(level: float, way: Way) -> None:
    model, rows, covered = fitted("default"), later("default", 100), []
    with way():
        live = Stream(model)
        for row in range(100):
            found = live.predict(rows.x[row, 0], interval=level)
            below, above = found.lower - found.prediction, found.upper - found.prediction
            for error in (0.0, 0.999 * below, 1.001 * below, 0.999 * above, 1.001 * above):
                assert live._covered(level, error)[0] == (below <= error <= above)
            covered.append(live._covered(level, rows.y[row, 0] - found.prediction)[0])
            live.observe(rows.y[row, 0])
    np.testing.assert_array_equal(np.isnan(covered), np.isnan(rows.y[:, 0]))
    assert 0 < np.nanmean(covered) < 1


@pytest.mark.parametrize("way", WAYS)
def test_intervals_are_refused_if_none_were_learned(way: Way) -> None:
    with way():
        live = Stream(fitted("no intervals"))
        with pytest.raises(ConfigError):
            live.predict([0.0, 0.0], interval=0.9)
        with pytest.raises(ConfigError):
            live.watch(coverage=0.9)


def test_levels_asked_for_once_are_not_kept_for_ever() -> None:
    with by_numpy():
        live = Stream(fitted("default"), 3)
        expected = live.predict(np.zeros((3, 2)), interval=0.9)
        for level in np.linspace(0.5, 0.98, 300):
            live.predict(np.zeros((3, 2)), interval=[float(level), 0.99])
        assert len(live._step._asked) <= 100
        same(live.predict(np.zeros((3, 2)), interval=0.9), expected)


class Beside(ErrorScale):
    """An interval method of one's own that computes what the error scale does, beside the step."""

    def step_numbers(self) -> None:  # type: ignore[override]
        """Keep out of the step."""

    def tracker(self, n_series: int, levels: Any = None) -> ScaleTracker:
        own = ErrorScale(weights=self.weights, unit=self.unit, quantiles=self.quantiles, largest=self.largest)
        return own.tracker(n_series)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 3])
@pytest.mark.parametrize("kind", ["default", "positive", "window"])
def test_an_interval_method_beside_the_step_gives_what_it_gives_within(
    kind: str, n_series: int | None, way: Way
) -> None:
    model, rows = fitted(kind), later(kind, 80, n_series or 1)
    own = model.calibrator
    assert isinstance(own, ErrorScale)
    beside = replace(
        model,
        calibrator=Beside(weights=own.weights, unit=own.unit, quantiles=own.quantiles, largest=own.largest),
    )
    with way():
        live, other = Stream(model, n_series), Stream(beside, n_series)
        for row in range(80):
            close(step(live, rows, row, LEVELS), step(other, rows, row, LEVELS), 1e-9)
            if row % 20 == 7:
                other = Stream.restore(beside, other.snapshot())
            if row % 20 == 13:
                here = other.checkpoint()
                step(other, rows, row + 1)
                other.rollback(here)
        if n_series is None:
            panel = panel_of(rows, model)
            found, other_found = (
                predict_intervals(one, panel, LEVELS, resume=False) for one in (model, beside)
            )
            close(found, other_found, 1e-9)


def changed(live: Stream, field: str, value: Any) -> bytes:
    """A snapshot in which one number of the step is another."""
    tensors, header = model_file.from_bytes(live.snapshot(), "the snapshot")
    other = series.SeriesStep(live.model.step, live.n_series or 1)
    other.restore(tensors["step"])
    place = 1 if field == "seen" else -1  # inputs, which come last in it, are not carried
    getattr(other.blocks[0].state, field).flat[place] = value
    return model_file.to_bytes({**tensors, "step": other.snapshot()}, header)


@pytest.mark.parametrize("n_series", [None, 3])
def test_a_snapshot_that_holds_what_no_series_carries_is_refused(n_series: int | None) -> None:
    model, rows = fitted("default"), later("default", 20, n_series or 1)
    with by_numpy():
        live = Stream(model, n_series)
        for row in range(20):
            step(live, rows, row)
        Stream.restore(model, changed(live, "inflation", 1.0))
        for field, value in (
            ("quantiles", -1e3),  # they rise
            ("inflation", -1.0),
            ("recent_sizes", -1.0),
            ("mean_square", 0.0),
            ("rows", -1.0),
            ("rows", 0.5),
            ("has_label", 0.5),
            ("n_shifts", -1.0),
            ("last_label", np.inf),
            ("changes", np.nan),
            ("scores", np.inf),
            ("seen", np.nan),
        ):
            with pytest.raises(ModelFileError, match="damaged"):
                Stream.restore(model, changed(live, field, value))


def test_the_bytes_of_a_snapshot_are_all_that_is_carried() -> None:
    model = fitted("seasonal")
    with by_numpy():
        for n_series in (1, 3):
            block = Block(model.step, n_series)
            sizes = [getattr(block.state, name).nbytes for name in CARRIED]
            assert sum(sizes) <= len(block.carried) < sum(sizes) + 8 * len(sizes)
            assert all(np.shares_memory(getattr(block.state, name), block.carried) for name in CARRIED)


def test_any_use_compiles_the_step_once() -> None:
    """Another form of it would be a pause of seconds in the middle of a stream."""
    pytest.importorskip("numba")
    with by_compiled_code():
        for kind in ("default", "RM", "no inputs", "window", "no linear part", "not learning", "calendar"):
            model = fitted(kind)
            for n_series in (None, 1, 3, 300):
                live, rows = Stream(model, n_series), later(kind, 2, n_series or 1)
                step(live, rows, 0)
                if model.calibrator is not None:
                    step(live, rows, 1, LEVELS)
                live.snapshot()
            panel = panel_of(later(kind, 9), model)
            for form in ("view", "turned", "read-only"):
                predict(model, in_another_form(panel, form))
        live = Stream(fitted("default"))
        for x in ([1, 2], np.array([1.0, 2.0], np.float32), np.arange(4.0)[::2], np.broadcast_to(1.0, 2)):
            live.predict(x)
            live.observe(np.float32(1.0))
        loop: Any = series._compiled_run()
        assert len(loop.signatures) == 1
