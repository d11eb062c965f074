"""Parts of a search, each alone: space, rows, pruning, study, verdict."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from tests.cases import random_panel
from varnn import Details, Panel, VARNNRegressor
from varnn.errors import ConfigError, DataError, OutputError
from varnn.jobs import Failure
from varnn.scale.tuning.pruning import FEWEST, NotWorthItError, Standing, limits
from varnn.scale.tuning.rows import Rows
from varnn.scale.tuning.space import NOT_SEARCHED, Space, default_space, read_space
from varnn.scale.tuning.study import CUT_OFF, Study
from varnn.scale.tuning.trial import Default, TrialResult
from varnn.scale.tuning.verdict import Verdict, compared

SPACE = {"window": (4, 12), "experts": [(), ("boosting",)], "memory_size": [None, 4]}
FACTS = {"rows": "a", "model": {}, "space": {}, "origins": 2, "test_fraction": 0.2}


def study(path: Path | None = None, facts: Any = None, space: Any = None) -> Study:
    return Study(Space(VARNNRegressor(), space or SPACE), facts or FACTS, path, seed=0)


def through(*errors: float, **more: Any) -> TrialResult:
    return TrialResult(ended="through", errors=errors, **more)


def with_default(path: Path | None = None) -> Study:
    one = study(path)
    number, settings = one.ask(one.space.own(VARNNRegressor(), {"window": 24}))
    assert (number, settings) == (0, {})
    one.tell(number, through(2.0, 4.0, losses=(1.0, 1.0), calendars=((), ("day",))), None, 1.0)
    return one


# Space


def test_names_of_details_need_no_prefix_and_ranges_may_be_logarithmic() -> None:
    space = Space(VARNNRegressor(), {"memory_size": (4, 64), "learning_rate": (1e-3, 5e-3), "window": (6, 9)})
    found = space.distributions
    assert set(found) == {"details__memory_size", "learning_rate", "window"}
    assert found["details__memory_size"] == optuna.distributions.IntDistribution(4, 64, log=True)
    assert found["learning_rate"] == optuna.distributions.FloatDistribution(1e-3, 5e-3)
    assert found["window"] == optuna.distributions.IntDistribution(6, 9)


def test_the_models_own_value_is_always_among_the_choices() -> None:
    space = Space(VARNNRegressor(), {"variant": ["RM", "ARM"], "experts": [("boosting",)]})
    assert space.choices["variant"].values == ("ARM+AM", "RM", "ARM")
    own = space.own(VARNNRegressor(), {})
    assert space.settings(own) == {"variant": "ARM+AM", "experts": ()}
    assert space.settings({"experts": '["boosting"]'}) == {"experts": ("boosting",)}


def test_a_distribution_of_optuna_is_taken_as_it_is() -> None:
    given = optuna.distributions.CategoricalDistribution(["RM", "ARM"])
    space = Space(VARNNRegressor(), {"variant": given})
    assert space.settings({"variant": "RM"}) == {"variant": "RM"}
    assert space.own(VARNNRegressor(), {}) == {"variant": "RM"}  # the nearest it can hold


def test_what_the_rows_decide_and_what_is_out_of_range_begins_the_search_nearby() -> None:
    space = Space(VARNNRegressor(hidden_size=64), {"window": (4, 12), "hidden_size": (4, 32)})
    assert space.own(VARNNRegressor(), {"window": 9}) == {"window": 9, "hidden_size": 32}


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({}, "must be a mapping"),
        ([("window", (4, 8))], "must be a mapping"),
        ({"widow": (4, 8)}, "Did you mean 'window'"),
        ({3: (4, 8)}, "which is no setting"),
        ({"window": (8, 4)}, "low below high"),
        ({"window": 8}, r"a pair of numbers \(low, high\)"),
        ({"window": (True, 8)}, r"a pair of numbers \(low, high\)"),
        ({"window": []}, "a list of values"),
        ({"variant": ["RM", "XX"]}, r"space\['variant'\] holds a value that is none: variant must be one of"),
        ({"memory_size": (-3, 8)}, "details.memory_size must be"),
        ({"hidden_size": [-3]}, "hidden_size must be a whole number, at least 1; got -3"),
        ({"memory_size": (4, 8), "details__memory_size": (4, 8)}, "there twice"),
        *(({name: [1, 2]}, f"must leave '{name}' out") for name in NOT_SEARCHED),
    ],
)
def test_spaces_that_cannot_be_searched_are_refused(space: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Space(VARNNRegressor(), space)


@pytest.mark.parametrize("model", [VARNNRegressor(), VARNNRegressor.paper("RM"), VARNNRegressor(adapt=None)])
def test_the_default_space_fits_the_model(model: VARNNRegressor) -> None:
    space = Space(model)
    assert space.names == tuple(default_space(model))
    assert ("experts" in space.names) == (model.linear and model.adapt is not None)
    assert space.by_epoch and not Space(model, {"linear": [True, False]}).by_epoch


@pytest.mark.parametrize("text", ["window", "[1]", '{"window": {"low": 3}}', '{"window": {"from": 3}}'])
def test_a_space_that_is_no_json_of_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="space must be JSON such as"):
        read_space(text)


# Rows


def test_no_row_is_in_two_parts_and_the_test_rows_are_after_all_others() -> None:
    panel = random_panel([200, 100])
    rows = Rows.cut(panel, origins=3, test_fraction=0.25)
    for one in rows.origins:
        parts = [set(getattr(one, name).rows) for name in ("train", "validation", "test")]
        assert sum(map(len, parts)) == len(set.union(*parts))
        assert not set.union(*parts) & set(rows.test.test.rows)
        assert set.union(*parts) <= set(rows.test.train.rows)
    assert len(rows.test.train) + len(rows.test.test) == 300
    assert int(rows.test.scored().sum()) == len(rows.test.test)
    scored = [row for one in rows.origins for row in one.test.rows]
    assert len(scored) == len(set(scored))


def test_too_few_rows_say_how_many_there_are() -> None:
    with pytest.raises(DataError, match="6 rows in 1 series are too few to tune on at 3 origins"):
        Rows.cut(Panel.from_arrays(None, range(6)), origins=3, test_fraction=0.2)


# Pruning


def test_a_trial_that_stands_behind_most_is_given_up() -> None:
    curves = [{5: 1.0, 10: value} for value in (1.0, 1.02, 1.04, 1.06)]
    found = limits(curves)
    assert found == {5: 1.0, 10: pytest.approx(1.03)}
    trial = Standing([2.0], [0.5], found)
    trial.epoch(0, progress=0.5, loss=0.5)  # as the others
    with pytest.raises(NotWorthItError):
        trial.origin(0, 2.1)
    assert trial.curve[10] == pytest.approx(1.05)


def test_few_trials_and_early_epochs_give_nothing_up() -> None:
    assert limits([{5: 1.0, 10: 1.0}] * (FEWEST - 1)) == {}
    trial = Standing([1.0], [1.0], {1: 0.1, 2: 0.1})
    trial.epoch(0, progress=0.25, loss=9.0)
    assert trial.curve == {}


def test_standings_average_over_origins_and_hold_after_an_early_stop() -> None:
    trial = Standing([2.0, 4.0], [1.0, 1.0])
    trial.epoch(0, progress=0.5, loss=1.2)
    trial.origin(0, 1.0)
    trial.epoch(1, progress=0.4, loss=0.9)
    trial.origin(1, 6.0)
    assert [trial.curve[step] for step in (5, 6, 9, 10)] == [1.2, 1.2, 1.2, 0.5]
    assert trial.curve[14] == trial.curve[19] == pytest.approx((0.5 + 0.9) / 2)
    assert trial.curve[20] == pytest.approx((0.5 + 1.5) / 2)


# Study


def test_trials_come_to_a_ratio_a_standing_or_a_reason(tmp_path: Path) -> None:
    searched = with_default(tmp_path / "s.db")
    for result, failure in (
        (through(1.0, 4.0, curve={10: 0.5, 20: 0.75}), None),
        (TrialResult(ended="behind", errors=(3.0,), curve={10: 1.5}), None),
        (None, Failure("ConfigError", "loss_rows must be ...", "")),
        (TrialResult(ended="out of time", errors=()), None),
    ):
        searched.tell(searched.ask()[0], result, failure, 0.5)
    lines = searched.table()
    assert [(line["ended"], line["ratio"]) for line in lines] == [
        ("through", 1.0),
        ("through", 0.75),
        ("behind", 1.5),
        ("failed", None),
        ("failed", None),
    ]
    assert [line["reason"] for line in lines[3:]] == ["ConfigError: loss_rows must be ...", CUT_OFF]
    assert searched.finished == 4  # one had no time
    assert [one.number for one in searched.best(3)] == [1]
    searched.study.enqueue_trial(searched.study.trials[1].params)  # the same again
    searched.tell(searched.ask()[0], through(1.0, 4.0), None, 0.5)
    assert [one.number for one in searched.best(3)] == [1]
    assert searched.curves() == [{10: 0.5, 20: 0.75}]
    searched.close()


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    first = with_default(tmp_path / "s.db")
    first.ask()  # and is cut off
    first.close()
    again = study(tmp_path / "s.db")
    assert again.default == Default((2.0, 4.0), (1.0, 1.0), ((), ("day",)))
    assert [line["reason"] for line in again.table()] == [None, CUT_OFF] and again.finished == 1
    again.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["s.db"]


def test_a_killed_process_leaves_a_study_that_goes_on(tmp_path: Path) -> None:
    killed = with_default(tmp_path / "s.db")
    killed.ask()
    killed.study.enqueue_trial({"window": 5})  # and was not even asked for
    killed._lock.release()  # type: ignore[union-attr]  # as the system does
    again = study(tmp_path / "s.db")
    assert [line["ended"] for line in again.table()] == ["through", "failed", "failed"]
    again.close()
    killed._lock = None
    killed.close()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rows", "b", "other rows"),
        ("model", {"window": 3}, "a model with other settings"),
        ("space", {"window": "(3, 5)"}, "another space"),
        ("origins", 4, "another number of origins"),
        ("test_fraction", 0.3, "another test_fraction"),
    ],
)
def test_a_study_of_something_else_is_refused(name: str, value: Any, said: str, tmp_path: Path) -> None:
    with_default(tmp_path / "s.db").close()
    with pytest.raises(ConfigError, match=f"s.db' is of {said}. Give another file"):
        study(tmp_path / "s.db", {**FACTS, name: value})
    study(tmp_path / "s.db").close()  # nothing was changed, nor is it locked


def test_two_searches_do_not_share_a_study(tmp_path: Path) -> None:
    first = study(tmp_path / "s.db")
    with pytest.raises(OutputError, match="in use by process"):
        study(tmp_path / "s.db")
    first.close()


def test_a_file_that_is_no_study_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "rows.csv", tmp_path / "other.db"
    text.write_text("a,b\n" * 30)
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE models (name TEXT)")
    database.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(DataError, match="study must be a SQLite file of an earlier search"):
            study(path)
        assert path.read_bytes() == before
    with pytest.raises(OutputError, match="does not exist"):
        study(tmp_path / "nowhere" / "s.db")


def test_optuna_is_left_as_loud_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    with_default().close()
    assert optuna.logging.get_verbosity() == before


# Verdict


def verdict(first: Any, second: Any) -> Verdict:
    found = compared(first, second)
    errors = {"default": [float(one.mean()) for one in second], "tuned": [float(one.mean()) for one in first]}
    counts = {"through": 3, "behind": 1, "failed": 0}
    return Verdict(
        settings={"window": 6}, validation_ratio=0.9, test=found, errors=errors, rows=500, trials=counts
    )


def test_a_verdict_takes_what_is_better_by_more_than_chance() -> None:
    losses = np.random.default_rng(0).chisquare(1, size=(3, 500))
    better = verdict(0.9 * losses, losses)
    assert not better.keeps_default and better.test_ratio == pytest.approx(0.9)
    assert "is better and is taken" in str(better) and "10.0% below" in str(better)
    worse = verdict(1.1 * losses, losses)
    assert worse.keeps_default and "no better on new rows" in str(worse)


def test_a_verdict_counts_the_spread_over_seeds_as_chance() -> None:
    losses = np.random.default_rng(0).chisquare(1, size=(3, 500))
    spread = np.array([[0.6], [0.9], [1.15]])  # better in the mean; another training may be worse
    found = verdict(spread * losses, losses)
    assert found.test is not None and found.test.change < -0.05
    assert found.keeps_default and "not better by more than chance" in str(found)


def test_a_verdict_of_one_seed_says_what_it_does_not_count() -> None:
    losses = np.random.default_rng(0).chisquare(1, size=(1, 500))
    found = Verdict(
        settings={"window": 6},
        validation_ratio=0.9,
        test=compared([*(0.9 * losses)], [*losses]),
        errors={"tuned": [0.9], "default": [1.0]},
        rows=500,
        trials={"through": 2, "behind": 0, "failed": 0},
    )
    assert "1 seed, so that chance in training is not counted" in str(found)


def test_a_verdict_pairs_the_seeds() -> None:
    losses = np.random.default_rng(0).chisquare(1, size=(3, 500))
    uneven = np.array([[1.0], [5.0], [20.0]]) * losses  # a default that seeds decide on
    found = verdict(0.5 * uneven, uneven)
    assert found.test_ratio == pytest.approx(0.5) and not found.keeps_default


def test_a_verdict_is_plain_values() -> None:
    losses = np.random.default_rng(0).chisquare(1, size=(2, 50))
    found = json.loads(json.dumps(verdict(losses, losses).as_dict()))
    assert found["kept_default"] and found["test"]["p"] == 1.0 and found["test_ratio"] == 1.0


def test_details_stay_as_they_were_where_only_one_of_them_is_searched() -> None:
    model = VARNNRegressor(details=Details(patience=3))
    space = Space(model, {"memory_size": [4, 8]})
    model.set_params(**space.settings({"details__memory_size": "8"}))
    assert model.details == Details(patience=3, memory_size=8)


@pytest.mark.parametrize("name", ["a?b.db", "50%2f.db", "{a}.db", "a#b.db"])
def test_a_study_is_in_the_file_that_was_named(name: str, tmp_path: Path) -> None:
    study(path=tmp_path / name).close()
    assert [one.name for one in tmp_path.iterdir()] == [name]
