"""The monitor: its statistic, its false alarms, its delays, and that stream, fleet and batch agree."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.drift import PageHinkley

from varnn import Panel, Stream, VARNNRegressor
from varnn._types import DoubleArray
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.monitoring._page_hinkley import FLOATS, Excess, Track, accumulate, follow
from varnn.monitoring.monitor import Event, Monitor, detect


def watched(rows: DoubleArray, **settings: Any) -> list[Event]:
    """Give the events of a fleet, rows (T, n), one row at a time."""
    monitor = Monitor(rows.shape[1], **settings)
    return [event for row in rows for event in monitor.observe(row)]


# The statistic


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_river(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=400)
    values[250:] += 1.5
    peer = PageHinkley(min_instances=1, delta=0.1, threshold=20.0, alpha=1.0)
    up, down, mean, count = Excess(), Excess(), 0.0, 0
    alarms = 0
    for value in values:
        peer.update(value)
        # River compares a value with the mean that already holds it, and starts anew after an alarm.
        count += 1
        mean += (value - mean) / count
        up = accumulate(up, value - mean, value - mean, FLOATS, 0.1)
        down = accumulate(down, mean - value, mean - value, FLOATS, 0.1)
        assert up.total == pytest.approx(peer._sum_increase - peer._min_increase, abs=1e-9)
        assert down.total == pytest.approx(peer._max_decrease - peer._sum_decrease, abs=1e-9)
        assert peer.drift_detected == (max(up.total, down.total) > 20.0)
        if peer.drift_detected:
            alarms += 1
            up, down, mean, count = Excess(), Excess(), 0.0, 0
    assert alarms >= 1


def test_mean_and_spread_are_plain_ones_while_nothing_is_cut_or_forgotten() -> None:
    values = np.random.default_rng(0).uniform(3.0, 5.0, size=300)
    track = Track()
    for value in values.tolist():
        track = follow(track, value, 100, 10**6, FLOATS)
    assert track.mean == pytest.approx(values.mean(), rel=1e-12)
    assert track.power == pytest.approx(values.var(), rel=1e-12)


def test_an_outlier_hardly_moves_the_reference() -> None:
    values = np.random.default_rng(0).normal(size=500)
    with_outlier = np.insert(values, 400, 1e6)
    tracks = []
    for series in (values, with_outlier):
        track = Track()
        for value in series.tolist():
            track = follow(track, value, 100, 1000, FLOATS)
        tracks.append(track)
    assert abs(tracks[0].mean - tracks[1].mean) < 0.02
    assert tracks[1].power == pytest.approx(tracks[0].power, rel=0.05)


# False alarms


def ar1(colour: float) -> Callable[[np.random.Generator, tuple[int, int]], DoubleArray]:
    def make(generator: np.random.Generator, shape: tuple[int, int]) -> DoubleArray:
        values = generator.normal(size=shape)
        for row in range(1, len(values)):
            values[row] += colour * values[row - 1]
        return values

    return make


NOISES: dict[str, Callable[[np.random.Generator, tuple[int, int]], DoubleArray]] = {
    "Gaussian": lambda generator, shape: generator.normal(size=shape),
    "Laplace": lambda generator, shape: generator.laplace(size=shape),
    "t3": lambda generator, shape: generator.standard_t(3, size=shape),
    "AR(1) 0.3": ar1(0.3),
    "AR(1) 0.8": ar1(0.8),
    "AR(1) -0.5": ar1(-0.5),
}


@pytest.mark.parametrize("noise", NOISES)
def test_false_alarms_come_at_the_rate_asked_for(noise: str) -> None:
    rows = 50 + 7 * NOISES[noise](np.random.default_rng(0), (3000, 300))
    asked = 1 / 1000
    events = watched(rows, false_alarms=asked)
    assert 0.5 * asked < len(events) / rows.size < 1.25 * asked


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_coverage_is_not_said_to_be_lost_while_it_holds(coverage: float) -> None:
    hits = np.random.default_rng(0).random((3000, 300)) < coverage
    monitor = Monitor(300, coverage=coverage, false_alarms=3 / 1000)
    constant = np.zeros(300)
    events = [event for row in hits for event in monitor.observe(constant, row)]
    assert {event.kind for event in events} == {"coverage lost"}
    assert 0.6 / 1000 < len(events) / hits.size < 1.1 / 1000


def test_a_burst_of_heavy_tails_is_said_once_or_twice() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(1500, 100))
    rows[700:900] = 5 * generator.standard_t(2, size=(200, 100))
    events = watched(rows)
    during = [event for event in events if 700 <= event.row < 900]
    assert 0.95 <= len(during) / 100 <= 1.3
    assert len(events) / 100 < 2.6


# Detection


def delays(rows: DoubleArray, begin: int, kind: str) -> DoubleArray:
    """Give, for each series with an event after row ``begin``, rows until it; its kind must be right."""
    first: dict[int, Event] = {}
    for event in watched(rows):
        if event.row >= begin:
            first.setdefault(event.series, event)
    right = sum(event.kind == kind for event in first.values())
    assert len(first) >= 0.95 * rows.shape[1]
    assert right >= 0.85 * len(first)
    return np.array([event.row - begin + 1 for event in first.values()])


def test_larger_shifts_are_noticed_sooner() -> None:
    medians = []
    for shift in (0.5, 1.0, 2.0, 4.0, 10.0):
        rows = np.random.default_rng(0).normal(size=(1100, 100))
        rows[500:] += shift
        medians.append(np.median(delays(rows, 500, "level shift")))
    assert np.all(np.diff(medians) <= 0)
    assert np.all(np.array(medians) <= [80, 26, 12, 8, 8])


def test_variance_changes_are_noticed_both_ways() -> None:
    medians = []
    for ratio in (1.5, 2.0, 4.0, 0.5, 0.25):
        rows = np.random.default_rng(0).normal(size=(1100, 100))
        rows[500:] *= ratio
        medians.append(np.median(delays(rows, 500, "variance change")))
    assert np.all(np.array(medians) <= [95, 35, 16, 65, 32])


def test_events_say_how_large_and_since_when() -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 200))
    rows[600:] -= 3.0
    shifts = [one for one in watched(rows) if one.kind == "level shift" and one.row >= 600]
    assert np.median([one.size for one in shifts]) == pytest.approx(-3.0, abs=0.2)
    assert np.median([one.began for one in shifts]) == pytest.approx(600, abs=2)
    rows = np.random.default_rng(0).normal(size=(1000, 200))
    rows[600:] *= 2.0
    changes = [one for one in watched(rows) if one.kind == "variance change" and one.row >= 600]
    assert np.median([one.size for one in changes]) == pytest.approx(2.0, abs=0.35)
    assert np.median([one.began for one in changes]) == pytest.approx(600, abs=6)


def test_lost_coverage_is_said_once_and_again_after_it_was_back() -> None:
    hits = np.random.default_rng(3).random(3000) < np.repeat([0.9, 0.6, 0.9, 0.6], [800, 400, 1000, 800])
    events = detect(np.zeros(3000), covered=hits, coverage=0.9)
    assert [event.kind for event in events] == ["coverage lost"] * 2
    assert 800 <= events[0].row < 880 and 2200 <= events[1].row < 2280
    assert events[0].size == pytest.approx(-0.3, abs=0.12)


def test_a_flat_stream_is_no_change_until_it_moves() -> None:
    values = np.zeros(600)
    assert detect(values) == []
    values[400:] = 2.0
    (event,) = detect(values)
    assert event.kind == "level shift"
    assert 400 < event.row < 415


# Stream, fleet and batch


def stream(values: DoubleArray, hits: DoubleArray) -> list[Event]:
    monitor = Monitor(coverage=0.9, false_alarms=1 / 200)
    pairs = zip(values.tolist(), hits.tolist(), strict=True)
    return [event for value, hit in pairs for event in monitor.observe(value, hit)]


def eventful(seed: int, rows: int) -> tuple[DoubleArray, DoubleArray]:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=rows) * np.repeat([1.0, 3.0], [rows // 2, rows - rows // 2])
    values[generator.random(rows) < 0.1] = np.nan
    hits = (generator.random(rows) < 0.8).astype(float)
    hits[np.isnan(values)] = np.nan
    return values, hits


def test_batch_and_fleet_are_the_stream() -> None:
    series = [eventful(seed, rows) for seed, rows in enumerate([900, 1200, 40])]
    starts = np.cumsum([0, 900, 1200, 40])
    expected = sorted(
        (
            event._replace(series=number, row=event.row + start, began=event.began + start)
            for number, (one, start) in enumerate(zip(series, starts, strict=False))
            for event in stream(*one)
        ),
        key=lambda event: event.row,
    )
    values, hits = (np.concatenate(parts) for parts in zip(*series, strict=True))
    assert len(expected) >= 6
    assert {event.kind for event in expected} >= {"variance change", "coverage lost"}
    assert detect(values, starts, covered=hits, coverage=0.9, false_alarms=1 / 200) == expected


def test_rows_without_a_label_change_nothing() -> None:
    values, hits = eventful(5, 1500)
    there = ~np.isnan(values)
    places = np.flatnonzero(there)
    without = stream(values[there], hits[there])
    assert [(one.kind, one.row, one.size) for one in stream(values, hits)] == [
        (one.kind, places[one.row], one.size) for one in without
    ]


@pytest.mark.parametrize("n_series", [1, 4])
def test_a_restored_monitor_goes_on_as_if_nothing_happened(n_series: int) -> None:
    rows = np.random.default_rng(2).normal(size=(1200, n_series))
    rows[700:] += 2
    hits = np.random.default_rng(3).random(rows.shape) < np.linspace(1, 0.6, 1200)[:, None]
    whole, before = (Monitor(n_series, coverage=0.9) for _ in range(2))
    expected = [event for row, hit in zip(rows, hits, strict=True) for event in whole.observe(row, hit)]
    seen = [
        event for row, hit in zip(rows[:705], hits[:705], strict=True) for event in before.observe(row, hit)
    ]
    after = Monitor(n_series, coverage=0.9)
    after.restore(before.state())
    before.observe(rows[0] * 1e3, hits[0])  # the copy must not share memory with what it was taken from
    seen += [
        event for row, hit in zip(rows[705:], hits[705:], strict=True) for event in after.observe(row, hit)
    ]
    assert seen == expected
    assert len(expected) >= 2 * n_series
    assert np.array_equal(after.state(), whole.state(), equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1.0, -1.0, 1e100, -1e100, 1e-100, np.nan]), min_size=1, max_size=8),
    st.integers(1, 3),
)
def test_no_values_break_it(pattern: list[float], n_series: int) -> None:
    monitor = Monitor(n_series, warm_up=30, memory=50)
    for value in (pattern * 100)[:250]:
        monitor.observe(np.full(n_series, value))
    before = 1 + 2 * len(Track()[:5]) + 4 * len(Excess())  # of all leaves only this one may be missing
    assert np.isfinite(np.delete(monitor.state(), before, axis=0)).all()


# Bad use


@pytest.mark.parametrize(
    "settings",
    [
        {"n_series": 0},
        {"coverage": 0.2},
        {"coverage": 90},
        {"false_alarms": 0},
        {"false_alarms": 0.5},
        {"warm_up": 5},
        {"warm_up": 200, "memory": 100},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must"):
        Monitor(**settings)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(3,\); got \(2,\)"):
        Monitor(3).observe([1.0, 2.0])
    with pytest.raises(DataError, match="numbers"):
        Monitor().observe("high")
    for monitor, value in ((Monitor(), np.inf), (Monitor(2), [1e200, 0.0])):
        with pytest.raises(DataError, match="innovations must be finite"):
            monitor.observe(value)
        assert monitor.rows == 0
    without_level = Monitor()
    with pytest.raises(ConfigError, match="nominal level"):
        without_level.observe(1.0, covered=True)
    assert np.array_equal(without_level.state(), Monitor().state(), equal_nan=True)
    with pytest.raises(ModelFileError, match="shape"):
        Monitor(3).restore(Monitor(2).state())


# In a stream


@pytest.fixture(scope="module")
def streamed() -> tuple[VARNNRegressor, DoubleArray, DoubleArray]:
    """Give a model of a calm stream, and rows whose noise grows fourfold at row 300."""
    generator = np.random.default_rng(4)
    x, noise = generator.normal(size=(1200, 2)), generator.normal(size=1200)
    noise[900:] *= 4
    y = x[:, 0] + 0.3 * noise
    return VARNNRegressor(hidden_size=8, epochs=2, ensemble=1).fit(x[:600], y[:600]), x[600:], y[600:]


def run_stream(live: Stream, x: DoubleArray, y: DoubleArray) -> list[Event]:
    events = []
    for inputs, label in zip(x, y, strict=True):
        live.predict(inputs)
        live.observe(label)
        events += live.events
    return events


@pytest.mark.parametrize("coverage", [None, 0.9])
def test_a_stream_notices_what_detect_finds(
    streamed: tuple[VARNNRegressor, DoubleArray, DoubleArray], coverage: float | None
) -> None:
    model, x, y = streamed
    y = np.where(np.arange(len(y)) % 50 == 7, np.nan, y)
    panel = Panel.from_arrays(x, y)
    covered = None
    if coverage is not None:
        found = model.predict(panel, interval=coverage)
        covered = np.where(np.isnan(y), np.nan, (found.lower <= y) & (y <= found.upper))
    live = model.stream()
    live.watch(coverage=coverage, false_alarms=1 / 1000)
    noticed = run_stream(live, x, y)
    expected = detect(model.innovations(panel), covered=covered, coverage=coverage, false_alarms=1 / 1000)
    assert [(one.kind, one.row, one.began) for one in noticed] == [
        (one.kind, one.row, one.began) for one in expected
    ]
    assert any(one.kind == "variance change" and 300 <= one.row < 340 for one in noticed)


def test_a_fleet_is_watched_series_by_series(
    streamed: tuple[VARNNRegressor, DoubleArray, DoubleArray],
) -> None:
    model, x, y = streamed
    calm = x[:, 0] + 0.3 * np.random.default_rng(5).normal(size=len(x))
    alone = model.stream()
    alone.watch(coverage=0.9)
    expected = run_stream(alone, x, y)
    fleet = model.stream(n_series=2)
    fleet.watch(coverage=0.9)
    noticed = run_stream(fleet, np.stack([x, x], axis=1), np.stack([calm, y], axis=1))
    assert [one._replace(series=0)[:4] for one in noticed if one.series == 1] == [one[:4] for one in expected]
    assert expected


def test_a_watched_stream_goes_on_from_its_snapshot(
    streamed: tuple[VARNNRegressor, DoubleArray, DoubleArray],
) -> None:
    model, x, y = streamed
    whole = model.stream()
    run_stream(whole, x[:50], y[:50])
    whole.watch(coverage=0.9, false_alarms=1 / 500, warm_up=60)
    run_stream(whole, x[50:305], y[50:305])
    whole.predict(x[305])
    restored = Stream.restore(model, whole.snapshot())
    for live in (whole, restored, copied := copy.deepcopy(whole)):
        live.observe(y[305])
    expected = run_stream(whole, x[306:], y[306:])
    assert run_stream(restored, x[306:], y[306:]) == expected
    assert run_stream(copied, x[306:], y[306:]) == expected
    assert expected and expected[0].row > 300  # counted as the stream's rows are
    assert restored.monitor is not None and whole.monitor is not None
    assert restored.monitor.settings() == whole.monitor.settings()


def test_a_stream_that_is_not_watched_notices_nothing(
    streamed: tuple[VARNNRegressor, DoubleArray, DoubleArray],
) -> None:
    model, x, y = streamed
    live = model.stream()
    assert run_stream(live, x, y) == []
    assert Stream.restore(model, live.snapshot()).monitor is None
    blind = VARNNRegressor(hidden_size=4, epochs=1, ensemble=1, intervals=False).fit(x, y).stream()
    with pytest.raises(ConfigError, match="intervals=False"):
        blind.watch(coverage=0.9)
    blind.watch()


def test_intervals_of_a_series_that_begins_are_not_judged() -> None:
    quiet, other = Monitor(coverage=0.9, quiet=20), Monitor(coverage=0.9)
    events = [(quiet.observe(0.0, covered=False), other.observe(0.0, covered=False)) for _ in range(40)]
    first = [next(row for row, pair in enumerate(events) if pair[which]) for which in (0, 1)]
    assert first[0] == first[1] + 20
    assert Monitor(**quiet.settings()).quiet == 20 and other.settings()["quiet"] == 0
    with pytest.raises(ConfigError, match="quiet"):
        Monitor(quiet=-1)
