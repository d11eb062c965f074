"""The client: what it takes, what it raises, and when it tries again."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.serving import LABELS, ROWS, Served, served, whole_rows, x
from varnn.errors import ConfigError
from varnn.service import Client, Service
from varnn.service.client import ServiceRefused
from varnn.service.live_stream import StreamSettings


class Scripted:
    """A server that answers as it is told, one answer after another; None closes the connection."""

    def __init__(self, *answers: tuple[int, dict[str, str], Any] | None) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, str, bytes]]()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                script.asked.append((self.command, self.path, self.rfile.read(length)))
                answer = script.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, content = answer
                body = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in ({"Content-Type": "application/json"} | headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:50])
                self.close_connection = len(body) > 50  # it breaks off

            do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the standard library

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextmanager
def scripted(*answers: Any, **settings: Any) -> Iterator[tuple[Client, Scripted]]:
    script = Scripted(*answers)
    thread = threading.Thread(target=script.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{script.server.server_port}", stream="s", **settings) as client:
            yield client, script
    finally:
        script.server.shutdown()
        thread.join()
        script.server.server_close()


GOOD: tuple[int, dict[str, str], Any] = (200, {}, {"row": 0})
BUSY = (429, {"Retry-After": "1"}, {"error": "too fast"})
ENDING = (503, {"Retry-After": "1"}, {"error": "ending"})


def test_arrays_numbers_and_times_of_numpy_are_taken(house: Served) -> None:
    client = house.client
    first = client.step({"series": np.int64(3), "x": ROWS[0], "y": np.float32(1.5)})
    assert (first["series"], first["row"]) == (3, 0)
    second = client.step(
        {"series": 3, "x": {"heat": np.float64(1), "wind": np.nan}, "time": np.datetime64("2026-01-01T00:00")}
    )
    assert second["row"] == 1
    third = client.step({"series": 3, "x": ROWS[2], "time": datetime(2026, 1, 1, 2, tzinfo=UTC)})
    assert third["row"] == 2
    assert client.history(3, start=datetime(2026, 1, 1, 1, tzinfo=UTC))["columns"]["row"] == [
        0,
        2,
    ]  # 0 has none
    assert client.history(3, end=np.datetime64("2026-01-01T01"))["columns"]["row"] == [1]
    with pytest.raises(TypeError, match="plain values"):
        client.step({"x": object()})


def test_what_is_refused_is_raised_with_all_that_was_said(house: Served) -> None:
    with pytest.raises(ServiceRefused, match=r"^409: the next message .* has seq 1") as error:
        house.client.step({"x": x(0), "seq": 5})
    assert (error.value.status, error.value.answer["next"], error.value.after) == (409, 1, None)
    with Client(house.url, stream="none") as other, pytest.raises(ServiceRefused, match=r"^404: there is no"):
        other.step({"x": x(0)})


def test_a_url_must_be_one() -> None:
    for wrong in ("", "localhost:8000", "ftp://a", "http://"):
        with pytest.raises(ConfigError, match="url"):
            Client(wrong)


def test_a_path_before_the_routes_is_kept() -> None:
    with scripted(GOOD) as (client, script):
        client._base = "/varnn"
        client.step({"x": [1.0]})
        assert script.asked[0][1] == "/varnn/v1/streams/s/step"


def test_a_token_is_sent_with_every_request(models: Path, tmp_path: Path) -> None:
    from varnn.service.tokens import Tokens

    tokens = Tokens(tmp_path / "s" / "tokens.json")
    with Service(tmp_path / "s") as service:
        service.serve(models / "house.varnn")
        token = tokens.make("me", "admin")
        found = Served(service, tokens=tokens)
        try:
            with pytest.raises(ServiceRefused, match="401"):
                found.client.streams()
            with Client(found.url, token) as client:
                client.step(whole_rows(3, series="a"))
                assert client.backup(tmp_path / "copy.state").stat().st_size > 0
                follower = client.follow()
                thread = threading.Timer(0.5, lambda: client.step(whole_rows(1, series="a")))
                thread.start()
                assert next(follower)[0] == "rows"
                follower.close()
                thread.join()
        finally:
            found.end()


def test_a_lost_connection_is_no_matter_where_it_may_be_sent_again() -> None:
    with scripted(None, GOOD, None, GOOD, None) as (client, script):
        assert client.predict({"x": [1.0]}) == {"row": 0}
        assert client.step([{"x": [1.0], "key": "a"}, {"x": [1.0], "seq": 2}]) == {"row": 0}
        with pytest.raises(OSError, match="closed connection"):
            client.step([{"x": [1.0], "key": "a"}, {"x": [1.0]}])  # the second may have been taken
        assert len(script.asked) == 5


def test_without_patience_a_refusal_is_one() -> None:
    with scripted(BUSY, ENDING) as (client, _):
        with pytest.raises(ServiceRefused, match="429: too fast") as error:
            client.step({"x": [1.0]})
        assert error.value.after == 1.0
        with pytest.raises(ServiceRefused, match="503"):
            client.predict({"x": [1.0]})


def test_patience() -> None:
    with scripted(BUSY, GOOD, ENDING, None, None, GOOD, ENDING, patience=10) as (client, script):
        begun = time.monotonic()
        assert client.step({"x": [1.0]}) == {"row": 0}  # too fast means that it was not taken
        assert time.monotonic() - begun >= 1.0
        assert client.step({"x": [1.0], "key": "a"}) == {"row": 0}
        with pytest.raises(ServiceRefused, match="503"):
            client.step({"x": [1.0]})
        assert len(script.asked) == 7


def test_patience_outlives_a_restart(models: Path, tmp_path: Path) -> None:
    settings = StreamSettings()
    answers: list[Any] = []
    with served(tmp_path / "s", models / "house.varnn", settings=settings) as house:
        port = house.port
        answers.append(house.client.step({"x": x(0), "y": LABELS[0], "key": "0"}))
    with Client(f"http://127.0.0.1:{port}", stream="house", patience=30) as client:
        asking = threading.Thread(
            target=lambda: answers.extend(
                client.step({"x": x(n), "y": LABELS[n], "key": f"{n}"}) for n in range(3)
            )
        )
        asking.start()
        time.sleep(0.6)
        with served(tmp_path / "s", port=port):
            asking.join(20)
    assert [one["row"] for one in answers] == [0, 0, 1, 2]
    assert answers[0] == answers[1]


def test_an_idle_connection_is_not_used_again(house: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    house.client.step({"x": x(0)})
    before = house.client._connection
    house.client.step({"x": x(0)})
    assert house.client._connection is before
    monkeypatch.setattr("varnn.service.client._IDLE", 0.01)
    time.sleep(0.05)
    house.client.step({"x": x(0)})
    assert house.client._connection is not before


def test_an_answer_that_is_no_json_is_told() -> None:
    with scripted((502, {"Content-Type": "text/html"}, b"<h1>proxy</h1>"), (500, {}, [1])) as (client, _):
        with pytest.raises(ServiceRefused, match="502: <h1>proxy"):
            client.streams()
        with pytest.raises(ServiceRefused, match="500"):
            client.streams()


def test_half_a_backup_is_none(tmp_path: Path) -> None:
    with scripted((200, {}, b"x" * 50), (200, {}, b"x" * 100), (507, {}, {"error": "full"})) as (client, _):
        assert client.backup(tmp_path / "copy.state").read_bytes() == b"x" * 50
        with pytest.raises(HTTPException, match="50 more expected"):
            client.backup(tmp_path / "half.state")
        with pytest.raises(ServiceRefused, match="507"):
            client.backup(tmp_path / "none.state")
    assert [one.name for one in tmp_path.iterdir()] == ["copy.state"]


def test_messages_may_come_from_anywhere(house: Served) -> None:
    later = datetime.now(UTC) - timedelta(days=1)
    rows = ({"x": ROWS[n], "time": later + timedelta(minutes=n)} for n in range(3))
    assert [one["row"] for one in house.client.step(list(rows))] == [0, 1, 2]
    assert house.client.step(tuple(whole_rows(2)))[1]["row"] == 4
