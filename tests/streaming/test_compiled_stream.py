"""Streams in compiled code: snapshots, copies, refusals and threads as ever, to the last bit."""

import copy
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.compiled import by_compiled_code, by_numpy, n_forms
from tests.streaming.kinds import KINDS, LEVELS, alike, close, fitted, later, step, streams
from varnn import Stream
from varnn.errors import ConfigError, DataError, ModelFileError, ThreadError
from varnn.persistence import model_file
from varnn.streaming._cell import Workspace
from varnn.streaming._compiled_step import CompiledStep
from varnn.streaming._numpy_step import NumpyStep
from varnn.streaming.compiled_kernel import observe_rows, predict_rows, weigh_rows


@pytest.mark.parametrize("n_series", [None, 3])
@pytest.mark.parametrize("kind", ["default", "positive", "calendar", "no inputs", "RM"])
def test_snapshots_go_on_either_way(kind: str, n_series: int | None) -> None:
    """Also in the middle of a step, whose x waits for its label."""
    model, rows = fitted(kind), later(kind, 80, n_series or 1)
    plain, ours = streams(model, n_series)
    for row in range(80):
        if row % 9 == 4:  # each goes on with what the other has
            for live in (plain, ours):
                x = rows.x[row][0] if n_series is None else rows.x[row]
                live.predict(x, time=None if rows.times is None else rows.times[row])
            with by_numpy():
                restored = Stream.restore(model, ours.snapshot())
            with by_compiled_code():
                ours = Stream.restore(model, plain.snapshot())
            plain = restored
            assert type(plain._step) is NumpyStep and type(ours._step) is CompiledStep
            label = rows.y[row][0] if n_series is None else rows.y[row]
            close([ours.observe(label)], [plain.observe(label)])
            continue
        close(step(ours, rows, row), step(plain, rows, row))
    alike(ours, plain)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("n_series", [None, 2])
def test_copies_go_on_by_themselves_to_the_last_bit(
    n_series: int | None, again: Callable[[Stream], Stream]
) -> None:
    model, rows = fitted("default"), later("default", 40, n_series or 1)
    live = Stream(model, n_series)
    for row in range(20):
        step(live, rows, row)
    other = again(live)
    assert type(other._step) is CompiledStep
    first = [step(live, rows, row, 0.9) for row in range(20, 40)]  # the copy is not moved by it
    for row, expected in enumerate(first, start=20):
        for one, two in zip(step(other, rows, row, 0.9), expected, strict=True):
            np.testing.assert_array_equal(one, two)
    assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("n_series", [None, 2])
def test_predicting_changes_nothing(n_series: int | None) -> None:
    model, rows = fitted("default"), later("default", 40, n_series or 1)
    live, other = Stream(model, n_series), Stream(model, n_series)
    draw = np.random.default_rng(0)
    for row in range(40):
        for _ in range(2):
            live.predict(draw.normal(size=live._step.shape), interval=[0.5, 0.9])
        assert repr(step(live, rows, row)) == repr(step(other, rows, row))
    assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", [by_numpy, by_compiled_code])
@pytest.mark.parametrize("n_series", [None, 2])
def test_a_caller_may_write_into_its_own_arrays(n_series: int | None, way: Callable[[], Any]) -> None:
    """Those of x, of labels and of answers: they are used again for the next row."""
    model, rows = fitted("default"), later("default", 12, n_series or 1)
    with way():
        live, other = Stream(model, n_series), Stream(model, n_series)
        x, labels = np.empty(live._step.shape), np.empty(n_series or 1)
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


@pytest.mark.parametrize("n_series", [None, 3, 300])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf, 1e200, 1e101])
def test_a_refused_row_leaves_the_open_step_as_it_was(n_series: int | None, wrong: float) -> None:
    model, rows = fitted("default"), later("default", 6, n_series or 1)
    live, other = Stream(model, n_series), Stream(model, n_series)
    bad = np.zeros(live._step.shape)
    bad.flat[-1] = wrong
    for row in range(6):
        x = rows.x[row][0] if n_series is None else rows.x[row]
        for one in (live, other):
            one.predict(x, interval=0.9)
        with pytest.raises(DataError, match="x must be finite and at most 1e"):
            live.predict(bad)
        label = rows.y[row][0] if n_series is None else rows.y[row]
        np.testing.assert_array_equal(live.observe(label), other.observe(label))
    assert live.snapshot() == other.snapshot()


def test_a_refused_row_without_an_open_step_opens_none() -> None:
    live = Stream(fitted("default"))
    with pytest.raises(DataError):
        live.predict([np.inf, 0.0])
    with pytest.raises(DataError, match="no x was predicted"):
        live.observe(1.0)


@pytest.mark.parametrize("n_series", [None, 2])
def test_a_missing_input_is_refused_where_none_may_be(n_series: int | None) -> None:
    plain, ours = streams(fitted("refused"), n_series)
    rows, words = later("refused", 3, n_series or 1), []
    for live in (plain, ours):
        step(live, rows, 0)
        live.predict(rows.x[1][0] if n_series is None else rows.x[1])
        x = np.zeros(live._step.shape)
        x.flat[-1] = np.nan
        with pytest.raises(DataError, match="a stream takes no missing input") as error:
            live.predict(x)
        words.append(str(error.value))
        live.observe(rows.y[1][0] if n_series is None else rows.y[1])
        step(live, rows, 2)
    assert words[0] == words[1]
    alike(ours, plain)


def test_rows_without_a_time_are_refused_where_the_calendar_is_seen() -> None:
    live, rows = Stream(fitted("calendar")), later("calendar", 3)
    expected = live.predict(rows.x[0, 0], time=rows.times[0])
    with pytest.raises(DataError, match="each row needs its time"):
        live.predict(rows.x[1, 0])
    assert live.observe(rows.y[0, 0]) == rows.y[0, 0] - expected


def test_streams_that_share_a_workspace_are_streams_of_their_own() -> None:
    model, rows, shared = fitted("default"), later("default", 30, 3), Workspace(fitted("default"))
    together = [Stream(model, workspace=shared) for _ in range(3)]
    apart = [Stream(model) for _ in range(3)]
    assert together[0]._step._layout is together[2]._step._layout  # type: ignore[attr-defined]  # of the compiled kind
    for row in range(30):
        for series in range(3):
            found, expected = (step(live[series], rows.of(series), row) for live in (together, apart))
            np.testing.assert_array_equal(found, expected)


def test_threads_with_streams_of_their_own_give_the_same_bits() -> None:
    model, rows = fitted("default"), later("default", 200)

    def go(_: int) -> str:
        live = Stream(model)
        return repr([step(live, rows, row, 0.9) for row in range(200)])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(go, range(4)))
    assert found == [go(0)] * 4


def test_another_thread_is_refused() -> None:
    live, refused = Stream(fitted("default")), []

    def other() -> None:
        try:
            live.predict([0.0, 0.0])
        except ThreadError:
            refused.append(True)

    with live._guard:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == [True]
    live.predict([0.0, 0.0])


def test_intervals_are_refused_where_none_were_learnt() -> None:
    live = Stream(fitted("no intervals"))
    with pytest.raises(ConfigError):
        live.predict([0.0, 0.0], interval=0.9)
    with pytest.raises(ConfigError):
        live.watch(coverage=0.9)


@pytest.mark.parametrize("level", [0.5, 0.83, 0.9, 0.99])
def test_whether_an_interval_held_is_told_of_one_series_as_of_a_fleet(level: float) -> None:
    model, rows = fitted("default"), later("default", 200)
    one, fleet, held = Stream(model), Stream(model, 1), []
    for row in range(200):
        found = one.predict(rows.x[row, 0], interval=level)
        fleet.predict(rows.x[row])
        apart = [np.nan, 0.0, found.lower - found.prediction, found.upper - found.prediction]
        for error in (*apart, rows.y[row, 0] - found.prediction, *np.array(apart[2:]) * 1.001):
            ours, theirs = one._step.covered(level, float(error)), fleet._step.covered(level, [error])
            np.testing.assert_array_equal([ours], theirs)
        held.append(one._step.covered(level, rows.y[row, 0] - found.prediction))
        one.observe(rows.y[row, 0])
        fleet.observe(rows.y[row])
    assert 0 < np.nanmean(held) < 1 and np.isnan(held).any()


def test_all_streams_share_what_is_compiled() -> None:
    """One form for each function: another would be a pause of seconds in the middle of a stream."""
    for kind in KINDS:
        for n_series in (None, 1, 3, 300):
            live, rows = Stream(fitted(kind), n_series), later(kind, 2, n_series or 1)
            step(live, rows, 0)
            live.observe(None if n_series is None else [None] * n_series) if live._open else None
            if fitted(kind).calibrator is not None:
                step(live, rows, 1, LEVELS)
            live.weights  # noqa: B018  # to ask is what may compile
    live = Stream(fitted("default"))
    for x in (
        [1, 2],
        np.array([1.0, 2.0], np.float32),
        np.arange(4.0)[::2],
        np.broadcast_to(1.0, 2),
        {"x0": 1, "x1": None},
    ):
        if isinstance(x, dict):
            x = dict(zip(live.model.input_names, x.values(), strict=True))
        live.predict(x)
        live.observe(np.float32(1.0))
    for function in (predict_rows, observe_rows, weigh_rows):
        assert n_forms(function) == 1, function


def damaged(live: Stream, **changes: Any) -> bytes:
    """A snapshot with some of its arrays changed, or left out."""
    tensors, header = model_file.from_bytes(live.snapshot(), "the snapshot")
    changed: dict[str, Any] = {name: changes.get(name, array) for name, array in tensors.items()}
    return model_file.to_bytes({name: one for name, one in changed.items() if one is not None}, header)


def test_a_snapshot_that_cannot_be_is_refused_as_on_numpy() -> None:
    model, rows = fitted("default"), later("default", 20)
    live = Stream(model)
    for row in range(20):
        step(live, rows, row)
    states = live._states()
    falling, negative = states["tracker"].copy(), states["tracker"].copy()
    falling[:, 0], negative[:, -1] = 1e3, -1.0
    for way in (by_numpy, by_compiled_code):
        for tracker in (falling, negative):
            with way(), pytest.raises(ModelFileError, match="damaged"):
                Stream.restore(model, damaged(live, tracker=tracker))


def test_a_snapshot_from_when_streams_refused_gaps_goes_on() -> None:
    model, rows = fitted("default"), later("default", 20, trouble=False)
    live = Stream(model)
    for row in range(10):
        step(live, rows, row)
    blob = damaged(live, known=None)
    with by_numpy():
        plain = Stream.restore(model, blob)
    with by_compiled_code():
        ours = Stream.restore(model, blob)
    for row in range(10, 20):
        close(step(ours, rows, row), step(plain, rows, row))


def test_levels_asked_for_once_are_not_kept_for_ever() -> None:
    live = Stream(fitted("default"), 3)
    for level in np.linspace(0.5, 0.99, 300):
        live.predict(np.zeros((3, 2)), interval=[float(level), 0.99])
    assert len(live._step._asked) <= 100  # type: ignore[attr-defined]  # of the compiled kind
