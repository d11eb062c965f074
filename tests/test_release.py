"""What a release rests on: one version, extras that are told of, hooks and workflows that do as make does."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import yaml

import varnn

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LIBRARIES = {"river", "sktime", "mlflow", "skops"}  # with an adapter for each


def package(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0]


def test_the_version_is_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"] and "version" not in PROJECT["project"]
    path = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert runpy.run_path(str(path))["VERSION"] == varnn.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", varnn.__version__)
    assert f"## {varnn.__version__}, " in (ROOT / "docs" / "release-notes.md").read_text()


def test_the_page_on_installing_names_every_package_and_extra() -> None:
    page = (ROOT / "docs" / "installation.md").read_text().lower()
    for one in PROJECT["project"]["dependencies"]:
        assert f"| {package(one)} |" in page, one
    every = [row for row in page.splitlines() if row.startswith("| `")]
    rows = {name: row for row in every for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    extras = dict(PROJECT["project"]["optional-dependencies"])
    assert package(extras.pop("all")[0]) == "varnn"
    for extra, packages in extras.items():
        for one in packages:
            assert package(one).partition("-")[0].replace("mkdocstrings", "mkdocs") in rows[extra], (
                extra,
                one,
            )


def test_all_brings_every_extra_that_users_need() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    (every,) = extras["all"]
    alone = {
        "all",
        "docs",
        *LIBRARIES,
    }  # libraries that hold others back, and are wanted by those who have them
    assert set(every.removeprefix("varnn[").removesuffix("]").split(",")) == set(extras) - alone


def test_what_is_locked_is_what_the_project_asks_for() -> None:
    locked = {
        package(line).lower().replace("_", "-"): line.split("==")[1]
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if "==" in line
    }
    for one in PROJECT["project"]["dependencies"]:
        assert package(one) in locked
    assert tuple(map(int, locked["typer"].split("."))) < (0, 29), "0.29 brings pydantic"


def test_hooks_are_the_checks_of_make_test() -> None:
    (checks,) = re.findall(r"^test: (.+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [one["entry"] for one in local["hooks"]] == [f"make {check}" for check in checks.split()]


def test_workflows_call_what_is_there_and_pin_what_they_use() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for path in WORKFLOWS:
        text = path.read_text()
        assert all(one in targets for one in re.findall(r"run: make ([a-z-]+)", text)), path
        assert all(re.search(r"@[0-9a-f]{40}\s", line) for line in text.splitlines() if "uses:" in line), path


def test_only_the_job_that_publishes_has_an_identity() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and jobs["publish"]["needs"] == "build"
    assert jobs["build"]["permissions"] == {"contents": "read"} and "environment" in jobs["publish"]
    assert not any("run" in step for step in jobs["publish"]["steps"]), "it publishes what was tried"
