"""Steps in compiled code: those of NumPy, for one series and a fleet, whatever happens in between."""

import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.compiled import by_compiled_code, by_numpy, n_forms
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn.errors import ConfigError, DataError, ModelFileError, ThreadError
from varnn.fitting import _learning
from varnn.model.fitted import Fitted
from varnn.model.intervals.error_scale import ErrorScale
from varnn.model.prediction import predict
from varnn.persistence import model_file
from varnn.streaming import _compiled_step
from varnn.streaming._compiled_kernel import observe_rows, predict_rows, weigh_rows
from varnn.streaming._compiled_step import CompiledStep, handles
from varnn.streaming._numpy_step import NumpyStep

TINY: dict[str, Any] = {"hidden_size": 6, "epochs": 1, "ensemble": 2, "window": 4, "device": "cpu"}
FIRST = np.datetime64("2026-01-05T00:00:00.000000")
LEVELS = [0.5, 0.8, 0.95]


class Rows(NamedTuple):
    """T rows of n series in step, with D inputs."""

    x: Any  # (T, n, D)
    y: Any  # (T, n)
    times: Any  # (T,), or None

    def of(self, series: int) -> "Rows":
        return Rows(self.x[:, [series]], self.y[:, [series]], self.times)


def rows_of(
    count: int,
    n_series: int = 1,
    *,
    n_inputs: int = 2,
    offset: float = 0.0,
    timed: bool = False,
    trouble: bool = False,
    profile: bool = False,
    seed: int = 0,
) -> Rows:
    """Draw series with a daily season, gaps, and in trouble glitches, shifts and wild inputs."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, n_series, n_inputs))
    season = 2 * np.sin(2 * np.pi * np.arange(count) / 24)[:, None]
    if profile:  # of a day, which no few lags tell
        season = np.resize(5 * np.random.default_rng(9).normal(size=48), count)[:, None]
    y = offset + season + np.cumsum(0.2 * draw.normal(size=(count, n_series)), axis=0)
    y = y + (x[:, :, 0] if n_inputs else 0) + 0.1 * draw.normal(size=y.shape)
    if trouble:
        y[draw.random(y.shape) < 0.1] = np.nan
        wild = draw.random(y.shape) < 0.03
        y[wild] += draw.choice([20.0, -200.0, 1e6], size=wild.sum())
        y[count // 2 :] += 15.0
        y[3 * count // 4 :] -= 40.0
        x[draw.random(x.shape) < 0.01] *= 1e5
    step = np.timedelta64(30 if profile else 60, "m")
    return Rows(x, y, FIRST + np.arange(count) * step if timed else None)


KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "RM": {"variant": "RM"},
    "ARM": {"variant": "ARM"},
    "RM+AM": {"variant": "RM+AM"},
    "alone": {"ensemble": 1},
    "no intervals": {"intervals": False},
    "one factor": {"forgetting": 0.99},
    "zero": {"fill": "zero"},
    "refused": {"fill": "none"},
    "minmax": {"scale": "minmax"},
    "calendar": {"timed": True, "calendar": ("day", "week")},
    "positive": {"offset": 9.0, "positive": True},
    "no inputs": {"n_inputs": 0, "variant": "RM"},
    "seasonal": {"timed": True, "profile": True},
    "few joined": {"most_joined": 2},
    "wide": {"hidden_size": 19, "memory_size": 5},
    "few rows": {"rows": 60},
    "free": {"state_limit": 1e30},
    "unfiltered": {"unfiltered": True},
}


@cache
def fitted(kind: str) -> Fitted:
    given = dict(KINDS[kind])
    details: dict[str, Any] = {
        name: given.pop(name) for name in ("forgetting", "positive", "memory_size") if name in given
    }
    drawn = {name: given.pop(name) for name in ("timed", "offset", "n_inputs", "profile") if name in given}
    count, most = given.pop("rows", 500), given.pop("most_joined", None)
    limit, unfiltered = given.pop("state_limit", None), given.pop("unfiltered", False)
    rows = rows_of(count, **drawn)
    panel = Panel.from_arrays(rows.x[:, 0] if rows.x.shape[2] else None, rows.y[:, 0], time=rows.times)
    with pytest.MonkeyPatch.context() as patch:
        if most is not None:
            patch.setattr(_learning, "MOST_JOINED", most)
        details = {"memory_size": 3, "context": "series", **details}
        model = VARNNRegressor(**{**TINY, **given}, details=Details(**details)).fit(panel).fitted_
    if limit is not None:
        model = replace(model, state_limit=limit)
    if unfiltered:
        model = replace(model, pipeline=replace(model.pipeline, label_filter=None))
    return model


def later(kind: str, count: int, n_series: int = 1, *, trouble: bool = True, seed: int = 1) -> Rows:
    """Rows for a model of some kind."""
    given = KINDS[kind]
    drawn = {name: given[name] for name in ("timed", "offset", "n_inputs", "profile") if name in given}
    rows = rows_of(count, n_series, trouble=trouble, seed=seed, **drawn)
    if rows.x.size and fitted(kind).pipeline.fill in ("forward", "zero"):
        rows.x[np.random.default_rng(seed + 1).random(rows.x.shape) < 0.1] = np.nan
    return rows


def streams(model: Fitted, n_series: int | None, **options: Any) -> tuple[Stream, Stream]:
    """A stream on NumPy, and one in compiled code."""
    with by_numpy():
        plain = Stream(model, n_series, **options)
    with by_compiled_code():
        ours = Stream(model, n_series, **options)
    assert type(plain._step) is NumpyStep and type(ours._step) is CompiledStep
    return plain, ours


def step(live: Stream, rows: Rows, row: int, interval: Any = None) -> list[Any]:
    """Predict a row and observe its label; give all there is to be seen."""
    x, y = rows.x[row], rows.y[row]
    if live.n_series is None:
        x, y = x[0], y[0]
    found = live.predict(x, time=None if rows.times is None else rows.times[row], interval=interval)
    return [*(found if interval is not None else [found]), live.observe(y)]


def close(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def alike(one: Stream, other: Stream) -> None:
    """Hold all that two streams carry against each other, but for what a filter forgets in its own time."""
    ours, theirs = one._states(), other._states()
    assert list(ours) == list(theirs)
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype and array.shape == theirs[name].shape
        expected, found = theirs[name].copy(), array.copy()
        if name == "recipe" and one.model.pipeline.label_filter is not None:
            expected[:, 3], found[:, 3] = (
                np.where(each[:, 5] > 20, 0, each[:, 3]) for each in (expected, found)
            )
        scale = np.abs(expected).max(initial=1.0, where=np.isfinite(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * scale, err_msg=name)


@pytest.mark.parametrize("n_series", [None, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_what_numpy_gives(kind: str, n_series: int | None) -> None:
    model, rows = fitted(kind), later(kind, 150, n_series or 1)  # thrice the season
    plain, ours = streams(model, n_series)
    for row in range(150):
        interval = None if model.calibrator is None else (None, 0.9, LEVELS)[row % 3]
        found, expected = step(ours, rows, row, interval), step(plain, rows, row, interval)
        close(found, expected)
        assert [type(one) for one in found] == [type(one) for one in expected]
        close([*ours.weights.values()], [*plain.weights.values()])
        assert list(ours.weights) == list(plain.weights)
        np.testing.assert_array_equal(ours._step.lifted, plain._step.lifted)
        if row % 10 == 0:
            alike(ours, plain)
    alike(ours, plain)


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


@pytest.mark.parametrize("kind", ["default", "positive", "calendar"])
def test_a_fleet_over_several_cores_gives_what_numpy_gives(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    model, rows = fitted(kind), later(kind, 12, 300)
    plain, ours = streams(model, 300)
    assert len(ours._step._shares) == 3  # type: ignore[attr-defined]
    for row in range(12):
        close(step(ours, rows, row, LEVELS), step(plain, rows, row, LEVELS))
    alike(ours, plain)


def test_cores_make_no_difference_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, found = fitted("default"), later("default", 10, 300), []
    for cores in (1, 2, 5):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        live = Stream(model, 300)
        found.append(([step(live, rows, row, LEVELS) for row in range(10)], live.snapshot()))
    for steps, snapshot in found[1:]:
        assert snapshot == found[0][1]
        for one, other in zip(steps, found[0][0], strict=True):
            for ours, theirs in zip(one, other, strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["default", "positive"])
def test_a_series_of_a_fleet_is_that_series_alone_to_the_last_bit(kind: str) -> None:
    model, rows = fitted(kind), later(kind, 60, 4)
    fleet, single = Stream(model, 4), [Stream(model) for _ in range(4)]
    for row in range(60):
        together = step(fleet, rows, row, 0.9)
        for series, alone in enumerate(single):
            for one, other in zip(step(alone, rows.of(series), row, 0.9), together, strict=True):
                np.testing.assert_array_equal(one, other[series])


def test_two_runs_give_the_same_bits() -> None:
    model, rows = fitted("default"), later("default", 50)
    one, other = Stream(model), Stream(model)
    for row in range(50):
        assert repr(step(one, rows, row, 0.9)) == repr(step(other, rows, row, 0.9))
    assert one.snapshot() == other.snapshot()


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_what_a_batch_gives(kind: str) -> None:
    model, rows = fitted(kind), later(kind, 120)
    _, live = streams(model, None)
    found = [step(live, rows, row)[0] for row in range(120)]
    panel = Panel.from_arrays(
        rows.x[:, 0] if rows.x.shape[2] else None,
        rows.y[:, 0],
        time=rows.times,
        input_names=model.input_names or None,
    )
    for way in (by_numpy, by_compiled_code):
        with way():
            np.testing.assert_allclose(found, predict(model, panel, resume=False), rtol=1e-4, atol=1e-4)


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


@pytest.mark.parametrize(
    "time", ["1969-12-31T23:59:59.999999", "2026-03-01T07:13:59.123456", "0001-01-01", "9999-12-31T23:59:59"]
)
def test_times_of_all_kinds_are_seen_as_on_numpy(time: str) -> None:
    plain, ours = streams(fitted("calendar"), None)
    np.testing.assert_allclose(
        ours.predict([0.1, 0.2], time=time), plain.predict([0.1, 0.2], time=time), rtol=1e-5
    )


@pytest.mark.parametrize("n_series", [None, 3])
def test_what_is_watched_is_noticed_alike(n_series: int | None) -> None:
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
    alike(ours, plain)


@pytest.mark.parametrize("kind", ["default", "positive", "calendar", "RM"])
def test_streams_resume_alike(kind: str) -> None:
    model, rows = fitted(kind), later(kind, 40)
    rows = rows._replace(times=None if rows.times is None else rows.times + np.timedelta64(500, "h"))
    plain, ours = streams(model, None, resume=True)
    fresh = Stream(model)
    alike(ours, plain)
    assert not np.allclose(ours._states()["states"], fresh._states()["states"])
    np.testing.assert_array_equal(ours._states()["experts"], fresh._states()["experts"])  # nothing was learnt
    for row in range(40):
        close(step(ours, rows, row), step(plain, rows, row))
    alike(ours, plain)


def test_labels_below_zero_lift_the_floor_unless_they_are_not_plausible() -> None:
    model, rows = fitted("positive"), later("positive", 60, trouble=False)
    rows.y[:] = np.maximum(9 - 0.5 * np.arange(60), 0.05)[:, None]
    rows.y[30], rows.y[50:] = -1e6, -0.2
    plain, ours = streams(model, None)
    lifted, lowest = [], []
    for row in range(60):
        found, expected = step(ours, rows, row, 0.95), step(plain, rows, row, 0.95)
        close(found, expected)
        lifted.append(bool(ours._step.lifted[0]))
        lowest.append(found[1])
    assert lifted == [False] * 50 + [True] * 10
    assert min(lowest[:50]) == 0.0 and min(lowest[51:]) < 0


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


def test_all_streams_share_what_is_compiled() -> None:
    """One form for each function: another would be a pause of seconds in the middle of a stream."""
    for kind in KINDS:
        for n_series in (None, 1, 3, 300):
            live, rows = Stream(fitted(kind), n_series), later(kind, 2, n_series or 1)
            step(live, rows, 0)
            live.observe(None if n_series is None else [None] * n_series) if live._open else None
            if fitted(kind).calibrator is not None:
                step(live, rows, 1, LEVELS)
            live.weights  # noqa: B018
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
    assert len(live._step._asked) <= 100  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def panel() -> Panel:
    rows = rows_of(400)
    return Panel.from_arrays(rows.x[:, 0], rows.y[:, 0])


OTHERS: dict[str, dict[str, Any]] = {
    "window": {"context": "window"},
    "tanh": {"memory_activation": "tanh"},
    "scalar": {"variant": "RM", "residual": "scalar"},
    "none": {"variant": "RM+AM", "residual": "none"},
    "trees": {"experts": ["boosting"]},
    "no linear part": {"linear": False},
    "not learning": {"adapt": None},
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_models_are_left_to_numpy(other: str, panel: Panel) -> None:
    given = dict(OTHERS[other])
    details: dict[str, Any] = {
        name: given.pop(name) for name in ("context", "memory_activation", "residual") if name in given
    }
    details = {"context": "series", "memory_size": 3, **details}
    try:
        model = VARNNRegressor(**{**TINY, **given}, details=Details(**details)).fit(panel)
    except ImportError:
        pytest.skip("needs an extra that is not installed")
    assert not handles(model.fitted_)
    with by_compiled_code():
        live = Stream(model)
        assert type(live._step) is NumpyStep
        found = []
        for x, label in zip(panel.inputs[:60], panel.target[:60], strict=True):
            found.append(live.predict(x))
            live.observe(label)
        np.testing.assert_allclose(found, model.predict(panel)[:60], rtol=1e-4, atol=1e-4)


def test_series_that_see_each_other_are_left_to_numpy() -> None:
    rows = rows_of(200, 3)
    panel = Panel.from_arrays(
        rows.x.swapaxes(0, 1).reshape(-1, 2), rows.y.T.ravel(), series=np.repeat(["a", "b", "c"], 200)
    )
    model = VARNNRegressor(**TINY, peers=True, details=Details(context="series", memory_size=3)).fit(panel)
    assert model.fitted_.pipeline.peers and not handles(model.fitted_)
    with by_compiled_code():
        assert type(Stream(model, 3)._step) is NumpyStep


class OtherScale(ErrorScale):
    """A method of one's own that began as the error scale."""


def test_what_is_handled_is_what_the_default_is() -> None:
    for kind in KINDS:
        assert handles(fitted(kind))
    model = fitted("default")
    assert not handles(replace(model, context="window"))
    assert not handles(replace(model, experts=None))
    assert not handles(replace(model, calibrator=OtherScale(**vars(model.calibrator))))
    assert _compiled_step._FEWEST == 256
