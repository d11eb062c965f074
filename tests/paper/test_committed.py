"""The committed results: claims are made from them, pages quote them, and every sentence has its place."""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from varnn.paper.claims import claims, claims_page
from varnn.paper.jobs import Outcome
from varnn.paper.plan import Scope
from varnn.paper.published import published
from varnn.paper.records import read_outcomes, settings_text
from varnn.paper.runner import Outcomes

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reproduction"


@pytest.fixture(scope="module")
def committed() -> Outcomes:
    """Outcomes from outcomes.csv, with their curves from epochs.csv."""
    curves: dict[tuple[str, ...], list[list[float]]] = defaultdict(list)
    with (RESULTS / "epochs.csv").open(newline="") as file:
        for line in csv.reader(file):
            if line[6] != "epoch":
                curves[tuple(line[:6])].append([float(one) for one in line[6:9]])
    outcomes = {}
    for job, record in read_outcomes(RESULTS / "outcomes.csv").items():
        name = (
            job.dataset,
            job.protocol,
            job.model,
            settings_text(job.settings),
            str(job.split),
            str(job.seed),
        )
        outcomes[job] = Outcome(record.train, record.test, record.seconds, curves.get(name, []))
    return outcomes


def test_every_job_of_the_plan_is_committed_and_says_where_it_ran(committed: Outcomes) -> None:
    missing = [str(one) for one in Scope().jobs() if one not in committed]
    # 40 seconds a tree; the closing line of the results says that they were not run.
    assert all("bidmc" in one and "narx-rf" in one for one in missing), missing
    for job, record in read_outcomes(RESULTS / "outcomes.csv").items():
        assert record.made["machine"] and record.made["date"], job


def test_no_claim_has_a_figure_that_is_not_in_the_committed_results(committed: Outcomes) -> None:
    assert claims_page(claims(Scope(), committed)) == (RESULTS / "claims.md").read_text()


def test_results_say_which_code_made_them() -> None:
    made = json.loads((RESULTS / "results.json").read_text())["made"]
    assert re.fullmatch(r"[0-9a-f]{7,}", made["commit"]), "run by committed code"
    assert re.fullmatch(r"[0-9a-f]{12}", made["code of the figures"])
    assert sum(int(count) for name, count in made.items() if name.startswith("jobs run on")) > 800


@pytest.mark.parametrize("page", ["concepts/the-paper.md", "../README.md"])
def test_a_page_quotes_committed_figures_only(page: str) -> None:
    known = (RESULTS / "results.md").read_text() + (RESULTS / "claims.md").read_text()
    quoted = set(re.findall(r"0\.00\d{3,4}", (DOCS / page).read_text()))
    assert {one for one in quoted if one not in known} == set()


def test_the_index_names_every_table_figure_and_setting_of_the_paper() -> None:
    index = (RESULTS / "index.md").read_text()
    for number in range(1, 7):
        assert f"Figure {number}," in index
    for number in range(1, 4):
        assert f"Table {number}," in index
    for number in range(1, 11):
        assert re.search(rf"eq\. {number}\b", index), f"equation {number}"
    settings = published()["protocol"]
    assert f"seed={settings['seed']}" in index
    for word in ("stride 1", "batch size 128", "50 epochs", "500 trees", "lr = 3e-3", "lr = 1e-3", "80/20"):
        assert word in index
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        for title in re.findall(r"^## (.+)$", (RESULTS / "results.md").read_text(), re.MULTILINE)
    }
    linked = set(re.findall(r"results\.md#([\w-]+)", index))
    assert linked - anchors == set()
