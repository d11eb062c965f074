"""A service asked all kinds of things: `python -m benchmarks service-fuzz` at small size."""

from dataclasses import replace
from pathlib import Path

from benchmarks.service.fuzz import Place, gather, run, tables
from tests.service.serving import Served, served
from varnn.service.live_stream import StreamSettings


def place(one: Served) -> Place:
    return Place(one.port, one.service.folder)


def test_all_kinds_of_requests(models: Path, tmp_path: Path) -> None:
    settings = StreamSettings(history=300)
    files = [models / "rival.varnn", models / "narrow.varnn"]
    with (
        served(tmp_path / "one", models / "house.varnn", settings=settings) as one,
        served(tmp_path / "two", models / "house.varnn", settings=replace(settings, in_memory=5)) as two,
    ):
        material = gather(place(one), files)
        assert gather(place(two), files) == material
        found = run(place(one), place(two), material, 2000)
    assert found.wrong == []
    assert found.requests == 2000
    assert found.taken > 1000 and found.refused > 500 and found.compared > 0
    assert {200, 201, 400, 404, 405, 409, 422} <= {status for _, status in found.statuses}
    assert tables(found)[0].checks[0].startswith("0 went wrong")
