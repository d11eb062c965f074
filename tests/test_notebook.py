"""The paper by hand: each cell of the notebook runs, and what stands in it is what its code gave.

Tests cut training short; the committed outputs are those of the full one, made by ``docs/tools/notebook.py``.
"""

import base64
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from varnn import datasets
from varnn.network.cell import VARIANTS
from varnn.paper.published import published
from varnn.report.provenance import provenance

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "tools" / "notebook.py"
TOOL = runpy.run_path(str(SCRIPT))
PATH: Path = TOOL["NOTEBOOK"]
NOTEBOOK: dict[str, Any] = json.loads(PATH.read_text())
FONT_CACHE = "Matplotlib is building the font cache; this may take a moment."
PROSE = "\n".join("".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "markdown")


def printed(notebook: dict[str, Any]) -> dict[str, str]:
    """Give what each cell of code printed, by its name."""
    return {
        cell["id"]: "".join("".join(one.get("text", [])) for one in cell["outputs"])
        for cell in TOOL["code_cells"](notebook)
    }


def run_tool(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run every cell with two epochs, in a process and a folder of its own, where a warning is an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), "--epochs", "2", "-o", "short.ipynb"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def complaints(said: str) -> list[str]:
    """Give lines of standard error, but for what matplotlib says where it runs for the first time."""
    return [line for line in said.splitlines() if line != FONT_CACHE]


def test_only_the_font_cache_may_be_spoken_of() -> None:
    assert complaints(f"{FONT_CACHE}\n") == []
    assert complaints(f"{FONT_CACHE}\na warning\n") == ["a warning"]


def test_every_cell_runs_and_what_needs_no_training_is_as_committed(
    data_folder: Path, tmp_path: Path
) -> None:
    if datasets.find("appliances") is None:
        pytest.skip("the Appliances data set is not here: run `varnn datasets fetch appliances`")
    done = run_tool(tmp_path, VARNN_DATA_DIR=str(data_folder.resolve()))
    assert done.returncode == 0, done.stderr
    assert complaints(done.stderr) == []
    short = json.loads((tmp_path / "short.ipynb").read_text())
    said, committed = printed(short), printed(NOTEBOOK)
    assert said["load"] == committed["load"]
    assert said["bars"] == committed["bars"]
    assert said["four"] != committed["four"]  # training was cut short, or nothing was trained
    assert said.keys() == committed.keys()
    for cell in said.keys() - {"made"}:  # which libraries are named may have changed since
        assert len(said[cell].splitlines()) == len(committed[cell].splitlines()), cell
    assert said["made"].count("\n") == len(provenance())
    apart = re.search(r"3,943 predictions, at most (\S+) apart", said["one"])
    assert apart
    assert 0 < float(apart[1]) < 1e-6


def test_without_the_data_set_it_says_how_to_get_it(tmp_path: Path) -> None:
    nowhere = str(tmp_path)
    done = run_tool(tmp_path, VARNN_DATA_DIR=nowhere, XDG_CACHE_HOME=nowhere, HOME=nowhere)
    assert done.returncode == 1
    assert "`varnn datasets fetch appliances`" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "short.ipynb").exists()
    assert "`varnn datasets fetch appliances`" in PROSE


def test_a_cell_without_statements_gives_nothing() -> None:
    for code in ("", "# to be written\n"):
        assert TOOL["run"](code, {}, "empty") == []
    (said,) = TOOL["run"]("1 + 1", {}, "sum")
    assert said["text"] == ["2\n"]


@pytest.mark.parametrize("output", [[], ["-o", str(PATH)]])
def test_training_cut_short_is_not_written_over_the_committed_notebook(output: list[str]) -> None:
    before = PATH.read_bytes()
    # Without a data set it would end all the same, but not like this.
    command = [sys.executable, str(SCRIPT), "--epochs", "2", *output]
    nowhere = {**os.environ, "VARNN_DATA_DIR": "nowhere", "XDG_CACHE_HOME": "nowhere", "HOME": "nowhere"}
    done = subprocess.run(command, env=nowhere, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--epochs 2 needs -o with another file" in done.stderr
    assert PATH.read_bytes() == before


def test_its_outputs_are_of_its_code_and_of_full_training() -> None:
    stamp = {"code": TOOL["fingerprint"](NOTEBOOK), "epochs": 50}
    assert NOTEBOOK["metadata"].get("varnn") == stamp, "run: python docs/tools/notebook.py"
    assert "".join(map(TOOL["source"], TOOL["code_cells"](NOTEBOOK))).count(TOOL["EPOCHS"]) == 1


def test_its_tables_hold_the_printed_figures_and_agree_with_the_results() -> None:
    said = printed(NOTEBOOK)
    assert "linear, inputs alone     0.00799   0.00657   0.00799   0.00657   +0.0%" in said["bars"]
    assert "ARX without y[t-1]       0.00610   0.00504   0.00610   0.00504   +0.0%" in said["bars"]
    results = json.loads((ROOT / "docs" / "reproduction" / "results.json").read_text())["cells"]
    for variant in VARIANTS:
        found = re.search(rf"^VARNN {re.escape(variant)} +(.*)  [-+]", said["four"], re.MULTILINE)
        assert found, variant
        figures = [float(one) for one in found[1].split()]
        assert figures[:2] == published()["table3"][variant]["appliances"]
        means = {
            one["part"]: one["mean"]
            for one in results
            if (one["dataset"], one["model"], one["protocol"]) == ("appliances", variant, "paper")
            and not one["setting"]
        }
        # One seed beside the mean of three.
        assert figures[2:] == pytest.approx([means["train"], means["test"]], rel=0.04)


def test_its_words_hold_figures_of_the_results_and_links_that_lead_somewhere() -> None:
    results = (ROOT / "docs" / "reproduction" / "results.md").read_text()
    figures = re.findall(r"\d\.\d{5}", PROSE)
    assert len(figures) >= 4
    assert [one for one in figures if one not in results] == []
    links = re.findall(r"\]\(([^)]+)\)", PROSE)
    assert len(links) >= 3
    assert [one for one in links if not (PATH.parent / one).is_file()] == []


def test_its_outputs_are_small_and_name_no_folder_of_a_machine() -> None:
    outputs = [one for cell in TOOL["code_cells"](NOTEBOOK) for one in cell["outputs"]]
    pictures = [base64.b64decode(one["data"]["image/png"]) for one in outputs if "data" in one]
    assert len(pictures) == 2
    assert all(picture.startswith(b"\x89PNG") and len(picture) < 100_000 for picture in pictures)
    assert {one["name"] for one in outputs if "name" in one} == {"stdout"}
    said = "".join(printed(NOTEBOOK).values())
    assert not re.search(r"(^|[\s'\"])(/|[A-Z]:\\)\w|Warning|Traceback", said)
