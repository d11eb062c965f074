"""``--json``: one document on standard output and nothing else there; and folders that cannot be written."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.__main__ import app as benches
from benchmarks.fresh import run_module
from varnn.cli.app import app, main
from varnn.datasets import store
from varnn.paper.published import DATASETS

Run = Callable[..., tuple[int, str, str]]

WITHOUT = {"stream": "it speaks JSON anyway", "serve": "and so does this"}


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs the command in this process and gives its exit code, output and words."""

    def once(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["varnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, error = capfd.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, out, error

    return once


def without_json(app: typer.Typer) -> list[str]:
    """List the commands that do not know ``--json``."""

    def without(command: Any, path: str) -> list[str]:
        children = getattr(command, "commands", {})
        if children:
            return [
                one for name, child in children.items() for one in without(child, f"{path} {name}".strip())
            ]
        return [] if any("--json" in one.opts for one in command.params) else [path]

    return without(typer.main.get_command(app), "")


def test_every_command_has_json_or_a_reason_not_to() -> None:
    assert sorted(without_json(app)) == sorted(WITHOUT)


def test_every_bench_has_json_and_what_has_none_makes_a_page_of_it() -> None:
    assert len(without_json(benches)) > 5
    assert [name for name in without_json(benches) if not name.endswith("page")] == []


def test_the_demonstration_as_json(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    code, out, error = run("demo", "--rows", "600", "--epochs", "1", "-o", page, "--json")
    assert code == 0, error
    content = json.loads(out)
    assert content["report"] == str(page)
    assert page.exists()
    assert {line["model"] for line in content["scores"]} == {"persistence", "arx-lr", "VARNN"}
    assert 0 < content["best_possible"]["rmse"] < min(line["rmse"] for line in content["scores"])
    assert content["data"]["rows"] == 600
    assert "mean squared error" in content["summary"]


def test_a_reproduction_as_json(run: Run, tmp_path: Path, data_folder: Path) -> None:
    arguments = ["reproduce", "table2", "--dataset", "appliances", "--models", "arx-lr", "--workers", "1"]
    code, out, error = run(*arguments, "--seeds", "1", "-o", tmp_path / "found", "--json")
    assert code == 0, error
    content = json.loads(out)
    written = json.loads((tmp_path / "found" / "results.json").read_text())
    assert {name: content[name] for name in written} == written
    assert all(Path(one).exists() for one in content["written"])
    assert content["jobs_not_run"] == 0 < content["jobs"]
    assert content["cells"]


def test_a_reproduction_needs_a_folder_to_write_into(run: Run, tmp_path: Path, data_folder: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    for place in (taken, taken / "below"):
        code, out, error = run("reproduce", "table1", "--dataset", "appliances", "-o", place)
        assert (code, out) == (2, "")
        assert "must be a folder that can be written into" in error
        assert error.count("\n") == 1


def test_data_sets_as_json(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VARNN_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for what in ("list", "verify"):
        code, out, _ = run("datasets", what, "--json")
        assert code == 0
        where = {one["name"]: one["where"] for one in json.loads(out)}
        assert where.keys() >= set(DATASETS) and not any(where.values())

    def fetched(source: Any) -> store.Members:
        return store.Members(source=source, place=tmp_path / "here.zip")

    monkeypatch.setattr(store, "fetch", fetched)
    code, out, _ = run("datasets", "fetch", "bidmc", "--json")
    assert code == 0
    content = json.loads(out)
    assert content["fetched"] is True
    assert content["where"] == str(tmp_path / "here.zip")
    assert content["cite"]
    code, out, error = run("datasets", "fetch", "bidcm", "--json")
    assert (code, out) == (2, "")
    assert "no data set 'bidcm'" in error


def test_data_sets_that_are_here_as_json(run: Run, data_folder: Path) -> None:
    code, out, _ = run("datasets", "verify", "appliances", "--json")
    assert code == 0
    (one,) = json.loads(out)
    assert one["name"] == "appliances"
    assert one["files"] == 1
    code, out, _ = run("datasets", "fetch", "appliances", "--json")
    assert json.loads(out)["fetched"] is False


def test_measurements_as_json_go_to_a_file_or_alone_to_standard_output(tmp_path: Path) -> None:
    measure = ("robustness", "--kinds", "drift", "--strengths", "1", "--seeds", "1")
    small = ("--rows", "300", "--workers", "1")
    done = run_module("benchmarks", *measure, *small, "--json", "-")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["complete"]
    assert content["measured"][0]["rows"]
    nowhere = tmp_path / "nowhere" / "figures.json"
    done = run_module("benchmarks", *measure, *small, "--json", str(nowhere))
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not exist" in done.stderr
