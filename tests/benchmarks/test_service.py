"""The benches of the live service: small, and able to see what is wrong."""

import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.record import read, save
from benchmarks.service.light_client import Connection, latencies, length_of, request
from benchmarks.service.load import MODELS, WAYS, Load, Size
from benchmarks.service.process import Served
from benchmarks.service.rows import BATCH, Rows
from varnn.errors import VarnnError
from varnn.service.service import Service

SMALL: dict[str, Any] = {"rows": 1200, "epochs": 1, "ensemble": 1, "hidden_size": 4}
TINY = Size(
    rounds=1, batches=2, clients=3, seconds=0.5, series=200, series_batches=3, observations=1000, moving=1000
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work where nothing is left behind, and keep models where no other run finds them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield
    tempfile.tempdir = None


def test_a_service_is_loaded_and_the_figures_are_kept(tmp_path: Path) -> None:
    tables = list(Load(TINY, dict(SMALL)).tables())
    assert [one.name for one in tables] == [
        f"service-load {name}" for name in ("rates", "latencies", "many", "memory")
    ]
    rates, waits, many, memory = (one.rows for one in tables)
    assert {(row["a batch"], row["model"]) for row in rates} == {(way, one) for way in WAYS for one in MODELS}
    assert all(float(row["median"] or 0) <= float(row["observations a second, best"] or 0) for row in rates)
    assert len(waits) == 4
    for row in waits:
        assert 0 < float(row["p50 ms"] or 0) <= float(row["p99 ms"] or 0) <= float(row["largest ms"] or 0)
    assert [float(row["steps a second"] or 0) for row in waits[:2]] == [30.0, 30.0]
    assert [row["series"] for row in many] == [200.0, 200.0]
    assert [row["observations"] for row in memory] == [100.0 * tenth for tenth in range(1, 11)] * 3
    assert all(float(row["MB on disk"] or 0) > 0.1 for row in (*many, *memory))
    save(tmp_path / "load.json", tables, "test")
    assert read(tmp_path / "load.json").measured == tables
    left = [one.name for one in tmp_path.iterdir() if not one.name.startswith("varnn-benchmarks")]
    assert left == ["load.json"]


def test_latencies_are_counted_from_when_a_request_is_due(tmp_path: Path) -> None:
    Service(tmp_path / "s").close()
    with Served(tmp_path / "s") as served:
        asked = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        steady = latencies(served.address(), [iter([asked] * 99)] * 4, seconds=1.0, rate=20)
        assert len(steady) == 80
        assert 0 < min(steady) < 0.5
        quick = latencies(served.address(), [iter([asked] * 10**6)], seconds=0.3)
        assert len(quick) > 20
        with Connection(served.address()) as connection:
            assert [connection.exchange(asked) for _ in range(3)] == [b"ok"] * 3
            with pytest.raises(VarnnError, match="404"):
                connection.exchange(request("/v1/streams/none/step", {"x": [1]}))


def test_what_is_no_good_answer_is_refused() -> None:
    assert length_of(b"HTTP/1.1 200 OK\r\nContent-Length: 12") == 12
    for head in (b"HTTP/1.1 507 No\r\ncontent-length: 1", b"HTTP/1.1 200 OK\r\n", b""):
        with pytest.raises(VarnnError, match="200"):
            length_of(head)


def test_rows_go_round_all_series_in_the_order_of_their_times() -> None:
    rows = Rows("house")
    messages = [
        one for asked in islice(rows.batches(150), 3) for one in json.loads(asked.partition(b"\r\n\r\n")[2])
    ]
    assert [one["series"] for one in messages] == [place % 150 for place in range(3 * BATCH)]
    first = [one["time"] for one in messages if one["series"] == 0]
    assert first == ["2024-01-01T00:00:00", "2024-01-01T00:10:00"]
    keyed = json.loads(rows.batch([7, 8], keys=True).partition(b"\r\n\r\n")[2])
    assert [one["key"] for one in keyed] == ["k1", "k2"]
    steps = [json.loads(one.partition(b"\r\n\r\n")[2]) for one in islice(rows.steps("c"), 2)]
    assert ["last_y" in one for one in steps] == [False, True]


def test_the_kill_bench_keeps_what_it_found(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["service-kills", "--kills", "1", "--json", str(tmp_path / "kills.json")])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "kills.json").read_text())
    assert found["complete"]
    assert found["found"]["sound"]
    assert found["found"]["kills"] == 1
    assert found["command"].startswith("python -m benchmarks")
    assert found["made"]["date"]
