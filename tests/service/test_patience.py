"""Asking a stream that is busy, faulty or ending."""

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.service.models import make_folder, save_model
from varnn.errors import OutputError
from varnn.service.connectors._patience import ask
from varnn.service.errors import Busy, NotFound
from varnn.service.live_stream import StreamSettings
from varnn.service.service import Service
from varnn.streaming.row_store import RowStore

ROW = {"series": "a", "x": [0.5, 1.0]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "service", save_model(tmp_path / "house.varnn"))


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    with Service(folder, StreamSettings(queue=2)) as one:
        yield one


def test_a_full_queue_is_waited_for(service: Service) -> None:
    live, go_on = service.stream("house"), Event()
    held = live.call(lambda store: go_on.wait(20))
    with pytest.raises(Busy):
        live.submit([ROW, ROW])
    found: list[Any] = []
    asking = Thread(target=lambda: found.append(ask(service, "house", [ROW, ROW], Event())))
    asking.start()
    time.sleep(0.1)
    go_on.set()
    held.result()
    asking.join(20)
    assert [one["row"] for one in found[0]] == [0, 1]


def test_an_end_is_not_waited_for(folder: Path) -> None:
    stop = Event()
    stop.set()
    with Service(folder) as service:
        assert ask(service, "house", [ROW], stop) is None
    assert ask(service, "house", [ROW], Event()) is None


def test_there_must_be_a_stream(service: Service) -> None:
    with pytest.raises(NotFound):
        ask(service, "nowhere", [ROW], Event())


def test_a_disk_that_cannot_be_written_to_is_tried_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, failures = RowStore.commit, [OutputError("the disk is full"), OutputError("the disk is full")]

    def failing(store: RowStore) -> None:
        if failures:
            raise failures.pop()
        commit(store)

    monkeypatch.setattr(RowStore, "commit", failing)
    answers = ask(service, "house", [ROW, ROW], Event())
    assert answers is not None
    assert [(one["row"], one["seq"]) for one in answers] == [(0, 1), (1, 2)]


def test_a_fault_of_ours_holds_up_only_the_message_that_met_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = RowStore.answer

    def faulty(store: RowStore, message: Any, text: Any = None) -> dict[str, Any]:
        if message.get("series") == "bad":
            raise RuntimeError("never thought of")
        return answer(store, message, text)

    monkeypatch.setattr(RowStore, "answer", faulty)
    answers = ask(service, "house", [ROW, ROW | {"series": "bad"}, ROW], Event())
    assert answers is not None
    assert [one.get("row") for one in answers] == [0, None, 1]
    assert "never thought of" in answers[1]["error"]
