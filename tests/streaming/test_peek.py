"""A look ahead changes nothing: the open step stays open, later numbers are the same to the last bit."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiled import WAYS
from tests.streaming.kinds import fitted, later
from varnn import Panel, Stream, VARNNRegressor
from varnn.errors import ConfigError, DataError, ThreadError
from varnn.streaming.linked import LinkedStreams


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_series", [None, 3])
@pytest.mark.parametrize("kind", ["default", "calendar", "positive"])
def test_peeking_changes_nothing(kind: str, n_series: int | None, way: Callable[[], Any]) -> None:
    model, rows, draw = fitted(kind), later(kind, 40, n_series or 1), np.random.default_rng(0)
    with way():
        live, other = Stream(model, n_series), Stream(model, n_series)
    live.watch(coverage=0.9)
    other.watch(coverage=0.9)
    for row in range(40):
        x, y = (each[0] if n_series is None else each for each in (rows.x[row], rows.y[row]))
        time = None if rows.times is None else rows.times[row]
        foreign = draw.normal(size=live._shape) * 100
        soon = None if time is None else time + np.timedelta64(7, "h")
        live.peek(foreign, time=soon)  # nothing is open
        asked = live.peek(x, time=time, interval=0.9)
        found, expected = (one.predict(x, time=time, interval=0.9) for one in (live, other))
        for one, two, three in zip(asked, found, expected, strict=True):
            np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(one, three)
        live.peek(foreign, time=soon, interval=[0.5, 0.8])  # with the step open
        live.peek(foreign, time=soon)
        np.testing.assert_array_equal(live.observe(y), other.observe(y))
    assert live.events == other.events
    assert live.snapshot() == other.snapshot()


@pytest.mark.parametrize("way", WAYS)
def test_no_step_is_opened(way: Callable[[], Any]) -> None:
    with way():
        live = Stream(fitted("default"))
    live.peek([0.1, 0.2])
    with pytest.raises(DataError, match="no x was predicted"):
        live.observe(1.0)
    assert live.snapshot() == Stream(fitted("default")).snapshot()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("x", "options"),
    [
        ([np.inf, 0.0], {}),
        ([0.0], {}),
        (["a", "b"], {}),
        ([0.0, 0.0], {"time": "2020-01-01"}),
        ([0.0, 0.0], {"time": "yesterday"}),
        ([0.0, 0.0], {"interval": 2.0}),
        ([0.0, 0.0], {"interval": [0.5, np.nan]}),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_what_cannot_be_used_changes_nothing(
    x: Any, options: dict[str, Any], is_open: bool, way: Callable[[], Any]
) -> None:
    with way():
        live, other = Stream(fitted("default")), Stream(fitted("default"))
    for one in (live, other):
        one.predict([0.3, 0.4], time="2026-01-01")
        one.observe(1.0)
        if is_open:
            one.predict([0.5, 0.6])
    with pytest.raises((DataError, ConfigError)):
        live.peek(x, **options)
    assert live.snapshot() == other.snapshot()
    if is_open:
        assert live.observe(2.0) == other.observe(2.0)
    assert live.predict([0.1, 0.1]) == other.predict([0.1, 0.1])


def test_intervals_are_refused_where_none_were_learnt() -> None:
    with pytest.raises(ConfigError, match="interval"):
        Stream(fitted("no intervals")).peek([0.0, 0.0], interval=0.9)


def test_a_caller_may_write_into_what_it_got() -> None:
    live, rows = Stream(fitted("default"), 2), later("default", 2, 2)
    live.predict(rows.x[0])
    live.peek(rows.x[0])[:] = 1e9
    assert np.abs(live.observe([1.0, 1.0])).max() < 1e6


def test_another_thread_is_refused() -> None:
    live, refused = Stream(fitted("default")), []

    def other() -> None:
        try:
            live.peek([0.0, 0.0])
        except ThreadError:
            refused.append(True)

    with live.guard:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == [True]


def test_series_that_see_each_other_are_left_where_they_were() -> None:
    draw = np.random.default_rng(3)
    X, walk = draw.normal(size=(120, 1)), np.cumsum(draw.normal(size=40))
    panel = Panel.from_arrays(X, np.tile(walk, 3) + X[:, 0], series=np.repeat(["a", "b", "c"], 40))
    settings: dict[str, Any] = {"hidden_size": 4, "epochs": 1, "ensemble": 1, "window": 4, "device": "cpu"}
    model = VARNNRegressor(peers=True, **settings).fit(panel)
    live, other = LinkedStreams(model), LinkedStreams(model)
    for group in (live, other):
        for name in "abc":
            group[name] = group.begin()
    for row in range(25):
        for place, name in enumerate("abc"):
            x, y = X[40 * place + row], panel.target[40 * place + row]
            asked = live[name].peek(x)
            live["b"].peek([50.0])
            with pytest.raises(DataError):
                live[name].peek([np.inf])
            assert asked == live[name].predict(x) == other[name].predict(x)
            live[name].peek([-50.0])
            live["c"].peek([50.0])
            assert live[name].observe(y) == other[name].observe(y)
    assert live.snapshot() == other.snapshot()


def test_models_of_windows_are_left_as_they_were() -> None:
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(60, 2)), draw.normal(size=60)
    model = VARNNRegressor.paper("RM+AM", epochs=1, hidden_size=4, device="cpu").fit(X, y)
    live, other = model.stream(), model.stream()
    for x, label in zip(X, y, strict=True):
        asked = live.peek(x)
        assert asked == live.predict(x) == other.predict(x)
        live.peek(-9 * x)
        assert live.observe(label) == other.observe(label)
    assert live.snapshot() == other.snapshot()
