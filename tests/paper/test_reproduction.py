"""The reproduction: verdicts, plan, cache and resume, tables and errata; on real data where it is there."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.jobs.work import descendants, is_alive, wait_for
from varnn.errors import ConfigError
from varnn.paper import complexity, errata, jobs, output, runner, tables
from varnn.paper.findings import gather
from varnn.paper.jobs import Job, Outcome, job
from varnn.paper.plan import Scope, _weight
from varnn.paper.published import published, verdict
from varnn.report.provenance import provenance


def made_up(scope: Scope) -> runner.Outcomes:
    """Give every job of a scope an outcome that depends on its name only."""
    outcomes = {}
    for one in scope.jobs():
        draw = np.random.default_rng(zlib.crc32(str(one).encode()))
        level = 0.001 * (1 + draw.random())
        epochs = [[epoch, level, level * (1 + 0.1 / epoch)] for epoch in range(1, 4)]
        outcomes[one] = Outcome(level, level, 1.0, epochs, draw.chisquare(1, 200).astype(np.float32) * level)
    return outcomes


def test_a_verdict_reads_printed_digits() -> None:
    assert verdict(0.00015, 0.000154).word == "equal"
    assert verdict(0.00015, 0.0001551).word == "higher"
    assert verdict(0.00015, 0.0001441).word == "lower"
    assert verdict(0.00015, 0.0001551, 0.00001).word == "within spread"
    assert verdict(0.003321, 0.0033214, digits=6).word == "equal"
    assert verdict(0.003321, 0.0033216, digits=6).word == "higher"


def test_the_plan_covers_every_printed_row_and_runs_long_jobs_first() -> None:
    scope = Scope(seeds=2)
    listed = scope.jobs()
    assert len(listed) == len(set(listed))
    for model, row in published()["table2"].items():
        for dataset in row:
            for protocol in ("paper", "honest"):
                assert any(
                    (one.dataset, one.protocol, one.model) == (dataset, protocol, model) for one in listed
                )
    assert listed[0].model == "narx-rf"
    assert listed[-1].model in ("persistence", "lr", "arx-lr", "narx-gbm")
    lags = {dict(one.settings).get("lags") for one in listed if one.model == "arx-lr"}
    assert lags == {"as-published", "correct"}


def test_a_quick_plan_is_small_and_a_choice_of_models_is_kept() -> None:
    quick = Scope(quick=True).jobs()
    assert {one.model for one in quick if one.dataset == "beijing"} == {"lr", "arx-lr", "persistence"}
    assert {one.split for one in quick if one.split != 2025} == {1, 2, 3}
    assert "RM" not in Scope(quick=True).splits()
    assert len(quick) < 120
    assert sum(map(_weight, quick)) < 360  # seconds of one core: the help says three minutes on two
    assert {one.model for one in Scope(models=["RM"], tables=["table3"]).jobs()} == {"RM"}
    with pytest.raises(ConfigError, match="Did you mean 'beijing'"):
        Scope(data=["bejing"])
    with pytest.raises(ConfigError, match="is not in the paper"):
        Scope(tables=["table9"])
    with pytest.raises(ConfigError, match="Did you mean 'arx-lr'"):
        Scope(models=["arx-rl"])


def test_a_guess_of_seconds_counts_epochs_and_trees() -> None:
    long, short = (_weight(job("appliances", "paper", "lstm", **one)) for one in ({}, {"epochs": 5}))
    assert short == pytest.approx(long / 10)
    assert _weight(job("bidmc", "paper", "rf", trees=20)) == 100
    assert _weight(job("bidmc", "paper", "arx-lr", split=1, lags="correct")) == 6


def test_a_key_depends_on_every_part_of_a_job() -> None:
    base = job("appliances", "paper", "RM", 2025, learning_rate=1e-3)
    others = [
        job("beijing", "paper", "RM", 2025, learning_rate=1e-3),
        job("appliances", "honest", "RM", 2025, learning_rate=1e-3),
        job("appliances", "paper", "ARM", 2025, learning_rate=1e-3),
        job("appliances", "paper", "RM", 2026, learning_rate=1e-3),
        job("appliances", "paper", "RM", 2025, learning_rate=2e-3),
        job("appliances", "paper", "RM", 2025, learning_rate=1e-3, split=7),
    ]
    assert len({one.key for one in [base, *others]}) == 7
    assert base.key == job("appliances", "paper", "RM", learning_rate=1e-3).key


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = runner.Cache(tmp_path)
    wanted = [job("appliances", "paper", "persistence"), job("appliances", "paper", "lr")]
    kept = Outcome(0.1, 0.2, 3.0, [[1, 2, 3]], np.arange(4, dtype=np.float32), {"machine": "this one"})
    for one in wanted:
        cache.put(one, kept)
    monkeypatch.setattr(runner, "run_jobs", None)  # nothing may be left to run
    seen: list[Job] = []
    outcomes = runner.run_all(wanted, cache, on_done=lambda one, _: seen.append(one))
    assert seen == wanted
    again = outcomes[wanted[0]]
    assert (again.train, again.test, again.epochs) == (0.1, 0.2, [[1, 2, 3]])
    assert again.made == {"machine": "this one"}
    np.testing.assert_array_equal(again.squared, kept.squared)
    (tmp_path / f"{wanted[0].key}.json").write_text("{")  # damaged: it is as if it was not there
    assert cache.get(wanted[0]) is None
    (tmp_path / f"{wanted[1].key}.npy").write_bytes(b"")  # a disk that was full
    assert cache.get(wanted[1]) is None


def test_jobs_run_on_a_cluster_as_they_do_here(tmp_path: Path, data_folder: Path, local_ray: None) -> None:
    wanted = [job("appliances", "paper", "persistence"), job("appliances", "paper", "arx-lr")]
    here, there = (
        runner.run_all(wanted, runner.Cache(tmp_path / str(cluster)), cluster=cluster)
        for cluster in (None, "auto")
    )
    assert [(here[one].train, here[one].test) for one in wanted] == [
        (there[one].train, there[one].test) for one in wanted
    ]


@pytest.fixture
def without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have findings gathered where no data set is."""
    monkeypatch.setattr("varnn.paper.findings.table1", lambda scope: [])
    monkeypatch.setattr(
        errata, "_CHECKS", tuple(one for one in errata._CHECKS if one.__name__ != "_interpolation")
    )
    monkeypatch.setattr(complexity, "INPUTS", {"appliances": 3, "bidmc": 3, "beijing": 3})
    monkeypatch.setattr(
        "varnn.datasets.bidmc.patients", lambda: {f"{n:02d}": f"p{n // 2}" for n in range(1, 54)}
    )


@pytest.mark.usefixtures("without_data")
def test_findings_are_written_in_every_form(tmp_path: Path) -> None:
    scope = Scope(seeds=2)
    findings = gather(scope, made_up(scope), command="varnn reproduce", seconds=60.0)
    paths = output.write(findings, tmp_path)
    assert {path.name for path in paths} >= {
        "results.json",
        "results.csv",
        "results.md",
        "claims.md",
        "report.html",
        "variants.svg",
    }
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["made"]["command"] == "varnn reproduce"
    printed = [cell for cell in content["cells"] if cell["printed"] is not None]
    table2 = sum(len(row) for model, row in published()["table2"].items()) * 2
    extra = len([variant for variant in published()["table3"] if variant not in published()["table2"]]) * 6
    assert len(printed) == table2 + extra + 6
    assert len((tmp_path / "results.csv").read_text().splitlines()) == len(content["cells"]) + 1
    page = (tmp_path / "report.html").read_text()
    assert "y[t-1]" in page
    assert page.count("<svg") == len(findings.drawings) == 6
    assert {line["model"] for line in content["significance"]} >= {"RM", "persistence"}
    assert len(content["readings"]) == 3 * 3 * 4
    assert len(content["splits"]) == 2 * 5
    assert {line["trees"] for line in content["forests"]} == {20, 100, 500}
    assert content["claims"]
    counts = re.search(r"(\d+) agree .* lower in (\d+) and higher in (\d+)", content["summary"])
    assert counts is not None
    assert sum(int(one) for one in counts.groups()) == len(printed)


@pytest.mark.usefixtures("without_data")
def test_a_quick_run_says_so_and_judges_no_claim(tmp_path: Path) -> None:
    (tmp_path / "claims.md").write_text("of an earlier run")
    scope = Scope(quick=True)
    paths = output.write(gather(scope, made_up(scope), command="", seconds=1.0), tmp_path)
    assert "claims.md" not in {path.name for path in paths}
    assert not (tmp_path / "claims.md").exists()
    words = "Quick run: 3 epochs and 20 trees, not the paper's settings."
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["claims"] == []
    assert content["summary"].startswith(f"{words} Of ")
    assert words in (tmp_path / "results.md").read_text()
    assert (tmp_path / "tables.tex").read_text().splitlines()[0] == f"% {words}"


@pytest.mark.usefixtures("without_data")
def test_one_table_alone_leaves_no_claims_of_an_earlier_run_and_no_other_table(tmp_path: Path) -> None:
    (tmp_path / "claims.md").write_text("of an earlier run")
    scope = Scope(tables=["table3"], data=["appliances"], seeds=2)
    output.write(gather(scope, made_up(scope), command="", seconds=1.0), tmp_path)
    assert not (tmp_path / "claims.md").exists()
    tables = (tmp_path / "tables.tex").read_text()
    assert re.findall(r"label\{(.*)\}", tables) == ["varnn-table-3"]
    assert "Quick run" not in tables
    both = Scope(tables=["table2"], data=["appliances"], models=["RM"], seeds=2)
    output.write(gather(both, made_up(both), command="", seconds=1.0), tmp_path)
    assert "varnn-table-2" in (tmp_path / "tables.tex").read_text()


@pytest.mark.usefixtures("without_data")
def test_machines_are_counted_with_those_that_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(tables=["table3"], data=["appliances"], models=["RM"])
    known, *unknown = outcomes = made_up(scope)
    outcomes[known] = replace(outcomes[known], made=provenance())
    commits = iter(["0123abc"])  # git is asked once, however many files are written
    monkeypatch.setattr(output, "checkout_commit", lambda: next(commits))
    findings = gather(scope, outcomes, command="", seconds=1.0)
    assert findings.made["jobs run on unknown machine"] == str(len(unknown))
    assert sum(int(n) for name, n in findings.made.items() if name.startswith("jobs run on")) == len(outcomes)
    assert findings.made["commit"] == "0123abc"


@pytest.mark.usefixtures("without_data")
def test_a_figure_that_is_no_number_is_not_written_as_json() -> None:
    scope = Scope(tables=["table3"], data=["appliances"], models=["RM"])
    findings = gather(scope, made_up(scope), command="", seconds=1.0)
    json.loads(output.as_json(findings), parse_constant=pytest.fail)
    with pytest.raises(ValueError, match="not JSON compliant"):
        output.as_json(replace(findings, splits=[{"median": float("nan")}]))


def test_errata_need_their_evidence() -> None:
    scope = Scope(data=["appliances"])
    assert not any("leave out" in one.title for one in errata.errata(scope, {}))
    found = errata.errata(scope, made_up(scope))
    assert any("appear to leave out y[t-1]" in one.title for one in found)
    assert any("appears to pick the epoch" in one.title for one in found)
    assert any("see no past label" in one.title for one in found)
    assert not any("learning rate" in one.title for one in found)  # the paper declares both


def test_a_conclusion_turns_with_its_figures() -> None:
    """What an erratum says follows from the outcomes: contrary ones give no erratum, or another sentence."""
    scope = Scope(data=["appliances"])
    outcomes = made_up(scope)

    def said(title: str, changed: runner.Outcomes) -> str:
        return next((one.found for one in errata.errata(scope, outcomes | changed) if title in one.title), "")

    def forests(small: float, large: float) -> runner.Outcomes:
        return {
            one: Outcome(large if dict(one.settings)["trees"] == 500 else small, 0.04, 1.0)
            for one in outcomes
            if one.model in jobs.FORESTS and one.dataset == "appliances"
        }

    assert "scikit-learn's default is 100" in said("100 trees than 500", forests(0.0006, 0.0002))
    assert said("100 trees than 500", forests(0.0002, 0.0006)) == ""
    printed = {model: row["appliances"] for model, row in published()["table2"].items()}
    for current in (True, False):
        near = {
            one: Outcome(printed[one.model][0], printed[one.model][1], 1.0)
            for one in outcomes
            if one.model in jobs.RECURRENT
            and one.protocol == "paper"
            and bool(dict(one.settings).get("current")) == current
        }
        with_or_without = "with x_t" if current else "without x_t"
        assert f"The reading {with_or_without}" in said("recurrent rows are fed", near)


def test_complexity_counts_agree_with_the_formulas() -> None:
    for line in complexity.table("beijing", repeats=2):
        assert line["multiplies"] == line["weights counted"], line["model"]
        assert line["microseconds per step"] > 0


def test_complexity_begins_with_the_predictor_that_sees_inputs_alone() -> None:
    first, *others = complexity.table("beijing", repeats=2)
    assert (first["model"], first["multiplies (formula)"]) == ("feed-forward", "kd")
    assert first["multiplies"] == first["weights counted"] == 128 * 9
    assert first["parameters"] == 128 * 9 + 128 + 128 + 1
    assert all(first["multiplies"] < line["multiplies"] for line in others)


def test_steps_are_timed_warm_and_in_a_new_order_each_round() -> None:
    seen: list[str] = []
    steps = {name: partial(seen.append, name) for name in ("a", "b", "c", "d")}
    found = complexity._timed(steps, torch, repeats=40)
    assert found.keys() == steps.keys()
    warm, timed = seen[:-160], seen[-160:]
    assert set(warm) == set(steps)
    rounds = [timed[at : at + 4] for at in range(0, 160, 4)]
    assert all(set(one) == set(steps) for one in rounds)
    # Rotation would not do: each would still come after the same one.
    before = {(timed[at - 1], timed[at]) for at in range(1, 160)}
    assert before >= set(itertools.permutations(steps, 2))


def test_printed_linear_rows_come_out_to_the_digit(data_folder: Path) -> None:
    for dataset in ("appliances", "beijing"):
        as_printed = (job(dataset, "paper", "lr"), job(dataset, "paper", "arx-lr", lags="as-published"))
        for one in as_printed:
            outcome = jobs.run(one)
            model = one.model
            printed = published()["table2"][model][dataset]
            assert [round(outcome.train, 5), round(outcome.test, 5)] == printed, (dataset, model)
    correct = {"appliances": 0.00319, "beijing": 0.00024, "bidmc": 0.00015}
    for dataset, expected in correct.items():
        outcome = jobs.run(job(dataset, "paper", "arx-lr", lags="correct"))
        assert round(outcome.test, 5) == expected
    for one in Scope().filled_by_part():  # nothing comes across the split, and the digits are the same
        outcome = jobs.run(one)
        assert [round(outcome.train, 5), round(outcome.test, 5)] == published()["table2"][one.model][
            "beijing"
        ]


def test_table1_is_the_papers(data_folder: Path) -> None:
    for line in tables.table1(Scope()):
        assert line["rows"] == line["rows (paper)"]
        if line["data set"] != "BIDMC":  # the paper counts its three channels
            assert line["inputs"] == line["inputs (paper)"]


@pytest.mark.parametrize(("variant", "low", "high"), [("RM", 0.0034, 0.0046), ("ARM+AM", 0.0030, 0.0038)])
def test_variants_on_a_slice_of_training(variant: str, low: float, high: float, data_folder: Path) -> None:
    """Three epochs on the real data: a change that moves a number is noticed."""
    outcome = jobs.run(job("appliances", "paper", variant, epochs=3))
    assert low < outcome.test < high
    assert len(outcome.epochs) == 3


def test_ablations_on_a_slice_of_training(data_folder: Path) -> None:
    def error(setting: str, value: object) -> float:
        settings = (("epochs", 3), ("learning_rate", 1e-3), (setting, value))
        return jobs.run(Job("appliances", "paper", "RM", settings=settings)).test

    none, scalar, memory = error("residual", "none"), error("residual", "scalar"), error("memory_size", 16)
    assert 0.006 < none < 0.0075
    assert memory < scalar < none


def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(tmp_path: Path, data_folder: Path) -> None:
    command = [sys.executable, "-c", "from varnn.cli.app import main; main()", "reproduce", "table3"]
    command += ["--dataset", "appliances", "--models", "RM", "--seeds", "40", "-o", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        finished = tmp_path / "jobs"
        deadline = time.monotonic() + 100
        while not list(finished.glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.2)
        workers = descendants(process.pid)
        said = ""
        for _ in range(4):  # on a busy machine one may come while Python cannot hear it: people press again
            os.kill(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                said = process.communicate(timeout=25)[1]
                break
    assert process.returncode == 130
    assert said.strip() == "stopped."
    assert list(finished.glob("*.json"))
    assert workers and wait_for(lambda: not any(map(is_alive, workers)), within=5)
