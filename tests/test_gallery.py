"""The gallery: every script runs on a few rows, and its page shows what the committed results say."""

import importlib
import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from varnn import Panel, datasets

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
GALLERY = ROOT / "docs" / "gallery"
RESULTS: dict[str, Any] = json.loads((GALLERY / "results.json").read_text())
LONGEST = 120  # lines of a script


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in an empty folder, with training cut short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("varnn.fitting.settings.STEPS", 60)
    monkeypatch.setattr("varnn.fitting.settings.EPOCHS", 2)
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "gallery"))
    yield


def script(name: str) -> ModuleType:
    return importlib.import_module(name)


def run(name: str, *words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "examples" / "gallery" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    runpy.run_path(str(path), run_name="__main__")


def made(names: list[str], rows: int, n_series: int, **settings: Any) -> Panel:
    """Rows in the form of a published set: the files are not everywhere."""
    random = np.random.default_rng(1)
    each = rows // n_series
    level = np.cumsum(random.normal(0, 0.3, (n_series, each)), axis=1).reshape(-1)
    return Panel.from_arrays(
        random.normal(size=(rows, len(names))),
        10 + level + random.normal(0, 0.1, rows),
        series=np.repeat([f"{number:02}" for number in range(n_series)], each),
        input_names=names,
        **settings,
    )


def times(rows: int, n_series: int, minutes: int) -> Any:
    each = np.datetime64("2026-01-01T00:00", "s") + np.arange(rows // n_series) * np.timedelta64(
        60 * minutes, "s"
    )
    return np.tile(each, n_series)


def test_a_house(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    panel = made(["T1", "rv1", "rv2"], 500, 1, time=times(500, 1, 10))
    monkeypatch.setattr(datasets, "load", lambda name: panel)
    assert script("house_load").load(400).input_names == ("T1",)
    run("house_load", "--rows", "400", monkeypatch=monkeypatch)
    said = capsys.readouterr().out
    assert re.search(r"^rows ahead +1 +6 +18 +36$", said, re.MULTILINE)
    assert re.search(r"^persistence +1\.000", said, re.MULTILINE)


def test_stations(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    panel = made([*script("air_quality").WEATHER, "PM10"], 480, 3, time=times(480, 3, 60))
    monkeypatch.setattr(datasets, "load", lambda name: panel)
    run("air_quality", "--hours", "150", monkeypatch=monkeypatch)
    said = capsys.readouterr().out
    assert "RMSE" in said
    assert len(re.findall(r"^0[012] +\d\.\d\d of persistence's$", said, re.MULTILINE)) == 3


def test_patients_are_in_one_part_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    panel = made(["PULSE", "RESP", "SpO2"], 900, 6)
    monkeypatch.setattr(datasets, "load", lambda name, **options: panel)
    parts = script("heart_rate").cut_by_patient(script("heart_rate").load(6))
    ids = [set(one.ids) for one in (parts.train, parts.validation, parts.test)]
    assert [len(one) for one in ids] == [4, 1, 1]
    assert len(set.union(*ids)) == 6
    run("heart_rate", "--patients", "6", monkeypatch=monkeypatch)
    assert "RMSE" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/diskstats").exists(), reason="the scripts read Linux's /proc")
def test_a_server_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, path = script("server_metrics"), tmp_path / "short.csv"
    module.record(path, 6, step=0.02)
    panel = module.load(path, "running")
    assert (len(panel), panel.n_inputs) == (5, 9)
    assert panel.target[:-1].tolist() == panel.inputs[1:, 0].tolist()  # the next second's
    lines = path.read_text().splitlines()
    random = np.random.default_rng(0)
    rows = [
        f"{moment},{','.join(f'{value:.1f}' for value in random.gamma(2, 100, 9))}"
        for moment in times(300, 1, 1).astype("datetime64[ms]")
    ]
    Path("server-metrics.csv").write_text("\n".join([lines[0], *rows]))
    monkeypatch.setattr(module, "record", None)  # what is there is taken
    run("server_metrics", "--target", "running", monkeypatch=monkeypatch)
    assert "RMSE" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="the scripts read Linux's /proc")
def test_writes_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, path = script("write_times"), tmp_path / "short.csv"
    module.record(path, 5, tmp_path, neighbours=0, pause=0.001)
    assert [one.name for one in tmp_path.iterdir()] == ["short.csv"]  # it leaves nothing behind
    panel = module.load(path)
    assert (len(panel), panel.input_names) == (5, tuple(module.COLUMNS[1:-1]))
    assert 2 <= panel.inputs[:, 0].min() <= panel.inputs[:, 0].max() <= 14
    lines, random = path.read_text().splitlines(), np.random.default_rng(0)
    numbers = random.gamma(2, 1, (300, 6)).round(2)
    rows = [",".join(["2026-01-01T00:00:00.000", *map(str, line)]) for line in numbers]
    Path("write-times.csv").write_text("\n".join([lines[0], *rows]))
    run("write_times", monkeypatch=monkeypatch)
    assert "took longer than their upper bound" in capsys.readouterr().out


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_is_short_and_has_its_page(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST
    page = (GALLERY / f"{path.stem.replace('_', '-')}.md").read_text()
    assert f"`examples/gallery/{path.name}`" in page
    tool = runpy.run_path(str(ROOT / "docs" / "tools" / "gallery.py"))
    assert tool["put"](page, tool["figures"](RESULTS[path.stem])) == page, (
        "run: python docs/tools/gallery.py --pages"
    )


def test_results_say_where_they_come_from() -> None:
    assert set(RESULTS) == {path.stem for path in SCRIPTS}
    for name, saved in RESULTS.items():
        assert saved["command"].startswith(f"python examples/gallery/{name}.py")
        assert {"date", "machine", "varnn"} <= set(saved["made"])
        models = {line["model"] for line in saved["lines"]}
        assert {"persistence", "arx-lr", "varnn"} <= models  # never without what it must beat
