"""A keyed service: what one service answers, also where its processes are killed under load."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from varnn import VARNNRegressor
from varnn.errors import ConfigError, DataError, ModelFileError, OutputError, WorkerError
from varnn.scale import KeyedService
from varnn.scale.hashing import place_of
from varnn.service import Service

pytest.importorskip("ray")
pytestmark = pytest.mark.usefixtures("local_ray")
SMALL: Any = {"hidden_size": 6, "ensemble": 2, "window": 4, "device": "cpu", "epochs": 1}


@pytest.fixture(scope="module")
def model() -> VARNNRegressor:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    return VARNNRegressor(**SMALL).fit(X, X[:, 0] + np.cumsum(draw.normal(size=300)) / 5)


def messages_of(count: int, *, series: int = 9, seed: int = 0) -> list[Any]:
    """Rows, labels that come later, messages with keys and numbers, and some that cannot be taken."""
    draw, found = np.random.default_rng(seed), list[Any]()
    for number in range(count):
        name: Any = f"s{draw.integers(series)}"
        name = draw.choice(np.array([name, int(name[1:]), None], object), p=[0.8, 0.15, 0.05])
        message: dict[str, Any] = {"series": name, "x": draw.normal(size=2).round(3).tolist()}
        kind = draw.random()
        if kind < 0.5:
            message["y"] = round(float(draw.normal()), 3)
        elif kind < 0.6:
            message = {"series": name, "y": round(float(draw.normal()), 3)}
        elif kind < 0.7:
            message["key"] = f"k{number // 2}"
        elif kind < 0.75:
            message["x"] = [1.0]
        elif kind < 0.8:
            message = {"series": name, "x": [True, 2.0]}
        elif kind < 0.83:
            found.append(
                draw.choice(np.array(["text", None, [1], {"series": {"a": 1}, "x": [1, 2]}], object))
            )
            continue
        found.append(message)
    return found


def in_batches(messages: list[Any], size: int = 40) -> Iterator[list[Any]]:
    for begin in range(0, len(messages), size):
        yield messages[begin : begin + size]


def one_service(model: VARNNRegressor, folder: Path, messages: list[Any]) -> list[dict[str, Any]]:
    """What a service of one process answers."""
    folder.mkdir()
    model.save(folder / "model.varnn")
    with Service(folder / "service") as service:
        live = service.serve(folder / "model.varnn")
        return [answer for some in in_batches(messages) for answer in live.submit(some).result()]


@pytest.mark.parametrize("shards", [1, 3])
def test_answers_are_those_of_one_service(shards: int, model: VARNNRegressor, tmp_path: Path) -> None:
    messages = messages_of(400)
    expected = one_service(model, tmp_path / "one", messages)
    assert sum("error" in one for one in expected) > 20
    with KeyedService(model, tmp_path / "keyed", shards=shards) as service:
        found = [answer for some in in_batches(messages[:200]) for answer in service.send(some)]
        known = service.n_series
    with KeyedService(model, tmp_path / "keyed") as service:  # and it goes on
        assert (service.n_shards, service.n_series) == (shards, known)
        found += [answer for some in in_batches(messages[200:]) for answer in service.send(some)]
        assert service.send([]) == []
    assert found == expected


def test_nothing_is_lost_doubled_or_different_where_processes_are_killed(
    model: VARNNRegressor, tmp_path: Path
) -> None:
    """Kills fall anywhere: before a request is taken, while it is written, after it was answered."""
    messages = messages_of(2000, seed=1)
    expected = one_service(model, tmp_path / "one", messages)
    killed, chance = list[int](), random.Random(0)

    def kill() -> None:
        process = chance.choice(service.processes())
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    with KeyedService(model, tmp_path / "keyed", shards=2) as service:
        found = []
        for number, some in enumerate(in_batches(messages)):
            timer = threading.Timer(chance.random() / 50, kill)
            if number % 8 == 1:
                timer.start()
            found += service.send(some)
            if number % 8 == 1:
                timer.join()
        assert len(set(killed)) == 7
        assert found == expected
        assert service.n_series == len({repr(one.get("series")) for one in expected if "seq" in one})


def test_threads_may_send_at_a_time(model: VARNNRegressor, tmp_path: Path) -> None:
    """Each its own series; all in order."""
    rows = {f"t{number}": messages_of(60, series=1, seed=number) for number in range(4)}
    rows = {
        name: [one | {"series": name} for one in some if isinstance(one, dict)] for name, some in rows.items()
    }
    expected = {name: one_service(model, tmp_path / name, some) for name, some in rows.items()}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in rows}
    with KeyedService(model, tmp_path / "keyed", shards=2) as service:

        def send(name: str) -> None:
            for some in in_batches(rows[name], 7):
                found[name] += service.send(some)

        threads = [threading.Thread(target=send, args=(name,)) for name in rows]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert found == expected


def test_two_services_have_no_folder_in_common(model: VARNNRegressor, tmp_path: Path) -> None:
    with KeyedService(model, tmp_path, shards=2) as service:
        with pytest.raises(OutputError, match="is in use by process"):
            KeyedService(model, tmp_path, patience=0.2)
        assert "row" in service.send([{"series": "a", "x": [0.1, 0.2]}])[0]  # and the first one goes on


def test_a_folder_keeps_its_shards_and_its_model(model: VARNNRegressor, tmp_path: Path) -> None:
    with KeyedService(model, tmp_path / "keyed", shards=2) as service:
        assert service.shard_of({"series": 7}) == place_of("7", 2) != place_of('"7"', 2)
        service.send([{"series": "a", "x": [0.1, 0.2]}])
    with pytest.raises(ConfigError, match=r"has 2 shards.*Leave shards out"):
        KeyedService(model, tmp_path / "keyed", shards=3)
    other = VARNNRegressor(**SMALL, random_state=7).fit(
        np.ones((60, 2)) * np.arange(60)[:, None], np.arange(60.0)
    )
    with pytest.raises(ConfigError, match="goes on with another model"):
        KeyedService(other, tmp_path / "keyed")
    with KeyedService(tmp_path / "keyed" / "model.varnn", tmp_path / "keyed") as service:
        assert service.n_series == 1
    # A shard is a folder of varnn serve.
    home = tmp_path / "keyed" / "shards" / f"{place_of(chr(34) + 'a' + chr(34), 2):04}"
    with Service(home) as one:
        assert one.stream("model").n_series == 1
    (tmp_path / "keyed" / "keyed.json").write_text("{}")
    with pytest.raises(ModelFileError, match="is damaged"):
        KeyedService(model, tmp_path / "keyed")


def test_what_cannot_be_is_said(model: VARNNRegressor, tmp_path: Path) -> None:
    for shards in (0, 1001, "two"):
        with pytest.raises(ConfigError, match="shards must be a whole number"):
            KeyedService(model, tmp_path, shards=shards)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="cannot be read"):
        KeyedService(tmp_path / "none.varnn", tmp_path)
    with pytest.raises(ConfigError, match="must be a fitted"):
        KeyedService(VARNNRegressor(), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with KeyedService(model, tmp_path / "keyed", shards=1) as service:
        for wrong in ({"series": "a", "x": [1.0, 2.0]}, "text", None, 3):
            with pytest.raises(DataError, match="messages must be a list"):
                service.send(wrong)  # type: ignore[arg-type]
        assert service.n_series == 0
    with pytest.raises(ConfigError, match="is closed"):
        service.send([{"series": "a", "x": [1.0, 2.0]}])
    with pytest.raises(ConfigError, match="is closed"):
        _ = service.n_series


def test_processes_that_die_each_time_are_said(
    model: VARNNRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KeyedService(model, tmp_path, shards=1, patience=1.0) as service:
        handle = service._handles[0]
        make = handle._make

        def deadly() -> None:
            make()
            os.kill(handle.process, signal.SIGKILL)

        monkeypatch.setattr(handle, "_make", deadly)
        os.kill(handle.process, signal.SIGKILL)
        with pytest.raises(WorkerError, match="one after the other died"):
            service.send([{"series": "a", "x": [0.1, 0.2]}])
        monkeypatch.undo()
        assert service.send([{"series": "a", "x": [0.1, 0.2]}])[0]["row"] in (0, 1)
