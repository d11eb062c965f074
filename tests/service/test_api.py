"""Messages over HTTP: predict, observe and step, in every form they come in."""

import json
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import LABELS, Served, served, whole_rows, x
from varnn import load
from varnn.service.client import ServiceRefused
from varnn.service.http.limits import Limits
from varnn.service.live_stream import StreamSettings


def sent(
    house: Served, verb: str, body: bytes, kind: str | None = "application/json"
) -> tuple[int, dict[str, str], bytes]:
    """Send bytes as they are; give status, headers and body."""
    return asked(
        house, "POST", f"/v1/streams/house/{verb}", body, {} if kind is None else {"Content-Type": kind}
    )


def asked(
    house: Served, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection("127.0.0.1", house.port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def refused(house: Served, verb: str, message: Any, status: int = 422) -> dict[str, Any]:
    """Send a message that must be refused; give the answer."""
    found, _, body = sent(house, verb, json.dumps(message).encode())
    assert found == status, body
    answer: dict[str, Any] = json.loads(body)
    assert answer["error"]
    return answer


def test_a_prediction_changes_nothing(house: Served, models: Path) -> None:
    client, own = house.client, load(models / "house.varnn").stream()
    for row in range(30):
        ahead = client.predict([{"series": "a", "x": x(row), "interval": 0.5}, {"series": "new", "x": x(0)}])
        answer = client.step({"series": "a", "x": x(row)})
        assert ahead[0]["prediction"] == answer["prediction"] == own.predict(x(row))
        client.predict({"series": "a", "x": [9.0, -9.0]})  # while the row is open
        assert client.observe({"series": "a", "y": LABELS[row]})["innovation"] == own.observe(LABELS[row])
    assert [one["series"] for one in client.series()["series"]] == ["a"]


def test_a_step_brings_the_last_label_and_the_next_row(house: Served, models: Path) -> None:
    own = load(models / "house.varnn").stream()
    first = house.client.step({"x": x(0)})
    assert first == {"seq": 1, "row": 0, "prediction": own.predict(x(0))} | {
        name: first[name] for name in ("lower", "upper")
    }
    innovation = own.observe(LABELS[0])
    second = house.client.step({"x": {"wind": x(1)[1], "heat": x(1)[0]}, "last_y": LABELS[0]})
    assert (second["row"], second["seq"]) == (1, 2)
    assert second["innovation"] == innovation
    assert second["prediction"] == own.predict(x(1))
    assert second["lower"] < second["prediction"] < second["upper"]


def test_whole_rows_in_a_list_are_answered_in_their_places(house: Served, models: Path) -> None:
    own = load(models / "house.varnn").stream()
    rows: list[Any] = whole_rows(20, series="a")
    rows[5:5] = [{"series": "a", "x": [1.0]}, 7, {"series": "a", "y": 1.0}]
    answers = house.client.step(rows)
    errors = [place for place, one in enumerate(answers) if "error" in one]
    assert errors == [5, 6, 7]
    assert "object" in answers[6]["error"]
    assert "'x'" in answers[7]["error"]
    good = [one for one in answers if "error" not in one]
    assert [one["row"] for one in good] == list(range(20))
    for row, one in enumerate(good):
        assert one["prediction"] == own.predict(x(row))
        assert one["innovation"] == own.observe(LABELS[row])


def test_an_error_says_which_series_it_is_of(house: Served) -> None:
    late = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    messages: list[dict[str, Any]] = [
        {"series": "a", "x": [1.0]},
        {"series": "a", "y": 1.0},
        {"series": 5, "x": x(0), "time": late},
        {"series": "a", "x": x(0), "time": "yesterday"},
    ]
    assert [one["series"] for one in house.client.step(messages)] == ["a", "a", 5, "a"]
    assert refused(house, "observe", {"series": "b", "x": x(0)})["series"] == "b"
    assert "series" not in refused(house, "observe", {"series": {"b": 1}, "x": x(0)})


def test_lines_are_answered_line_by_line(house: Served) -> None:
    rows = whole_rows(3, series="a")
    body = b"\n".join(
        [
            *(json.dumps(one).encode() for one in rows[:2]),
            b"{half",
            b"",
            b"\xff",
            json.dumps(rows[2]).encode(),
        ]
    )
    status, headers, answer = sent(house, "step", body, "application/x-ndjson; charset=utf-8")
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    assert headers["varnn-refused"] == "2"
    answers = [json.loads(line) for line in answer.splitlines()]
    assert ["error" in one for one in answers] == [False, False, True, True, False]
    assert [one["row"] for one in answers if "row" in one] == [0, 1, 2]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1", b"\xff\xfe{}", b'{"x": [1, 2],}', b"[" * 100_000, b"9" * 5000]
)
def test_what_is_not_json_is_refused(house: Served, body: bytes) -> None:
    for verb in ("predict", "observe", "step"):
        status, _, answer = sent(house, verb, body)
        assert status == 400
        assert set(json.loads(answer)) == {"error", "request"}


@pytest.mark.parametrize("body", [b"null", b"1", b'"x"', b"true", b"{}", b'{"x": 1}', b'{"x": [[1, 2]]}'])
def test_json_that_is_no_message_is_refused(house: Served, body: bytes) -> None:
    for verb in ("predict", "observe", "step"):
        assert sent(house, verb, body)[0] == 422


def test_no_messages_are_no_error(house: Served) -> None:
    assert house.client.step([]) == []
    assert sent(house, "step", b"", "application/x-ndjson")[::2] == (200, b"")


def test_any_type_of_content_is_taken_for_json(house: Served) -> None:
    body = json.dumps({"x": x(0), "y": 1.0}).encode()
    for row, kind in enumerate([None, "text/plain", "application/x-www-form-urlencoded", "a/b;c=d;e"]):
        status, _, answer = sent(house, "step", body, kind)
        assert (status, json.loads(answer)["row"]) == (200, row)


def test_late_labels_by_key_seq_and_row(house: Served, models: Path) -> None:
    client, own = house.client, load(models / "house.varnn").stream()
    for row in range(4):
        client.step({"series": "a", "x": x(row), "key": f"k{row}"})
    assert client.get("/v1/streams/house/series/a")["waiting"] == [0, 1, 2]
    first = client.observe({"series": "a", "y": LABELS[1], "for": 2})
    second = client.observe({"series": "a", "y": LABELS[0], "for": "k0"})
    third = client.observe({"series": "a", "y": LABELS[2], "row": 2})
    assert [one["row"] for one in (first, second, third)] == [1, 0, 2]
    client.observe({"series": "a", "y": LABELS[3]})
    for row in range(4):
        own.predict(x(row))
        own.observe(LABELS[row])
    assert client.predict({"series": "a", "x": x(4)})["prediction"] == own.predict(x(4))
    assert client.history("a")["columns"]["y"] == LABELS[:4]
    assert "own" in refused(house, "observe", {"series": "a", "y": 1.0, "row": 2})["error"]
    assert "no" in refused(house, "observe", {"series": "a", "y": 1.0, "for": "k9"})["error"]


def test_a_label_too_late_counts_as_missing(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn", settings=StreamSettings(late=3)) as house:
        house.client.step([{"x": x(row)} for row in range(6)])
        assert "3 rows late" in refused(house, "observe", {"y": 1.0, "row": 1})["error"]
        assert house.client.observe({"y": 1.0, "row": 2})["row"] == 2


def test_a_key_sent_again_is_answered_as_it_was(house: Served) -> None:
    client = house.client
    message = {"series": "a", "x": x(0), "y": 1.0, "key": "one"}
    first = client.step(message)
    client.step({"series": "a", "x": x(1)})
    before = client.get("/v1/streams/house/series/a/snapshot")
    assert client.step(message) == client.step([message])[0] == first
    assert client.step(message | {"x": x(9)}) == first  # what else it says is not compared
    assert client.get("/v1/streams/house/series/a/snapshot") == before
    assert client.step(message | {"series": "b"})["series"] == "b"  # keys are those of a series
    twice = client.step([{"series": "a", "x": x(2), "key": "two"}] * 2)
    assert twice[0] == twice[1]


def test_numbers_of_messages(house: Served) -> None:
    client = house.client
    first = client.step({"series": "a", "x": x(0), "seq": 1})
    client.observe({"series": "a", "y": 1.0, "seq": 2})
    assert client.step({"series": "a", "x": x(5), "seq": 1}) == first
    answer = refused(house, "step", {"series": "a", "x": x(1), "seq": 9}, 409)
    assert answer["next"] == 3
    assert client.step([{"series": "a", "x": x(1), "seq": 9}])[0]["next"] == 3
    assert refused(house, "step", {"series": "new", "x": x(1), "seq": 2}, 409)["next"] == 1
    for wrong in (0, -1, 1.5, "1", True, 2**62):
        refused(house, "step", {"series": "a", "x": x(1), "seq": wrong})
    assert client.step({"series": "a", "x": x(1), "seq": 3})["row"] == 1


def test_stale_and_future_rows(house: Served) -> None:
    client, now = house.client, datetime.now(UTC)
    at = [(now + timedelta(hours=hours)).isoformat() for hours in (-2, -1, 23, 25)]
    client.step({"series": "a", "x": x(0), "time": at[1]})
    assert "after" in refused(house, "step", {"series": "a", "x": x(1), "time": at[0]})["error"]
    assert "after" in refused(house, "step", {"series": "a", "x": x(1), "time": at[1]})["error"]
    assert "ahead" in refused(house, "step", {"series": "a", "x": x(1), "time": at[3]})["error"]
    assert client.step({"series": "a", "x": x(1), "time": at[2]})["row"] == 1
    assert client.step({"series": "b", "x": x(1), "time": at[0]})["row"] == 0
    wrong: Any
    for wrong in ("noon", 5, [], "2026-13-01", "", "9" * 10_000):
        assert "time" in refused(house, "step", {"series": "a", "x": x(1), "time": wrong})["error"]


def test_a_time_finer_than_microseconds_is_not_in_the_future(house: Served) -> None:
    assert house.client.step({"x": x(0), "time": "2026-01-01T00:00:00.123456789"})["row"] == 0
    assert house.client.history(None)["columns"]["at"] == [pytest.approx(1767225600.123456)]


def test_many_series_in_one_request(house: Served) -> None:
    names: list[Any] = ["a", "b", 1, "1", None, "", "ä/ö", "~", "x" * 200, -5, 10**30, "\ud800", "\0"]
    answers = house.client.step([{"series": name, "x": x(0), "y": 1.0} for name in names])
    assert [one.get("error") for one in answers] == [None] * len(names)
    assert [one.get("series") for one in answers] == names
    assert {json.dumps(one["series"]) for one in house.client.series()["series"]} == set(
        map(json.dumps, names)
    )
    wrong: Any
    for wrong in ("x" * 201, 1.5, True, [], {}, 10**201):
        assert "series" in refused(house, "step", {"series": wrong, "x": x(0)})["error"]


@pytest.mark.parametrize(
    "name",
    ["a", "ä ö", "a/b", "", "1", 1, -5, 10**30, None, "?", "%41", "a+b", "..", "{}", "\t", "\n", "a\n"],
)
def test_a_series_is_found_by_its_name_in_a_path(house: Served, name: Any) -> None:
    client = house.client
    client.step([{"series": name, "x": x(0), "y": 1.0}, {"series": "other", "x": x(0), "y": 2.0}])
    assert client.history(name)["columns"]["y"] == [1.0]
    assert client.one(name)["series"] == name
    assert client.events(name) == []
    client.restore(name, client.snapshot(name))
    assert client.forget(name) == {"forgotten": name}
    with pytest.raises(ServiceRefused, match="404"):
        client.history(name)


def test_texts_of_digits_come_before_numbers(house: Served) -> None:
    house.client.step([{"series": "7", "x": x(0), "y": 1.0}, {"series": 7, "x": x(0), "y": 2.0}])
    assert house.client.history("7")["columns"]["y"] == house.client.history(7)["columns"]["y"] == [1.0]
    house.client.forget("7")
    assert house.client.history("7")["columns"]["y"] == [2.0]


def test_wild_numbers_are_refused_or_answered_by_null(house: Served) -> None:
    for text in ("1e999", "-1e999", "1e300", "NaN", "Infinity", "9" * 400):
        status, _, body = sent(house, "step", b'{"series": "w", "x": [%b, 1], "y": 1.0}' % text.encode())
        assert status in (200, 422), body
        json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        status, _, body = sent(house, "step", b'{"series": "w", "x": [1, 1], "y": %b}' % text.encode())
        assert status in (200, 422), body
    assert house.client.step({"series": "other", "x": x(0)})["row"] == 0


def test_unknown_streams_and_routes(house: Served) -> None:
    for verb in ("predict", "observe", "step"):
        assert asked(house, "POST", f"/v1/streams/none/{verb}", b"{}")[0] == 404
    wrong = (
        "/v1",
        "/v1/",
        "/v2/streams",
        "/v1/streams/house/steps",
        "/v1/streams/",
        "/v1/streams%0a",
        "/metrics%0A",
    )
    for path in (*wrong, "//evil.example/"):
        status, headers, body = asked(house, "GET", path)
        assert (status, "location" in headers) == (404, False), path
        assert json.loads(body)["request"] == headers["x-request-id"]
    for method in ("PUT", "PATCH", "DELETE", "GET", "PROPFIND"):
        status, headers, _ = asked(house, method, "/v1/streams/house/step", b"{}")
        assert (status, headers["allow"]) == (405, "POST")
    assert asked(house, "PATCH", "/v1/streams/house")[1]["allow"] == "DELETE, GET, HEAD"
    assert len(asked(house, "GET", f"/v1/streams/{'n' * 5000}")[2]) < 1000


def test_too_much(models: Path, tmp_path: Path) -> None:
    limits = Limits(most_bytes=20_000, most_rows=10)
    with served(tmp_path / "s", models / "house.varnn", limits=limits) as house:
        with pytest.raises(ServiceRefused, match="10 messages") as error:
            house.client.step(whole_rows(11))
        assert error.value.status == 413
        assert sent(house, "step", b"{}\n" * 11, "application/x-ndjson")[0] == 413
        assert sent(house, "step", b" " * 30_000)[0] == 413
        assert len(house.client.step(whole_rows(10))) == 10


def test_too_many_wait(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn", settings=StreamSettings(queue=5)) as house:
        held = house.service.stream("house").call(lambda store: time.sleep(1))
        waiting = house.service.stream("house").call(lambda store: None)
        with pytest.raises(ServiceRefused) as error:
            house.client.step(whole_rows(5))
        assert (error.value.status, error.value.after) == (429, 1.0)
        held.result(), waiting.result()
        assert len(house.client.step(whole_rows(9))) == 9  # alone, a request may be larger than the queue
