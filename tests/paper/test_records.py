"""Outcomes as CSV: what is written is read back, to the last bit, and damage is found by its line."""

import csv
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varnn.errors import ConfigError, DataError
from varnn.paper.jobs import Job, Outcome, job
from varnn.paper.plan import PROTOCOLS, Scope
from varnn.paper.records import MADE, Record, epochs_csv, outcomes_csv, read_outcomes, read_settings
from varnn.report.provenance import provenance

errors = st.floats(0, 1e9, allow_nan=False)
names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8)
values = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.sampled_from(["as-published", "True", "1", "1e3", "inf", "nan", "1_0", "a; b=c", 'q"', "", " x "]),
)
texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1)
planned = st.builds(
    Job,
    dataset=texts,
    protocol=st.sampled_from(PROTOCOLS),
    model=texts,
    seed=st.integers(0, 2**31),
    settings=st.dictionaries(names, values, max_size=4).map(lambda one: tuple(sorted(one.items()))),
    split=st.integers(0, 2**31),
)
curves = st.lists(st.tuples(errors, errors), max_size=4).map(
    lambda lines: [[epoch, *losses] for epoch, losses in enumerate(lines, start=1)]
)
made: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}), st.fixed_dictionaries(dict.fromkeys(MADE, texts))
)
found = st.builds(Outcome, train=errors, test=errors, seconds=errors, epochs=curves, made=made)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records") / "outcomes.csv"


def expected(outcome: Outcome) -> Record:
    """Say what is to be read back of an outcome."""
    losses = [line[2] for line in outcome.epochs]
    return Record(
        train=outcome.train,
        test=outcome.test,
        seconds=outcome.seconds,
        epochs_run=len(losses) or None,
        best_epoch=1 + int(np.argmin(losses)) if losses else None,
        made={name: outcome.made.get(name, "") for name in MADE},
    )


def typed(one: Job) -> list[type]:
    return [type(value) for _, value in one.settings]


@settings(max_examples=60, deadline=None)
@given(outcomes=st.dictionaries(planned, found, max_size=4))
def test_what_is_written_is_read_back(outcomes: dict[Job, Outcome], place: Path) -> None:
    place.write_text(outcomes_csv(outcomes), encoding="utf-8", newline="")
    again = read_outcomes(place)
    assert again == {one: expected(outcome) for one, outcome in outcomes.items()}
    kinds = {one: typed(one) for one in outcomes}
    # 1 == True == 1.0: the types are looked at by themselves.
    assert all(typed(one) == kinds[one] for one in again)


def test_every_job_of_the_plan_is_read_back_in_the_order_of_its_columns(tmp_path: Path) -> None:
    place = tmp_path / "outcomes.csv"
    plan = Scope().jobs()
    outcome = Outcome(
        0.1 + 0.2, 1 / 3, 2.5, [[1, 0.5, 0.25], [2, 0.4, 0.125], [3, 0.3, 0.2]], made=provenance()
    )
    place.write_text(outcomes_csv(dict.fromkeys(plan, outcome)))
    again = read_outcomes(place)
    assert set(again) == set(plan)
    assert all(one == again[one2] for one2, one in dict.fromkeys(plan, expected(outcome)).items())
    with place.open(newline="") as file:
        lines = list(csv.DictReader(file))
    order = [
        (one["dataset"], one["protocol"], one["model"], one["settings"], int(one["split"]), int(one["seed"]))
        for one in lines
    ]
    assert order == sorted(order)
    first = lines[0]
    assert (float(first["train"]), first["train"]) == (0.1 + 0.2, "0.30000000000000004")
    assert (first["epochs_run"], first["best_epoch"]) == ("3", "2")
    assert {name: first[name] for name in MADE} == {name: outcome.made[name] for name in MADE}


def test_curves_have_one_line_per_epoch() -> None:
    drawn = job("appliances", "paper", "RM", memory_size=16)
    outcomes = {
        drawn: Outcome(1, 1, 1, [[1, 0.123456789, 2.0], [2, 1.23456789e-5, 1.0]]),
        job("appliances", "paper", "lr"): Outcome(1, 1, 1),
    }
    head, *lines = epochs_csv(outcomes).splitlines()
    assert head == "dataset,protocol,model,settings,split,seed,epoch,training_loss,validation_loss"
    assert lines == [
        "appliances,paper,RM,memory_size=16,2025,2025,1,0.1234568,2",
        "appliances,paper,RM,memory_size=16,2025,2025,2,1.234568e-05,1",
    ]


def test_a_setting_of_another_type_is_refused() -> None:
    with pytest.raises(ConfigError, match="'lags' is None"):
        outcomes_csv({job("appliances", "paper", "arx-lr", lags=None): Outcome(1, 1, 1)})
    with pytest.raises(ValueError, match="name=value"):
        read_settings("lags")


GOOD = outcomes_csv({job("appliances", "paper", "lr"): Outcome(0.5, 0.25, 1.0, made=provenance())})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("dataset,", "data set,", "line 1 must name the columns dataset"),
        ("0.25", "0,25", "line 2 must have 19 cells; it has 20"),
        ("0.25", "a lot", "line 2: test cannot be read: could not convert"),
        ("0.25", "nan", "line 2: test cannot be read: it must be finite"),
        (",paper,", ",papers,", "line 2: protocol cannot be read: it must be one of paper, honest"),
        ("appliances", "", "line 2: dataset cannot be read: it is empty"),
        (",lr,,", ",lr,lags,", "line 2: settings cannot be read"),
        (",lr,,", ',lr,"a=""\\q""",', "line 2: settings cannot be read"),
        (",2025,", ",2025.0,", "line 2: split cannot be read"),
        (",lr,,", ',lr,"a=1,', "line 2 must be CSV"),
    ],
)
def test_a_damaged_file_says_where(before: str, after: str, said: str, tmp_path: Path) -> None:
    place = tmp_path / "outcomes.csv"
    assert before in GOOD
    place.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(DataError) as error:
        read_outcomes(place)
    assert str(place) in str(error.value)
    assert said in str(error.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "outcomes.csv"
    contents: list[tuple[bytes, str]] = [
        (
            (GOOD + GOOD.splitlines()[1] + "\n").encode(),
            "line 3: appliances/paper/lr seed 2025 is there twice",
        ),
        (b"\xff\xfe", "must be text in UTF-8"),
        (b"", "line 1 must name the columns"),
    ]
    for content, said in contents:
        place.write_bytes(content)
        with pytest.raises(DataError, match=said):
            read_outcomes(place)
    with pytest.raises(DataError, match="No such file"):
        read_outcomes(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="must be a file that can be read"):
        read_outcomes(tmp_path)


def test_a_machine_with_commas_and_quotes_stays_one_cell(tmp_path: Path) -> None:
    place = tmp_path / "outcomes.csv"
    facts: dict[str, Any] = {"machine": 'Linux, a "fast" one, 2 cores'}
    place.write_text(outcomes_csv({job("beijing", "honest", "lr"): Outcome(1, 1, 1, made=facts)}))
    (record,) = read_outcomes(place).values()
    assert record.made["machine"] == facts["machine"]
