"""A service when things go wrong around it: a clear answer, one line, and nothing lost."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.service.process import PROGRAM, Served
from tests.service.serving import whole_rows, x
from varnn.errors import VarnnError
from varnn.service import Client
from varnn.service.client import ServiceRefused
from varnn.service.service import Service

Message = dict[str, Any]


def keyed(count: int, first: int = 0, series: str = "s") -> list[Message]:
    return [{**one, "key": f"k{first + n}"} for n, one in enumerate(whole_rows(count, first, series=series))]


def ended(folder: Path, *models: Path) -> tuple[int, str]:
    """Give exit code and words of a service that cannot begin, whose folder may not be written to."""
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "serve",
        *map(str, models),
        "--data",
        str(folder),
        "--port",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def ended_with(served: Served, words: str) -> str:
    """Give the one line with which a service ended that could not begin."""
    assert served.process.wait(60) == 2
    said = " ".join(served.words.split())
    assert said.startswith("error:"), said
    assert words in said, said
    assert "Traceback" not in said
    return said


def without_a_fault(models: Path, folder: Path, messages: list[Message]) -> list[Any]:
    """Answers to messages where nothing goes wrong."""
    with Service(folder) as service:
        return service.serve(models / "house.varnn").submit(messages).result()


# -- no room -----------------------------------------------------------------------------------------


def goes_on_once_there_is_room(client: Client, make_room: Any) -> list[Any]:
    """Write until there is no room, make some, and go on; give all answers."""
    answers: list[Any] = []
    refused = None
    for first in range(0, 400, 20):
        try:
            answers += client.step(keyed(20, first))
        except ServiceRefused as error:
            refused = error
            break
    assert refused is not None, "there must be no room by now"
    assert refused.status == 507
    assert refused.after is not None
    assert "make room" in str(refused)
    assert client.step(keyed(len(answers))) == answers  # what was answered is known
    assert "prediction" in client.predict({"series": "s", "x": x(0)})
    assert client.get("/healthz") == b"ok"
    with pytest.raises(ServiceRefused, match="503"):
        client.get("/readyz")
    with pytest.raises(ServiceRefused, match="507"):
        client.step(keyed(20, len(answers)))
    make_room()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            assert client.get("/readyz") == b"ok"
            break
        except ServiceRefused:
            time.sleep(0.1)
    else:
        pytest.fail("it must be ready again by itself")
    answers += client.step(keyed(400 - len(answers), len(answers)))
    return answers


def compiled(models: Path, tmp_path: Path) -> None:
    """Have compiled code kept on disk: where files have a limit of size, it could not be."""
    with Served(tmp_path / "compiled.service", [models / "house.varnn"]):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="files have no limit of size here")
def test_a_file_that_may_not_grow(models: Path, tmp_path: Path) -> None:
    """The same as a disk that is full, for those who may not make one: files have a limit of size."""
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("limits of a process cannot be changed from outside here")
    size = 250_000  # bytes, no whole number of pages
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, -1))"
    folder = tmp_path / "house.service"
    compiled(models, tmp_path)
    with Served(folder, [models / "house.varnn"], first=limit) as served, served.client() as client:
        answers = goes_on_once_there_is_room(
            client, lambda: resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (-1, -1))
        )
        assert served.end() == 0
        assert "Traceback" not in served.words
    with Served(folder) as served, served.client() as client:
        assert client.step(keyed(400)) == answers
    assert answers == without_a_fault(models, tmp_path / "other", keyed(400))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="files have no limit of size here")
def test_a_service_killed_where_there_is_no_room_starts_again(models: Path, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_001, -1))"
    folder, answers = tmp_path / "house.service", list[Any]()
    compiled(models, tmp_path)
    with (
        Served(folder, [models / "house.varnn"], first=limit) as served,
        served.client() as client,
        pytest.raises(ServiceRefused, match="507"),
    ):
        for first in range(0, 400, 5):
            answers += client.step(keyed(5, first))
    with Served(folder, first=limit) as served, served.client() as client:  # still none
        assert client.step(keyed(len(answers))) == answers
    with Served(folder) as served, served.client() as client:
        answers += client.step(keyed(200 - len(answers), len(answers)))
    assert answers == without_a_fault(models, tmp_path / "other", keyed(200))


@contextmanager
def mounted(place: Path, size: str) -> Iterator[None]:
    """A small disk of its own, where this may be made."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("no disks can be made here")
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no disks can be made here: that takes more rights")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)


def test_a_disk_that_is_full(models: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "3m"):
        (disk / "ballast").write_bytes(bytes(2_700_000))
        with Served(disk / "s", [models / "house.varnn"]) as served, served.client() as client:
            answers = goes_on_once_there_is_room(client, (disk / "ballast").unlink)
            assert served.end() == 0
    assert answers == without_a_fault(models, tmp_path / "other", keyed(400))


def test_a_disk_that_may_only_be_read(models: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with mounted(disk, "20m"):
        with Served(disk / "s", [models / "house.varnn"]) as served, served.client() as client:
            answers = client.step(keyed(20))
            assert served.end() == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, capture_output=True)
        code, said = ended(disk / "s")
        assert (code, said[:6], "Read-only" in said or "permission" in said) == (2, "error:", True), said
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True, capture_output=True)
        with Served(disk / "s") as served, served.client() as client:
            assert client.step(keyed(20)) == answers


def test_a_folder_that_cannot_be_made(models: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    code, said = ended(tmp_path / "file" / "s", models / "house.varnn")
    assert code == 2
    assert said.startswith("error:")
    assert "Name another --data" in said


def test_a_file_that_sqlite_may_only_read(models: Path, tmp_path: Path) -> None:
    with Service(tmp_path / "s") as service:
        live = service.serve(models / "house.varnn")
        answers = live.submit(keyed(10)).result()

        def only_read(yes: bool) -> None:
            live.call(lambda store: _asked(store, f"PRAGMA query_only = {int(yes)}")).result()

        only_read(True)
        with pytest.raises(VarnnError, match="readonly database"):
            live.submit(keyed(5, 10)).result()
        assert live.submit(keyed(10)).result() == answers
        only_read(False)
        answers += live.submit(keyed(10, 10)).result()
    assert answers == without_a_fault(models, tmp_path / "other", keyed(20))


def _asked(store: Any, query: str) -> None:
    store._journal.database.execute(query)


# -- what lies on disk -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def used(models: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any], list[Any]]:
    """A folder that was used, the answers that were given, and those that are next."""
    place = tmp_path_factory.mktemp("used")
    answers: list[Any] = []
    with Service(place / "s") as service:
        live = service.serve(models / "house.varnn")
        service.add_model("rival", (models / "rival.varnn").read_bytes())
        service.add_challenger("house", "rival")
        live = service.stream("house")
        for row in range(60):
            for name in ("a", "b"):
                answers += live.submit(keyed(1, row, name)).result()
    shutil.copytree(place / "s", place / "next")
    with Service(place / "next") as service:
        after = service.stream("house").submit([*keyed(5, 60, "a"), *keyed(5, 60, "b")]).result()
    return place / "s", answers, after


def damaged(blob: bytes, seed: int) -> bytes:
    """Damage a file: a bit, some bytes, a page of anything or of zeros, or its end."""
    draw = random.Random(seed)
    found = bytearray(blob)
    at = draw.randrange(len(found))
    page = at // 4096 * 4096
    kind = seed % 5
    if kind == 0:
        found[at] ^= 1 << draw.randrange(8)
    elif kind == 1:
        found[at : at + 16] = draw.randbytes(len(found[at : at + 16]))
    elif kind == 2:
        found[page : page + 4096] = draw.randbytes(4096)
    elif kind == 3:
        found[page : page + 4096] = bytes(4096)
    else:
        del found[at:]
    return bytes(found)


@pytest.mark.parametrize("seed", range(30))
def test_what_was_damaged_is_said_and_never_answered_from(
    used: tuple[Path, list[Any], list[Any]], tmp_path: Path, seed: int
) -> None:
    folder, answers, after = used
    shutil.copytree(folder, tmp_path / "s")
    path = tmp_path / "s" / "streams" / "house.state"
    path.write_bytes(damaged(path.read_bytes(), seed))
    try:
        service = Service(tmp_path / "s")
    except VarnnError as error:
        assert str(path) in str(error)
        return
    with service:
        live = service.stream("house")
        sent = [one for row in range(60) for name in ("a", "b") for one in keyed(1, row, name)]
        sent += [*keyed(5, 60, "a"), *keyed(5, 60, "b")]
        for message, expected in zip(sent, [*answers, *after], strict=True):
            try:
                [found] = live.submit([message]).result(20)
            except VarnnError as error:
                found = {"error": str(error), "damaged": True}
            if "error" in found:
                assert found["damaged"] and str(path) in found["error"]
            else:
                assert found == expected
        assert live.submit([{"series": "new", "x": x(0)}], pure=True).result(20)


def test_a_damaged_file_ends_the_start_with_one_line(
    used: tuple[Path, list[Any], list[Any]], tmp_path: Path
) -> None:
    shutil.copytree(used[0], tmp_path / "s")
    path = tmp_path / "s" / "streams" / "house.state"
    path.write_bytes(path.read_bytes()[:-1000])
    with Served(tmp_path / "s") as served:
        assert "Restore it from a copy" in ended_with(served, "house.state")


def test_a_state_of_another_model(
    models: Path, used: tuple[Path, list[Any], list[Any]], tmp_path: Path
) -> None:
    shutil.copytree(used[0], tmp_path / "s")
    place = tmp_path / "s" / "models" / "house.varnn"
    mine = place.read_bytes()
    shutil.copy(models / "rival.varnn", place)
    with Served(tmp_path / "s") as served:
        ended_with(served, "which was replaced. Put back the file")
    place.write_bytes(mine)
    with Served(tmp_path / "s") as served, served.client() as client:
        assert client.step(keyed(1, 0, "a")) == used[1][:1]


@pytest.mark.parametrize("name", ["house", "rival"])
def test_a_model_file_that_was_deleted(
    used: tuple[Path, list[Any], list[Any]], tmp_path: Path, name: str
) -> None:
    shutil.copytree(used[0], tmp_path / "s")
    place = tmp_path / "s" / "models" / f"{name}.varnn"
    mine = place.read_bytes()
    place.unlink()
    with Served(tmp_path / "s") as served:
        ended_with(served, f"needs the model '{name}'")
    place.write_bytes(mine)
    with Served(tmp_path / "s") as served, served.client() as client:
        assert client.step(keyed(1, 0, "a")) == used[1][:1]


def test_two_services_in_one_folder(models: Path, tmp_path: Path) -> None:
    with Served(tmp_path / "s", [models / "house.varnn"]) as first, first.client() as client:
        answers = client.step(keyed(5))
        with Served(tmp_path / "s", [models / "house.varnn"]) as second:
            assert f"process {first.process.pid}" in ended_with(second, "is in use by")
        assert client.step(keyed(5)) == answers
        assert first.process.poll() is None


def test_what_lies_beside_the_file_after_a_kill_is_taken_in(models: Path, tmp_path: Path) -> None:
    with Served(tmp_path / "s", [models / "house.varnn"]) as served, served.client() as client:
        answers = client.step(keyed(20))
    log = tmp_path / "s" / "streams" / "house.state-wal"
    assert log.stat().st_size > 0
    with Served(tmp_path / "s") as served, served.client() as client:
        assert client.step(keyed(20)) == answers
        assert served.end() == 0
    assert not log.exists()
    with closing(sqlite3.connect(tmp_path / "s" / "streams" / "house.state")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM history").fetchone() == (20,)


# -- the end -----------------------------------------------------------------------------------------


def test_an_end_under_load_keeps_all_that_was_answered(models: Path, tmp_path: Path) -> None:
    got: dict[tuple[str, int], Any] = {}
    others: list[str] = []

    def talk(name: str, port: int) -> None:
        with Client(f"http://127.0.0.1:{port}", stream="house") as client:
            try:
                for row in range(400):
                    [got[name, row]] = client.step(keyed(1, row, name))
            except (ServiceRefused, OSError) as error:
                if not (isinstance(error, OSError) or error.status == 503):
                    others.append(str(error))
            except Exception as error:  # of a connection that was cut
                if type(error).__module__ != "http.client":
                    others.append(repr(error))

    with Served(tmp_path / "s", [models / "house.varnn"]) as served:
        port = served.address()
        threads = [threading.Thread(target=talk, args=(f"s{n}", port)) for n in range(8)]
        for thread in threads:
            thread.start()
        while len(got) < 100:
            time.sleep(0.01)
        begun = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        code = served.process.wait(30)
        seconds = time.monotonic() - begun
        for thread in threads:
            thread.join(30)
        assert (code, "Traceback" in served.words, others) == (0, False, [])
        assert seconds < 10
    assert len(got) < 8 * 400
    with Served(tmp_path / "s") as served, served.client() as client:
        for (name, row), answer in got.items():
            assert client.step(keyed(1, row, name)) == [answer]
        told = client.series(limit=100)["series"]
        for one in told:
            rows = [row for name, row in got if name == one["series"]]
            assert one["rows"] in (max(rows) + 1, max(rows) + 2)  # one may have been under way
