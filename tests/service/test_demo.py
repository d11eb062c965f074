"""The live demonstration: what it sends is taken, and it starts, shows and ends by itself."""

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from tests.service.broker import wait_until
from varnn.service import demo
from varnn.service.service import Service


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "demo.varnn"
    demo.fit_model(path)
    return path


@pytest.mark.parametrize("labels", ["in time", "missing", "late"])
def test_every_label_comes_once_for_a_row_that_was_asked_about(labels: str) -> None:
    made = demo.MadeSeries("one", "drift", labels)
    twin = demo.MadeSeries("one", "drift")
    start, rows = np.datetime64("2026-11-16T10:00:00.000"), 300
    asked: dict[str, int] = {}
    labelled: dict[str, float] = {}
    delays = []
    truth = {}
    last = None
    for row in range(rows):
        at = str(start + row * np.timedelta64(200, "ms"))
        for message in made.messages(at):
            if "x" in message:
                if "last_y" in message:
                    labelled[str(last)] = message["last_y"]
                asked[at], last = row, at
            else:
                assert message["for"] not in labelled
                labelled[message["for"]] = message["y"]
                delays.append(row - asked[message["for"]])
        truth[at] = next(twin._rows)[1]
    assert labelled.items() <= truth.items()
    if labels == "in time":
        assert len(labelled) == rows - 1
    elif labels == "missing":
        assert 0.7 * rows < len(labelled) < 0.95 * rows
    else:
        assert len(labelled) > rows - 20
        assert 1 == min(delays) < max(delays) <= 24  # rows that a service waits


def test_all_that_is_sent_is_taken(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = demo.made_series(9, seed=5)
    assert {one.labels for one in made} == {"in time", "missing", "late"}
    assert {one.kind for one in made} == set(demo._KINDS)
    with Service(tmp_path / "demo.service") as service:
        live = service.serve(model)
        feeder = demo.Feeder(service, live.name, made, rate=50.0)
        feeder.send_history(120)
        feeder.start()
        asked = [{"series": one.name, "x": dict.fromkeys(live.inputs, 0.0)} for one in made]
        before = live.counts["predicted"]
        while live.counts["predicted"] < before + 30:
            answers = live.submit(asked, pure=True).result()
        feeder.close()
        assert not any("error" in one for one in answers)
        assert live.n_series == 9
        assert live.counts["predicted"] >= 120 * 9
        assert live.counts["observed"] > 0.9 * 110 * 9
    assert [record.getMessage() for record in caplog.records if "refused" in record.getMessage()] == []


RUN = """
import sys
from functools import partial
from pathlib import Path
from varnn.service.demo import run_demo
from varnn.service.http.server import Address

run_demo(Path(sys.argv[1]), Address(port=0), series=5, history=60)
"""


def rows_of(url: str) -> int:
    with urlopen(f"{url}v1/streams", timeout=20) as found:
        [stream] = json.load(found)
    assert (stream["name"], stream["series"]) == ("demo", 5)
    return int(stream["rows"])


def has_more_rows(url: str, than: int) -> bool:
    return rows_of(url) > than


def test_it_starts_shows_and_ends_with_ctrl_c_and_goes_on_the_next_time(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo.service"
    folder.mkdir()
    (folder / "demo.varnn").write_bytes(model.read_bytes())
    totals: list[int] = []
    for _ in range(2):
        command = [sys.executable, "-c", RUN, str(folder)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                words = next(line for line in process.stderr if line.startswith("dashboard "))
                url = words.split()[1]
                with urlopen(url, timeout=20) as page:
                    assert b"<html" in page.read().lower()
                wait_until(partial(has_more_rows, url, totals[-1] if totals else 0))
                totals.append(rows_of(url))
            finally:
                process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert (process.returncode, rest) == (0, "")
    assert totals[0] >= 300
    assert totals[1] > totals[0]


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not demo._has_screen()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert demo._has_screen()
