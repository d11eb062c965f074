"""Rows that differ, tried for their cause: what is compared, and what is said of it."""

import pytest

from varnn.paper import causes
from varnn.paper.jobs import Outcome
from varnn.paper.plan import SPLITS, Scope
from varnn.paper.published import published
from varnn.paper.runner import Outcomes


def printed_outcomes(scope: Scope, factor: float) -> Outcomes:
    """Give recurrent jobs the printed figures, times a factor where they do not see x_t with relu."""
    outcomes = {}
    for one in scope.jobs():
        row = published()["table2"].get(one.model)
        train, test = row[one.dataset] if row else (0.001, 0.001)
        settings = dict(one.settings)
        usual = "relu" if one.model == "rnn" else "tanh"
        as_print = settings.get("current") and settings.get("activation", usual) == "relu"
        times = 1.0 if as_print else factor
        outcomes[one] = Outcome(train * times, test * times, 1.0)
    return outcomes


def test_a_reading_that_gives_the_printed_figures_is_found() -> None:
    scope = Scope(tables=["readings"])
    lines = causes.readings(scope, printed_outcomes(scope, 1.5))
    assert len(lines) == 36
    found = causes.readings_summary(lines)
    best = min(found, key=lambda line: line["mean distance, test"])
    assert (best["sees x_t"], best["activation"], best["rows"]) == ("yes", "relu", 9)
    assert best["mean distance, test"] == pytest.approx(0)
    others = [line["mean distance, train"] for line in found if line is not best]
    assert others == pytest.approx([0.5, 0.5, 0.5])
    verdicts = {line["test: verdict"] for line in lines if line["sees x_t"] == "no"}
    assert verdicts == {"higher (+50%)"}


def test_a_usual_reading_is_the_job_of_the_table() -> None:
    scope = Scope()
    table = scope.with_seeds("beijing", "paper", "lstm")
    assert scope.reading("beijing", "lstm", current=False, activation="tanh") == table
    assert scope.reading("beijing", "lstm", current=False, activation="relu") != table


def test_splits_show_where_print_lies() -> None:
    scope = Scope(tables=["splits"], data=["bidmc"])
    outcomes = {}
    for name, jobs in scope.splits().items():
        for one in jobs:
            level = 0.0001 * one.split
            outcomes[one] = Outcome(level, level * (0.5 if name == "RM" else 1.0), 1.0)
    lines = {(line["model"], line["part"]): line for line in causes.splits(scope, outcomes)}
    linear = lines["lr", "test"]
    assert (linear["splits"], linear["lowest"], linear["highest"]) == (
        len(SPLITS),
        0.0001,
        pytest.approx(0.01),
    )
    assert linear["splits below paper"] == 100  # printed: 0.02256
    assert lines["arx-lr, as-published", "test"]["splits below paper"] == 2  # printed: 0.00027
    assert lines["arx-lr, correct", "test"]["paper"] is None
    assert lines["RM", "test"]["splits"] == 10
    assert lines["RM", "test"]["over correct ARX of the same split, median"] == pytest.approx(0.5)
    assert lines["RM", "test"]["of them lower"] == 10


def test_forests_of_both_sizes_stand_side_by_side() -> None:
    scope = Scope(tables=["table2"], data=["appliances"])
    outcomes = {
        one: Outcome(0.00057 if dict(one.settings).get("trees") == 100 else 0.000548, 0.04, 1.0)
        for one in scope.jobs()
    }
    lines = [line for line in causes.forests(scope, outcomes) if line["model"] == "rf"]
    assert [(line["trees"], line["seeds"], line["train: verdict"]) for line in lines] == [
        (100, 3, "equal"),
        (500, 1, "lower (-4%)"),
    ]
