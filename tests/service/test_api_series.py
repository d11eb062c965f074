"""Series over HTTP: history, events, lists, snapshots, backups, and what becomes of retired streams."""

import csv
import io
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import LABELS, Served, served, whole_rows, x
from varnn import load
from varnn.service import Client, Service
from varnn.service.client import ServiceRefused
from varnn.service.live_stream import StreamSettings
from varnn.streaming.store import Store

NEW_YEAR = 1767225600  # 2026-01-01 in UTC


def hourly(count: int, **more: Any) -> list[dict[str, Any]]:
    """Give rows of so many hours."""
    rows = whole_rows(count, **more)
    for hour, one in enumerate(rows):
        one["time"] = f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00"
    return rows


def status_of(client: Client, path: str) -> int:
    """Ask for something that is refused."""
    with pytest.raises(ServiceRefused) as error:
        client.get(path)
    return error.value.status


def test_history_has_what_was_answered(house: Served) -> None:
    answers = house.client.step(hourly(30, series="a"))
    found = house.client.history("a")
    columns = found["columns"]
    assert columns["row"] == list(range(30))
    assert columns["y"] == LABELS[:30]
    for name in ("prediction", "lower", "upper"):
        assert columns[name] == [one[name] for one in answers]
    assert columns["at"] == [NEW_YEAR + 3600 * hour for hour in range(30)]
    assert columns["time"][1] == "2026-01-01T01:00:00.000000"
    assert (found["rows"], found["thinned"], found["challengers"]) == (30, False, {})


@pytest.mark.parametrize(
    ("span", "rows"),
    [
        ("from=2026-01-01T05:00", range(5, 30)),
        ("to=2026-01-01T05:00", range(6)),
        ("from=2026-01-01T06:00%2B01:00&to=2026-01-01T06:30Z", range(5, 7)),
        ("from=2026-01-01T06:00+01:00&to=2026-01-01%2006:30", range(5, 7)),
        (f"from={NEW_YEAR + 3600}&to={NEW_YEAR + 7200.5}", range(1, 3)),
        ("from=&to=", range(30)),
        ("from=2027-01", range(0)),
        ("from=2026-01-02&to=2026-01-01", range(0)),
    ],
)
def test_history_by_range_of_time(house: Served, span: str, rows: range) -> None:
    house.client.step(hourly(30, series="a"))
    found = house.client.get(f"/v1/streams/house/series/a/history?{span}")
    assert found["columns"]["row"] == list(rows)
    lines = house.client.get(f"/v1/streams/house/series/a/history?format=csv&{span}").decode()
    assert [int(line["row"]) for line in csv.DictReader(io.StringIO(lines))] == list(rows)


@pytest.mark.parametrize(
    "query",
    ["from=noon", "to=nan", "to=inf", "from=1e999", "points=5", "points=x", "points=99999", "format=xml"],
)
def test_wrong_questions_about_history(house: Served, query: str) -> None:
    house.client.step(whole_rows(1, series="a"))
    assert status_of(house.client, f"/v1/streams/house/series/a/history?{query}") == 422


def test_thinned_history_keeps_every_peak(house: Served) -> None:
    rows = whole_rows(400, series="a")
    for place, y in ((77, 40.0), (231, -40.0), (399, 7.0)):
        rows[place]["y"] = y
    answers = house.client.step(rows)
    found = house.client.history("a", points=40)
    columns = found["columns"]
    assert (found["thinned"], found["rows"]) == (True, 400)
    assert len(columns["row"]) <= 40
    assert columns["row"] == sorted(set(columns["row"]))
    assert {0, 77, 231, 399} <= set(columns["row"])
    said = [one["prediction"] for one in answers]
    assert {max(said), min(said)} <= set(columns["prediction"])
    assert len(house.client.history("a")["columns"]["row"]) == 400


def test_csv_has_all_rows_to_the_last_digit(house: Served) -> None:
    house.client.step([*whole_rows(300, series="a"), {"series": "a", "x": x(300)}])
    text = house.client.get("/v1/streams/house/series/a/history?format=csv").decode()
    lines = list(csv.DictReader(io.StringIO(text)))
    columns = house.client.history("a")["columns"]
    assert len(lines) == 301
    assert [float(line["prediction"]) for line in lines] == columns["prediction"]
    assert [line["y"] for line in lines[-2:]] == [str(LABELS[299]), ""]


def test_a_slow_reader_of_csv_holds_no_lock(house: Served) -> None:
    """A read transaction that stays open would let the file beside grow without end."""
    from varnn.service import reading

    for _ in range(20):
        house.client.step(whole_rows(400, series="a"))
    live = house.service.stream("house")
    lines = reading.history_csv(live.path, live.keeper.ids['"a"'])
    next(lines), next(lines)
    house.client.step(whole_rows(1, series="a"))
    with sqlite3.connect(live.path) as database:
        assert database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0  # nobody is in the way
    database.close()
    assert sum(text.count("\n") for text in lines) > 5000


def test_history_is_bounded(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn", settings=StreamSettings(history=100)) as house:
        for _ in range(3):
            house.client.step(whole_rows(400, series="a"))
        rows = house.client.history("a")["columns"]["row"]
        assert rows[-1] == 1199
        assert 100 <= len(rows) <= 100 + 256


def test_events_are_told(house: Served) -> None:
    rows = whole_rows(400, series="a")
    for one in rows[200:]:
        one["y"] += 25.0
    answers = house.client.step([*rows, *whole_rows(3, series="b")])
    told = [event for one in answers for event in one.get("events", [])]
    assert told
    events = house.client.events()
    assert [
        {name: one[name] for name in ("kind", "row", "began", "size")} for one in reversed(events)
    ] == told
    assert [one["id"] for one in events] == sorted((one["id"] for one in events), reverse=True)
    assert {one["series"] for one in events} == {"a"}
    assert house.client.events("a", limit=1) == events[:1]
    assert house.client.events("b") == []
    one = house.client.one("a")
    assert one["alarms"] == len(told)
    assert one["last_event"]["kind"] == told[-1]["kind"]
    assert one["trouble"] > house.client.one("b")["trouble"]
    assert [one["series"] for one in house.client.series(sort="trouble")["series"]] == ["a", "b"]
    for query in ("limit=0", "limit=x", "limit=1001", "limit=1.5"):
        assert status_of(house.client, f"/v1/streams/house/events?{query}") == 422
    assert status_of(house.client, "/v1/streams/house/events?series=c") == 404


def test_lists_of_series(house: Served) -> None:
    client = house.client
    for name in ("North", "south", 12, None):
        client.step(whole_rows(3, series=name))
    found = client.series(sort="name", spark=2)
    assert (found["total"], [one["series"] for one in found["series"]]) == (4, ["North", "south", 12, None])
    assert found["series"][0]["spark"] == LABELS[1:3]
    assert found["series"][0]["y"] == LABELS[2]
    assert found["series"][0]["rows"] == 3
    assert [one["series"] for one in client.series(sort="recent")["series"]] == [None, 12, "south", "North"]
    page = client.series(sort="name", offset=1, limit=2)
    assert (page["total"], [one["series"] for one in page["series"]]) == (4, ["south", 12])
    assert [one["series"] for one in client.series(search="ORTH")["series"]] == ["North"]
    assert [one["series"] for one in client.series(search="1")["series"]] == [12]
    assert client.series(search="%")["total"] == 0
    assert client.series(offset=10**9)["series"] == []
    for query in (
        "sort=x",
        "limit=0",
        "limit=501",
        "offset=-1",
        "spark=501",
        "spark=a",
        "limit=" + "9" * 5000,
    ):
        assert status_of(client, f"/v1/streams/house/series?{query}") == 422


def test_one_series_has_weights_scores_and_what_waits(house: Served) -> None:
    house.client.step([*whole_rows(60, series="a"), {"series": "a", "x": x(60)}, {"series": "a", "x": x(61)}])
    one = house.client.one("a")
    assert sum(one["weights"].values()) == pytest.approx(1)
    assert one["waiting"] == [60]
    assert one["scores"] == {"house": one["score"]}
    errors = [
        a - b
        for a, b in zip(
            *(house.client.history("a")["columns"][name][:60] for name in ("y", "prediction")), strict=True
        )
    ]
    keep = 1 - 1 / 500
    weights = [keep ** (59 - row) for row in range(60)]
    mean = sum(w * e * e for w, e in zip(weights, errors, strict=True)) / sum(weights)
    assert one["score"]["rmse"] == pytest.approx(mean**0.5)
    assert one["score"]["rows"] == 60


def test_a_snapshot_goes_on_elsewhere(house: Served, models: Path) -> None:
    client, own = house.client, load(models / "house.varnn").stream()
    client.step([*whole_rows(40, series="a"), {"series": "a", "x": x(40)}])
    for row in range(40):
        own.predict(x(row))
        own.observe(LABELS[row])
    own.predict(x(40))
    own.observe(LABELS[40])
    blob = client.snapshot("a")
    assert client.restore("copy", blob) == {"series": "copy", "bytes": len(blob)}
    assert client.snapshot("copy") == blob
    for name in ("a", "copy"):
        assert client.observe({"series": name, "y": LABELS[40]})["row"] == 40
    answers = client.predict([{"series": name, "x": x(41)} for name in ("a", "copy")])
    assert [one["prediction"] for one in answers] == [own.predict(x(41))] * 2


def test_a_series_that_was_put_is_there_at_once_and_after_a_restart(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn") as house:
        house.client.step(whole_rows(10, series="a"))
        house.client.restore("copy", house.client.snapshot("a"))
        assert {one["series"] for one in house.client.series()["series"]} == {"a", "copy"}
        assert house.client.one("copy")["rows"] == 10
    with served(tmp_path / "s") as house:
        assert {one["series"] for one in house.client.series()["series"]} == {"a", "copy"}
        assert house.client.one("copy")["rows"] == 10
        assert house.client.history("copy")["columns"]["row"] == []
        assert house.client.step({"series": "copy", "x": x(10)})["row"] == 10


def test_going_back_to_a_snapshot_takes_history_back(house: Served) -> None:
    client = house.client
    client.step(whole_rows(10, series="a"))
    blob = client.snapshot("a")
    client.step(whole_rows(30, first=10, series="a"))
    client.restore("a", blob)
    assert client.history("a")["columns"]["row"] == list(range(10))
    assert client.one("a")["rows"] == 10
    assert client.series()["series"][0]["y"] == LABELS[9]
    answer = client.step({"series": "a", "x": x(20), "y": 1.0})
    assert (answer["row"], answer["seq"]) == (10, 42)  # messages are counted on, so that none is taken twice
    assert client.history("a")["columns"]["y"] == [*LABELS[:10], 1.0]


def test_states_that_are_none_are_refused(house: Served, models: Path) -> None:
    house.client.step(whole_rows(5, series="a"))
    blob = house.client.snapshot("a")
    fleet = load(models / "house.varnn").stream(2)
    other = load(models / "rival.varnn").stream()
    for wrong in (b"", b"{}", blob[:-1], blob[:50], b"x" * 1000, fleet.snapshot(), other.snapshot()):
        for name in ("a", "new"):
            with pytest.raises(ServiceRefused) as error:
                house.client.restore(name, wrong)
            assert error.value.status == 422
    with pytest.raises(ServiceRefused, match="200 characters"):
        house.client.restore("n" * 201, blob)
    assert house.client.snapshot("a") == blob
    assert [one["series"] for one in house.client.series()["series"]] == ["a"]
    assert status_of(house.client, "/v1/streams/house/series/new/snapshot") == 404


def test_series_that_are_put_count_against_the_limit(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn", settings=StreamSettings(most_series=2)) as house:
        house.client.step(whole_rows(1, series="a"))
        blob = house.client.snapshot("a")
        house.client.restore("b", blob)
        with pytest.raises(ServiceRefused, match="limit"):
            house.client.restore("c", blob)
        house.client.restore("a", blob)
        assert "limit" in house.client.step(whole_rows(1, series="c"))[0]["error"]


def test_forgotten_series_begin_anew(house: Served) -> None:
    client = house.client
    first = client.step(whole_rows(1, series="a", key="k"))
    client.step(whole_rows(20, first=1, series="a"))
    client.forget("a")
    assert client.series() == {"total": 0, "series": []}
    assert status_of(client, "/v1/streams/house/series/a") == 404
    again = client.step(whole_rows(1, series="a", key="k"))
    assert again == first
    assert client.history("a")["columns"]["row"] == [0]


def test_a_backup_opens_as_a_new_service(house: Served, models: Path, tmp_path: Path) -> None:
    client = house.client
    client.step([*whole_rows(40, series="a"), *whole_rows(5, series="b")])
    place = client.backup(tmp_path / "copy.state")
    answer = client.step({"series": "a", "x": x(40)})
    with sqlite3.connect(place) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    (tmp_path / "new" / "models").mkdir(parents=True)
    (tmp_path / "new" / "streams").mkdir()
    shutil.copy(models / "house.varnn", tmp_path / "new" / "models" / "house.varnn")
    shutil.copy(place, tmp_path / "new" / "streams" / "house.state")
    with served(tmp_path / "new") as copy:
        assert copy.client.history("a")["columns"]["y"] == LABELS[:40]
        assert copy.client.step({"series": "a", "x": x(40)}) == answer
        assert {one["series"] for one in copy.client.series()["series"]} == {"a", "b"}


def test_a_backup_comes_to_an_end_while_messages_go_on_coming(house: Served, tmp_path: Path) -> None:
    live, done = house.service.stream("house"), threading.Event()
    padding = "CREATE TABLE padding AS SELECT zeroblob(20000000) AS zeros"
    live.call(lambda store: store._journal.database.execute(padding)).result()  # type: ignore[union-attr]  # a store with a file has one

    def go_on() -> None:
        with Client(house.url) as other:
            while not done.is_set():
                other.step(whole_rows(1, series="b"))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        with Client(house.url, timeout=10) as own:
            place = own.backup(tmp_path / "copy.state")
    finally:
        done.set()
        thread.join()
    assert place.stat().st_size > 20_000_000
    assert [one.name for one in house.service.folder.rglob("*backup*")] == []


def test_what_a_backup_left_in_the_folder_does_not_stop_a_start(models: Path, tmp_path: Path) -> None:
    with Service(tmp_path) as service:
        service.serve(models / "house.varnn")
    for place in (tmp_path, tmp_path / "streams", tmp_path / "models"):
        (place / ".backup-abc.state").write_bytes(b"half of it")
        (place / ".house.part").write_bytes(b"half of it")
    with Service(tmp_path) as service:
        assert [one.name for one in service.streams()] == ["house"]


def test_a_file_of_the_stream_command_is_gone_on_with(models: Path, tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "models").mkdir()
    shutil.copy(models / "house.varnn", tmp_path / "models")
    model = load(models / "house.varnn")
    with Store(model, tmp_path / "streams" / "house.state") as store:
        for one in whole_rows(10, series="a"):
            before = store.answer(one)
        store.answer({"series": 5, "x": x(0)})
        store.commit()
    with served(tmp_path, models / "house.varnn") as house:
        assert house.client.streams()[0]["series"] == 2
        assert {one["series"] for one in house.client.series()["series"]} == {"a", 5}
        assert house.client.one("a")["prediction"] is None
        assert house.client.history("a")["columns"]["row"] == []
        assert house.client.step({"series": "a", "x": x(9), "seq": 10})["prediction"] == before["prediction"]
        answer = house.client.step({"series": "a", "x": x(10), "y": 1.0})
        assert (answer["seq"], answer["row"]) == (11, 10)
        assert house.client.one("a")["rows"] == 11
        assert house.client.observe({"series": 5, "y": 1.0})["row"] == 0


def test_a_retired_stream_answers_no_more_and_keeps_its_file(house: Served, models: Path) -> None:
    client = house.client
    client.step(whole_rows(20, series="a"))
    live = house.service.stream("house")
    reader = sqlite3.connect(live.path)  # as one who exports at this moment
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM history").fetchone() == (20,)
    client.step(whole_rows(5, series="a"))
    told = client.retire()
    assert told == {"retired": "house", "file": "house.state.retired"}
    for path in ("", "/series", "/events", "/live"):
        assert status_of(client, f"/v1/streams/house{path}") == 404
    assert client.streams() == []
    place = live.path.with_name("house.state.retired")
    with sqlite3.connect(place) as database:
        assert database.execute("SELECT count(*) FROM history").fetchone() == (25,)
    database.close()
    client.add_stream("house", "house")
    assert client.step(whole_rows(1, series="a"))[0]["row"] == 0
    reader.close()
    assert client.step(whole_rows(1, series="a"))[0]["row"] == 1
    assert client.retire()["file"] == "house.state.retired-2"


def test_health_readiness_and_metrics(house: Served) -> None:
    client = house.client
    client.step(whole_rows(7, series="a"))
    client.step([{"series": "a", "x": [1.0]}])
    health = client.health()
    [stream] = health["streams"]
    assert (stream["name"], stream["series"], stream["observations"], stream["refused"]) == ("house", 1, 7, 1)
    assert stream["commits"] >= 1 and stream["file_bytes"] > 0 and stream["trouble"] is None
    assert health["disk_free_bytes"] > 0 and health["uptime_seconds"] > 0
    assert client.get("/healthz") == client.get("/readyz") == b"ok"
    text = client.get("/metrics").decode()
    assert 'varnn_observations_total{stream="house"} 7' in text
    assert text.endswith("# EOF\n")


def test_it_is_not_ready_while_it_ends(house: Served) -> None:
    assert house.client.get("/readyz") == b"ok"
    held = house.service.stream("house").call(lambda store: time.sleep(1.5))
    with Client(house.url, stream="house") as other:
        thread = threading.Thread(target=other.step, args=(whole_rows(1),))
        thread.start()
        time.sleep(0.3)
        house.begin_to_end()
        with pytest.raises(ServiceRefused, match="503"):
            house.client.get("/readyz")
        held.result()
        thread.join()
