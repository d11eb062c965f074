"""What a stream promises holds at its edges, too: whatever was taken stays, once, and as it was answered."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.serving import LABELS, served, whole_rows, x
from varnn.errors import ModelFileError, OutputError
from varnn.estimator.loading import load
from varnn.model.fitted import Fitted
from varnn.service import keeper as keeper_module
from varnn.service import live_stream, reading
from varnn.service.client import ServiceRefused
from varnn.service.live_stream import LiveStream, StreamSettings
from varnn.service.service import Service
from varnn.streaming.late import LateLabels
from varnn.streaming.row_store import RowStore
from varnn.streaming.store import Store
from varnn.streaming.stream import Stream

Message = dict[str, Any]


@pytest.fixture(scope="module")
def house(models: Path) -> Fitted:
    found: Fitted = load(models / "house.varnn").fitted_
    return found


@pytest.fixture(scope="module")
def rival(models: Path) -> Fitted:
    found: Fitted = load(models / "rival.varnn").fitted_
    return found


@pytest.fixture
def live(house: Fitted, tmp_path: Path) -> Iterator[LiveStream]:
    with closing(LiveStream("house", tmp_path / "house.state", ("house", house))) as found:
        yield found


def columns(live: LiveStream, series: str = "s") -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = reading.history(live.path, live.keeper.ids[json.dumps(series)])["columns"]
    return found


def predictions(model: Fitted, count: int, first: int = 0, begin: int = 0) -> list[float]:
    """What a stream alone predicts for rows, from the one it begins with on."""
    alone = Stream(model)
    said = []
    for row in range(begin, first + count):
        said.append(alone.predict(x(row)))
        alone.observe(LABELS[row])
    return said[first - begin :]


# -- clocks ------------------------------------------------------------------------------------------


def test_a_message_sent_again_is_answered_as_it_was_also_when_the_clock_went_back(
    live: LiveStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    at = str(np.datetime64(int(now), "s"))
    message = {"series": "s", "x": x(0), "y": 1.0, "time": at, "key": "k"}
    first = live.submit([message]).result()
    monkeypatch.setattr("varnn.service.live_stream.time.time", lambda: now - 10 * 86_400)
    assert live.submit([message]).result() == first
    [late] = live.submit([{**message, "time": str(np.datetime64(int(now) + 60, "s")), "key": "k2"}]).result()
    assert "ahead of this machine's clock" in late["error"]


def test_rows_without_times_go_on_while_the_clock_jumps(
    live: LiveStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_800_000_000.0, 1_700_000_000.0, 1_900_000_000.0]
    for at in clock:
        monkeypatch.setattr("varnn.service.keeper.time.time", lambda at=at: at)
        [answer] = live.submit([{"series": "s", "x": x(0), "y": 1.0}]).result()
        assert "error" not in answer
    found = columns(live)
    assert found["row"] == [0, 1, 2]
    assert found["at"] == clock
    some = reading.history(live.path, 1, start=1_750_000_000.0, end=1_850_000_000.0)["columns"]
    assert some["row"] == [0]


# -- all or nothing ----------------------------------------------------------------------------------


def rows_up_to_one_that_is_refused(live: LiveStream) -> Message:
    """Teach a series such numbers that the next whole row cannot be taken, and give that row."""
    wild: list[Message] = [{"series": "s", "x": x(row), "y": (-1) ** row * 1e100} for row in range(3)]
    answers = live.submit(wild).result()
    assert all("error" not in one for one in answers)
    return {"series": "s", "x": x(3), "y": -1e100}


@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_a_whole_row_whose_label_cannot_be_used_changes_nothing(live: LiveStream, waiting: int) -> None:
    refused = rows_up_to_one_that_is_refused(live)
    live.submit([{"series": "s", "x": x(row)} for row in range(waiting)]).result()
    state = live.call(_snapshot).result()
    [answer] = live.submit([refused]).result()
    assert "innovations must be finite" in answer["error"]
    assert live.call(_snapshot).result() == state
    [after] = live.submit([{"series": "s", "x": x(4)}]).result()
    assert after["row"] == 3 + waiting
    assert columns(live)["row"] == list(range(4 + waiting))


def _snapshot(store: RowStore, series: str = "s") -> bytes:
    found = store.stream(json.dumps(series))
    assert found is not None
    return found.snapshot()


# -- challengers -------------------------------------------------------------------------------------


def leaves(live: LiveStream, monkeypatch: pytest.MonkeyPatch, message: Message) -> None:
    """Let the challenger of a stream leave the series of a message, which it cannot use."""
    other = live.keeper.challengers[0]
    real = LateLabels.predict

    def refuses(self: LateLabels, x: Any, **more: Any) -> Any:
        if self in other._lives.values():
            raise ValueError("no")
        return real(self, x, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LateLabels, "predict", refuses)
        live.submit([message]).result()
    assert other.left_series == 1


def test_what_a_challenger_scored_outlives_its_leaving(
    house: Fitted, rival: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles: Any = (("house", house), [("rival", rival)])
    with closing(LiveStream("m", tmp_path / "m.state", *roles)) as live:
        live.submit(whole_rows(20, series="s")).result()
        leaves(live, monkeypatch, {"series": "s", "x": x(20)})
        before = live.keeper.challengers[0].scores[1].packed()
    with closing(LiveStream("m", tmp_path / "m.state", *roles)) as live:
        assert live.keeper.challengers[0].scores[1].packed() == before
        live.submit(whole_rows(5, 21, series="s")).result()  # it joins again
        score = live.keeper.challengers[0].scores[1]
        assert score.rows == 25
        found = reading.history(live.path, 1)["challengers"]["rival"]["prediction"]
        assert found[21:] == predictions(rival, 5, 21, begin=21)
        assert found[20] is None
    with closing(LiveStream("m", tmp_path / "m.state", *roles)) as live:
        assert live.keeper.challengers[0].scores[1].packed() == score.packed()


def test_a_challenger_whose_state_is_damaged_does_not_stop_the_champion(
    house: Fitted, rival: Fitted, tmp_path: Path
) -> None:
    roles: Any = (("house", house), [("rival", rival)])
    with closing(LiveStream("m", tmp_path / "m.state", *roles)) as live:
        live.submit(whole_rows(60, series="s")).result()
    with closing(sqlite3.connect(tmp_path / "m.state")) as database, database:
        database.execute("UPDATE challengers SET state = substr(state, 1, 500)")
    with closing(LiveStream("m", tmp_path / "m.state", *roles)) as live:
        answers = live.submit(whole_rows(5, 60, series="s")).result()
        assert [one["prediction"] for one in answers] == predictions(house, 5, 60)
        assert live.damage is None
        assert live.keeper.challengers[0].left_series == 1
        found = reading.history(live.path, 1)["challengers"]["rival"]["prediction"]
        assert found[60:] == predictions(rival, 5, 60, begin=60)


@pytest.fixture
def both(models: Path, tmp_path: Path) -> Iterator[Service]:
    """Give a service with the stream house, the challenger rival, and room for two series in memory."""
    with Service(tmp_path / "service", StreamSettings(in_memory=2)) as service:
        service.serve(models / "house.varnn")
        service.add_model("rival", (models / "rival.varnn").read_bytes())
        service.add_challenger("house", "rival")
        yield service


def test_promotion_takes_series_along_that_wait_on_disk(both: Service, house: Fitted, rival: Fitted) -> None:
    names = [f"s{one}" for one in range(6)]
    for row in range(20):
        for name in names:  # so that each leaves memory again and again
            both.stream("house").submit(whole_rows(1, row, series=name)).result()
    both.promote("house", "rival")
    live = both.stream("house")
    for name in names:
        answers = live.submit(whole_rows(5, 20, series=name)).result()
        assert [one["row"] for one in answers] == list(range(20, 25))
        assert [one["prediction"] for one in answers] == predictions(rival, 5, 20)
        assert columns(live, name)["y"] == LABELS[:25]
        beside = reading.history(live.path, live.keeper.ids[json.dumps(name)])["challengers"]["house"]
        assert beside["prediction"][20:] == predictions(house, 5, 20)


def test_after_a_promotion_rows_go_on_where_the_new_champion_was_not_there(
    models: Path, tmp_path: Path, rival: Fitted
) -> None:
    with Service(tmp_path / "service") as service:
        service.serve(models / "house.varnn")
        service.stream("house").submit(whole_rows(10, series="s")).result()
        service.add_model("rival", (models / "rival.varnn").read_bytes())
        service.add_challenger("house", "rival")
        service.promote("house", "rival")
        answers = service.stream("house").submit(whole_rows(5, 10, series="s")).result()
        assert [one["row"] for one in answers] == list(range(10, 15))
        assert [one["prediction"] for one in answers] == predictions(rival, 5, 10, begin=10)
        assert columns(service.stream("house"))["y"] == LABELS[:15]
    with Service(tmp_path / "service") as service:  # and from disk
        [answer] = service.stream("house").submit(whole_rows(1, 15, series="s")).result()
        assert (answer["row"], answer["prediction"]) == (15, *predictions(rival, 1, 15, begin=10))


def test_scores_stay_with_their_models_when_they_change_places(both: Service) -> None:
    live = both.stream("house")
    live.submit(whole_rows(40, series="s")).result()
    first, second = live.keeper.summaries[1].score.told(), live.keeper.challengers[0].scores[1].told()
    assert first != second
    both.promote("house", "rival")
    live = both.stream("house")
    assert (live.keeper.summaries[1].score.told(), live.keeper.challengers[0].scores[1].told()) == (
        second,
        first,
    )


def test_messages_that_come_while_models_change_places_are_not_lost(
    both: Service, rival: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.stream("house").submit(whole_rows(10, series="s")).result()
    real, late = LiveStream.close, list[Future[Any]]()

    def close(self: LiveStream, **more: Any) -> None:
        late.append(self.submit(whole_rows(10, 10, series="s")))  # at the last moment
        real(self, **more)

    with monkeypatch.context() as patch:
        patch.setattr(LiveStream, "close", close)
        both.promote("house", "rival")
    assert [one["row"] for one in late[0].result()] == list(range(10, 20))
    answers = both.stream("house").submit(whole_rows(5, 20, series="s")).result()
    assert [one["row"] for one in answers] == list(range(20, 25))
    assert [one["prediction"] for one in answers] == predictions(rival, 5, 20)


def test_a_stream_that_could_not_be_opened_again_is_opened_once_it_can_be(
    both: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.stream("house").submit(whole_rows(3, series="s")).result()

    def broken(*_: Any, **more: Any) -> None:
        raise OutputError("an I/O error")

    with monkeypatch.context() as patch:
        patch.setattr("varnn.service.service.LiveStream", broken)
        with pytest.raises(OutputError):
            both.promote("house", "rival")
        with pytest.raises(OutputError):
            both.stream("house")
    [answer] = both.stream("house").submit(whole_rows(1, 3, series="s")).result()
    assert answer["row"] == 3


def test_a_service_starts_with_the_same_command_after_a_promotion(
    both: Service, models: Path, tmp_path: Path
) -> None:
    both.stream("house").submit(whole_rows(3, series="s")).result()
    both.promote("house", "rival")
    both.close()
    with Service(tmp_path / "service") as service:
        assert service.serve(models / "house.varnn").champion == "rival"
        service.drop_challenger("house", "house")
        assert service.serve(models / "house.varnn").champion == "rival"


def test_promotion_while_labels_are_awaited_keeps_watching(both: Service) -> None:
    live = both.stream("house")
    live.submit([{"series": "s", "x": x(row), "key": f"k{row}"} for row in range(4)]).result()
    both.promote("house", "rival")
    both.stream("house").submit([{"series": "s", "y": LABELS[1], "for": "k1"}]).result()
    state = both.stream("house").call(lambda store: store.stream('"s"')).result()
    assert state is not None
    assert state.live.monitor is not None


# -- snapshots ---------------------------------------------------------------------------------------


def test_a_series_that_goes_on_from_a_snapshot_has_one_history(both: Service, house: Fitted) -> None:
    live = both.stream("house")
    live.submit(whole_rows(10, series="s")).result()
    early = live.call(_snapshot).result()
    live.submit(whole_rows(10, 10, series="s")).result()
    live.call(lambda store: store.put('"s"', early), writes=True).result()
    assert columns(live)["row"] == list(range(10))
    answers = live.submit(whole_rows(3, 50, series="s")).result()
    assert [one["row"] for one in answers] == [10, 11, 12]
    assert columns(live)["y"] == [*LABELS[:10], *LABELS[50:53]]
    assert live.keeper.summaries[1].row == 12
    # Who goes along joins anew: it was not there for what the snapshot holds.
    found = reading.history(live.path, 1)["challengers"]["rival"]["prediction"]
    rival = live.keeper.challengers[0].fitted
    assert found[10:] == predictions(rival, 3, 50, begin=50)


def test_a_snapshot_that_is_ahead_leaves_a_gap(both: Service) -> None:
    live = both.stream("house")
    live.submit(whole_rows(30, series="far")).result()
    ahead = live.call(lambda store: _snapshot(store, "far")).result()
    live.submit(whole_rows(5, series="s")).result()
    live.call(lambda store: store.put('"s"', ahead), writes=True).result()
    [answer] = live.submit(whole_rows(1, 30, series="s")).result()
    assert answer["row"] == 30
    assert columns(live)["row"] == [0, 1, 2, 3, 4, 30]
    found = reading.history(live.path, live.keeper.ids['"s"'])["challengers"]["rival"]["prediction"]
    assert found[5] is not None


# -- writing that fails ------------------------------------------------------------------------------


def waited_for(what: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait until something holds; tell whether it does."""
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def full(live: LiveStream) -> None:
    """Let the disk be full for a stream, as SQLite sees it."""
    live.call(lambda store: _limit(store, 1)).result()


def empty(live: LiveStream) -> None:
    """Make room."""
    live.call(lambda store: _limit(store, 1 << 30)).result()


def _limit(store: RowStore, pages: int) -> None:
    _asked(store, f"PRAGMA max_page_count = {pages}")


def _asked(store: RowStore, query: str) -> None:
    assert store._journal is not None
    store._journal.database.execute(query)


def test_a_group_that_cannot_be_written_was_never_said(house: Fitted, rival: Fitted, tmp_path: Path) -> None:
    roles: Any = (("house", house), [("rival", rival)])
    with closing(LiveStream("m", tmp_path / "m.state", *roles)) as live:
        rows = [{**one, "key": f"k{n}", "series": f"s{n % 3}"} for n, one in enumerate(whole_rows(90))]
        first = live.submit(rows[:30]).result()
        kept = (live.keeper.summaries[1].packed(), live.keeper.challengers[0].scores[1].packed())
        full(live)
        lost = [live.submit(rows[30:60]), live.submit([{**rows[60], "series": "new"}])]
        for one in lost:
            with pytest.raises(OutputError, match="database or disk is full"):
                one.result()
        assert "full" in str(live.trouble)
        assert not live.is_ready
        assert (live.keeper.summaries[1].packed(), live.keeper.challengers[0].scores[1].packed()) == kept
        assert live.n_series == 3
        assert live.submit(rows[:30]).result() == first  # what was answered is answered still
        assert live.submit([{"series": "s0", "x": x(0)}], pure=True).result()[0]["prediction"]
        empty(live)
        second = live.submit(rows).result()
        assert second[:30] == first
        assert live.trouble is None
    with closing(LiveStream("m", tmp_path / "whole.state", *roles)) as whole:
        assert whole.submit(rows).result() == second
        for series in (1, 2, 3):
            assert (
                whole.keeper.summaries[series].score.packed() == live.keeper.summaries[series].score.packed()
            )


def test_a_prediction_does_not_say_that_the_disk_is_well(live: LiveStream) -> None:
    live.submit(whole_rows(1, series="s")).result()
    full(live)
    with pytest.raises(OutputError):
        live.submit(whole_rows(300, 1, series="s")).result()
    live.submit([{"series": "s", "x": x(1)}], pure=True).result()
    assert live.trouble is not None
    assert not live.is_ready


def test_a_stream_is_ready_again_by_itself_once_there_is_room(live: LiveStream) -> None:
    live.submit(whole_rows(1, series="s")).result()
    full(live)
    with pytest.raises(OutputError):
        live.submit(whole_rows(300, 1, series="s")).result()
    time.sleep(1.5)
    assert not live.is_ready
    empty(live)
    assert waited_for(lambda: live.is_ready)


def test_going_back_that_fails_is_tried_again(live: LiveStream, monkeypatch: pytest.MonkeyPatch) -> None:
    first = live.submit(whole_rows(3, series="s")).result()

    def broken(*_: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(keeper_module.Keeper, "_read", broken)
        full(live)
        with pytest.raises(OutputError, match="full"):
            live.submit(whole_rows(300, 3, series="s")).result(20)
        for _ in range(2):  # memory is not to be trusted yet
            with pytest.raises(OutputError, match="disk I/O error"):
                live.submit(whole_rows(1, 3, series="s")).result(20)
    empty(live)
    answers = live.submit(whole_rows(1, 3, series="s")).result(20)
    assert answers[0]["row"] == 3
    assert answers[0]["seq"] == first[-1]["seq"] + 1


def test_who_follows_cannot_make_a_write_fail(live: LiveStream) -> None:
    def broken(rows: Any, events: Any) -> None:
        raise RuntimeError("a follower's own fault")

    live.follow(broken)
    heard: list[Any] = []
    live.follow(lambda rows, events: heard.extend(rows))
    [answer] = live.submit(whole_rows(1, series="s")).result()
    assert answer["row"] == 0
    assert live.trouble is None
    assert len(heard) == 1


def test_a_request_that_breaks_takes_no_other_with_it(
    live: LiveStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = RowStore.answer

    def breaks(self: RowStore, message: Any, text: Any = None) -> Any:
        if message.get("key") == "poison":
            raise ZeroDivisionError("a bug")
        return real(self, message, text)

    monkeypatch.setattr(RowStore, "answer", breaks)
    go_on = threading.Event()
    live.call(lambda store: go_on.wait(20))
    some = [live.submit(whole_rows(1, row, series="s", key=f"k{row}")) for row in range(3)]
    bad = live.submit([{"series": "s", "x": x(0), "key": "poison"}])
    more = [live.submit(whole_rows(1, row, series="s", key=f"k{row}")) for row in range(3, 6)]
    go_on.set()
    with pytest.raises(ZeroDivisionError):
        bad.result(20)
    assert [one.result(20)[0]["row"] for one in (*some, *more)] == list(range(6))
    assert columns(live)["y"] == LABELS[:6]


def test_what_is_put_or_forgotten_is_told_apart_from_messages_that_could_not_be_written(
    live: LiveStream,
) -> None:
    """Both write at once what came before them: that must not be called lost when a later write fails."""
    live.submit(whole_rows(3, series="s")).result()
    state = live.call(_snapshot).result()
    go_on = threading.Event()
    live.call(lambda store: go_on.wait(20))
    before = live.submit(whole_rows(1, 3, series="other", key="before"))
    put = live.call(lambda store: store.put('"s"', state), writes=True)
    fills = live.call(lambda store: _limit(store, 1), writes=True)
    after = live.submit(whole_rows(300, series="third"))
    go_on.set()
    assert before.result(20)[0]["row"] == 0
    put.result(20)
    fills.result(20)
    with pytest.raises(OutputError):
        after.result(20)


def test_a_future_that_is_given_up_meanwhile_does_not_end_the_stream(
    live: LiveStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    class GivenUp(Future[Any]):
        """One that is cancelled at the worst moment: between being looked at and being set."""

        def done(self) -> bool:
            found = super().done()
            self.cancel()
            return found

    full(live)
    go_on = threading.Event()
    live.call(lambda store: go_on.wait(20))
    with monkeypatch.context() as patch:
        patch.setattr(live_stream, "Future", GivenUp)
        live.submit(whole_rows(300, series="s"))
    go_on.set()
    assert waited_for(lambda: live.trouble is not None)
    empty(live)
    assert live.submit(whole_rows(1, series="s")).result(20)[0]["row"] == 0


# -- what lies on disk -------------------------------------------------------------------------------


def test_a_state_file_that_was_never_written_is_begun_anew(models: Path, tmp_path: Path) -> None:
    """A process killed as it begins a stream leaves a file of no bytes."""
    folder = tmp_path / "service"
    (folder / "streams").mkdir(parents=True)
    (folder / "streams" / "house.state").touch()
    with Service(folder) as service:
        assert service.streams() == []
        assert service.serve(models / "house.varnn").submit(whole_rows(1)).result()[0]["row"] == 0


def test_a_stream_that_is_retired_while_someone_reads_takes_all_its_rows_along(
    models: Path, tmp_path: Path
) -> None:
    with Service(tmp_path / "service") as service:
        live = service.serve(models / "house.varnn")
        live.submit(whole_rows(50, series="s")).result()
        with reading._opened(live.path) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM history").fetchone()
            place = service.retire_stream("house")
        assert not live.path.exists()
        assert not live.path.with_name("house.state-wal").exists()
        assert len(reading.history(place, 1)["columns"]["row"]) == 50
        again = service.add_stream("house", "house")
        assert again.n_series == 0


def test_a_backup_comes_to_an_end_while_rows_come(tmp_path: Path) -> None:
    path, copy = tmp_path / "busy.state", tmp_path / "copy.state"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as database:
        for one in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF", "CREATE TABLE rows (text)"):
            database.execute(one)
        with database:
            database.execute("BEGIN")
            database.executemany("INSERT INTO rows VALUES (?)", (("." * 2000,) for _ in range(10_000)))
        ended, copied = threading.Event(), threading.Event()

        def talk() -> None:
            while not ended.is_set():
                database.execute("INSERT INTO rows VALUES ('one more')")
                time.sleep(0.0005)

        def back_up() -> None:
            reading.backup(path, copy)
            copied.set()

        threads = [threading.Thread(target=one, daemon=True) for one in (talk, back_up)]
        for thread in threads:
            thread.start()
        is_done = copied.wait(20)
        ended.set()
        threads[0].join(20)
    assert is_done
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM rows").fetchone()[0] >= 10_000


def test_a_slow_reader_of_a_history_does_not_let_the_file_grow(live: LiveStream, house: Fitted) -> None:
    def write(times: int) -> int:
        for _ in range(times):
            live.submit([one for row in range(0, 400, 100) for one in whole_rows(100, row, series="s")])
        live.call(lambda store: None).result()
        return live.path.with_name(live.path.name + "-wal").stat().st_size

    live.call(lambda store: _asked(store, "PRAGMA wal_autocheckpoint = 200")).result()
    usual = write(20)
    lines = reading.history_csv(live.path, 1)
    for _ in range(2):
        next(lines)
    slow = write(20)
    assert slow <= 1.5 * usual
    rest = sum(text.count("\r\n") for text in lines)
    assert rest > 6000


def test_history_is_bounded_for_many_series_together(house: Fitted, tmp_path: Path) -> None:
    settings = StreamSettings(history_in_all=2000, late=5)
    with closing(LiveStream("m", tmp_path / "m.state", ("house", house), settings=settings)) as live:
        for row in range(100):
            live.submit([one for name in range(50) for one in whole_rows(1, row, series=name)])
        live.call(lambda store: None).result()
        with closing(sqlite3.connect(live.path)) as database:
            [(count,)] = database.execute("SELECT count(*) FROM history")
        assert 2000 <= count <= 3000


def test_a_label_that_may_still_come_finds_its_row(house: Fitted, tmp_path: Path) -> None:
    settings = StreamSettings(history=1, late=10)
    with closing(LiveStream("m", tmp_path / "m.state", ("house", house), settings=settings)) as live:
        live.submit([{"series": "s", "x": x(row % 400)} for row in range(517)]).result()
        [answer] = live.submit([{"series": "s", "y": 1.0, "row": 506}]).result()
        assert "error" not in answer
        found = columns(live)
        assert found["y"][found["row"].index(506)] == 1.0


def test_a_file_with_half_a_page_is_mended_by_what_lies_beside_it(house: Fitted, tmp_path: Path) -> None:
    """A checkpoint that was cut off by a full disk may leave one; all is still in the log beside it."""
    path = tmp_path / "m.state"
    live = LiveStream("m", path, ("house", house))
    answers = live.submit(
        [{**one, "key": f"k{n}"} for n, one in enumerate(whole_rows(5, series="s"))]
    ).result()
    copy = tmp_path / "copy.state"
    copy.write_bytes(path.read_bytes() + b"half a page")
    copy.with_name("copy.state-wal").write_bytes(path.with_name("m.state-wal").read_bytes())
    live.close()
    with closing(LiveStream("m", copy, ("house", house))) as live:
        again = [{**one, "key": f"k{n}"} for n, one in enumerate(whole_rows(5, series="s"))]
        assert live.submit(again).result() == answers


def test_a_stream_that_cannot_begin_lets_go_of_its_file(
    house: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    with monkeypatch.context() as patch:
        patch.setattr(keeper_module.Keeper, "_read", broken)
        with pytest.raises(ModelFileError, match="malformed"):
            LiveStream("m", tmp_path / "m.state", ("house", house))
    with closing(LiveStream("m", tmp_path / "m.state", ("house", house))) as live:
        assert live.submit(whole_rows(1)).result()[0]["row"] == 0


def test_over_http_a_damaged_file_is_the_services_fault_and_a_full_disk_may_be_tried_again(
    models: Path, tmp_path: Path
) -> None:
    with served(tmp_path / "service", models / "house.varnn") as house:
        live = house.service.stream("house")
        house.client.step({"x": x(0), "y": 1.0, "key": "k"})
        full(live)
        many = [{**one, "key": f"m{n}"} for n, one in enumerate(whole_rows(300))]
        with pytest.raises(ServiceRefused) as refused:
            house.client.step(many)
        assert refused.value.status == 507
        assert "make room" in str(refused.value)
        with pytest.raises(ServiceRefused, match="503"):
            house.client.get("/readyz")
        empty(live)
        assert house.client.step(many)[0]["row"] == 1
        live.call(lambda store: _damage(store)).result()
        with pytest.raises(ServiceRefused) as refused:
            house.client.step({"x": x(0), "y": 1.0, "key": "l"})
        assert refused.value.status == 503
        assert "damaged" in str(refused.value)


def _damage(store: RowStore) -> None:
    """Let SQLite say with the next write what it says of a page that makes no sense."""
    journal: Any = store._journal

    def write(*_: Any, **more: Any) -> None:
        with journal.explained():
            raise sqlite3.DatabaseError("database disk image is malformed")

    journal.write = write


# -- files of lines ----------------------------------------------------------------------------------


def test_a_file_of_the_service_is_not_gone_on_with_by_lines(live: LiveStream, house: Fitted) -> None:
    """Their messages mean something else: without a word the state would be another one."""
    live.submit([{"series": "s", "x": x(0)}, {"series": "s", "x": x(1), "last_y": 1.0}]).result()
    live.close()
    with pytest.raises(ModelFileError, match="varnn serve"):
        Store(house, live.path)
    with closing(LiveStream("house", live.path, ("house", house))) as again:
        assert again.submit([{"series": "s", "y": 2.0}]).result()[0]["row"] == 1


def test_a_file_of_lines_goes_on_as_its_lines_were_meant(house: Fitted, tmp_path: Path) -> None:
    """There, an x while a row is open takes its place."""
    lines: list[Message] = [
        *whole_rows(3, series="s"),
        {"series": "s", "x": x(3)},
        {"series": "s", "x": x(4), "key": "again"},
        {"series": "s", "y": LABELS[4]},
        {"series": "t", "x": x(0)},
        {"series": "t", "x": x(1)},
    ]
    with Store(house, tmp_path / "m.state") as store:
        answers = [store.answer(one) for one in lines]
        store.commit()
        expected = store.streams['"s"'].predict(x(5), interval=0.9)
        open_row = store.streams['"t"'].observe(2.0)
    for _ in range(2):  # and the second time, when it is a file of the service's
        with closing(LiveStream("m", tmp_path / "m.state", ("house", house))) as live:
            assert live.submit([lines[4]]).result() == [answers[4]]
            found = live.submit([{"series": "s", "x": x(5)}], pure=True).result()[0]
            assert (found["prediction"], found["lower"]) == (expected.prediction, expected.lower)
    with closing(LiveStream("m", tmp_path / "m.state", ("house", house))) as live:
        [told] = live.submit([{"series": "t", "y": 2.0}]).result()
        assert (told["row"], told["innovation"]) == (0, open_row)
        assert live.submit([{"series": "s", "x": x(5)}]).result()[0]["row"] == 4


def test_series_that_go_in_step_do_not_write_their_states_all_at_once(house: Fitted, tmp_path: Path) -> None:
    written: list[int] = []
    settings = StreamSettings(synchronous=False)
    with closing(LiveStream("m", tmp_path / "m.state", ("house", house), settings=settings)) as live:
        real = live.keeper.write

        def write(database: Any, states: Any) -> None:
            written.append(len(states))
            real(database, states)

        live.keeper.write = write  # type: ignore[method-assign]  # to look on
        for row in range(600):
            live.submit([{"series": name, "x": x(row % 400), "y": 1.0} for name in range(20)]).result()
        assert max(written) <= 2
        assert sum(written) >= 20
