"""Steps in compiled code: those of NumPy, for one series and a fleet, whatever the rows hold."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from tests.compiled import by_compiled_code, by_numpy
from tests.streaming.kinds import KINDS, LEVELS, TINY, alike, close, fitted, later, rows_of, step, streams
from varnn import Details, Panel, Stream, VARNNRegressor
from varnn.model.prediction import predict
from varnn.network import compiled_code
from varnn.streaming import _compiled_step
from varnn.streaming._compiled_step import CompiledStep


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


@pytest.mark.parametrize("kind", ["default", "RM", "positive", "unfiltered", "seasonal", "one factor"])
def test_numbers_beyond_all_bounds_are_taken_as_on_numpy(kind: str) -> None:
    model, rows, draw = fitted(kind), later(kind, 120, 2, seed=3), np.random.default_rng(3)
    wild = draw.random(rows.y.shape) < 0.08
    rows.y[wild] = draw.choice([1e100, -1e100, 1e60, -1e30, 0.0, 1e8], size=wild.sum())
    wild = draw.random(rows.x.shape) < 0.03
    rows.x[wild] = draw.choice([1e100, -1e100, 1e60, 0.0], size=wild.sum())
    plain, ours = streams(model, 2)
    for row in range(120):
        found = step(ours, rows, row, LEVELS)
        close(found, step(plain, rows, row, LEVELS), 1e-4)
        assert all(np.isfinite(one).all() for one in found[:3])
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


def on_cores(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fleets of a few hundred series be spread over so many cores."""
    monkeypatch.setattr(compiled_code, "n_cores", lambda: count)
    monkeypatch.setattr(compiled_code, "FEWEST_EACH", 10)
    monkeypatch.setattr(_compiled_step, "_FEWEST", 100)


@pytest.mark.parametrize("kind", ["default", "positive", "calendar"])
def test_a_fleet_over_several_cores_gives_what_numpy_gives(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cores(3, monkeypatch)
    model, rows = fitted(kind), later(kind, 12, 300)
    plain, ours = streams(model, 300)
    assert len(ours._step._shares) == 3  # type: ignore[attr-defined]  # of the compiled kind
    for row in range(12):
        close(step(ours, rows, row, LEVELS), step(plain, rows, row, LEVELS))
    alike(ours, plain)


def test_cores_make_no_difference_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, found = fitted("default"), later("default", 10, 300), []
    for cores in (1, 2, 5):
        on_cores(cores, monkeypatch)
        live = Stream(model, 300)
        assert len(live._step._shares) == cores  # type: ignore[attr-defined]  # of the compiled kind
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
    np.testing.assert_array_equal(
        ours._states()["learning"], fresh._states()["learning"]
    )  # nothing was learnt
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


@pytest.mark.parametrize("n_series", [None, 2])
def test_rows_are_forecast_as_on_numpy(n_series: int | None) -> None:
    rows = rows_of(300, offset=9.0)
    details = Details(memory_size=3, context="series", positive=True)
    model = VARNNRegressor("RM", **TINY, horizon=3, details=details).fit(rows.x[:, 0], rows.y[:, 0])
    rows = rows_of(60, n_series or 1, offset=9.0, trouble=True, seed=2)
    with by_numpy():
        plain = Stream(model, n_series)
    with by_compiled_code():
        ours = Stream(model, n_series)
    assert type(ours._step) is CompiledStep
    for row in range(60):
        close(step(ours, rows, row), step(plain, rows, row))
        if row % 20 == 10:
            found, expected = (live.forecast(interval=0.9) for live in (ours, plain))
            assert found.lower is not None and expected.lower is not None
            np.testing.assert_allclose(found.prediction, expected.prediction, rtol=1e-6)
            np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-6)
    alike(ours, plain)
