"""Server-sent events: rows and events as they come, followers that are slow or leave, and the end."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from tests.service.serving import LABELS, Served, served, whole_rows, x
from varnn.service import Client
from varnn.service.client import ServiceRefused
from varnn.service.http import following
from varnn.service.http.limits import Limits


class Follower:
    """Follows in a thread of its own; what comes is in ``heard``."""

    def __init__(self, house: Served, *series: Any) -> None:
        self.client, self.ended = Client(house.url, stream="house"), threading.Event()
        self.heard: Queue[tuple[str, Any]] = Queue()
        before = house.service.stream("house")
        count = len(before._followers)
        self._thread = threading.Thread(target=self._follow, args=series, daemon=True)
        self._thread.start()
        wait_until(lambda: len(before._followers) > count)

    def _follow(self, *series: Any) -> None:
        for one in self.client.follow(*series):
            self.heard.put(one)
        self.ended.set()

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many rows."""
        return self.some("rows", count)

    def some(self, kind: str, count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < count:
            heard, content = self.heard.get(timeout=10)
            if heard == kind:
                found += content
        return found

    def nothing_more(self) -> bool:
        time.sleep(0.3)
        try:
            self.heard.get_nowait()
        except Empty:
            return True
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it must hold by now"
        time.sleep(0.02)


@contextmanager
def raw_follower(house: Served, query: str = "") -> Iterator[socket.socket]:
    """Give a connection that has asked to follow, and reads no more than its owner does."""
    connection = socket.create_connection(("127.0.0.1", house.port), timeout=10)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with connection:
        connection.sendall(f"GET /v1/streams/house/live?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield connection


def test_rows_come_as_they_are_answered_and_again_with_their_labels(house: Served) -> None:
    follower = Follower(house)
    first = house.client.step({"series": "a", "x": x(0)})
    [row] = follower.rows(1)
    assert {name: row[name] for name in ("series", "row", "prediction", "lower", "upper")} == {
        name: first[name] for name in ("series", "row", "prediction", "lower", "upper")
    }
    assert "y" not in row and row["at"] == pytest.approx(time.time(), abs=10)
    house.client.observe({"series": "a", "y": 1.5})
    [again] = follower.rows(1)
    assert (again["row"], again["y"], again["prediction"]) == (0, 1.5, first["prediction"])
    house.client.step(whole_rows(50, series=7))
    rows = follower.rows(50)
    assert [(one["series"], one["row"], one["y"]) for one in rows] == [(7, n, LABELS[n]) for n in range(50)]
    house.client.predict({"series": "a", "x": x(0)})
    house.client.step([{"series": "a", "x": [1.0]}])
    assert follower.nothing_more()


def test_followers_hear_of_the_series_they_name(house: Served) -> None:
    one, none, several = Follower(house, "a"), Follower(house, None), Follower(house, "a/b", 7, "ü")
    for name in ("a", None, "7", 7, "a/b", "ü", "b"):
        house.client.step({"series": name, "x": x(0)})
    assert [row["series"] for row in one.rows(1)] == ["a"]
    assert [row["series"] for row in none.rows(1)] == [None]
    assert [row["series"] for row in several.rows(4)] == ["7", 7, "a/b", "ü"]
    assert one.nothing_more() and none.nothing_more() and several.nothing_more()


def test_events_are_followed(house: Served) -> None:
    follower = Follower(house)
    rows = whole_rows(400, series="a")
    for one in rows[200:]:
        one["y"] += 25.0
    house.client.step(rows)
    events = house.client.events()
    assert events
    assert follower.some("events", len(events)) == list(reversed(events))


def test_it_goes_on_over_a_promotion_and_ends_with_its_stream(house: Served, models: Path) -> None:
    follower = Follower(house)
    house.client.add_model("rival", models / "rival.varnn")
    house.client.add_challenger("rival")
    house.client.step(whole_rows(2, series="a"))
    house.client.promote("rival")
    house.client.step(whole_rows(2, series="a"))
    assert [one["row"] for one in follower.rows(4)] == [0, 1, 2, 3]
    house.client.retire()
    assert follower.ended.wait(5)


def test_followers_are_let_go_at_the_end(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn") as house:
        followers = [Follower(house) for _ in range(3)]
        house.client.step(whole_rows(1))
        begun = time.monotonic()
    assert time.monotonic() - begun < 4
    assert all(one.ended.wait(5) for one in followers)
    assert all(len(one.rows(1)) == 1 for one in followers)


def test_a_follower_that_leaves_is_forgotten(house: Served) -> None:
    live = house.service.stream("house")
    with raw_follower(house):
        wait_until(lambda: len(live._followers) == 1)
    wait_until(lambda: not live._followers)
    assert "varnn_followers 0" in house.client.get("/metrics").decode()


def test_a_slow_follower_is_told_that_it_lost_rows_and_holds_up_nobody(
    house: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_MOST_WAITING", 50)
    live, sent = house.service.stream("house"), list[bytes]()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/streams/house/live",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }

    async def follow() -> None:
        reads = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message.get("body", b""))
            if b"event: rows" in sent[-1]:
                await reads.wait()  # nobody takes what was sent

        task = asyncio.create_task(house.app(scope, receive, send))
        while not live._followers:
            await asyncio.sleep(0.01)
        for count in (1, 400):
            before = len(sent)
            await asyncio.wrap_future(live.submit(whole_rows(count, series="a")))
            while len(sent) == before and count == 1:
                await asyncio.sleep(0.01)
        reads.set()
        while sum(one.startswith(b"event: rows") for one in sent) < 2:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(follow(), 20))
    rows = [json.loads(part.partition(b"data: ")[2]) for part in sent if part.startswith(b"event: rows")]
    assert [len(some) for some in rows] == [1, 50]
    assert [one["row"] for one in rows[1]] == list(range(351, 401))  # the latest ones
    [lagging] = [part for part in sent if part.startswith(b"event: lagging")]
    assert lagging == b"event: lagging\ndata: 350\n\n"
    assert not live._followers


def test_the_limit_of_followers(models: Path, tmp_path: Path) -> None:
    with served(tmp_path / "s", models / "house.varnn", limits=Limits(followers=1)) as house:
        live = house.service.stream("house")
        with raw_follower(house):
            wait_until(lambda: len(live._followers) == 1)
            with pytest.raises(ServiceRefused) as error:
                next(house.client.follow())
            assert (error.value.status, error.value.after) == (429, 1.0)
        wait_until(lambda: not live._followers)
        Follower(house)


def test_asking_for_its_head_is_answered_at_once(house: Served) -> None:
    connection = HTTPConnection("127.0.0.1", house.port, timeout=5)
    for _ in range(2):
        connection.request("HEAD", "/v1/streams/house/live")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert answer.getheader("Content-Type", "").startswith("text/event-stream")
    connection.close()
    assert not house.service.stream("house")._followers


def test_names_with_line_breaks_do_not_break_events(house: Served) -> None:
    name = "a\n\nevent: rows\ndata: []\n\n\u2028"
    follower = Follower(house)
    house.client.step({"series": name, "x": x(0)})
    assert [one["series"] for one in follower.rows(1)] == [name]
    assert json.dumps(name) in house.service.stream("house").keeper.ids
