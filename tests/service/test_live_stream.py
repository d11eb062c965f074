"""A stream at work: durable answers, history, scores, challengers, and what goes wrong."""

import json
import math
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn import Details, VARNNRegressor
from varnn.errors import DataError, OutputError
from varnn.model.fitted import Fitted
from varnn.service import reading
from varnn.service.errors import Busy, Closing
from varnn.service.live_stream import LiveStream, StreamSettings
from varnn.service.requests import Request
from varnn.streaming.late import LateLabels
from varnn.streaming.row_store import RowStore

SMALL: Any = {"hidden_size": 6, "ensemble": 2, "window": 4, "device": "cpu"}


def fitted(epochs: int) -> Fitted:
    random = np.random.default_rng(0)
    X = random.normal(size=(360, 2))
    y = X[:, 0] + np.cumsum(random.normal(size=360)) / 5
    model = VARNNRegressor(epochs=epochs, details=Details(forgetting=0.99), **SMALL).fit(X, y)
    found: Fitted = model.fitted_
    return found


@pytest.fixture(scope="module")
def champion() -> Fitted:
    return fitted(1)


@pytest.fixture(scope="module")
def challenger() -> Fitted:
    return fitted(3)


def rows_of(count: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [
        {
            "series": f"s{random.integers(3)}",
            "x": random.normal(size=2).tolist(),
            "y": None if random.random() < 0.1 else float(random.normal()),
            "key": f"k{number}",
        }
        for number in range(count)
    ]


def history_of(live: LiveStream, series: str) -> dict[str, Any]:
    return reading.history(live.path, live.keeper.ids[json.dumps(series)])


def test_history_says_what_was_said_and_what_came(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion))
    rows = rows_of(50)
    answers = live.submit(rows).result()
    live.submit([{"series": "s0", "x": [1.0, 2.0], "time": "2026-01-02T03:04:05", "key": "t"}]).result()
    live.submit([{"series": "s0", "x": [1.0, 2.0]}]).result()
    live.submit([{"series": "s0", "y": 4.0, "for": "t"}]).result()
    found = history_of(live, "s0")["columns"]
    own = [(row, told) for row, told in zip(rows, answers, strict=True) if row["series"] == "s0"]
    assert found["prediction"][:-2] == [told["prediction"] for _, told in own]
    assert found["y"] == [*(row["y"] for row, _ in own), 4.0, None]
    assert found["time"][-2:] == ["2026-01-02T03:04:05.000000", None]
    assert found["at"][-2] == 1767323045.0
    live.close()


def test_scores_are_those_of_the_rows(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion))
    live.submit([{**row, "series": None, "y": row["y"] or 0.0} for row in rows_of(80)]).result()
    found = reading.history(live.path, live.keeper.ids["null"])["columns"]
    y, said = np.array(found["y"]), np.array(found["prediction"])
    held = (np.array(found["lower"]) <= y) & (y <= np.array(found["upper"]))
    weights = (1 - 1 / 500) ** np.arange(80)[::-1]
    told = live.keeper.summaries[1].score.told()
    assert told["rmse"] == pytest.approx(math.sqrt(np.average((y - said) ** 2, weights=weights)))
    assert told["coverage"] == pytest.approx(np.average(held, weights=weights))
    ratio = np.sum(weights[1:] * (y - said)[1:] ** 2) / np.sum(weights[1:] * np.diff(y) ** 2)
    assert told["skill"] == pytest.approx(1 - ratio)
    live.close()


def test_a_challenger_does_as_it_would_alone_and_takes_over(
    champion: Fitted, challenger: Fitted, tmp_path: Path
) -> None:
    from varnn.service.service import Service

    with Service(tmp_path / "service") as service:
        for name, model in (("first", champion), ("second", challenger)):
            service._fitted[name] = model
            service._model_path(name).write_bytes(b"in memory")
        service.add_stream("m", "first")
        rows = [{**row, "series": "s"} for row in rows_of(90)]
        service.stream("m").submit(rows[:30]).result()
        service.add_challenger("m", "second")
        answers = service.stream("m").submit(rows[30:60]).result()
        live = service.stream("m")
        alone = LateLabels(_stream(challenger), 24)
        expected = []
        for row in rows[30:]:
            expected.append(alone.predict(row["x"]))
            alone.observe(row["y"])
        found = history_of(live, "s")
        assert found["challengers"]["second"]["prediction"][30:] == expected[:30]
        assert found["challengers"]["second"]["prediction"][:30] == [None] * 30
        assert [one["prediction"] for one in answers] != expected[:30]
        assert live.keeper.challengers[0].scores[1].rows == sum(row["y"] is not None for row in rows[30:60])
        service.promote("m", "second")
        live = service.stream("m")
        assert (live.champion, [one.name for one in live.keeper.challengers]) == ("second", ["first"])
        after = live.submit(rows[60:]).result()
        assert [one["prediction"] for one in after] == expected[30:]
        assert [one["row"] for one in after] == list(range(60, 90))
        assert live.submit(rows[30:60]).result() == answers  # sent again
        # The one that was champion has gone on without a gap.
        whole = LateLabels(_stream(champion), 24)
        said = []
        for row in rows:
            said.append(whole.predict(row["x"]))
            whole.observe(row["y"])
        assert history_of(live, "s")["challengers"]["first"]["prediction"][60:] == said[60:]
        service.drop_challenger("m", "first")
        assert history_of(service.stream("m"), "s")["challengers"] == {}


def _stream(model: Fitted) -> Any:
    from varnn.streaming.stream import Stream

    return Stream(model)


def test_a_challenger_goes_on_after_the_end_as_if_there_was_none(
    champion: Fitted, challenger: Fitted, tmp_path: Path
) -> None:
    found: list[Any] = []
    for often in (1, 7):
        path, rows = tmp_path / f"{often}.state", rows_of(210)
        for begin in range(0, 210, 30 if often == 7 else 210):
            settings = StreamSettings(in_memory=1 if often == 7 else 100)
            live = LiveStream("m", path, ("a", champion), [("b", challenger)], settings)
            for row in rows[begin : begin + (30 if often == 7 else 210)]:
                live.submit([row]).result()
            live.close()
        live = LiveStream("m", path, ("a", champion), [("b", challenger)])
        found.append([history_of(live, f"s{n}")["challengers"] for n in range(3)])
        found.append({one: score.told() for one, score in live.keeper.challengers[0].scores.items()})
        found.append({one: (s.score.told(), s.row) for one, s in live.keeper.summaries.items()})
        live.close()
    assert found[:3] == found[3:]


def test_what_a_challenger_cannot_use_makes_it_leave(
    champion: Fitted, challenger: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("a", champion), [("b", challenger)])
    live.submit([{"x": [0.1, 0.2]}]).result()
    other = live.keeper.challengers[0]
    real = LateLabels.predict

    def refuses(self: LateLabels, x: Any, **more: Any) -> Any:
        if self is other._lives.get(1):
            raise DataError("no")
        return real(self, x, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LateLabels, "predict", refuses)
        assert "prediction" in live.submit([{"x": [0.1, 0.2]}]).result()[0]
    assert other.left_series == 1
    live.submit([{"y": 0.1}]).result()
    [answer] = live.submit([{"x": [0.5, 0.2], "y": 1.0}]).result()
    found = reading.history(live.path, 1)["challengers"]["b"]["prediction"]
    assert [one is None for one in found] == [False, True, False] and answer["row"] == 2
    live.close()


def test_history_is_cut(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion), settings=StreamSettings(history=100))
    for row in rows_of(1200):
        live.submit([{**row, "series": "s"}])
    live.call(lambda store: None).result()
    assert 100 <= history_of(live, "s")["rows"] <= 356
    assert history_of(live, "s")["columns"]["row"][-1] == 1199
    live.close()


def test_a_row_from_the_future_is_refused(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion))
    [answer] = live.submit([{"x": [0.1, 0.2], "time": "2999-01-01"}]).result()
    assert "ahead of this machine's clock" in answer["error"] and live.n_series == 0
    live.close()
    free = LiveStream("m", tmp_path / "n.state", ("m", champion), settings=StreamSettings(future=0))
    assert "prediction" in free.submit([{"x": [0.1, 0.2], "time": "2999-01-01"}]).result()[0]
    free.close()


def test_a_queue_that_is_full_says_so_and_an_end_waits_for_answers(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion), settings=StreamSettings(queue=10))
    go_on = threading.Event()
    blocked = live.call(lambda store: go_on.wait(20))
    time.sleep(0.05)
    waiting = live.submit([{"x": [0.1, 0.2]}] * 9)
    with pytest.raises(Busy, match="wait"):
        live.submit([{"x": [0.1, 0.2]}])
    ending = threading.Thread(target=live.close)
    ending.start()
    time.sleep(0.05)
    with pytest.raises(Closing):
        live.submit([{"x": [0.1, 0.2]}])
    go_on.set()
    ending.join(20)
    assert blocked.result(0) and len(waiting.result(0)) == 9


def test_a_write_that_fails_is_heard_by_all_and_was_never_done(
    champion: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion))
    rows = rows_of(40)
    first = live.submit(rows[:20]).result()
    told: list[Any] = []
    live.follow(lambda some, events: told.extend(some))

    def full(store: RowStore) -> None:
        raise OutputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(RowStore, "commit", full)
        with pytest.raises(OutputError, match="full"):
            live.submit(rows[20:]).result()
    assert live.trouble == "the disk is full" and not told
    second = live.submit(rows).result()
    assert second[:20] == first and live.trouble is None and len(told) == 20
    assert sum(summary.row + 1 for summary in live.keeper.summaries.values()) == 40
    live.close()


def test_a_bug_is_not_the_end(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion))

    def wrong(store: RowStore) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        live.call(wrong).result()
    assert "prediction" in live.submit([{"x": [0.1, 0.2]}]).result()[0]
    live.close()


def test_events_and_labels_say_when_their_rows_were(champion: Fitted, tmp_path: Path) -> None:
    live = LiveStream("m", tmp_path / "m.state", ("m", champion))
    told: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []

    def hear(rows: list[dict[str, Any]], noticed: list[dict[str, Any]]) -> None:
        told.extend(rows)
        events.extend(noticed)

    live.follow(hear)
    random = np.random.default_rng(0)
    for row in range(300):
        minute = f"2026-01-01T{row // 60:02d}:{row % 60:02d}"
        message: dict[str, Any] = {"x": random.normal(size=2).tolist(), "time": minute}
        if row:
            message["last_y"] = float(random.normal() * (50 if row > 200 else 0.2))
        live.submit([message]).result()
    times = reading.history(live.path, 1)["columns"]["at"]
    assert events and all(one["at"] == times[one["row"]] for one in events)
    assert all(one["at"] == times[one["row"]] for one in told)
    live.close()


def test_a_first_step_that_fails_does_not_end_a_stream(
    champion: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from varnn.service import live_stream

    def broken(model: Fitted) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(live_stream, "Stream", broken)
        live = LiveStream("m", tmp_path / "m.state", ("m", champion))
        assert live.is_warm.wait(20)
    assert "prediction" in live.submit([{"x": [0.1, 0.2]}]).result(20)[0]
    live.close()
    assert not live.is_ready


def test_a_request_sent_again_is_answered_as_it_was_also_where_it_was_refused(
    champion: Fitted, tmp_path: Path
) -> None:
    """Without the number of the request, its label would be taken the second time: there is a row by then."""
    messages = [{"series": "a", "y": 1.0}, {"series": "a", "x": [0.1, 0.2]}, "nonsense"]
    live = LiveStream("house", tmp_path / "house.state", ("first", champion))
    first = live.submit(messages, request=Request("me", 1)).result()
    assert "error" in first[0] and first[1]["row"] == 0 and "error" in first[2]
    live.close()
    live = LiveStream("house", tmp_path / "house.state", ("first", champion))
    assert live.submit(messages, request=Request("me", 1)).result() == first
    assert live.submit([{"series": "a", "y": 1.0}], request=Request("me", 2)).result()[0]["row"] == 0
    live.close()


def test_a_request_that_was_not_written_is_a_new_one(
    champion: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveStream("house", tmp_path / "house.state", ("first", champion))
    row = {"series": "a", "x": [0.1, 0.2], "y": 1.0}
    expected = live.submit([row | {"series": "b"}]).result()[0]["prediction"]
    with monkeypatch.context() as patch:
        patch.setattr(live._store, "commit", lambda: (_ for _ in ()).throw(OutputError("no room")))
        with pytest.raises(OutputError, match="no room"):
            live.submit([row], request=Request("me", 1)).result()
    (answer,) = live.submit([row], request=Request("me", 1)).result()
    assert answer["row"] == 0 and answer["prediction"] == expected
    live.close()
