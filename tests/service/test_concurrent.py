"""Many callers at once, while models change places: nothing is lost, doubled, or answered by a fault."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.service.serving import LABELS, Served, served, x
from varnn.service import Client
from varnn.service.client import ServiceRefused
from varnn.service.live_stream import StreamSettings

_READS = [
    *("/v1/streams", "/v1/streams/house", "/v1/streams/house/series?spark=5&sort=recent", "/v1/models"),
    *(
        "/v1/streams/house/series/s1",
        "/v1/streams/house/series/s1/history?points=50",
        "/v1/health",
        "/readyz",
    ),
    *("/v1/streams/house/series/s2/history?format=csv", "/v1/streams/house/events", "/metrics", "/healthz"),
    *("/v1/streams/house/series/s3/snapshot", "/v1/streams/spare/series", "/v1/streams/spare"),
]


def in_threads(*tasks: Callable[[], None]) -> None:
    """Do all at once, and raise what went wrong in one of them."""
    errors: list[BaseException] = []

    def do(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=do, args=(task,)) for task in tasks]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
        assert not one.is_alive(), "it must come to an end"
    if errors:
        raise errors[0]


def test_many_callers_while_models_change_places(models: Path, tmp_path: Path) -> None:
    rows, writers = 60, 4
    answers: dict[int, list[dict[str, Any]]] = {number: [] for number in range(writers)}
    refused: list[ServiceRefused] = []
    done = threading.Event()

    def write(house: Served, number: int) -> None:
        """Send rows of a series of one's own, and of one that all have, each twice."""
        with Client(house.url, stream="house", patience=60) as client:
            for row in range(rows):
                messages = [
                    {"series": f"s{number}", "x": x(row), "y": LABELS[row], "key": f"{row}"},
                    {"series": "all", "x": x(row), "y": LABELS[row], "key": f"{number} {row}"},
                ]
                first = client.step(messages)
                assert client.step(messages) == first
                answers[number] += first

    def look(house: Served) -> None:
        with Client(house.url) as client:
            while not done.is_set():
                for path in _READS:
                    try:
                        client.get(path)
                    except ServiceRefused as error:
                        refused.append(error)

    def change(house: Served) -> None:
        with Client(house.url, stream="house") as client, Client(house.url, stream="spare") as spare:
            client.add_model("rival", models / "rival.varnn")
            for turn in range(6):
                client.add_challenger("rival") if turn == 0 else client.promote(("house", "rival")[turn % 2])
                client.add_model("other", models / "narrow.varnn")
                spare.add_stream("spare", "other")
                spare.step({"series": "a", "x": [1.0]})
                client.backup(tmp_path / "copy.state")
                spare.retire()
                client.drop_model("other")
                time.sleep(0.1)

    def write_all(house: Served) -> None:
        try:
            in_threads(
                *(lambda number=number: write(house, number) for number in range(writers)),
                lambda: change(house),
            )
        finally:
            done.set()

    settings = StreamSettings(in_memory=3)
    with served(tmp_path / "s", models / "house.varnn", settings=settings) as house:
        house.client.step([{"series": f"s{number}", "x": x(0), "key": "before"} for number in range(5)])
        in_threads(lambda: write_all(house), lambda: look(house), lambda: look(house))
        seen = {(error.status, str(error)[:60]) for error in refused if error.status not in (404, 503)}
        assert seen == set()
        for number in range(writers):
            own = [one for one in answers[number] if one["series"] != "all"]
            assert [one["row"] for one in own] == list(range(1, rows + 1))
            assert house.client.history(f"s{number}")["columns"]["row"] == list(range(rows + 1))
        together = [one["row"] for some in answers.values() for one in some if one["series"] == "all"]
        assert sorted(together) == list(range(rows * writers))
        assert house.client.history("all")["columns"]["row"] == list(range(rows * writers))
