"""Labels that come late leave a stream where labels in time would have: to the last bit, whatever came."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compiled import WAYS
from tests.streaming.kinds import fitted, later
from varnn import Panel, Stream, VARNNRegressor
from varnn.errors import ConfigError, DataError, ModelFileError
from varnn.persistence import model_file
from varnn.streaming.late import LateLabels
from varnn.streaming.linked import LinkedStreams
from varnn.streaming.stream import Guard

Way = Callable[[], Any]


class Told:
    """What was sent so far; and what a stream makes of it that gets it in time."""

    def __init__(self, kind: str, window: int, *, coverage: float | None) -> None:
        self.kind, self.window, self.coverage = kind, window, coverage
        self.rows = later(kind, 60)
        self.sent: list[int] = []  # which of the rows above
        self.labels: list[float | None] = []  # None: waits, or is open
        self.answers: list[float] = []
        self.is_open = False

    def begun(self) -> Stream:
        live = Stream(fitted(self.kind))
        if self.coverage is not None:
            live.watch(coverage=self.coverage)
        return live

    def in_time(self, *, interval: Any = None) -> tuple[Stream, Any]:
        live, answer = self.begun(), None
        for place, (row, label) in enumerate(zip(self.sent, self.labels, strict=True)):
            answer = live.predict(self.rows.x[row, 0], time=self.time(row), interval=interval)
            if place < len(self.sent) - self.is_open:
                live.observe(label)
        return live, answer

    def time(self, row: int) -> Any:
        return None if self.rows.times is None else self.rows.times[row]

    @property
    def waiting(self) -> list[int]:
        last = len(self.sent) - 1
        closed = self.labels[: len(self.labels) - self.is_open]
        return [row for row, one in enumerate(closed) if one is None and row >= last - self.window]


def contents(live: Stream) -> str:
    tensors, header = model_file.from_bytes(live.snapshot(), "it")
    if not live.is_open:
        del header["time"]  # that of a row which is closed: it is kept for nothing
    return repr([(name, array.tobytes()) for name, array in sorted(tensors.items())]) + repr(header)


def alike(late: LateLabels, told: Told) -> None:
    plain, _ = told.in_time()
    assert contents(late.live) == contents(plain)
    assert late.waiting == told.waiting
    assert late.row == len(told.sent) - told.is_open
    if plain.monitor is not None:
        assert late.live.monitor is not None and late.live.monitor.rows == plain.monitor.rows


def do(late: LateLabels, told: Told, what: str, draw: Any) -> LateLabels:
    """One thing that may happen, to both."""
    labels = st.one_of(st.none(), st.sampled_from([np.nan, -3.0, 0.25, 9.0, 40.0, 1e6]))
    if what == "x":
        row = len(told.sent)
        x, time = told.rows.x[row, 0], told.time(row)
        asked = late.peek(x, time=time, interval=0.9) if draw(st.booleans()) else None
        answer = late.predict(x, time=time, interval=0.9)
        told.sent.append(row)
        told.labels.append(None)
        told.is_open = True
        _, expected = told.in_time(interval=0.9)
        assert answer == expected and asked in (None, answer)
        told.answers.append(answer.prediction)
    elif what == "bad x":
        with pytest.raises(DataError):
            late.predict([np.inf, 0.0], time=told.time(len(told.sent)))
    elif what == "observe":
        label = draw(labels)
        if not told.is_open:
            with pytest.raises(DataError, match="no x was predicted"):
                late.observe(label)
            return late
        np.testing.assert_equal(late.observe(label), (np.nan if label is None else label) - told.answers[-1])
        told.labels[-1], told.is_open = np.nan if label is None else label, False
    elif what == "step":
        label, row = draw(labels), len(told.sent)
        x = [np.inf, 0.0] if draw(st.booleans()) else told.rows.x[row, 0]
        if x[0] == np.inf or not told.is_open:
            with pytest.raises(DataError):
                late.step(label, x, time=told.time(row))
            return late
        innovation, answer = late.step(label, x, time=told.time(row))
        np.testing.assert_equal(innovation, (np.nan if label is None else label) - told.answers[-1])
        told.labels[-1] = np.nan if label is None else label
        told.sent.append(row)
        told.labels.append(None)
        assert answer == told.in_time()[1]
        told.answers.append(answer)
    elif what == "label":
        if not told.sent:
            return late
        row, label = draw(st.integers(0, len(told.sent))), draw(labels)
        if told.is_open and row == len(told.sent) - 1:
            late.label(row, label)
            told.is_open = False
        elif row in told.waiting:
            innovation = late.label(row, label)
            np.testing.assert_equal(innovation, (np.nan if label is None else label) - told.answers[row])
        else:
            with pytest.raises(DataError, match=r"rows late|one label|was predicted"):
                late.label(row, label)
            return late
        told.labels[row] = np.nan if label is None else label
    elif what == "bad label":
        for row in told.waiting:
            with pytest.raises(DataError, match="y must be"):
                late.label(row, "much")
    else:
        late = LateLabels.restore(late.live.model, late.snapshot(), told.window)
    return late


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["default", "calendar", "positive"])
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_comes_it_is_as_in_time(kind: str, way: Way, data: st.DataObject) -> None:
    with way():
        told = Told(kind, data.draw(st.integers(1, 5)), coverage=data.draw(st.sampled_from([None, 0.9])))
        late = LateLabels(told.begun(), told.window)
        what = ["x", "x", "x", "observe", "step", "label", "label", "label", "restore", "bad x", "bad label"]
        for one in data.draw(st.lists(st.sampled_from(what), max_size=40)):
            late = do(late, told, one, data.draw)
            if one != "x":
                alike(late, told)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("window", [1, 4])
def test_labels_that_are_all_one_row_late(window: int, way: Way) -> None:
    """What usually happens: x of the next row is asked for before the label of this one is there."""
    model, rows = fitted("default"), later("default", 80)
    with way():
        late, plain = LateLabels(Stream(model), window), Stream(model)
    expected, found = [], []
    for row in range(80):
        late.predict(rows.x[row, 0])
        if row:
            late.label(row - 1, rows.y[row - 1, 0])
        found.append(late.live.prediction)
        expected.append(plain.predict(rows.x[row, 0]))
        plain.observe(rows.y[row, 0])
        assert late.waiting == []
    assert found == expected
    assert late.row == 79


def test_an_answer_stands_also_where_it_would_be_another_by_now() -> None:
    late = LateLabels(Stream(fitted("default")), 3)
    for row in range(9):
        late.predict([0.1 * row, 0.2])
        late.observe(row)
    first = late.predict([0.3, 0.4])
    second = late.predict([0.5, 0.6])
    assert late.label(9, 12.0) == 12.0 - first
    assert late.live.prediction != second
    again = LateLabels.restore(late.live.model, late.snapshot(), 3)
    third = [one.predict([0.7, 0.8]) for one in (late, again)]
    assert third[0] == third[1]
    for one in (late, again):
        assert one.label(10, 13.0) == 13.0 - second
        assert one.live.prediction != third[0]
        assert LateLabels.restore(one.live.model, one.snapshot(), 3).observe(1.0) == 1.0 - third[0]
        assert one.observe(1.0) == 1.0 - third[0]


@pytest.mark.parametrize("answered", [None, "much", [1.0], 1e200])
def test_an_answer_that_is_none_is_refused(answered: Any) -> None:
    tensors, header = model_file.from_bytes(Stream(fitted("default")).snapshot(), "it")
    with pytest.raises(ModelFileError, match="answered"):
        LateLabels.restore(
            fitted("default"), model_file.to_bytes(tensors, header | {"answered": answered}), 3
        )


def test_no_label_may_be_late() -> None:
    late, plain = LateLabels(Stream(fitted("default")), 0), Stream(fitted("default"))
    for x in ([0.1, 0.2], [0.3, 0.4]):  # the second replaces the first
        assert late.predict(x) == plain.predict(x) == late.peek(x)
    assert (late.waiting, late.row) == ([], 0)
    assert late.observe(1.0) == plain.observe(1.0)
    with pytest.raises(DataError, match="one label"):
        late.label(0, 1.0)
    assert late.snapshot() == plain.snapshot()


def test_what_is_wrong_with_a_row_is_said() -> None:
    late = LateLabels(Stream(fitted("default")), 2)
    with pytest.raises(DataError, match="number below 0; got 0"):
        late.label(0, 1.0)
    for _ in range(5):
        late.predict([0.1, 0.2])
    assert (late.waiting, late.row) == ([2, 3], 4)
    for row in (5, -1, 2.5, "2", True, None):
        with pytest.raises(DataError, match="number below 5; got"):
            late.label(row, 1.0)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(DataError, match="may be 2 rows late; row 1 is 3 rows before the last one, 4"):
        late.label(1, 1.0)
    late.label(3, 1.0)
    with pytest.raises(DataError, match=r"row 3 has its own, or was settled without. These wait: \[2\]"):
        late.label(3, 1.0)
    late.label(4, 1.0)  # the open one
    assert (late.waiting, late.row) == ([2], 5)
    late.label(2, None)
    with pytest.raises(DataError, match="row 2 has its own"):
        late.label(2, 1.0)


def test_times_go_on_after_a_row_that_waits() -> None:
    late = LateLabels(Stream(fitted("default")), 3)
    late.predict([0.1, 0.2], time="2026-01-01T10:00")
    with pytest.raises(DataError, match="must be after"):
        late.predict([0.1, 0.2], time="2026-01-01T10:00")
    assert late.waiting == []
    late.predict([0.1, 0.2], time="2026-01-01T11:00")
    assert late.waiting == [0]
    again = LateLabels.restore(late.live.model, late.snapshot(), 3)
    for one in (late, again):
        one.label(0, 1.0)
        assert one.live.last_time == np.datetime64("2026-01-01T10:00")


BAD: list[tuple[str, Any, dict[str, Any]]] = [
    ("default", [np.inf, 0.0], {}),
    ("default", [0.0, 1e101], {}),
    ("default", [0.0], {}),
    ("default", {"x0": 1.0}, {}),
    ("default", ["a", "b"], {}),
    ("default", [0.0, 0.0], {"time": "2026-01-02"}),
    ("default", [0.0, 0.0], {"time": "2026-01-01T07:00"}),
    ("default", [0.0, 0.0], {"time": "2056-01-02"}),
    ("default", [0.0, 0.0], {"time": "yesterday"}),
    ("default", [0.0, 0.0], {"interval": 2.0}),
    ("default", [0.0, 0.0], {"interval": [0.5, 2.0]}),
    ("refused", [np.nan, 0.0], {}),
    ("calendar", [0.0, 0.0], {}),
    ("no intervals", [0.0, 0.0], {"interval": 0.9}),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "x", "options"), BAD, ids=str)
def test_a_step_does_both_or_neither(kind: str, x: Any, options: dict[str, Any], way: Way) -> None:
    with way():
        late = LateLabels(Stream(fitted(kind)), 3)
        for hour in range(3):
            late.predict([0.1 * hour, 0.2], time=f"2026-01-01T0{5 + hour}:00")
        late.watch()
        late.predict([0.4, 0.2], time="2026-01-02")
        before, waiting = late.snapshot(), late.waiting
        with pytest.raises((DataError, ConfigError)) as error:
            late.step(1.0, x, **options)
        assert late.snapshot() == before and late.waiting == waiting
        with pytest.raises(DataError, match="y must be"):
            late.step("much", [0.1, 0.2], time="2026-01-03")
        assert late.snapshot() == before and late.waiting == waiting
        late.observe(1.0)
        with pytest.raises(type(error.value)) as expected:  # as a stream says it
            late.live.predict(x, **options)
        assert str(error.value) == str(expected.value)


@pytest.mark.parametrize("way", WAYS)
def test_a_step_has_its_bounds_where_a_row_that_waited_becomes_too_old(way: Way) -> None:
    rows = later("default", 12, trouble=False)
    with way():
        late, beside = (LateLabels(Stream(fitted("default")), 3) for _ in range(2))
        for one in (late, beside):
            for row in range(4):  # and rows 0 to 2 wait
                one.predict(rows.x[row, 0], interval=[0.9])
        for row in range(4, 12):
            innovation, stepped = late.step(float(rows.y[row - 1, 0]), rows.x[row, 0], interval=[0.9])
            assert innovation == beside.observe(float(rows.y[row - 1, 0]))
            apart = beside.predict(rows.x[row, 0], interval=[0.9])
            assert stepped.prediction == apart.prediction
            assert (stepped.lower.tolist(), stepped.upper.tolist()) == (
                apart.lower.tolist(),
                apart.upper.tolist(),
            )


def test_only_single_streams_have_late_labels() -> None:
    with pytest.raises(ConfigError, match="one series"):
        LateLabels(Stream(fitted("default"), 2), 3)
    for window in (-1, 1.5, None, True):
        with pytest.raises(ConfigError, match="window must be"):
            LateLabels(Stream(fitted("default")), window)  # type: ignore[arg-type]  # that is the point
    X = np.random.default_rng(0).normal(size=(80, 1))
    panel = Panel.from_arrays(X, X[:, 0].cumsum(), series=np.repeat(["a", "b"], 40))
    live = LinkedStreams(VARNNRegressor(peers=True, epochs=1, hidden_size=4, device="cpu").fit(panel))
    with pytest.raises(ConfigError, match="see each other"):
        LateLabels(live.begin(), 3)
    one = LateLabels(live.begin(), 0)
    assert np.isfinite(one.predict([0.1]))
    with pytest.raises(ConfigError, match="depends on who else comes"):
        one.step(1.0, [0.2])
    assert np.isfinite(one.observe(1.0))


def shifted(count: int = 700) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(count, 2))
    y = np.cumsum(0.05 * draw.normal(size=count)) + x[:, 0] + 0.1 * draw.normal(size=count)
    y[400:] += 2.0 * draw.normal(size=count - 400)
    return x, y


@pytest.mark.parametrize("lateness", [1, 3])
def test_events_are_those_of_labels_in_time_and_come_once(lateness: int) -> None:
    x, y = shifted()
    late, plain = LateLabels(Stream(fitted("default")), 3), Stream(fitted("default"))
    late.watch(coverage=0.9)
    plain.watch(coverage=0.9)
    found, expected = [], []
    for row in range(len(x)):
        late.predict(x[row])
        if row >= lateness:
            late.label(row - lateness, y[row - lateness])
            found += late.events
        if row % 50 == 7:
            late = LateLabels.restore(late.live.model, late.snapshot(), 3)
        plain.predict(x[row])
        plain.observe(y[row])
        expected += plain.events
    for row in [*late.waiting, late.row]:
        late.label(row, y[row])
        found += late.events
    assert expected and found == expected


def test_rows_done_again_do_not_say_again_what_they_said() -> None:
    x, y = shifted()
    late, plain = LateLabels(Stream(fitted("default")), 300), Stream(fitted("default"))
    late.watch()
    plain.watch()
    told = []
    for row in range(len(x)):
        late.predict(x[row])
        plain.predict(x[row])
        plain.observe(np.nan if row == 398 else y[row])
        if row != 398:
            late.observe(y[row])
            told += late.events
        if row == 600:
            late = LateLabels.restore(late.live.model, late.snapshot(), 300)
            late.label(398, None)
            assert late.events == []
    assert len(told) > 0 and len(set(told)) == len(told)
    assert late.live.snapshot() == plain.snapshot()


def test_watching_begins_at_the_oldest_row_that_waits() -> None:
    late, plain = LateLabels(Stream(fitted("default")), 3), Stream(fitted("default"))
    for row in range(4):
        late.predict([0.1 * row, 0.2])
        plain.predict([0.1 * row, 0.2])
        if row == 1:
            plain.watch()
        plain.observe(1.0)
        if row == 0:
            late.observe(1.0)
    with pytest.raises(ConfigError):
        late.watch(coverage=7.0)
    assert late.live.monitor is None and late.waiting == [1, 2]
    late.watch()
    for row in (2, 1, 3):
        late.label(row, 1.0)
    assert late.live.snapshot() == plain.snapshot()


def test_a_label_beyond_what_a_monitor_can_take_changes_nothing() -> None:
    late = LateLabels(Stream(fitted("unfiltered")), 3)
    late.watch()
    for _ in range(3):
        late.predict([0.1, 0.2])
        late.observe(9e99)
    late.predict([0.1, 0.2])
    late.predict([0.1, 0.2])
    before = late.snapshot()
    assert late.live.prediction > 1e90
    with pytest.raises(DataError, match="innovations must be finite"):
        late.label(3, -1e100)
    assert late.snapshot() == before and late.waiting == [3]


def test_a_stream_that_forecasts_goes_back_with_its_rows() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(160, 1))
    y = np.cumsum(draw.normal(size=160)) + X[:, 0]
    settings: dict[str, Any] = {"hidden_size": 4, "epochs": 1, "ensemble": 1, "device": "cpu"}
    model = VARNNRegressor(horizon=3, **settings).fit(X, y)
    late, plain = LateLabels(model.stream(), 4), model.stream()
    for row in range(30):
        late.predict(X[row])
        plain.predict(X[row])
        plain.observe(y[row])
        if row % 3 == 2:
            for one in (row - 1, row - 2, row):
                late.label(one, y[one])
    np.testing.assert_array_equal(late.live.forecast(3).prediction, plain.forecast(3).prediction)
    assert late.live.snapshot() == plain.snapshot()


def waits() -> LateLabels:
    late = LateLabels(Stream(fitted("default")), 5)
    late.watch(coverage=0.9)
    for row in range(6):
        late.predict([0.1 * row, np.nan], time=f"2026-01-01T0{row}:00")
        if row in (1, 3):
            late.observe(0.5 * row)
    return late


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_go_on_by_themselves(again: Callable[[LateLabels], LateLabels]) -> None:
    late = waits()
    other, before = again(late), late.snapshot()
    assert other.snapshot() == before
    other.label(0, 3.0)
    other.predict([0.1, 0.1])
    assert late.snapshot() == before and late.waiting == [0, 2, 4] != other.waiting


def test_streams_that_share_a_guard_go_on_by_themselves() -> None:
    model, rows, shared = fitted("default"), later("default", 30, 2), Guard()
    late = [LateLabels(Stream(model, guard=shared), 3) for _ in range(2)]
    plain = [Stream(model) for _ in range(2)]
    for row in range(30):
        for series in range(2):
            late[series].predict(rows.x[row, series])
        for series in range(2):
            plain[series].predict(rows.x[row, series])
            plain[series].observe(rows.y[row, series])
            if row:
                late[series].label(row - 1, rows.y[row - 1, series])
    for series in range(2):
        late[series] = LateLabels.restore(model, late[series].snapshot(), 3, guard=shared)
        late[series].observe(rows.y[29, series])
        assert late[series].live.snapshot() == plain[series].snapshot()


def test_a_snapshot_of_a_stream_alone_is_gone_on_from() -> None:
    live = Stream(fitted("default"))
    live.predict([0.1, 0.2])
    late = LateLabels.restore(live.model, live.snapshot(), 2)
    assert late.snapshot() == live.snapshot()
    late.predict([0.3, 0.4])
    assert late.waiting == [0]
    with pytest.raises(ModelFileError, match=r"LateLabels.restore"):
        Stream.restore(live.model, late.snapshot())


def test_a_smaller_window_settles_what_is_too_old() -> None:
    late = waits()
    assert late.waiting == [0, 2, 4]
    assert LateLabels.restore(late.live.model, late.snapshot(), 3).waiting == [2, 4]
    none = LateLabels.restore(late.live.model, late.snapshot(), 0)
    assert none.waiting == [] and none.live.snapshot() == late.live.snapshot() == none.snapshot()


def test_snapshots_of_others_are_refused() -> None:
    blob = waits().snapshot()
    with pytest.raises(ModelFileError, match="belongs to another"):
        LateLabels.restore(fitted("RM"), blob, 3)
    with pytest.raises(ModelFileError, match="one series"):
        LateLabels.restore(fitted("default"), Stream(fitted("default"), 2).snapshot(), 3)
    for cut in range(0, len(blob), 997):
        with pytest.raises(ModelFileError):
            LateLabels.restore(fitted("default"), blob[:cut], 3)


def changed(**changes: Any) -> bytes:
    """Make a snapshot that says what none can, and has its checksum right."""
    tensors, header = model_file.from_bytes(waits().snapshot(), "it")
    for name, value in changes.items():
        part: Any = tensors if name in tensors else header if name in header else header["late"]
        if value is None:
            del part[name]
        else:
            part[name] = value(part[name]) if callable(value) else value
    return model_file.to_bytes(tensors, header)


def put(place: int, value: Any) -> Callable[[Any], Any]:
    def at(one: Any) -> Any:
        one = one.copy()
        one[place] = value
        return one

    return at


def test_what_is_changed_below_is_what_a_snapshot_holds() -> None:
    assert LateLabels.restore(fitted("default"), changed(), 5).snapshot() == waits().snapshot()


def plain_state(*, is_open: bool = True, n_series: int | None = None) -> Any:
    live = Stream(fitted("default"), n_series)
    if is_open:
        live.predict(np.zeros(live._shape))
    return np.frombuffer(live.snapshot(), np.uint8)


@pytest.mark.parametrize(
    "changes",
    [
        {"before": None},
        {"before": lambda one: one[:-1]},
        {"before": lambda one: one.astype(np.int32)},
        {"before": lambda _: plain_state(is_open=False)},
        {"before": lambda _: plain_state(n_series=1)},
        {"before": lambda _: np.frombuffer(waits().snapshot(), np.uint8)},
        {"x": None},
        {"x": lambda one: one[1:]},
        {"x": lambda one: one[:, :1]},
        {"x": lambda one: one.astype(np.float32)},
        {"x": put(1, np.inf)},
        {"x": put(1, 1e101)},
        {"labels": None},
        {"labels": lambda one: one[1:]},
        {"labels": put(1, np.inf)},
        {"labels": put(5, 1.0)},
        {"predictions": None},
        {"predictions": put(0, np.nan)},
        {"predictions": put(0, np.inf)},
        {"times": []},
        {"times": [None] * 5},
        {"times": put(1, 7)},
        {"times": put(1, "yesterday")},
        {"times": put(1, "2025-01-01")},
        {"times": put(5, "2300-01-01")},
        {"times": "2026"},
        {"waiting": []},
        {"waiting": [1]},
        {"waiting": [0, 5]},
        {"waiting": [0, 4, 2]},
        {"waiting": [0, 0]},
        {"waiting": [0, "2"]},
        {"waiting": [0, 2.0]},
        {"waiting": [-1, 0]},
        {"open": None},
        {"open": 1},
        {"told": None},
        {"told": [["level shift"]]},
        {"told": [["level shift", -1]]},
        {"told": [[["a"], 1]]},
        {"told": {"level shift": 1}},
        {"late": []},
        {"late": 7},
    ],
)
def test_what_no_snapshot_holds_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match=r"damaged|one series|stream alone"):
        LateLabels.restore(fitted("default"), changed(**changes), 5)


def test_rows_that_the_model_would_refuse_are_refused() -> None:
    late = LateLabels(Stream(fitted("refused")), 5)
    for _ in range(3):
        late.predict([0.1, 0.2])
    tensors, header = model_file.from_bytes(late.snapshot(), "it")
    tensors["x"] = np.full_like(tensors["x"], np.nan)
    with pytest.raises(ModelFileError, match="takes no missing input"):
        LateLabels.restore(fitted("refused"), model_file.to_bytes(tensors, header), 5)


def test_late_labels_reject_a_model_in_place_of_its_stream() -> None:
    with pytest.raises(ConfigError, match="stream"):
        LateLabels(fitted("default"), window=3)  # type: ignore[arg-type]  # on purpose
