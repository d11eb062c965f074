"""Which commit a result is of: the real thing, with git and a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import varnn
from varnn.report.provenance import provenance

PACKAGE = Path(varnn.__file__).parent
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


def git(folder: Path, *words: str) -> str:
    settings = (
        "-c",
        "user.name=someone",
        "-c",
        "user.email=someone@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    ran = subprocess.run(("git", *settings, *words), cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give a folder with a copy of the package, which is no checkout."""
    source = tmp_path / "project" / "src"
    shutil.copytree(PACKAGE, source / "varnn", ignore=shutil.ignore_patterns("__pycache__"))
    return source.parent


@pytest.fixture
def checkout(copy: Path) -> Path:
    """Give a repository that holds a copy of the package, committed."""
    git(copy, "init", "--quiet")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "--message", "all of it")
    return copy


def commit_of(folder: Path, **environment: str) -> str:
    """Ask the copy in a folder for its commit, from elsewhere."""
    code = "from varnn.report import provenance as one; print(one.__file__); print(one.checkout_commit())"
    own = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder.parent,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=True,
    )
    place, commit = ran.stdout.split("\n")[:2]
    assert place.startswith(str(folder))
    return commit


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    assert commit_of(checkout) == git(checkout, "rev-parse", "--short", "HEAD")
    (checkout / "README.md").write_text("beside the package, it makes no figure")
    assert commit_of(checkout) == git(checkout, "rev-parse", "--short", "HEAD")


@pytest.mark.parametrize("name", ["errors.py", "new.py"])
def test_a_changed_or_added_file_of_the_package_is_told(checkout: Path, name: str) -> None:
    with (checkout / "src" / "varnn" / name).open("a") as file:
        file.write("# changed\n")
    commit = git(checkout, "rev-parse", "--short", "HEAD")
    assert commit_of(checkout) == f"{commit} with changes"


def test_without_git_there_is_no_commit(checkout: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert commit_of(checkout, PATH=str(empty)) == ""


def test_outside_a_checkout_there_is_no_commit(copy: Path) -> None:
    assert commit_of(copy, GIT_CEILING_DIRECTORIES=str(copy.parent)) == ""


def test_a_package_installed_inside_another_checkout_is_not_of_its_commit(copy: Path) -> None:
    (copy / "notes.txt").write_text("another project")
    git(copy, "init", "--quiet")
    git(copy, "add", "notes.txt")
    git(copy, "commit", "--quiet", "--message", "no package in it")
    assert commit_of(copy) == ""


def test_every_library_that_makes_figures_is_named() -> None:
    assert provenance().keys() >= {"numpy", "scikit-learn", "torch", "numba", "lightgbm"}
