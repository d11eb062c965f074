"""``varnn reproduce``: what cannot come out is refused at once, and what is there already is not spoilt."""

from pathlib import Path

import pytest
import torch

from tests.conftest import Reproduce
from varnn.paper.jobs import Outcome, job
from varnn.paper.plan import TABLES
from varnn.paper.runner import Cache


def refused(reproduce: Reproduce, *arguments: str | Path) -> str:
    """Give the one line that refuses a command."""
    code, out, error = reproduce(*arguments)
    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    return error


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_missed_at_once(reproduce: Reproduce, tmp_path: Path) -> None:
    error = refused(reproduce, "table2", "--device", "cuda", "-o", tmp_path / "found")
    assert "--device cuda asks for a GPU, and none is usable here." in error
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize(
    "arguments",
    [["splits", "--dataset", "appliances"], ["splits", "--models", "gru"], ["ablations", "--models", "lr"]],
)
def test_a_choice_without_any_job_is_refused(
    arguments: list[str], reproduce: Reproduce, tmp_path: Path
) -> None:
    error = refused(reproduce, *arguments, "-o", tmp_path / "found")
    assert f"there must be something to run for {arguments[0]}" in error
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize("what", ["table1", "complexity"])
def test_what_fits_nothing_needs_no_job(
    what: str, reproduce: Reproduce, tmp_path: Path, data_folder: Path
) -> None:
    code, out, error = reproduce(what, "--dataset", "appliances", "-o", tmp_path)
    assert code == 0, error
    assert "results.json" in out


def test_an_earlier_report_is_not_overwritten_by_an_empty_one(
    reproduce: Reproduce, tmp_path: Path, data_folder: Path
) -> None:
    earlier = tmp_path / "results.md"
    earlier.write_text("all of it")
    error = refused(reproduce, "table3", "--dataset", "appliances", "--finished", "-o", tmp_path)
    assert "nothing is finished in" in error
    assert "nothing was written" in error
    assert earlier.read_text() == "all of it"
    Cache(tmp_path / "jobs").put(job("appliances", "paper", "RM"), Outcome(0.003, 0.003, 1.0))
    code, out, error = reproduce("table3", "--dataset", "appliances", "--finished", "-o", tmp_path)
    assert code == 0, error
    assert "jobs have not run" in out
    assert "VARNN RM" in earlier.read_text()


def test_what_there_is_is_listed(reproduce: Reproduce) -> None:
    error = refused(reproduce, "claims")
    assert all(f"'{one}'" in error for one in (*TABLES, "all"))
    assert "Claims are judged with all." in error
    code, out, _ = reproduce("--help")
    assert code == 0
    assert all(one in out for one in (*TABLES, "all, which", "claims"))
